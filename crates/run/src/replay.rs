// SPDX-License-Identifier: Apache-2.0
//! Capture files as if their packets came now: for somebody who watches.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use turboflow_capture::CaptureFile;
use turboflow_capture::filter::FileFilter;
use turboflow_packet::Frame;

use crate::files::{LeftOut, Reading, Stop};
use crate::outputs::Outputs;
use crate::snapshots::{LiveSnapshot, Snapshots};
use crate::{ConfigError, FilesReport, Meter, Output, PipelineConfig};

/// How often a wait for the next packet looks at signals and questions.
const TICK: Duration = Duration::from_millis(20);
/// The longest wait for one packet: what is further away comes at once. Captures have holes of hours:
/// files of several days, clocks that were set.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// At what pace packets come, and by which clock.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Seconds of the capture in a second of the clock.
    pub speed: f64,
    /// The clock.
    pub clock: ReplayClock,
}

impl Pace {
    /// By the clock of the system.
    #[must_use]
    pub const fn of(speed: f64) -> Self {
        let clock = ReplayClock::SYSTEM;
        Self { speed, clock }
    }

    /// Waits for the next packet, or a tick of that.
    fn wait(&self, away_ns: u64) {
        let seconds = away_ns as f64 / 1e9 / self.speed;
        let time = Duration::try_from_secs_f64(seconds).unwrap_or(TICK);
        (self.clock.wait)(time.min(TICK));
    }
}

/// The clock of a replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayClock {
    /// Time since some start, which never runs backwards.
    pub now: fn() -> Duration,
    /// Waits for so long at most.
    pub wait: fn(Duration),
}

impl ReplayClock {
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

/// Meters capture files as [`record_files`](crate::record_files) does, at the pace of their packets,
/// or with `None` as fast as they can be read. A silence of more than 10 s is left out.
///
/// Where times never run backwards, records are the same at any speed. `snapshots` are answered
/// between packets.
///
/// # Errors
/// As of `record_files`.
pub fn replay_files(
    config: &PipelineConfig,
    files: Vec<CaptureFile>,
    filter: Option<&FileFilter>,
    outputs: Vec<Output>,
    pace: Option<Pace>,
    stop: &Stop,
    snapshots: &Snapshots,
) -> Result<FilesReport, ConfigError> {
    let layout = config.compile()?;
    let writing = Outputs::start(outputs, config.prompt)?;
    // A file waits for whoever looks at it.
    writing.wait_for_all(None);
    let meter = Meter::new(config, |_shard| writing.deliver(layout.schema()))?;
    let mut reading = Reading::new(&files, filter);
    let mut replay = Replay {
        meter,
        clock_ns: 0,
        pacing: pace.map(|pace| Pacing { pace, from: None }),
    };
    for file in files {
        reading.file(file, stop, &mut |_| (), |frames, left_out| {
            let answer = |replay: &mut Replay| {
                if snapshots.are_wanted() {
                    snapshots.answer(replay.snapshot(left_out, &writing));
                }
            };
            replay.frames(frames, stop, answer);
        });
    }
    Ok(reading.report(replay.meter, writing))
}

struct Replay {
    meter: Meter,
    /// The time up to which packets have been metered.
    clock_ns: u64,
    pacing: Option<Pacing>,
}

impl Replay {
    /// Meters frames when they are due; once somebody asks to stop, those that are left at once.
    fn frames(&mut self, frames: &[Frame<'_>], stop: &Stop, answer: impl Fn(&mut Self)) {
        let mut left = frames;
        while let Some(next) = left.first() {
            let mut reached_ns = u64::MAX;
            if let Some(pacing) = &mut self.pacing
                && !stop.asked()
            {
                let pace = pacing.pace;
                reached_ns = pacing.reached_ns(next.timestamp_ns);
                if next.timestamp_ns > reached_ns {
                    self.clock_ns = reached_ns;
                    self.meter.advance(reached_ns);
                    answer(self);
                    pace.wait(next.timestamp_ns - reached_ns);
                    continue;
                }
            }
            let is_due = |frame: &&Frame<'_>| frame.timestamp_ns <= reached_ns;
            let (now, later) = left.split_at(left.iter().take_while(is_due).count());
            self.meter.frames(now);
            self.clock_ns = now.last().map_or(self.clock_ns, |last| last.timestamp_ns);
            left = later;
        }
        answer(self);
    }

    fn snapshot(&mut self, left_out: LeftOut, writing: &Outputs) -> LiveSnapshot {
        let mut ledger = self.meter.snapshot();
        left_out.count(&mut ledger);
        LiveSnapshot {
            ledger,
            clock_ns: self.clock_ns,
            interfaces: Vec::new(),
            outputs: writing.snapshot(),
        }
    }
}

/// Turns the time that passes into the time of a capture.
struct Pacing {
    pace: Pace,
    /// A moment of the clock, and the time of the capture then.
    from: Option<(Duration, u64)>,
}

impl Pacing {
    /// How far the capture has come. Where its next packet is more than [`LONGEST_WAIT`] away, or that
    /// much too old, the pace begins anew with it.
    fn reached_ns(&mut self, next_ns: u64) -> u64 {
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
