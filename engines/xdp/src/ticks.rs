// SPDX-License-Identifier: Apache-2.0
//! The kernel's ticks on its monotonic clock. The program counts them as its coarse clock, and user
//! space can read the monotonic clock.
//!
//! Where timers are finer than ticks, the kernel derives ticks from that clock, so they are
//! equidistant (`tick_do_update_jiffies64` in `kernel/time/tick-sched.c`). Elsewhere it counts
//! interrupts and may miss some; the program then reads the kernel's coarse clock.

use std::sync::atomic::Ordering;

use libbpf_rs::{Object, ProgramInput};

use crate::KernelError;
use crate::memory::SharedMemory;
use crate::object::{TICK_NAME, map};

/// The times of the kernel's ticks on its monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// The period of a tick.
    pub(crate) tick_ns: u64,
    /// The time at which tick number 0 would have been; the difference wraps.
    pub(crate) zero_ns: u64,
}

/// Word offsets in `struct tick` of `bpf/layout.h`.
const NUMBER_AT: usize = 0;
const READ_NS_AT: usize = 1;
/// Number of ticks to meet. The earliest of all readings counts; others may be late.
const TICKS_MET: u64 = 3;
/// A tick counts as met if the two readings around it are at most this fraction (1/16) of a tick
/// apart. On a busy machine they may be further apart.
const MET_WITHIN: u64 = 16;
/// Readings end after this many ticks, met or not.
const LONGEST_SEARCH_TICKS: u64 = 100;

/// What the program read together.
#[derive(Clone, Copy, Debug)]
struct Reading {
    number: u64,
    read_ns: u64,
}

impl Reading {
    /// The time of number 0 if the tick were at this moment: a late reading gives a later time.
    const fn zero_ns(self, tick_ns: u64) -> u64 {
        self.read_ns.wrapping_sub(self.number.wrapping_mul(tick_ns))
    }

    /// Whether a tick came between an `earlier` reading and this one, and the two are close.
    const fn has_met_tick(self, earlier: Self, tick_ns: u64) -> bool {
        self.number.wrapping_sub(earlier.number) == 1
            && self.read_ns.wrapping_sub(earlier.read_ns) <= tick_ns / MET_WITHIN
    }
}

impl Ticks {
    /// Takes readings until some ticks have been met: some tens of milliseconds, longer on a busy
    /// machine.
    ///
    /// # Errors
    /// Where the kernel does not run the program.
    pub(crate) fn find(object: &Object, tick_ns: u64) -> Result<Self, KernelError> {
        let what = ".data.tick";
        let told = SharedMemory::map(&map(object, what)?)
            .map_err(|source| KernelError::Map { what, source })?;
        let program = object
            .progs_mut()
            .find(|program| program.name() == TICK_NAME)
            .ok_or(KernelError::Incomplete { name: TICK_NAME })?;
        let read = || {
            // The frame's content does not matter.
            let input = ProgramInput {
                data_in: Some(&[0; 64]),
                ..ProgramInput::default()
            };
            program
                .test_run(input)
                .map_err(KernelError::refused("read its ticks"))?;
            let word = |at: usize| told.words()[at].load(Ordering::Relaxed);
            Ok(Reading {
                number: word(NUMBER_AT),
                read_ns: word(READ_NS_AT),
            })
        };
        let zero_ns = earliest_zero_ns(tick_ns, read)?;
        Ok(Self { tick_ns, zero_ns })
    }

    /// The time of the last tick before `now_ns`.
    pub(crate) const fn last_before(&self, now_ns: u64) -> u64 {
        let since_zero_ns = now_ns.wrapping_sub(self.zero_ns);
        now_ns - since_zero_ns % self.tick_ns
    }
}

/// The time of number 0 by the earliest of the readings.
fn earliest_zero_ns<E>(
    tick_ns: u64,
    mut read: impl FnMut() -> Result<Reading, E>,
) -> Result<u64, E> {
    let first = read()?;
    let (mut last, mut ticks_met) = (first, 0);
    let mut zero_ns = first.zero_ns(tick_ns);
    while ticks_met < TICKS_MET
        && last.read_ns.wrapping_sub(first.read_ns) < LONGEST_SEARCH_TICKS * tick_ns
    {
        let reading = read()?;
        let later_by_ns = reading.zero_ns(tick_ns).wrapping_sub(zero_ns);
        if (later_by_ns as i64) < 0 {
            zero_ns = zero_ns.wrapping_add(later_by_ns);
        }
        ticks_met += u64::from(reading.has_met_tick(last, tick_ns));
        last = reading;
    }
    Ok(zero_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_go_through_zero() {
        // Tick numbers start just below 2^32, so number 0 was long before the clock's zero.
        let zero_ns = 1_000_000_u64.wrapping_sub(4_294_000_000 * 4_000_000);
        let ticks = Ticks {
            tick_ns: 4_000_000,
            zero_ns,
        };
        let at = |ns| ticks.last_before(ns);
        assert_eq!(
            [at(1_000_000), at(4_999_999), at(5_000_000)],
            [1_000_000, 1_000_000, 5_000_000]
        );
    }

    /// Readings every `apart_ns` of ticks every 4 ms from 1 ms on. `paused_ns` pass before the
    /// second reading.
    fn found_ns(apart_ns: u64, paused_ns: u64) -> (u64, u64) {
        let (tick_ns, zero_ns) = (4_000_000, 1_000_000);
        let (mut readings, mut read_ns) = (0, zero_ns + 3_900_000);
        let found_ns = earliest_zero_ns(tick_ns, || {
            readings += 1;
            read_ns += apart_ns + if readings == 2 { paused_ns } else { 0 };
            let number = (read_ns - zero_ns) / tick_ns;
            Ok::<_, ()>(Reading { number, read_ns })
        });
        (found_ns.expect("no reading fails") - zero_ns, readings)
    }

    #[test]
    fn a_pause_of_the_machine_does_not_end_the_search() {
        // The first reading after the pause is 0.96 ms after a tick.
        for paused_ns in [0, 13_000_000] {
            let (late_ns, _) = found_ns(30_000, paused_ns);
            assert!(late_ns < 30_000, "{late_ns}");
        }
    }

    #[test]
    fn the_search_ends_where_no_two_readings_are_close() {
        // A reading comes 3.898 ms after a tick, and each later one 1 µs sooner.
        assert_eq!(found_ns(3_999_000, 0), (3_798_000, 102));
    }
}
