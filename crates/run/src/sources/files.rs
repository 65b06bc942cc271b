// SPDX-License-Identifier: Apache-2.0
//! Capture files, read one after the other as one stream of packets: as fast as possible, or at a
//! given pace.

use turboflow_capture::filter::FileFilter;
use turboflow_capture::{CaptureFile, ReadError};
use turboflow_packet::Frame;

use super::pace::Pacing;
use super::sink::FrameSink;
use super::{Files, FilesProgress, Progress, RunEvent, RunReport, Steps};
use crate::snapshots::LiveSnapshot;
use crate::{Ledger, Meter, Stop};

/// Frames read at a time.
const BATCH_FRAMES: usize = 1_024;
/// How often progress is reported.
const BATCHES_PER_PROGRESS: u32 = 64;

/// Meters files to their end. Answers requests for snapshots between packets.
pub(super) fn read(
    files: Files,
    meter: Meter,
    steps: &Steps<'_>,
    mut observe: impl FnMut(RunEvent<'_>),
) -> RunReport {
    let (stop, snapshots) = (steps.controls.stop, steps.controls.snapshots);
    let mut reading = FilesReader::new(&files.files, files.filter);
    let mut metering = PacedMeter {
        meter,
        clock_ns: 0,
        pacing: files.pace.map(Pacing::new),
    };
    for file in files.files {
        reading.file(file, stop, &mut observe, |frames, unmetered| {
            metering.frames(frames, stop, |metering| {
                if snapshots.are_wanted() {
                    snapshots.answer(metering.snapshot(unmetered, steps));
                }
            });
        });
    }
    reading.report(metering.meter.finish().ledger)
}

/// Hands the frames of files to `sink`, as fast as possible.
pub(super) fn inspect(files: Files, stop: &Stop, mut sink: impl FrameSink) -> RunReport {
    let mut reading = FilesReader::new(&files.files, files.filter);
    for file in files.files {
        reading.file(file, stop, &mut |_| (), |frames, _| sink.frames(frames));
    }
    reading.report(sink.finish().ledger())
}

/// The files of a run, and what was read so far.
struct FilesReader {
    filter: Option<Box<FileFilter>>,
    damaged: Vec<ReadError>,
    stopped: bool,
    packets: u64,
    bytes_of_files_done: u64,
    bytes_total: Option<u64>,
    unmetered: UnmeteredPackets,
}

/// Packets that never reach the meter.
#[derive(Clone, Copy, Debug, Default)]
struct UnmeteredPackets {
    packets_unknown_link_type: u64,
    bytes_unknown_link_type: u64,
    packets_filtered: u64,
    bytes_filtered: u64,
    source_dropped: u64,
}

impl UnmeteredPackets {
    /// Adds these packets to the ledger of a meter.
    const fn count(self, ledger: &mut Ledger) {
        ledger.packets_unknown_link_type = self.packets_unknown_link_type;
        ledger.bytes_unknown_link_type = self.bytes_unknown_link_type;
        ledger.packets_filtered = self.packets_filtered;
        ledger.bytes_filtered = self.bytes_filtered;
        ledger.packets_received += self.packets_unknown_link_type + self.packets_filtered;
        ledger.bytes_received += self.bytes_unknown_link_type + self.bytes_filtered;
        ledger.source_dropped = self.source_dropped;
    }
}

impl FilesReader {
    fn new(files: &[CaptureFile], filter: Option<Box<FileFilter>>) -> Self {
        Self {
            filter,
            damaged: Vec::new(),
            stopped: false,
            packets: 0,
            bytes_of_files_done: 0,
            bytes_total: files.iter().map(CaptureFile::bytes_total).sum(),
            unmetered: UnmeteredPackets::default(),
        }
    }

    /// Hands the frames of a file to `take` in batches, with the packets left out so far.
    fn file(
        &mut self,
        mut file: CaptureFile,
        stop: &Stop,
        observe: &mut impl FnMut(RunEvent<'_>),
        mut take: impl FnMut(&[Frame<'_>], UnmeteredPackets),
    ) {
        let mut batches = 0u32;
        loop {
            if stop.asked() {
                self.stopped = true;
                break;
            }
            match file.next_batch(BATCH_FRAMES) {
                Ok(None) => break,
                Ok(Some(mut batch)) => {
                    self.packets += batch.frames().len() as u64;
                    if let Some(filter) = &self.filter {
                        let (packets, bytes) = batch.filter(filter);
                        self.unmetered.packets_filtered += packets;
                        self.unmetered.bytes_filtered += bytes;
                    }
                    take(batch.frames(), self.unmetered);
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
        let counters = file.counters();
        let unmetered = &mut self.unmetered;
        unmetered.packets_unknown_link_type += counters.packets_unknown_link_type;
        unmetered.bytes_unknown_link_type += counters.bytes_unknown_link_type;
        unmetered.source_dropped += counters.source_dropped;
        self.bytes_of_files_done += file.bytes_read();
    }

    /// Ends the run. `ledger` is that of the meter or the inspector.
    fn report(self, mut ledger: Ledger) -> RunReport {
        self.unmetered.count(&mut ledger);
        RunReport {
            damaged: self.damaged,
            stopped: self.stopped,
            ..RunReport::of_ledger(ledger)
        }
    }
}

/// A meter, and the pace at which it gets packets.
struct PacedMeter {
    meter: Meter,
    /// All packets before this time have been metered.
    clock_ns: u64,
    /// `None`: as fast as possible.
    pacing: Option<Pacing>,
}

impl PacedMeter {
    /// Meters frames when they are due. After a request to stop, meters the rest at once.
    fn frames(&mut self, frames: &[Frame<'_>], stop: &Stop, answer: impl Fn(&mut Self)) {
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
        answer(self);
    }

    fn snapshot(&mut self, unmetered: UnmeteredPackets, steps: &Steps<'_>) -> LiveSnapshot {
        let mut ledger = self.meter.snapshot();
        unmetered.count(&mut ledger);
        LiveSnapshot {
            ledger,
            clock_ns: self.clock_ns,
            interfaces: Vec::new(),
            outputs: steps.writing.snapshot(),
        }
    }
}
