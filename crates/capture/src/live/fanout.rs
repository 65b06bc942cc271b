// SPDX-License-Identifier: Apache-2.0
//! Which reader of an interface gets a packet, as a program that the kernel runs.
//!
//! A flow must come to one reader, whole and in order. The kernel's own hash does not promise that:
//! of a fragmented datagram only the first fragment has ports. So the outermost pair of IP addresses
//! decides, either way round, behind VLAN tags, MPLS labels and PPPoE; everything else goes to the first
//! reader, and so does what the kernel cannot read, since a program that fails returns 0.
//!
//! # Source
//! `net/packet/af_packet.c`: `packet_rcv_fanout` shows the program packets from their network header
//! on, behind the outermost tag, but packets that leave from their link-layer header on;
//! `include/uapi/linux/filter.h`: what the kernel knows of a packet, at offsets from `SKF_AD_OFF`.

use turboflow_packet::LinkType;

use crate::filter::{Instruction, Program};

/// The most readers.
pub const MAX_READERS: usize = 64;
/// Tags looked through, besides the outermost where the kernel took it out.
const TAGS: usize = 3;
const LABELS: usize = 4;

/// `SKF_AD_OFF + SKF_AD_PROTOCOL`.
const PROTOCOL_AT: u32 = 0xffff_f000;
/// `SKF_AD_OFF + SKF_AD_PKTTYPE`.
const PACKET_TYPE_AT: u32 = 0xffff_f004;

const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD_BEHIND: u16 = 0x40;
const LOAD_HALF_BEHIND: u16 = 0x48;
const LOAD_BYTE_BEHIND: u16 = 0x50;
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

/// Places that are jumped to.
#[derive(Clone, Copy)]
enum Place {
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

impl Place {
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

/// A program in the making; jumps know where to once it is whole.
struct Assembly {
    instructions: Vec<Instruction>,
    jumps: Vec<(usize, Place)>,
    places: [usize; Place::COUNT],
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

    /// Goes on here, or jumps.
    fn jump(&mut self, code: u16, k: u32, to: Place) {
        self.jumps.push((self.instructions.len(), to));
        self.add(code, k);
    }

    const fn here_is(&mut self, place: Place) {
        self.places[place.index()] = self.instructions.len();
    }

    fn jump_by_type(&mut self) {
        for (kind, to) in [
            (0x0800, Place::V4),
            (0x86dd, Place::V6),
            (0x8847, Place::Labels),
            (0x8848, Place::Labels),
            (0x8864, Place::PointToPoint),
        ] {
            self.jump(IF_EQUAL, kind, to);
        }
    }

    /// Keeps what was loaded and moves on.
    fn step(&mut self, bytes: u32) {
        self.add(STORE, 0);
        self.add(TAKE_INDEX, 0);
        self.add(ADD, bytes);
        self.add(INDEX_TAKES, 0);
        self.add(LOAD_MEMORY, 0);
    }

    /// From the link layer to the IP header, whose offset is then in the index register.
    fn ethernet(&mut self) {
        self.add(LOAD_BYTE, PACKET_TYPE_AT);
        // All but packets that leave.
        self.add(IF_EQUAL, u32::from(libc::PACKET_OUTGOING));
        let outgoing = self.instructions.len() - 1;
        self.instructions[outgoing].jump_true = 1;
        self.jump(JUMP, 0, Place::Received);
        self.add(INDEX_IS, 14);
        self.add(LOAD_HALF, 12);
        self.jump(JUMP, 0, Place::Typed);
        self.here_is(Place::Received);
        self.add(INDEX_IS, 0);
        self.add(LOAD_HALF, PROTOCOL_AT);
        self.here_is(Place::Typed);
        for tag in 0..TAGS {
            self.jump_by_type();
            for kind in [0x8100, 0x88a8, 0x9100] {
                self.jump(IF_EQUAL, kind, Place::Tag(tag));
            }
            self.jump(JUMP, 0, Place::FirstReader);
            self.here_is(Place::Tag(tag));
            self.add(LOAD_HALF_BEHIND, 2);
            self.step(4);
        }
        self.jump_by_type();
        self.jump(JUMP, 0, Place::FirstReader);
        // PPPoE, and the protocol in two bytes, as good as always.
        self.here_is(Place::PointToPoint);
        self.add(LOAD_HALF_BEHIND, 6);
        self.step(8);
        self.jump(IF_EQUAL, 0x0021, Place::V4);
        self.jump(IF_EQUAL, 0x0057, Place::V6);
        self.jump(JUMP, 0, Place::FirstReader);
        self.here_is(Place::Labels);
        for _ in 0..LABELS {
            self.add(LOAD_BYTE_BEHIND, 2);
            self.step(4);
            self.jump(IF_ANY_BIT, 1, Place::Version);
        }
        self.jump(JUMP, 0, Place::FirstReader);
    }

    /// From the IP header to a number that is the same for both directions.
    fn addresses(&mut self) {
        self.here_is(Place::Version);
        self.add(LOAD_BYTE_BEHIND, 0);
        self.add(AND, 0xf0);
        self.jump(IF_EQUAL, 0x40, Place::V4);
        self.jump(IF_EQUAL, 0x60, Place::V6);
        self.here_is(Place::FirstReader);
        self.add(RETURN, 0);
        self.here_is(Place::V6);
        self.xor_words(8, 8);
        self.jump(JUMP, 0, Place::Mix);
        self.here_is(Place::V4);
        self.xor_words(12, 2);
        self.here_is(Place::Mix);
    }

    fn xor_words(&mut self, from: u32, words: u32) {
        for word in 0..words {
            self.add(LOAD_WORD_BEHIND, from + 4 * word);
            self.add(STORE, word);
        }
        for word in 0..words - 1 {
            self.add(INDEX_FROM_MEMORY, word);
            self.add(XOR_INDEX, 0);
        }
    }

    /// From that number to a reader: neighbours differ in few bits, which have to reach all others.
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

/// A program that gives the number of the reader for a packet.
pub(crate) fn program(readers: usize, link_type: LinkType) -> Program {
    let mut assembly = Assembly {
        instructions: Vec::new(),
        jumps: Vec::new(),
        places: [0; Place::COUNT],
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
