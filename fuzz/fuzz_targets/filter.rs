// SPDX-License-Identifier: Apache-2.0
//! Any filter program is refused, or terminates on every frame.
//!
//! Input: a byte with the number of instructions, eight bytes per instruction, then a frame.

#![no_main]

use libfuzzer_sys::fuzz_target;
use turboflow_capture::filter::{Instruction, Program};
use turboflow_packet::{Frame, LinkType};

fuzz_target!(|input: &[u8]| {
    let Some((&count, rest)) = input.split_first() else {
        return;
    };
    let (instructions, bytes) = rest.split_at(rest.len().min(usize::from(count) * 8));
    let instructions = instructions.as_chunks::<8>().0.iter().map(|bytes| {
        let [low, high, jump_true, jump_false, k @ ..] = *bytes;
        Instruction {
            // All valid codes fit in nine bits.
            code: u16::from_le_bytes([low, high & 1]),
            jump_true,
            jump_false,
            k: u32::from_le_bytes(k),
        }
    });
    let Ok(program) = Program::new(instructions.collect()) else {
        return;
    };
    let frame = Frame {
        bytes,
        wire_length_bytes: bytes.len() as u32,
        timestamp_ns: 0,
        interface: 0,
        link_type: LinkType::Ethernet,
    };
    let takes = program.takes(&frame);
    assert_eq!(
        takes,
        program.cut_to(64).takes(&frame),
        "a snap length does not change the decision"
    );
});
