// SPDX-License-Identifier: Apache-2.0
//! Programs of the classic BPF machine, and an interpreter for them.
//!
//! # Source
//! S. McCanne, V. Jacobson: "The BSD Packet Filter", USENIX Winter 1993, section 3.3; numbers as in
//! `include/uapi/linux/bpf_common.h`.

use turboflow_packet::Frame;

/// One instruction, in the form that libpcap and the kernel use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The opcode.
    pub code: u16,
    /// Instructions to skip if the condition holds.
    pub jump_true: u8,
    /// Instructions to skip if it does not hold.
    pub jump_false: u8,
    /// The operand.
    pub k: u32,
}

/// A program that cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("filter program: instruction {at} of {length} (code {code:#04x}) {what}")]
pub struct InvalidProgram {
    /// Index of the invalid instruction, from 0.
    pub at: usize,
    /// Number of instructions.
    pub length: usize,
    /// Its opcode.
    pub code: u16,
    /// What is wrong with it.
    pub what: &'static str,
}

/// A program that always terminates: it only jumps forward, and its last instruction returns. It
/// only returns constants, so that they can be limited to a snap length ([`Self::cut_to`]). libpcap
/// compiles no other returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(Vec<Instruction>);

/// The longest program that the kernel accepts (`BPF_MAXINSNS`).
const MAX_INSTRUCTIONS: usize = 4_096;
/// Words of scratch memory (`BPF_MEMWORDS`).
const MEMORY_WORDS: usize = 16;

/// The class of an instruction, in the low three bits of its opcode.
mod class {
    pub(super) const LOAD: u16 = 0;
    pub(super) const LOAD_INDEX: u16 = 1;
    pub(super) const STORE: u16 = 2;
    pub(super) const STORE_INDEX: u16 = 3;
    pub(super) const COMPUTE: u16 = 4;
    pub(super) const JUMP: u16 = 5;
    pub(super) const RETURN: u16 = 6;
}

/// The operand is the index register instead of `k`.
const OF_INDEX: u16 = 0x08;
const RETURN_K: u16 = 0x06;
const RETURN_ACCUMULATOR: u16 = 0x16;

/// What programs can read of a frame.
pub(crate) trait Captured {
    /// `N` captured bytes at an offset, if they exist.
    fn bytes_at<const N: usize>(&self, at: u32) -> Option<[u8; N]>;

    fn word(&self, at: u32) -> Option<u32> {
        self.bytes_at(at).map(u32::from_be_bytes)
    }

    fn half(&self, at: u32) -> Option<u32> {
        self.bytes_at(at).map(u16::from_be_bytes).map(u32::from)
    }

    fn byte(&self, at: u32) -> Option<u32> {
        self.bytes_at(at).map(u8::from_be_bytes).map(u32::from)
    }
}

impl Captured for [u8] {
    fn bytes_at<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        let at = at as usize;
        self.get(at..at.checked_add(N)?)?.try_into().ok()
    }
}

/// A frame with another link-layer header in place of the captured one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reheaded<'a> {
    pub(super) header: [u8; 4],
    pub(super) frame: &'a [u8],
}

impl Captured for Reheaded<'_> {
    fn bytes_at<const N: usize>(&self, at: u32) -> Option<[u8; N]> {
        let mut bytes: [u8; N] = self.frame.bytes_at(at)?;
        let header = self.header.iter().skip(at as usize);
        for (byte, other) in bytes.iter_mut().zip(header) {
            *byte = *other;
        }
        Some(bytes)
    }
}

impl Program {
    /// Checks that a program can run.
    ///
    /// # Errors
    /// The first invalid instruction.
    pub fn new(instructions: Vec<Instruction>) -> Result<Self, InvalidProgram> {
        let length = instructions.len();
        if length == 0 || length > MAX_INSTRUCTIONS {
            return Err(InvalidProgram {
                at: 0,
                length,
                code: 0,
                what: "there are none, or more than 4096",
            });
        }
        for (at, instruction) in instructions.iter().enumerate() {
            if let Some(what) = fault(instruction, length - at - 1) {
                return Err(InvalidProgram {
                    at,
                    length,
                    code: instruction.code,
                    what,
                });
            }
        }
        Ok(Self(instructions))
    }

    /// A program that accepts every frame completely.
    #[must_use]
    pub fn take_everything() -> Self {
        Self(vec![returning(u32::MAX)])
    }

    /// A program that rejects every frame.
    #[must_use]
    pub fn take_nothing() -> Self {
        Self(vec![returning(0)])
    }

    /// This program, returning at most `bytes` bytes of each frame.
    #[must_use]
    pub fn cut_to(&self, bytes: u32) -> Self {
        let cut = |instruction: &Instruction| match instruction.code {
            RETURN_K => returning(instruction.k.min(bytes)),
            _ => *instruction,
        };
        Self(self.0.iter().map(cut).collect())
    }

    /// The instructions.
    #[must_use]
    pub fn instructions(&self) -> &[Instruction] {
        &self.0
    }

    /// Whether the program accepts a frame.
    #[must_use]
    pub fn takes(&self, frame: &Frame<'_>) -> bool {
        self.run(frame.bytes, frame.wire_length_bytes).unwrap_or(0) != 0
    }

    /// How many bytes of the frame the program accepts. `None` if it reads beyond the captured
    /// bytes or divides by zero. Both reject the frame.
    pub(crate) fn run<C: Captured + ?Sized>(
        &self,
        captured: &C,
        wire_length_bytes: u32,
    ) -> Option<u32> {
        let (mut accumulator, mut index) = (0_u32, 0_u32);
        let mut memory = [0_u32; MEMORY_WORDS];
        let mut at = 0;
        loop {
            // Programs end with a return and only jump forward, so that there always is an
            // instruction.
            let Instruction {
                code,
                jump_true,
                jump_false,
                k,
            } = *self.0.get(at)?;
            at += 1;
            let operand = if code & OF_INDEX == 0 { k } else { index };
            match code & 7 {
                class::LOAD => {
                    accumulator = match code {
                        0x20 => captured.word(k)?,
                        0x28 => captured.half(k)?,
                        0x30 => captured.byte(k)?,
                        0x40 => captured.word(index.checked_add(k)?)?,
                        0x48 => captured.half(index.checked_add(k)?)?,
                        0x50 => captured.byte(index.checked_add(k)?)?,
                        0x60 => memory[k as usize % MEMORY_WORDS],
                        0x80 => wire_length_bytes,
                        _ => k,
                    }
                }
                class::LOAD_INDEX => {
                    index = match code {
                        0x61 => memory[k as usize % MEMORY_WORDS],
                        0x81 => wire_length_bytes,
                        // The length of an IPv4 header.
                        0xb1 => (captured.byte(k)? & 0x0f) << 2,
                        _ => k,
                    }
                }
                class::STORE => memory[k as usize % MEMORY_WORDS] = accumulator,
                class::STORE_INDEX => memory[k as usize % MEMORY_WORDS] = index,
                class::COMPUTE => accumulator = compute(code & 0xf0, accumulator, operand)?,
                class::JUMP => {
                    let skip = match code & 0xf0 {
                        0x00 => k as usize,
                        condition if holds(condition, accumulator, operand) => jump_true.into(),
                        _ => jump_false.into(),
                    };
                    at += skip;
                }
                class::RETURN => return Some(k),
                _ if code == 0x07 => index = accumulator,
                _ => accumulator = index,
            }
        }
    }
}

const fn returning(bytes: u32) -> Instruction {
    Instruction {
        code: RETURN_K,
        jump_true: 0,
        jump_false: 0,
        k: bytes,
    }
}

/// What is wrong with an instruction that is followed by `behind` others.
fn fault(instruction: &Instruction, behind: usize) -> Option<&'static str> {
    let Instruction {
        code,
        jump_true,
        jump_false,
        k,
    } = *instruction;
    let reach = match code {
        0x05 => k as usize,
        _ => usize::from(jump_true.max(jump_false)),
    };
    match code {
        0x00 | 0x20 | 0x28 | 0x30 | 0x40 | 0x48 | 0x50 | 0x80 | 0x01 | 0x81 | 0xb1 => {}
        0x60 | 0x61 | 0x02 | 0x03 if k as usize >= MEMORY_WORDS => {
            return Some("uses memory there is not");
        }
        0x60 | 0x61 | 0x02 | 0x03 => {}
        0x34 | 0x94 if k == 0 => return Some("divides by zero"),
        // + - * / | & << >> negate % ^, with k or the index register.
        0x04..=0xaf if code & 7 == class::COMPUTE => {}
        0x05 | 0x15 | 0x1d | 0x25 | 0x2d | 0x35 | 0x3d | 0x45 | 0x4d if reach < behind => {}
        0x05 | 0x15 | 0x1d | 0x25 | 0x2d | 0x35 | 0x3d | 0x45 | 0x4d => {
            return Some("jumps past the end");
        }
        RETURN_K => return None,
        RETURN_ACCUMULATOR => return Some("returns a length that cannot be cut"),
        0x07 | 0x87 => {}
        _ => return Some("is not known"),
    }
    (behind == 0).then_some("is the last and does not return")
}

fn compute(operation: u16, left: u32, right: u32) -> Option<u32> {
    Some(match operation {
        0x00 => left.wrapping_add(right),
        0x10 => left.wrapping_sub(right),
        0x20 => left.wrapping_mul(right),
        0x30 => left.checked_div(right)?,
        0x40 => left | right,
        0x50 => left & right,
        0x60 => left.checked_shl(right).unwrap_or(0),
        0x70 => left.checked_shr(right).unwrap_or(0),
        0x80 => left.wrapping_neg(),
        0x90 => left.checked_rem(right)?,
        _ => left ^ right,
    })
}

const fn holds(condition: u16, left: u32, right: u32) -> bool {
    match condition {
        0x10 => left == right,
        0x20 => left > right,
        0x30 => left >= right,
        _ => left & right != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn instruction(code: u16, jump_true: u8, jump_false: u8, k: u32) -> Instruction {
        Instruction {
            code,
            jump_true,
            jump_false,
            k,
        }
    }

    /// The output of `tcpdump -dd -y EN10MB ip and port 53`, reduced to UDP and without fragments.
    fn udp_to_port_53() -> Program {
        Program::new(vec![
            instruction(0x28, 0, 0, 12),
            instruction(0x15, 0, 6, 0x0800),
            instruction(0x30, 0, 0, 23),
            instruction(0x15, 0, 4, 17),
            instruction(0xb1, 0, 0, 14),
            instruction(0x48, 0, 0, 16),
            instruction(0x15, 0, 1, 53),
            instruction(0x06, 0, 0, 262_144),
            instruction(0x06, 0, 0, 0),
        ])
        .unwrap()
    }

    fn frame() -> Vec<u8> {
        let mut frame = vec![0; 42];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[23] = 17;
        frame[37] = 53;
        frame
    }

    #[test]
    fn accepts_what_the_expression_says() {
        let (program, mut bytes) = (udp_to_port_53(), frame());
        assert_eq!(program.run(&bytes[..], 42), Some(262_144));
        bytes[37] = 54;
        assert_eq!(program.run(&bytes[..], 42), Some(0));
        // The program reads beyond the captured bytes.
        assert_eq!(program.run(&bytes[..36], 42), None);
        assert_eq!(program.cut_to(96).run(&frame()[..], 42), Some(96));
    }

    #[test]
    fn runs_every_instruction() {
        let run = |body: &[Instruction]| {
            let program = Program::new([body, &[returning(7)]].concat()).unwrap();
            program.run(&frame()[..], 1_500)
        };
        let leaves = |body: &[Instruction], accumulator| {
            let is_equal = instruction(0x15, 1, 0, accumulator);
            run(&[body, &[is_equal, returning(0)]].concat()) == Some(7)
        };
        let two = instruction(0x00, 0, 0, 2);
        let index_of_three = instruction(0x01, 0, 0, 3);
        for (code, k, expected) in [
            (0x04, 40, 42),
            (0x14, 1, 1),
            (0x24, 21, 42),
            (0x34, 2, 1),
            (0x44, 5, 7),
            (0x54, 3, 2),
            (0x64, 4, 32),
            (0x64, 40, 0),
            (0x74, 1, 1),
            (0x84, 0, u32::MAX - 1),
            (0x94, 2, 0),
            (0xa4, 7, 5),
            (0x0c, 0, 5),
            (0x9c, 0, 2),
        ] {
            let body = [two, index_of_three, instruction(code, 0, 0, k)];
            assert!(leaves(&body, expected), "{code:#x}");
        }
        let length = instruction(0x80, 0, 0, 0);
        assert!(leaves(&[length], 1_500));
        let store = [
            two,
            instruction(0x02, 0, 0, 15),
            length,
            instruction(0x60, 0, 0, 15),
        ];
        assert!(leaves(&store, 2));
        let through_index = [
            two,
            instruction(0x07, 0, 0, 0),
            length,
            instruction(0x87, 0, 0, 0),
        ];
        assert!(leaves(&through_index, 2));
        let by_zero = [two, instruction(0x01, 0, 0, 0), instruction(0x3c, 0, 0, 0)];
        assert_eq!(run(&by_zero), None);
        let past_the_end = [
            instruction(0x01, 0, 0, u32::MAX),
            instruction(0x40, 0, 0, 1),
        ];
        assert_eq!(run(&past_the_end), None);
    }

    #[test]
    fn refuses_programs_that_cannot_run() {
        let end = instruction(RETURN_K, 0, 0, 0);
        for wrong in [
            vec![],
            vec![instruction(0x28, 0, 0, 12)],
            vec![instruction(0x15, 1, 0, 0), end],
            vec![instruction(0x05, 0, 0, u32::MAX), end],
            vec![instruction(0x60, 0, 0, 16), end],
            vec![instruction(0x34, 0, 0, 0), end],
            vec![instruction(0xff, 0, 0, 0), end],
            vec![instruction(0xb4, 0, 0, 1), end],
            vec![instruction(RETURN_ACCUMULATOR, 0, 0, 0), end],
            vec![instruction(RETURN_ACCUMULATOR, 0, 0, 0)],
            vec![end; MAX_INSTRUCTIONS + 1],
        ] {
            assert!(Program::new(wrong).is_err());
        }
    }

    proptest! {
        #[test]
        fn every_accepted_program_terminates(
            codes in prop::collection::vec((0_u16..0x100, 0_u8..4, 0_u8..4, 0_u32..64), 1..40),
            bytes in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut body: Vec<_> = codes
                .into_iter()
                .map(|(code, t, f, k)| instruction(code, t, f, k))
                .filter(|i| fault(i, usize::MAX).is_none())
                .collect();
            body.extend([instruction(RETURN_K, 0, 0, 1); 70]);
            let program = Program::new(body).unwrap();
            let _ = program.run(&bytes[..], 1_500);
        }
    }
}
