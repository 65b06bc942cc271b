// SPDX-License-Identifier: Apache-2.0
//! The main job: capture files in, outputs written.

use std::sync::atomic::{AtomicBool, Ordering};

use turboflow_capture::filter::FileFilter;
use turboflow_capture::{CaptureFile, ReadError};

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
    let writing = Outputs::start(outputs, config.prompt);
    let mut meter = Meter::new(config, |_shard| writing.deliver(layout.schema()))?;
    let mut reading = Reading::new(&files, filter);
    for file in files {
        reading.file(file, &mut meter, stop, &mut progress);
    }
    let mut ledger = meter.finish().ledger;
    ledger.packets_unknown_link_type = reading.packets_unknown_link_type;
    ledger.bytes_unknown_link_type = reading.bytes_unknown_link_type;
    ledger.packets_received += reading.packets_unknown_link_type;
    ledger.bytes_received += reading.bytes_unknown_link_type;
    ledger.packets_filtered = reading.packets_filtered;
    ledger.bytes_filtered = reading.bytes_filtered;
    ledger.packets_received += reading.packets_filtered;
    ledger.bytes_received += reading.bytes_filtered;
    ledger.source_dropped = reading.source_dropped;
    let outputs = writing.finish();
    ledger.records_dropped = outputs.iter().map(|output| output.records_dropped).sum();
    ledger.records_written = outputs.iter().map(OutputReport::records_written).sum();
    Ok(FilesReport {
        ledger,
        damaged: reading.damaged,
        outputs,
        stopped: reading.stopped,
    })
}

/// What the files of a run have given so far.
struct Reading<'a> {
    filter: Option<&'a FileFilter>,
    damaged: Vec<ReadError>,
    stopped: bool,
    packets: u64,
    bytes_of_files_done: u64,
    bytes_total: Option<u64>,
    packets_unknown_link_type: u64,
    bytes_unknown_link_type: u64,
    source_dropped: u64,
    packets_filtered: u64,
    bytes_filtered: u64,
}

impl<'a> Reading<'a> {
    fn new(files: &[CaptureFile], filter: Option<&'a FileFilter>) -> Self {
        Self {
            filter,
            damaged: Vec::new(),
            stopped: false,
            packets: 0,
            bytes_of_files_done: 0,
            bytes_total: files.iter().map(CaptureFile::bytes_total).sum(),
            packets_unknown_link_type: 0,
            bytes_unknown_link_type: 0,
            source_dropped: 0,
            packets_filtered: 0,
            bytes_filtered: 0,
        }
    }

    fn file(
        &mut self,
        mut file: CaptureFile,
        meter: &mut Meter,
        stop: &Stop,
        progress: &mut impl FnMut(Progress),
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
                        self.packets_filtered += packets;
                        self.bytes_filtered += bytes;
                    }
                    meter.frames(batch.frames());
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
        self.packets_unknown_link_type += counters.packets_unknown_link_type;
        self.bytes_unknown_link_type += counters.bytes_unknown_link_type;
        self.source_dropped += counters.source_dropped;
        self.bytes_of_files_done += file.bytes_read();
    }
}
