// SPDX-License-Identifier: Apache-2.0
//! Runs that send their microflow records to a collector, which merges those of many probes:
//! `-w microflows+tcp://collector:4739`. Or they write them to a file: `-w probe.records`.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use turboflow_engine::wire::{Encoder, SenderCounters, WordColumns};
use turboflow_engine::{EngineCounters, MicroflowBatch};
use turboflow_formats::{ExportError, FlowWriter, Passed, WriteSummary};
use turboflow_record::FlowBatch;
use turboflow_run::{Mtu, Output, OutputConfig, RunConfig, Snapshots, wall_ns};
use turboflow_transport::{Microflows, SendOptions, Target, Tls, send_microflows};

use super::collectors::{own_domain, send_options};
use super::settings::Settings;
use crate::unfinished_file::UnfinishedFile;

/// Maximum bytes of a message in files.
const FILE_MESSAGE_BYTES: usize = 16 << 10;
/// How often a live run updates the counters that it sends to its collector.
const COUNTED_EVERY: Duration = Duration::from_secs(1);

/// Starts a thread that updates the counters in the messages of a live run, even if no one requests
/// metrics.
pub(super) fn count(
    run: &RunConfig,
    settings: &Settings,
    snapshots: &'static Snapshots,
) -> anyhow::Result<()> {
    let Some(counters) = settings.config.probe.clone().filter(|_| run.goes_on()) else {
        return Ok(());
    };
    let counting = move || {
        loop {
            pause();
            if let Some(snapshot) = snapshots.ask(COUNTED_EVERY) {
                counters.set(snapshot.ledger.of_sender());
            }
        }
    };
    let thread = std::thread::Builder::new().name("probe".to_owned());
    let started = thread.spawn(counting);
    started.context("cannot start the thread that counts for the collector")?;
    Ok(())
}

#[allow(
    clippy::disallowed_methods,
    reason = "counters are told at intervals, while packets come or not"
)]
fn pause() {
    std::thread::sleep(COUNTED_EVERY);
}

fn records(output: &OutputConfig, settings: &Settings) -> Microflows {
    let Mtu(message_bytes) = output.mtu;
    Microflows {
        layout: settings.layout.clone(),
        // Each start counts as another engine, because its counters restart at zero.
        engine_id: own_domain(),
        started_ns: wall_ns(),
        message_bytes: message_bytes.into(),
        counters: settings.config.probe.clone().unwrap_or_default(),
    }
}

/// The output that sends to `target`.
pub(super) fn output(
    target: &Target,
    run: &RunConfig,
    output: &OutputConfig,
    settings: &Settings,
    tls: Option<&Tls>,
) -> anyhow::Result<Output> {
    let options = SendOptions {
        tls: tls.cloned(),
        ..send_options(run, output)
    };
    Ok(Output {
        name: target.to_string(),
        writer: send_microflows(target, &records(output, settings), &options)?,
        // The sender enforces its own linger and deadline.
        may_stall: false,
    })
}

/// The output to a file, for `--engine records`.
pub(super) fn file(
    path: &Path,
    file: UnfinishedFile,
    output: &OutputConfig,
    settings: &Settings,
) -> Output {
    let records = records(output, settings);
    let writer = RecordsFile {
        name: path.display().to_string(),
        file: Some(file),
        columns: WordColumns::new(&records.layout),
        encoder: Encoder::new(&records.layout, records.engine_id, FILE_MESSAGE_BYTES),
        counters: records.counters,
        overrun: 0,
        complete_ns: 0,
        written: WriteSummary::default(),
    };
    Output {
        name: path.display().to_string(),
        writer: Box::new(writer),
        may_stall: false,
    }
}

/// Writes messages to a file, one after another.
struct RecordsFile {
    name: String,
    /// `None` after a failed write.
    file: Option<UnfinishedFile>,
    columns: WordColumns,
    encoder: Encoder,
    counters: Arc<SenderCounters>,
    /// Records that were discarded before they reached this writer.
    overrun: u64,
    complete_ns: u64,
    written: WriteSummary,
}

impl RecordsFile {
    /// Writes the messages that `encode` emits.
    fn put(
        &mut self,
        encode: impl FnOnce(&mut Encoder, &mut dyn FnMut(&[u8])),
    ) -> Result<(), ExportError> {
        let mut messages = Vec::new();
        encode(&mut self.encoder, &mut |message| messages.extend(message));
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        match file.write_all(&messages) {
            Ok(()) => {
                self.written.bytes += messages.len() as u64;
                Ok(())
            }
            Err(source) => Err(self.failed(source)),
        }
    }

    fn tell(&mut self, complete_ns: u64, is_end: bool) -> Result<(), ExportError> {
        let mut told = self.counters.get();
        told += &EngineCounters {
            microflows_dropped: self.overrun,
            microflows_unnamed: self.overrun,
            ..EngineCounters::default()
        };
        self.put(|encoder, emit| encoder.counters(&told, complete_ns, is_end, emit))
    }

    /// Gives up the file, which is then removed: a file without its end cannot be merged.
    fn failed(&mut self, source: io::Error) -> ExportError {
        self.file = None;
        self.written = WriteSummary::default();
        ExportError::Write {
            place: self.name.clone(),
            source,
            records: 0,
            kept: None,
        }
    }
}

impl FlowWriter for RecordsFile {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        let mut records = MicroflowBatch::default();
        self.columns.read(batch, &mut records);
        self.put(|encoder, emit| encoder.records(&records, emit))?;
        self.written.records += batch.rows() as u64;
        Ok(())
    }

    fn pass(&mut self, passed: Passed) -> Result<(), ExportError> {
        self.overrun = passed.records_overrun;
        if passed.watermark_ns > self.complete_ns {
            self.complete_ns = passed.watermark_ns;
            self.tell(passed.watermark_ns, false)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, ExportError> {
        self.tell(0, true)?;
        match self.file.take().map(UnfinishedFile::complete) {
            Some(Err(source)) => Err(self.failed(source)),
            Some(Ok(())) | None => Ok(self.written),
        }
    }
}
