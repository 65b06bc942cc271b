// SPDX-License-Identifier: Apache-2.0
//! The kernel's ticks on its monotonic clock. The program counts them as its coarse clock, and user
//! space can read the monotonic clock.
//!
//! Where timers are finer than ticks, the kernel derives ticks from that clock, so they are
//! equidistant (`tick_do_update_jiffies64` in `kernel/time/tick-sched.c`). Elsewhere it counts
//! interrupts and may miss some; the program then reads the kernel's coarse clock.

use std::sync::atomic::Ordering;

use libbpf_rs::{Object, ProgramInput};
use rustix::time::{ClockId, clock_gettime};

use crate::KernelError;
use crate::config::ns;
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
/// Number of ticks for which readings are taken. The earliest reading after a tick counts; others
/// may be late.
const TICKS_READ: u64 = 3;

impl Ticks {
    /// Takes readings until some ticks have passed, for some tens of milliseconds.
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
        let read_zero = || {
            // The frame's content does not matter.
            let input = ProgramInput {
                data_in: Some(&[0; 64]),
                ..ProgramInput::default()
            };
            program
                .test_run(input)
                .map_err(KernelError::refused("read its ticks"))?;
            let [number, read_ns] =
                [NUMBER_AT, READ_NS_AT].map(|at| told.words()[at].load(Ordering::Relaxed));
            // The time of number 0 if the tick were at this moment: a late reading gives a later
            // time.
            Ok(read_ns.wrapping_sub(number.wrapping_mul(tick_ns)))
        };
        let mut zero_ns: u64 = read_zero()?;
        let until_ns = now_ns().saturating_add(TICKS_READ * tick_ns);
        while now_ns() < until_ns {
            let later_by_ns = read_zero()?.wrapping_sub(zero_ns);
            if (later_by_ns as i64) < 0 {
                zero_ns = zero_ns.wrapping_add(later_by_ns);
            }
        }
        Ok(Self { tick_ns, zero_ns })
    }

    /// The time of the last tick before `now_ns`.
    pub(crate) const fn last_before(&self, now_ns: u64) -> u64 {
        let since_zero_ns = now_ns.wrapping_sub(self.zero_ns);
        now_ns - since_zero_ns % self.tick_ns
    }
}

fn now_ns() -> u64 {
    ns(clock_gettime(ClockId::Monotonic))
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
}
