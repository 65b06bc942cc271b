// SPDX-License-Identifier: Apache-2.0
//! The pace of a replay: capture files read as if their packets arrived now.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How often a wait for the next packet looks at signals and questions.
const TICK: Duration = Duration::from_millis(20);
/// The longest wait for one packet: what is further away comes at once. Captures have holes of
/// hours: files of several days, clocks that were set.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// At what pace packets come, and by which clock.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Seconds of the capture in a second of the clock.
    pub speed: f64,
    /// The clock.
    pub clock: PaceClock,
}

impl Pace {
    /// By the clock of the system.
    #[must_use]
    pub const fn of(speed: f64) -> Self {
        let clock = PaceClock::SYSTEM;
        Self { speed, clock }
    }

    /// Waits for the next packet, or a tick of that.
    pub(super) fn wait(&self, away_ns: u64) {
        let seconds = away_ns as f64 / 1e9 / self.speed;
        let time = Duration::try_from_secs_f64(seconds).unwrap_or(TICK);
        (self.clock.wait)(time.min(TICK));
    }
}

/// The clock of a replay.
#[derive(Clone, Copy, Debug)]
pub struct PaceClock {
    /// Time since some start, which never runs backwards.
    pub now: fn() -> Duration,
    /// Waits for so long at most.
    pub wait: fn(Duration),
}

impl PaceClock {
    /// The clock of the system.
    pub const SYSTEM: Self = Self {
        now: system_now,
        wait: system_wait,
    };
}

#[allow(
    clippy::disallowed_methods,
    reason = "packets are replayed at the pace at which they came"
)]
fn system_now() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[allow(
    clippy::disallowed_methods,
    reason = "nothing comes before the next packet is due, and a tick is short"
)]
fn system_wait(time: Duration) {
    std::thread::sleep(time);
}

/// Turns the time that passes into the time of a capture.
pub(super) struct Pacing {
    pace: Pace,
    /// A moment of the clock, and the time of the capture then.
    from: Option<(Duration, u64)>,
}

impl Pacing {
    pub(super) const fn new(pace: Pace) -> Self {
        Self { pace, from: None }
    }

    pub(super) const fn pace(&self) -> Pace {
        self.pace
    }

    /// How far the capture has come. Where its next packet is more than [`LONGEST_WAIT`] away, or
    /// that much too old, the pace begins anew with it.
    pub(super) fn reached_ns(&mut self, next_ns: u64) -> u64 {
        let now = (self.pace.clock.now)();
        if let Some((at, from_ns)) = self.from {
            let passed_ns = now.saturating_sub(at).as_nanos() as f64 * self.pace.speed;
            let reached_ns = from_ns.saturating_add(passed_ns as u64);
            let longest_ns = LONGEST_WAIT.as_nanos() as f64 * self.pace.speed;
            if (next_ns.abs_diff(reached_ns) as f64) <= longest_ns {
                return reached_ns;
            }
        }
        self.from = Some((now, next_ns));
        next_ns
    }
}
