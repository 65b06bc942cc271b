// SPDX-License-Identifier: Apache-2.0
//! The clock of the program, read from user space: the same one, so that the two agree on what came before what.

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::Clock;
use crate::ticks::Ticks;

/// How far the kernel's fast clock may run behind what another CPU has read: its rate is adjusted under its readers. A thousand
/// times what is seen.
const CLOCK_SLACK_NS: u64 = 1_000_000;
/// A wall clock that is off by more was set; less is what reading two clocks one after the other gives.
const STEP_NS: u64 = 10_000_000;
/// Readings, of which the best counts.
const READINGS: usize = 5;

/// The kernel's monotonic clock and what makes wall-clock time of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineClock {
    clock: Clock,
    wall_ns: fn() -> u64,
    /// From the monotonic clock's time to the wall clock's.
    offset_ns: u64,
    /// Where the program counts them.
    ticks: Option<Ticks>,
}

impl EngineClock {
    /// `wall_ns` reads the wall clock, in nanoseconds since 1970.
    pub(crate) fn new(clock: Clock, wall_ns: fn() -> u64, ticks: Option<Ticks>) -> Self {
        Self {
            clock,
            wall_ns,
            offset_ns: wall_offset_ns(wall_ns),
            ticks,
        }
    }

    /// What the program adds to its clock, or to the time of its ticks, to have the wall clock's; it may wrap.
    pub(crate) const fn offset_of_program_ns(&self) -> u64 {
        match self.ticks {
            Some(ticks) => self.offset_ns.wrapping_add(ticks.zero_ns),
            None => self.offset_ns,
        }
    }

    /// What a packet that arrived now would be stamped with, in nanoseconds since 1970.
    pub(crate) fn now_ns(&self) -> u64 {
        let id = match self.clock {
            Clock::Precise => ClockId::Monotonic,
            Clock::Coarse => ClockId::MonotonicCoarse,
        };
        let read_ns = ns(clock_gettime(id));
        // The coarse clock goes on soon after a tick was counted; it may be one behind, or ahead: `Self::slack_ns`.
        let now_ns = self
            .ticks
            .map_or(read_ns, |ticks| ticks.last_before(read_ns));
        now_ns.wrapping_add(self.offset_ns)
    }

    /// How far packets may be stamped behind what this clock said before they came.
    pub(crate) fn slack_ns(&self) -> u64 {
        // Ticks and the coarse clock go on one after the other, and may be a tick apart.
        CLOCK_SLACK_NS + self.ticks.map_or(0, |ticks| ticks.tick_ns)
    }

    /// Follows the wall clock if it was set; whether it was, and back.
    pub(crate) fn follow(&mut self) -> Option<Step> {
        let offset_ns = wall_offset_ns(self.wall_ns);
        let ahead_ns = offset_ns.wrapping_sub(self.offset_ns) as i64;
        if ahead_ns.unsigned_abs() < STEP_NS {
            return None;
        }
        self.offset_ns = offset_ns;
        Some(match ahead_ns < 0 {
            true => Step::Back,
            false => Step::Forward,
        })
    }
}

/// Where the wall clock was set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Back,
    Forward,
}

/// Both clocks run at one rate, however it is adjusted, so that this changes only where the wall clock is set.
fn wall_offset_ns(wall_ns: fn() -> u64) -> u64 {
    let reading = |_| {
        let before = ns(clock_gettime(ClockId::Monotonic));
        let wall = wall_ns();
        let after = ns(clock_gettime(ClockId::Monotonic));
        let took = after.wrapping_sub(before);
        (took, wall.wrapping_sub(before.wrapping_add(took / 2)))
    };
    let best = (0..READINGS).map(reading).min();
    best.map_or(0, |(_, offset_ns)| offset_ns)
}

pub(crate) fn ns(time: Timespec) -> u64 {
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_wall_clocks_time_and_follows_only_steps() {
        let wall_ns = || ns(clock_gettime(ClockId::Realtime));
        let mut clock = EngineClock::new(Clock::Precise, wall_ns, None);
        assert!(clock.now_ns().abs_diff(wall_ns()) < STEP_NS);
        assert_eq!(clock.follow(), None);
        clock.offset_ns += 3_600_000_000_000;
        assert_eq!(clock.follow(), Some(Step::Back));
        clock.offset_ns -= 3_600_000_000_000;
        assert_eq!(clock.follow(), Some(Step::Forward));
        assert_eq!(clock.follow(), None);
    }
}
