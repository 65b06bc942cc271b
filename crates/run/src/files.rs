// SPDX-License-Identifier: Apache-2.0
//! The main job: capture files in, outputs written.

use std::sync::atomic::{AtomicBool, Ordering};

use turboflow_capture::filter::FileFilter;
use turboflow_capture::{CaptureFile, ReadError};
use turboflow_packet::Frame;

use crate::outputs::Outputs;
use crate::{ConfigError, Ledger, Meter, Output, OutputReport, PipelineConfig};

/// Frames read at a time.
const BATCH_FRAMES: usize = 1_024;

/// Asks a run to stop reading, flush and finish; set it from a signal handler.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Nobody has asked yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Asks.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    #[must_use]
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Packets read.
    pub packets: u64,
    /// Bytes of the files read, as they lie on the disk.
    pub bytes_read: u64,
    /// Bytes of all files; `None` where one is a pipe.
    pub bytes_total: Option<u64>,
}

/// What a run over files did.
#[derive(Debug)]
pub struct FilesReport {
    /// Where everything went.
    pub ledger: Ledger,
    /// Files that could be read only up to a place.
    pub damaged: Vec<ReadError>,
    /// What became of the outputs.
    pub outputs: Vec<OutputReport>,
    /// Whether reading stopped before the end, because somebody asked for it.
    pub stopped: bool,
}

/// Meters capture files, one after the other, as one stream of packets.
///
/// Packets that `filter` does not take are counted and go no further. `progress` is called every
/// few thousand packets.
///
/// # Errors
/// What is wrong with the configuration. Damage to files and failing outputs are in the report:
/// what was read before is recorded.
pub fn record_files(
    config: &PipelineConfig,
    files: Vec<CaptureFile>,
    filter: Option<&FileFilter>,
    outputs: Vec<Output>,
    stop: &Stop,
    mut progress: impl FnMut(Progress),
) -> Result<FilesReport, ConfigError> {
    let layout = config.compile()?;
    let writing = Outputs::start(outputs, config.prompt)?;
    let mut meter = Meter::new(config, |_shard| writing.deliver(layout.schema()))?;
    let mut reading = Reading::new(&files, filter);
    for file in files {
        reading.file(file, stop, &mut progress, |frames, _| meter.frames(frames));
    }
    Ok(reading.report(meter, writing))
}

/// What the files of a run have given so far.
pub(crate) struct Reading<'a> {
    filter: Option<&'a FileFilter>,
    damaged: Vec<ReadError>,
    stopped: bool,
    packets: u64,
    bytes_of_files_done: u64,
    bytes_total: Option<u64>,
    left_out: LeftOut,
}

/// What the meter does not see.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut {
    packets_unknown_link_type: u64,
    bytes_unknown_link_type: u64,
    packets_filtered: u64,
    bytes_filtered: u64,
    source_dropped: u64,
}

impl LeftOut {
    /// Adds it to the ledger of a meter.
    pub(crate) const fn count(self, ledger: &mut Ledger) {
        ledger.packets_unknown_link_type = self.packets_unknown_link_type;
        ledger.bytes_unknown_link_type = self.bytes_unknown_link_type;
        ledger.packets_filtered = self.packets_filtered;
        ledger.bytes_filtered = self.bytes_filtered;
        ledger.packets_received += self.packets_unknown_link_type + self.packets_filtered;
        ledger.bytes_received += self.bytes_unknown_link_type + self.bytes_filtered;
        ledger.source_dropped = self.source_dropped;
    }
}

impl<'a> Reading<'a> {
    pub(crate) fn new(files: &[CaptureFile], filter: Option<&'a FileFilter>) -> Self {
        Self {
            filter,
            damaged: Vec::new(),
            stopped: false,
            packets: 0,
            bytes_of_files_done: 0,
            bytes_total: files.iter().map(CaptureFile::bytes_total).sum(),
            left_out: LeftOut::default(),
        }
    }

    /// Gives the frames of a file to `meter`, batch by batch, with what was left out before.
    pub(crate) fn file(
        &mut self,
        mut file: CaptureFile,
        stop: &Stop,
        progress: &mut impl FnMut(Progress),
        mut meter: impl FnMut(&[Frame<'_>], LeftOut),
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
                    if let Some(filter) = self.filter {
                        let (packets, bytes) = batch.filter(filter);
                        self.left_out.packets_filtered += packets;
                        self.left_out.bytes_filtered += bytes;
                    }
                    meter(batch.frames(), self.left_out);
                }
                Err(error) => {
                    self.damaged.push(error);
                    break;
                }
            }
            batches += 1;
            if batches.is_multiple_of(64) {
                progress(Progress {
                    packets: self.packets,
                    bytes_read: self.bytes_of_files_done + file.bytes_read(),
                    bytes_total: self.bytes_total,
                });
            }
        }
        let counters = file.counters();
        let left_out = &mut self.left_out;
        left_out.packets_unknown_link_type += counters.packets_unknown_link_type;
        left_out.bytes_unknown_link_type += counters.bytes_unknown_link_type;
        left_out.source_dropped += counters.source_dropped;
        self.bytes_of_files_done += file.bytes_read();
    }

    /// Ends the run: exports what is open and completes the outputs.
    pub(crate) fn report(self, meter: Meter, writing: Outputs) -> FilesReport {
        let mut ledger = meter.finish().ledger;
        self.left_out.count(&mut ledger);
        let outputs = writing.finish();
        ledger.records_dropped = outputs.iter().map(|output| output.records_dropped).sum();
        ledger.records_written = outputs.iter().map(OutputReport::records_written).sum();
        FilesReport {
            ledger,
            damaged: self.damaged,
            outputs,
            stopped: self.stopped,
        }
    }
}
