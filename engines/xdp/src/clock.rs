// SPDX-License-Identifier: Apache-2.0
//! Reads the program's clock in user space, so that both sides agree on the order of events.

use rustix::time::{ClockId, clock_gettime};

use crate::Clock;
use crate::config::ns;
use crate::ticks::Ticks;

/// How far the kernel's fast clock may be behind a reading on another CPU, because its rate is
/// adjusted concurrently. A thousand times the largest observed difference.
const CLOCK_SLACK_NS: u64 = 1_000_000;
/// A larger change of the offset is a step of the wall clock; a smaller one is a reading error.
const STEP_NS: u64 = 10_000_000;
/// Number of readings, of which the most precise is used.
const READINGS: usize = 5;

/// The kernel's monotonic clock, and its offset to the wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineClock {
    clock: Clock,
    wall_ns: fn() -> u64,
    /// Offset from the monotonic clock to the wall clock.
    offset_ns: u64,
    /// The kernel's ticks, if the program counts them.
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

    /// The offset that the program adds to its clock or to the time of its ticks. It may wrap.
    pub(crate) const fn offset_of_program_ns(&self) -> u64 {
        match self.ticks {
            Some(ticks) => self.offset_ns.wrapping_add(ticks.zero_ns),
            None => self.offset_ns,
        }
    }

    /// The timestamp of a packet that arrived now, in nanoseconds since 1970.
    pub(crate) fn now_ns(&self) -> u64 {
        let id = match self.clock {
            Clock::Precise => ClockId::Monotonic,
            Clock::Coarse => ClockId::MonotonicCoarse,
        };
        let read_ns = ns(clock_gettime(id));
        // The coarse clock advances soon after a tick is counted, so it may be one tick behind or
        // ahead: see `Self::slack_ns`.
        let now_ns = self
            .ticks
            .map_or(read_ns, |ticks| ticks.last_before(read_ns));
        now_ns.wrapping_add(self.offset_ns)
    }

    /// How far a packet's timestamp may be behind an earlier reading of this clock.
    pub(crate) fn slack_ns(&self) -> u64 {
        // Ticks and the coarse clock advance one after the other, and may differ by a tick.
        CLOCK_SLACK_NS + self.ticks.map_or(0, |ticks| ticks.tick_ns)
    }

    /// Adopts a step of the wall clock. Returns whether there was one, and whether it went back.
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

/// The direction of a step of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Back,
    Forward,
}

/// Both clocks have the same adjusted rate, so this changes only when the wall clock is set.
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
