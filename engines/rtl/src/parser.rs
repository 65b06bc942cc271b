// SPDX-License-Identifier: Apache-2.0
//! The simulated parser (`rtl/tf_parser.sv`): frames go in, and their descriptions come out.

use std::ffi::c_void;
use std::ptr::NonNull;

use crate::frames::{Given, GivenFrame, Handed, given};
use crate::line::{Arrival, Key};

/// 32-bit words of the longest key.
const KEY_WORDS: usize = 10;
/// Clocks within which a frame must be through, in addition to those of its beats.
const PATIENCE: u64 = 4_096;

/// The parser's description of a frame. As in `csrc/parser.cpp`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Said {
    key: [u32; KEY_WORDS],
    user: u64,
    length: u32,
    tcp_flags: u16,
    last_byte: u16,
    ttl: u8,
    tos: u8,
    is_v6: u8,
    is_longer: u8,
    reason: u8,
    padding: [u8; 3],
}

const _: () = assert!(size_of::<Said>() == 64);

unsafe extern "C" {
    fn tf_parser_new(seed: u32, fault: u32) -> *mut c_void;
    fn tf_parser_free(parser: *mut c_void);
    fn tf_parser_run(
        parser: *mut c_void,
        bytes: *const u8,
        frames: *const Given,
        count: usize,
        said: *mut Said,
        given_of_256: u32,
        ready_of_256: u32,
        limit: u64,
    ) -> usize;
    fn tf_parser_clocks(parser: *const c_void) -> u64;
}

/// A packet as the parser describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// What the meter takes.
    pub arrival: Arrival,
    /// Whether its key is an IPv6 key.
    pub is_v6: bool,
    /// Whether it declares more bytes than the frame has.
    pub is_longer: bool,
}

/// The parser's result for a frame: a packet, or why the host gets it whole.
pub type Verdict = Result<Parsed, Handed>;

/// The rate at which beats are offered to a block, and that at which its output is taken: in this
/// many of 256 clocks, at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Number of clocks, out of 256, in which a beat is offered.
    pub given_of_256: u32,
    /// Number of clocks, out of 256, in which the receiver is ready.
    pub ready_of_256: u32,
}

impl Pace {
    /// In every clock.
    pub const FULL: Self = Self {
        given_of_256: 256,
        ready_of_256: 256,
    };
}

/// A simulated parser.
pub struct VerilatedParser {
    parser: NonNull<c_void>,
}

// SAFETY: the simulated parser is used by one thread at a time, through `&mut self`, and has no
// thread-local state.
unsafe impl Send for VerilatedParser {}

impl Drop for VerilatedParser {
    fn drop(&mut self) {
        // SAFETY: the parser was made by `new` and is not used afterwards.
        unsafe { tf_parser_free(self.parser.as_ptr()) }
    }
}

impl VerilatedParser {
    /// A parser after its reset. `fault` removes one of its checks, to test the tests; 0: none.
    ///
    /// # Panics
    /// If memory is exhausted.
    #[must_use]
    pub fn new(seed: u32, fault: u32) -> Self {
        // SAFETY: the function takes any numbers.
        let parser = unsafe { tf_parser_new(seed, fault) };
        let parser = NonNull::new(parser).expect("the shim throws where memory is exhausted");
        Self { parser }
    }

    /// Number of clocks that the parser has run.
    #[must_use]
    pub fn clocks(&self) -> u64 {
        // SAFETY: the parser was made by `new`.
        unsafe { tf_parser_clocks(self.parser.as_ptr()) }
    }

    /// Gives frames, one after another, and returns the result for each, with its time and its
    /// length in bytes. There are fewer results than frames if the parser hangs.
    ///
    /// # Panics
    /// If a number of the pace is not 1 to 256, or a frame has no bytes.
    pub fn parse(&mut self, frames: &[GivenFrame], pace: Pace) -> Vec<(Verdict, u64, u32)> {
        let slowest = pace.given_of_256.min(pace.ready_of_256);
        assert!(slowest > 0, "{pace:?}");
        assert!(frames.iter().all(|frame| !frame.bytes.is_empty()));
        let (bytes, frames) = given(frames);
        let beats = bytes.len() as u64 / 64 + frames.len() as u64;
        let limit = PATIENCE + 4 * beats * 256 / u64::from(slowest);
        let mut said = vec![Said::default(); frames.len()];
        // SAFETY: the parser was made by `new`, and only this thread uses it. Frames and results
        // have the shim's layout. It reads as many bytes as the frames declare, and writes at most
        // one entry for each frame.
        let got = unsafe {
            tf_parser_run(
                self.parser.as_ptr(),
                bytes.as_ptr(),
                frames.as_ptr(),
                frames.len(),
                said.as_mut_ptr(),
                pace.given_of_256,
                pace.ready_of_256,
                limit,
            )
        };
        said.truncate(got);
        said.iter().map(verdict).collect()
    }
}

fn verdict(said: &Said) -> (Verdict, u64, u32) {
    let half = |at: usize| u64::from(said.key[at]);
    let key: Key = std::array::from_fn(|at| half(2 * at) | half(2 * at + 1) << 32);
    let verdict = match Handed::of_number(said.reason) {
        Some(reason) => Err(reason),
        None => Ok(Parsed {
            arrival: Arrival {
                key,
                time_ns: said.user,
                length_bytes: said.length,
                tcp_flags: said.tcp_flags,
                ttl: said.ttl,
                tos: said.tos,
            },
            is_v6: said.is_v6 == 1,
            is_longer: said.is_longer == 1,
        }),
    };
    (verdict, said.user, u32::from(said.last_byte) + 1)
}
