// SPDX-License-Identifier: Apache-2.0
//! Capture files, read one after the other as one stream of packets, as fast as possible or at a
//! given pace.

use turboflow_capture::filter::FileFilter;
use turboflow_capture::{CaptureFile, Counters, ReadError};
use turboflow_packet::Frame;

use super::pace::Pacing;
use super::sink::FrameSink;
use super::{Files, FilesProgress, Progress, RunEvent, RunReport, Steps};
use crate::snapshots::LiveSnapshot;
use crate::{Ledger, Meter, Stop};

/// The most frames that are read at a time.
const BATCH_FRAMES: usize = 1_024;
/// How many batches are read between two progress reports.
const BATCHES_PER_PROGRESS: u32 = 64;

/// Meters files to their end. Answers requests for snapshots between packets.
pub(super) fn read(
    files: Files,
    meter: Meter,
    steps: &Steps<'_>,
    mut observe: impl FnMut(RunEvent<'_>),
) -> RunReport {
    let (stop, snapshots) = (steps.controls.stop, steps.controls.snapshots);
    let packets = steps.controls.limits.packets;
    let mut reading = FilesReader::new(&files.files, files.filter, packets);
    let mut metering = PacedMeter {
        meter,
        clock_ns: 0,
        pacing: files.pace.map(Pacing::new),
        is_pipe: false,
    };
    for file in files.files {
        if reading.packets_left == 0 {
            break;
        }
        // Only a pipe has no length.
        metering.is_pipe = file.bytes_total().is_none() && metering.pacing.is_none();
        reading.file(file, stop, &mut observe, |frames, last_ns, counters| {
            metering.frames(frames, last_ns, stop, |metering| {
                if snapshots.are_wanted() {
                    snapshots.answer(metering.snapshot(counters, steps));
                }
            });
        });
    }
    reading.report(metering.meter.finish().ledger)
}

/// Hands the frames of files to `sink`, as fast as possible.
pub(super) fn inspect(files: Files, stop: &Stop, mut sink: impl FrameSink) -> RunReport {
    let mut reading = FilesReader::new(&files.files, files.filter, None);
    for file in files.files {
        reading.file(file, stop, &mut |_| (), |frames, _, _| sink.frames(frames));
    }
    reading.report(sink.finish().ledger())
}

/// The files of a run, and what has been read so far.
struct FilesReader {
    filter: Option<Box<FileFilter>>,
    damaged: Vec<ReadError>,
    stopped: bool,
    packets: u64,
    /// How many packets that pass the filter may still be read before the run ends by itself.
    packets_left: u64,
    tagged_filtered: u64,
    bytes_of_files_done: u64,
    bytes_total: Option<u64>,
    counters: FileCounters,
}

/// Counters of capture files: packets that never reach the meter, and packets whose times were
/// changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileCounters {
    packets_unknown_link_type: u64,
    bytes_unknown_link_type: u64,
    packets_filtered: u64,
    bytes_filtered: u64,
    source_dropped: u64,
    packets_without_time: u64,
    packets_time_clamped: u64,
}

impl FileCounters {
    /// Adds the counters of a file that has been read.
    pub const fn add(&mut self, file: &Counters) {
        self.packets_unknown_link_type += file.packets_unknown_link_type;
        self.bytes_unknown_link_type += file.bytes_unknown_link_type;
        self.source_dropped += file.source_dropped;
        self.packets_without_time += file.packets_without_time;
        self.packets_time_clamped += file.packets_time_clamped;
    }

    /// Adds the counters to the ledger of a meter.
    const fn count(self, ledger: &mut Ledger) {
        ledger.packets_unknown_link_type += self.packets_unknown_link_type;
        ledger.bytes_unknown_link_type += self.bytes_unknown_link_type;
        ledger.packets_filtered += self.packets_filtered;
        ledger.bytes_filtered += self.bytes_filtered;
        ledger.packets_received += self.packets_unknown_link_type + self.packets_filtered;
        ledger.bytes_received += self.bytes_unknown_link_type + self.bytes_filtered;
        ledger.source_dropped += self.source_dropped;
        ledger.packets_without_time += self.packets_without_time;
        ledger.packets_time_clamped += self.packets_time_clamped;
    }

    /// Packets that the capturing side reports lost.
    #[must_use]
    pub const fn source_dropped(&self) -> u64 {
        self.source_dropped
    }

    /// Adds the counters to the ledger of remote engines, which have seen none of these packets.
    pub(super) const fn count_besides(self, ledger: &mut Ledger) {
        ledger.source_seen +=
            self.packets_unknown_link_type + self.packets_filtered + self.source_dropped;
        self.count(ledger);
    }
}

impl FilesReader {
    fn new(files: &[CaptureFile], filter: Option<Box<FileFilter>>, packets: Option<u64>) -> Self {
        Self {
            filter,
            damaged: Vec::new(),
            stopped: false,
            packets: 0,
            packets_left: packets.unwrap_or(u64::MAX),
            tagged_filtered: 0,
            bytes_of_files_done: 0,
            bytes_total: files.iter().map(CaptureFile::bytes_total).sum(),
            counters: FileCounters::default(),
        }
    }

    /// Hands the frames of a file to `take` in batches, with the time of the last frame before
    /// filtering and the counters so far. The time is `None` if a pipe is silent.
    fn file(
        &mut self,
        mut file: CaptureFile,
        stop: &Stop,
        observe: &mut impl FnMut(RunEvent<'_>),
        mut take: impl FnMut(&[Frame<'_>], Option<u64>, FileCounters),
    ) {
        let mut batches = 0u32;
        loop {
            if stop.asked() {
                self.stopped = true;
                break;
            }
            if self.packets_left == 0 {
                break;
            }
            let most = match self.filter {
                Some(_) => BATCH_FRAMES,
                None => self.packets_left.min(BATCH_FRAMES as u64) as usize,
            };
            match file.next_batch(most) {
                Ok(None) => break,
                Ok(Some(mut batch)) => {
                    self.packets += batch.frames().len() as u64;
                    let last_ns = batch.frames().last().map(|frame| frame.timestamp_ns);
                    if let Some(filter) = &self.filter {
                        let filtered = batch.filter(filter, self.packets_left);
                        self.counters.packets_filtered += filtered.packets;
                        self.counters.bytes_filtered += filtered.bytes;
                        self.tagged_filtered += filtered.packets_tagged;
                    }
                    self.packets_left -= batch.frames().len() as u64;
                    take(batch.frames(), last_ns, self.counters);
                }
                Err(error) => {
                    self.damaged.push(error);
                    break;
                }
            }
            batches += 1;
            if batches.is_multiple_of(BATCHES_PER_PROGRESS) {
                observe(RunEvent::Progress(Progress::Files(FilesProgress {
                    packets: self.packets,
                    bytes_read: self.bytes_of_files_done + file.bytes_read(),
                    bytes_total: self.bytes_total,
                })));
            }
        }
        self.counters.add(&file.counters());
        self.bytes_of_files_done += file.bytes_read();
    }

    /// Ends the run. `ledger` is that of the meter or the inspector.
    fn report(self, mut ledger: Ledger) -> RunReport {
        self.counters.count(&mut ledger);
        RunReport {
            damaged: self.damaged,
            captures_dropped: self.counters.source_dropped,
            stopped: self.stopped,
            tagged_filtered: self.tagged_filtered,
            ..RunReport::of_ledger(ledger)
        }
    }
}

/// A meter, and the pace at which it is given packets.
struct PacedMeter {
    meter: Meter,
    /// All packets before this time have been metered.
    clock_ns: u64,
    /// `None`: as fast as possible.
    pacing: Option<Pacing>,
    /// Whether a pipe is read.
    is_pipe: bool,
}

impl PacedMeter {
    /// Meters frames when they are due. After a request to stop, meters the remaining frames at
    /// once.
    fn frames(
        &mut self,
        frames: &[Frame<'_>],
        last_ns: Option<u64>,
        stop: &Stop,
        answer: impl Fn(&mut Self),
    ) {
        let mut left = frames;
        while let Some(next) = left.first() {
            let mut due = left.len();
            if let Some(pacing) = &mut self.pacing
                && !stop.asked()
            {
                let reached_ns = pacing.reached_ns(next.timestamp_ns);
                if next.timestamp_ns > reached_ns {
                    let pace = pacing.pace();
                    self.clock_ns = reached_ns;
                    self.meter.advance(reached_ns);
                    answer(self);
                    pace.wait(next.timestamp_ns - reached_ns);
                    continue;
                }
                let is_due = |frame: &&Frame<'_>| frame.timestamp_ns <= reached_ns;
                due = left.iter().take_while(is_due).count();
            }
            let (now, later) = left.split_at(due);
            self.meter.frames(now);
            self.clock_ns = now.last().map_or(self.clock_ns, |last| last.timestamp_ns);
            left = later;
        }
        self.follow_pipe(last_ns);
        answer(self);
    }

    /// Moves the clock of a pipe to the last frame of a batch, even if the filter excluded it, so
    /// that flows need not wait for a frame that passes the filter. A silent pipe has no clock: the
    /// program that writes to it may hold packets back, and the wall clock would cut their flows.
    fn follow_pipe(&mut self, last_ns: Option<u64>) {
        if let Some(last_ns) = last_ns.filter(|last_ns| self.is_pipe && *last_ns > self.clock_ns) {
            self.clock_ns = last_ns;
            self.meter.advance(last_ns);
        }
    }

    fn snapshot(&mut self, counters: FileCounters, steps: &Steps<'_>) -> LiveSnapshot {
        let mut ledger = self.meter.snapshot();
        counters.count(&mut ledger);
        LiveSnapshot {
            ledger,
            clock_ns: self.clock_ns,
            interfaces: Vec::new(),
            own_counts: Vec::new(),
            outputs: steps.writing.snapshot(),
        }
    }
}
