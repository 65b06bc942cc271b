// SPDX-License-Identifier: Apache-2.0
//! Capture files as if their packets came now: for somebody who watches.

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

/// Meters capture files as [`record_files`](crate::record_files) does, `speed` times as fast as their
/// packets came, or with `None` as fast as they can be read. A silence of
/// more than 10 s is left out.
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
    speed: Option<f64>,
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
        pace: speed.map(|speed| Pace { speed, from: None }),
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
    pace: Option<Pace>,
}

impl Replay {
    /// Meters frames when they are due; once somebody asks to stop, those that are left at once.
    fn frames(&mut self, frames: &[Frame<'_>], stop: &Stop, answer: impl Fn(&mut Self)) {
        let mut left = frames;
        while let Some(next) = left.first() {
            let reached_ns = match &mut self.pace {
                Some(pace) if !stop.asked() => pace.reached_ns(next.timestamp_ns),
                _ => u64::MAX,
            };
            if next.timestamp_ns > reached_ns {
                self.clock_ns = reached_ns;
                self.meter.advance(reached_ns);
                answer(self);
                self.wait(next.timestamp_ns - reached_ns);
                continue;
            }
            let is_due = |frame: &&Frame<'_>| frame.timestamp_ns <= reached_ns;
            let (now, later) = left.split_at(left.iter().take_while(is_due).count());
            self.meter.frames(now);
            self.clock_ns = now.last().map_or(self.clock_ns, |last| last.timestamp_ns);
            left = later;
        }
        answer(self);
    }

    /// Waits for the next packet, or a tick of that.
    fn wait(&self, away_ns: u64) {
        let speed = self.pace.as_ref().map_or(1.0, |pace| pace.speed);
        let seconds = away_ns as f64 / 1e9 / speed;
        #[allow(
            clippy::disallowed_methods,
            reason = "nothing comes before the next packet is due, and a tick is short"
        )]
        std::thread::sleep(TICK.min(Duration::try_from_secs_f64(seconds).unwrap_or(TICK)));
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
struct Pace {
    /// Seconds of the capture in a second.
    speed: f64,
    /// A moment, and the time of the capture then.
    from: Option<(Instant, u64)>,
}

impl Pace {
    /// How far the capture has come. Where its next packet is more than [`LONGEST_WAIT`] away, or that
    /// much too old, the pace begins anew with it.
    fn reached_ns(&mut self, next_ns: u64) -> u64 {
        let now = instant();
        if let Some((at, from_ns)) = self.from {
            let passed_ns = (now - at).as_nanos() as f64 * self.speed;
            let reached_ns = from_ns.saturating_add(passed_ns as u64);
            let longest_ns = LONGEST_WAIT.as_nanos() as f64 * self.speed;
            if (next_ns.abs_diff(reached_ns) as f64) <= longest_ns {
                return reached_ns;
            }
        }
        self.from = Some((now, next_ns));
        next_ns
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "packets are replayed at the pace at which they came"
)]
fn instant() -> Instant {
    Instant::now()
}
