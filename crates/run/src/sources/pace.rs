// SPDX-License-Identifier: Apache-2.0
//! The pace of a replay: capture files read as if their packets arrived now.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How often a wait for the next packet is interrupted to check signals and requests.
const TICK: Duration = Duration::from_millis(20);
/// The longest wait for one packet. After a longer gap the next packet follows at once. Captures
/// may have gaps of hours, for example between files of different days, or if a clock was set.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The pace of the packets, and the clock that measures it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Seconds of the capture per second of the clock.
    pub speed: f64,
    /// The clock.
    pub clock: PaceClock,
}

impl Pace {
    /// A pace by the system clock.
    #[must_use]
    pub const fn of(speed: f64) -> Self {
        let clock = PaceClock::SYSTEM;
        Self { speed, clock }
    }

    /// Waits for the next packet, but no longer than one tick.
    pub(super) fn wait(&self, away_ns: u64) {
        let seconds = away_ns as f64 / 1e9 / self.speed;
        let time = Duration::try_from_secs_f64(seconds).unwrap_or(TICK);
        (self.clock.wait)(time.min(TICK));
    }
}

/// The clock of a replay.
#[derive(Clone, Copy, Debug)]
pub struct PaceClock {
    /// The time since a fixed start. It never runs backwards.
    pub now: fn() -> Duration,
    /// Waits for this time or less.
    pub wait: fn(Duration),
}

impl PaceClock {
    /// The system clock.
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
    reason = "waits for the next packet, at most one short tick"
)]
fn system_wait(time: Duration) {
    std::thread::sleep(time);
}

/// Maps the clock to the time of a capture.
pub(super) struct Pacing {
    pace: Pace,
    /// A time of the clock, and the corresponding time of the capture.
    from: Option<(Duration, u64)>,
}

impl Pacing {
    pub(super) const fn new(pace: Pace) -> Self {
        Self { pace, from: None }
    }

    pub(super) const fn pace(&self) -> Pace {
        self.pace
    }

    /// The time that the capture has reached. If the next packet is more than [`LONGEST_WAIT`] away
    /// in either direction, the pace starts again at that packet.
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
