// SPDX-License-Identifier: Apache-2.0
//! A BPF program that tells the kernel which reader of an interface gets a packet.
//!
//! All packets of a flow must go to one reader, in order. The kernel's own hash does not guarantee
//! this, because only the first fragment of a datagram has ports. The program therefore uses the
//! outermost pair of IP addresses, independent of direction, after VLAN tags, MPLS labels and
//! PPPoE. All other packets go to the first reader. So do packets that the program cannot read,
//! since a failing program returns 0.
//!
//! # Source
//! `net/packet/af_packet.c`: `packet_rcv_fanout` runs the program on received packets from their
//! network header on, after the outermost tag, but on sent packets from their link-layer header on.
//! `include/uapi/linux/filter.h`: packet metadata, at offsets from `SKF_AD_OFF`.

use turboflow_packet::LinkType;

use crate::filter::{Instruction, Program};

/// The most readers of an interface.
pub const MAX_READERS: usize = 64;
/// VLAN tags that are skipped, in addition to an outermost tag that the kernel has removed.
const TAGS: usize = 3;
const LABELS: usize = 4;

/// `SKF_AD_OFF + SKF_AD_PROTOCOL`.
const PROTOCOL_AT: u32 = 0xffff_f000;
/// `SKF_AD_OFF + SKF_AD_PKTTYPE`.
const PACKET_TYPE_AT: u32 = 0xffff_f004;

const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD_INDEXED: u16 = 0x40;
const LOAD_HALF_INDEXED: u16 = 0x48;
const LOAD_BYTE_INDEXED: u16 = 0x50;
const LOAD_MEMORY: u16 = 0x60;
const INDEX_IS: u16 = 0x01;
const INDEX_FROM_MEMORY: u16 = 0x61;
const STORE: u16 = 0x02;
const ADD: u16 = 0x04;
const MULTIPLY: u16 = 0x24;
const AND: u16 = 0x54;
const SHIFT_RIGHT: u16 = 0x74;
const REMAINDER: u16 = 0x94;
const XOR_INDEX: u16 = 0xac;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;
const INDEX_TAKES: u16 = 0x07;
const TAKE_INDEX: u16 = 0x87;

/// Jump targets.
#[derive(Clone, Copy)]
enum Target {
    Received,
    Typed,
    Tag(usize),
    Labels,
    PointToPoint,
    Version,
    FirstReader,
    V4,
    V6,
    Mix,
}

impl Target {
    const COUNT: usize = 9 + TAGS;

    const fn index(self) -> usize {
        match self {
            Self::Received => 0,
            Self::Typed => 1,
            Self::Labels => 2,
            Self::Version => 3,
            Self::FirstReader => 4,
            Self::V4 => 5,
            Self::V6 => 6,
            Self::Mix => 7,
            Self::PointToPoint => 8,
            Self::Tag(number) => 9 + number,
        }
    }
}

/// A program under construction. Jump offsets are filled in at the end.
struct Assembly {
    instructions: Vec<Instruction>,
    jumps: Vec<(usize, Target)>,
    places: [usize; Target::COUNT],
}

impl Assembly {
    fn add(&mut self, code: u16, k: u32) {
        self.instructions.push(Instruction {
            code,
            jump_true: 0,
            jump_false: 0,
            k,
        });
    }

    /// Jumps if the condition holds, and continues otherwise.
    fn jump(&mut self, code: u16, k: u32, to: Target) {
        self.jumps.push((self.instructions.len(), to));
        self.add(code, k);
    }

    const fn bind(&mut self, place: Target) {
        self.places[place.index()] = self.instructions.len();
    }

    fn jump_by_type(&mut self) {
        for (kind, to) in [
            (0x0800, Target::V4),
            (0x86dd, Target::V6),
            (0x8847, Target::Labels),
            (0x8848, Target::Labels),
            (0x8864, Target::PointToPoint),
        ] {
            self.jump(IF_EQUAL, kind, to);
        }
    }

    /// Stores the loaded value in scratch memory and advances the index register.
    fn step(&mut self, bytes: u32) {
        self.add(STORE, 0);
        self.add(TAKE_INDEX, 0);
        self.add(ADD, bytes);
        self.add(INDEX_TAKES, 0);
        self.add(LOAD_MEMORY, 0);
    }

    /// Leads from the link layer to the IP header, whose offset is then in the index register.
    fn ethernet(&mut self) {
        self.add(LOAD_BYTE, PACKET_TYPE_AT);
        // For sent packets only.
        self.add(IF_EQUAL, u32::from(libc::PACKET_OUTGOING));
        let outgoing = self.instructions.len() - 1;
        self.instructions[outgoing].jump_true = 1;
        self.jump(JUMP, 0, Target::Received);
        self.add(INDEX_IS, 14);
        self.add(LOAD_HALF, 12);
        self.jump(JUMP, 0, Target::Typed);
        self.bind(Target::Received);
        self.add(INDEX_IS, 0);
        self.add(LOAD_HALF, PROTOCOL_AT);
        self.bind(Target::Typed);
        for tag in 0..TAGS {
            self.jump_by_type();
            for kind in [0x8100, 0x88a8, 0x9100] {
                self.jump(IF_EQUAL, kind, Target::Tag(tag));
            }
            self.jump(JUMP, 0, Target::FirstReader);
            self.bind(Target::Tag(tag));
            self.add(LOAD_HALF_INDEXED, 2);
            self.step(4);
        }
        self.jump_by_type();
        self.jump(JUMP, 0, Target::FirstReader);
        // PPPoE, with the PPP protocol in two bytes, as nearly always.
        self.bind(Target::PointToPoint);
        self.add(LOAD_HALF_INDEXED, 6);
        self.step(8);
        self.jump(IF_EQUAL, 0x0021, Target::V4);
        self.jump(IF_EQUAL, 0x0057, Target::V6);
        self.jump(JUMP, 0, Target::FirstReader);
        self.bind(Target::Labels);
        for _ in 0..LABELS {
            self.add(LOAD_BYTE_INDEXED, 2);
            self.step(4);
            self.jump(IF_ANY_BIT, 1, Target::Version);
        }
        self.jump(JUMP, 0, Target::FirstReader);
    }

    /// Computes a number from the IP header that is equal for both directions.
    fn addresses(&mut self) {
        self.bind(Target::Version);
        self.add(LOAD_BYTE_INDEXED, 0);
        self.add(AND, 0xf0);
        self.jump(IF_EQUAL, 0x40, Target::V4);
        self.jump(IF_EQUAL, 0x60, Target::V6);
        self.bind(Target::FirstReader);
        self.add(RETURN, 0);
        self.bind(Target::V6);
        self.xor_words(8, 8);
        self.jump(JUMP, 0, Target::Mix);
        self.bind(Target::V4);
        self.xor_words(12, 2);
        self.bind(Target::Mix);
    }

    fn xor_words(&mut self, from: u32, words: u32) {
        for word in 0..words {
            self.add(LOAD_WORD_INDEXED, from + 4 * word);
            self.add(STORE, word);
        }
        for word in 0..words - 1 {
            self.add(INDEX_FROM_MEMORY, word);
            self.add(XOR_INDEX, 0);
        }
    }

    /// Maps that number to a reader. Neighbouring addresses differ in few bits, which must affect
    /// all others.
    fn reader(&mut self, readers: u32) {
        self.add(MULTIPLY, 0x9e37_79b1);
        self.add(INDEX_TAKES, 0);
        self.add(SHIFT_RIGHT, 15);
        self.add(XOR_INDEX, 0);
        self.add(MULTIPLY, 0x85eb_ca6b);
        self.add(SHIFT_RIGHT, 16);
        self.add(REMAINDER, readers);
        for reader in 1..readers {
            self.add(IF_EQUAL, reader);
            let at = self.instructions.len() - 1;
            self.instructions[at].jump_false = 1;
            self.add(RETURN, reader);
        }
        self.add(RETURN, 0);
    }

    fn finish(mut self) -> Program {
        for (at, place) in self.jumps {
            let skip = self.places[place.index()] - at - 1;
            let instruction = &mut self.instructions[at];
            match instruction.code {
                JUMP => instruction.k = skip as u32,
                _ => instruction.jump_true = skip as u8,
            }
        }
        Program::new(self.instructions).expect("it jumps forward and ends with a return")
    }
}

/// The program that returns the number of a packet's reader.
pub(crate) fn program(readers: usize, link_type: LinkType) -> Program {
    let mut assembly = Assembly {
        instructions: Vec::new(),
        jumps: Vec::new(),
        places: [0; Target::COUNT],
    };
    match link_type {
        LinkType::Ethernet => assembly.ethernet(),
        _ => assembly.add(INDEX_IS, 0),
    }
    assembly.addresses();
    assembly.reader(readers as u32);
    assembly.finish()
}

#[cfg(test)]
mod tests;
