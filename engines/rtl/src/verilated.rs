// SPDX-License-Identifier: Apache-2.0
//! The line in SystemVerilog, translated to C++ by Verilator, behind five C functions.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ptr::NonNull;

use crate::body::{BODY_WORDS, alone_of_body, base_of_record};
use crate::built::{DIRECT, V4};
use crate::hash::SEED_WORDS;
use crate::line::{Arrival, Key, Left, Line, Step, Why};
use crate::size::{Build, LineConfig, line_clocks};

/// 32-bit words of the longest key.
const KEY_WORDS: usize = 10;

/// The registers of a line. As in `csrc/shim.cpp`.
#[repr(C)]
struct Registers {
    seed: [u32; 2 * SEED_WORDS],
    stage_mask: u32,
    bucket_mask: u32,
    ends_cut: u32,
    sweep_every: u32,
    age_period: u32,
    fault: u32,
}

/// A step. As in `csrc/shim.cpp`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct GivenStep {
    time_ns: u64,
    kind: u32,
    length_bytes: u32,
    key: [u32; KEY_WORDS],
    tcp_flags: u16,
    ttl: u8,
    tos: u8,
    padding: u32,
}

/// A token that leaves the line. As in `csrc/shim.cpp`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Token {
    kind: u32,
    why: u32,
    key: [u32; KEY_WORDS],
    body: [u32; BODY_WORDS],
}

const _: () = assert!(size_of::<GivenStep>() == 64 && size_of::<Token>() == 76);

/// Clocks that a packet waits after a flush or a sweep, and some more.
const WAITING_CLOCKS: usize = 10;

/// `InputPacket` and `InputCell` in `rtl/tf_pkg.sv`.
const PACKET: u32 = 1;
const CELL: u32 = 2;
/// `KindEpoch` and `KindAlone` in `rtl/tf_pkg.sv`.
const KIND_EPOCH: u32 = 4;
const KIND_ALONE: u32 = 6;

type New = unsafe extern "C" fn(*const Registers) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Give = unsafe extern "C" fn(
    *mut c_void,
    *const GivenStep,
    usize,
    *mut usize,
    *mut Token,
    usize,
    u64,
) -> usize;
type Clocks = unsafe extern "C" fn(*const c_void) -> u64;
type Clean = unsafe extern "C" fn(*const c_void) -> u32;

macro_rules! line_functions {
    ($new:ident, $free:ident, $give:ident, $clocks:ident, $clean:ident) => {
        unsafe extern "C" {
            fn $new(registers: *const Registers) -> *mut c_void;
            fn $free(line: *mut c_void);
            fn $give(
                line: *mut c_void,
                steps: *const GivenStep,
                count: usize,
                taken: *mut usize,
                tokens: *mut Token,
                room: usize,
                limit: u64,
            ) -> usize;
            fn $clocks(line: *const c_void) -> u64;
            fn $clean(line: *const c_void) -> u32;
        }
    };
}

line_functions!(tf_v4_new, tf_v4_free, tf_v4_give, tf_v4_clocks, tf_v4_clean);
line_functions!(tf_v6_new, tf_v6_free, tf_v6_give, tf_v6_clocks, tf_v6_clean);
line_functions!(
    tf_direct_new,
    tf_direct_free,
    tf_direct_give,
    tf_direct_clocks,
    tf_direct_clean
);

unsafe extern "C" {
    fn tf_failures() -> u32;
}

/// The functions of one translated line.
#[derive(Clone, Copy)]
struct Functions {
    new: New,
    free: Free,
    give: Give,
    clocks: Clocks,
    clean: Clean,
}

impl Functions {
    fn of(build: Build) -> Self {
        if build == V4 {
            return Self {
                new: tf_v4_new,
                free: tf_v4_free,
                give: tf_v4_give,
                clocks: tf_v4_clocks,
                clean: tf_v4_clean,
            };
        }
        if build == DIRECT {
            return Self {
                new: tf_direct_new,
                free: tf_direct_free,
                give: tf_direct_give,
                clocks: tf_direct_clocks,
                clean: tf_direct_clean,
            };
        }
        Self {
            new: tf_v6_new,
            free: tf_v6_free,
            give: tf_v6_give,
            clocks: tf_v6_clocks,
            clean: tf_v6_clean,
        }
    }
}

/// Why a simulated line stopped. Only a mistake in the line can cause this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// An assertion in the SystemVerilog failed. Its name is on standard error.
    #[error("an assertion failed in the simulated line")]
    Assertion,
    /// The line does not take its input.
    #[error("the simulated line took no input for {clocks} clocks")]
    Stuck {
        /// Number of clocks without progress.
        clocks: u64,
    },
}

/// The line in SystemVerilog, simulated clock by clock.
pub struct VerilatedLine {
    functions: Functions,
    line: NonNull<c_void>,
    config: LineConfig,
    given: Vec<GivenStep>,
    tokens: Vec<Token>,
    /// Starts of the cells of both parities; the parity of the last cell whose mark has left the
    /// line; and the starts of the cells whose marks have not left it yet.
    starts_ns: [u64; 2],
    parity: usize,
    coming_ns: VecDeque<u64>,
}

// SAFETY: the simulated line is used by one thread at a time, through `&mut self`, and has no
// thread-local state: `tf_failures` only increases, and is only compared within one call.
unsafe impl Send for VerilatedLine {}

impl Drop for VerilatedLine {
    fn drop(&mut self) {
        // SAFETY: the line was made by `new` and is not used afterwards.
        unsafe { (self.functions.free)(self.line.as_ptr()) }
    }
}

impl VerilatedLine {
    /// Tokens taken from the line at the same time.
    const ROOM: usize = 1 << 10;

    /// An empty line.
    ///
    /// # Panics
    /// If memory is exhausted.
    #[must_use]
    pub fn new(config: LineConfig) -> Self {
        let half = |at: usize| (config.seed[at / 2] >> (32 * (at % 2))) as u32;
        let registers = Registers {
            seed: std::array::from_fn(half),
            stage_mask: config.size.stages - 1,
            bucket_mask: config.size.buckets - 1,
            ends_cut: config.ends_cut.into(),
            sweep_every: config.sweep_every.into(),
            age_period: config.age_period - 1,
            fault: config.fault,
        };
        let functions = Functions::of(config.build);
        // SAFETY: `registers` has the layout of the shim's and lives during the call.
        let line = unsafe { (functions.new)(&raw const registers) };
        Self {
            functions,
            line: NonNull::new(line).expect("the shim throws where memory is exhausted"),
            config,
            given: Vec::new(),
            tokens: vec![Token::default(); Self::ROOM],
            starts_ns: [0; 2],
            parity: 0,
            coming_ns: VecDeque::new(),
        }
    }

    /// Number of clocks that the line has run.
    #[must_use]
    pub fn clocks(&self) -> u64 {
        // SAFETY: the line was made by `new`.
        unsafe { (self.functions.clocks)(self.line.as_ptr()) }
    }

    /// Whether no stage holds a record of an ended cell. A stage learns of a cell when the cell's
    /// mark reaches it, within [`Line::latency`].
    #[must_use]
    pub fn is_clean(&self) -> bool {
        // SAFETY: the line was made by `new`.
        unsafe { (self.functions.clean)(self.line.as_ptr()) != 0 }
    }

    /// As [`Line::give`], for lines that may contain mistakes.
    ///
    /// # Errors
    /// Why the line stopped.
    pub fn try_give(&mut self, steps: &[Step], left: &mut Vec<Left>) -> Result<(), Stopped> {
        self.given.clear();
        self.given.extend(steps.iter().map(given));
        let cells = steps.iter().filter_map(|step| match step {
            Step::Cell(start_ns) => Some(*start_ns),
            _ => None,
        });
        self.coming_ns.extend(cells);
        let mut done = 0;
        while done < self.given.len() {
            let limit = self.limit();
            let (mut taken, rest) = (0, &self.given[done..]);
            // SAFETY: the line was made by `new`, and only this thread uses it. Steps and tokens
            // have the shim's layout. It reads `rest.len()` steps and writes at most `tokens.len()`
            // tokens.
            let (got, failed) = unsafe {
                let before = tf_failures();
                let got = (self.functions.give)(
                    self.line.as_ptr(),
                    rest.as_ptr(),
                    rest.len(),
                    &raw mut taken,
                    self.tokens.as_mut_ptr(),
                    self.tokens.len(),
                    limit,
                );
                (got, tf_failures() != before)
            };
            for at in 0..got {
                let token = self.tokens[at];
                self.take(&token, left);
            }
            if failed {
                return Err(Stopped::Assertion);
            }
            if taken == 0 && got < self.tokens.len() {
                return Err(Stopped::Stuck { clocks: limit });
            }
            done += taken;
        }
        Ok(())
    }

    /// Clocks within which a step must be taken, or the room for tokens must be full. A cell may
    /// wait until the line is empty, for which every bucket is visited as many times as it has
    /// slots.
    fn limit(&self) -> u64 {
        4_096 + 8 * u64::from(self.config.build.slots(self.config.size)) + self.given.len() as u64
    }

    fn take(&mut self, token: &Token, left: &mut Vec<Left>) {
        if token.kind == KIND_EPOCH {
            self.parity ^= 1;
            self.starts_ns[self.parity] = self.coming_ns.pop_front().unwrap_or_default();
            return;
        }
        let key = key_of(token);
        let why = match token.why {
            0 => Why::Collision,
            1 => Why::Age,
            _ => Why::Cut,
        };
        let base = match token.kind {
            KIND_ALONE => {
                let (time_ns, length_bytes, tcp_flags, ttl, tos) = alone_of_body(&token.body);
                let packet = Arrival {
                    key,
                    time_ns,
                    length_bytes,
                    tcp_flags,
                    ttl,
                    tos,
                };
                packet.base()
            }
            _ => base_of_record(&token.body, |parity| self.starts_ns[parity]),
        };
        left.push(Left { key, base, why });
    }
}

impl Line for VerilatedLine {
    fn latency(&self) -> usize {
        WAITING_CLOCKS + line_clocks(1 << self.config.build.stage_bits)
    }

    /// # Panics
    /// If the line stops.
    fn give(&mut self, steps: &[Step], left: &mut Vec<Left>) {
        if let Err(stopped) = self.try_give(steps, left) {
            panic!("{stopped}");
        }
    }
}

fn given(step: &Step) -> GivenStep {
    match step {
        Step::Idle => GivenStep::default(),
        Step::Cell(start_ns) => GivenStep {
            kind: CELL,
            time_ns: *start_ns,
            ..GivenStep::default()
        },
        Step::Packet(packet) => GivenStep {
            kind: PACKET,
            time_ns: packet.time_ns,
            length_bytes: packet.length_bytes,
            key: std::array::from_fn(|at| (packet.key[at / 2] >> (32 * (at % 2))) as u32),
            tcp_flags: packet.tcp_flags,
            ttl: packet.ttl,
            tos: packet.tos,
            padding: 0,
        },
    }
}

fn key_of(token: &Token) -> Key {
    std::array::from_fn(|at| u64::from(token.key[2 * at]) | u64::from(token.key[2 * at + 1]) << 32)
}
