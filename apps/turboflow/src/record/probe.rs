// SPDX-License-Identifier: Apache-2.0
//! Runs that send their microflow records to a collector which merges those of many probes:
//! `-w microflows+tcp://collector:4739`, or to a file: `-w probe.records`.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use turboflow_engine::wire::{Encoder, SenderCounters, WordColumns};
use turboflow_engine::{EngineCounters, MicroflowBatch};
use turboflow_formats::{ExportError, FlowWriter, Passed, WriteSummary};
use turboflow_merge::Layout;
use turboflow_record::{FlowBatch, InputSet};
use turboflow_run::{BridgeConfig, Mtu, Output, OutputConfig, RunConfig};
use turboflow_transport::{Content, Microflows, SendOptions, Target, send_microflows};

use super::collectors::{own_domain, target_of};
use super::outputs::name_of;
use super::rotation;
use super::settings::Settings;
use crate::keys::Key;
use crate::metrics::SNAPSHOTS;
use crate::unfinished_file::UnfinishedFile;

/// The name of a file of microflow records ends so.
const EXTENSION: &str = "records";
/// Bytes of a message in files.
const FILE_MESSAGE_BYTES: usize = 16 << 10;
/// How often a live run counts for those who merge its records.
const COUNTED_EVERY: Duration = Duration::from_secs(1);

/// Whether an output is a file of microflow records.
pub(super) fn is_file(to: &Path) -> bool {
    to.extension().is_some_and(|its| its == EXTENSION)
}

/// Whether an output takes microflow records.
pub(super) fn is_meant(to: &Path) -> anyhow::Result<bool> {
    let target = target_of(to)?;
    let is_sent = |target: Target| target.content == Content::Microflows;
    Ok(target.map_or_else(|| is_file(to), is_sent))
}

/// The counters of a run that sends its microflow records; `None` for any other.
pub(super) fn of(run: &RunConfig, layout: &Layout) -> anyhow::Result<Option<Arc<SenderCounters>>> {
    let mut theirs = None;
    let mut others = None;
    for output in &run.outputs {
        match is_meant(&output.to)? {
            true => theirs = theirs.or(Some(&output.to)),
            false => others = others.or(Some(&output.to)),
        }
    }
    let Some(theirs) = theirs else {
        return Ok(None);
    };
    let name = name_of(theirs);
    if rotation::pattern_of(run, theirs)?.is_some() {
        bail!("{name}: microflow records go into one file: leave the time out of its name");
    }
    if let Some(other) = others {
        bail!(
            "{name} takes microflow records, which are merged there, and {} flow records, which \
             are merged here: a run has one of both",
            name_of(other)
        );
    }
    if run.flow.biflow {
        bail!(
            "{name} takes microflow records, which have one direction: leave {} out",
            Key::Biflow
        );
    }
    if layout.needs().intersects(InputSet::INSPECTED) || run.bridge != BridgeConfig::default() {
        bail!(
            "{name} takes microflow records, in which what {} finds has no name: leave it out",
            Key::Dpi
        );
    }
    Ok(Some(Arc::default()))
}

/// Refuses outputs of another kind than those at the start.
pub(super) fn check_stays(run: &RunConfig, settings: &Settings) -> anyhow::Result<()> {
    let is_probe = of(run, &settings.layout)?.is_some();
    if is_probe != settings.config.probe.is_some() {
        bail!("a run sends microflow records or flow records to its end: restart it for the other");
    }
    Ok(())
}

/// Counts in a live run what its messages tell, also while nobody asks for metrics.
pub(super) fn count(run: &RunConfig, settings: &Settings) -> anyhow::Result<()> {
    let Some(counters) = settings.config.probe.clone().filter(|_| run.goes_on()) else {
        return Ok(());
    };
    let counting = move || {
        loop {
            pause();
            if let Some(snapshot) = SNAPSHOTS.ask(COUNTED_EVERY) {
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
        engine_id: output.observation_domain.unwrap_or_else(own_domain),
        message_bytes: message_bytes.into(),
        counters: settings.config.probe.clone().unwrap_or_default(),
    }
}

/// The output that sends to `target`.
pub(super) fn output(
    target: &Target,
    output: &OutputConfig,
    settings: &Settings,
    options: &SendOptions,
) -> anyhow::Result<Output> {
    Ok(Output {
        name: target.to_string(),
        writer: send_microflows(target, &records(output, settings), options)?,
        // The sender has its own linger and deadline.
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
        name: name_of(path),
        file: Some(file),
        columns: WordColumns::new(&records.layout),
        encoder: Encoder::new(&records.layout, records.engine_id, FILE_MESSAGE_BYTES),
        counters: records.counters,
        overrun: 0,
        complete_ns: 0,
        written: WriteSummary::default(),
    };
    Output {
        name: name_of(path),
        writer: Box::new(writer),
        may_stall: false,
    }
}

/// Writes messages one behind the other.
struct RecordsFile {
    name: String,
    /// `None` once it failed.
    file: Option<UnfinishedFile>,
    columns: WordColumns,
    encoder: Encoder,
    counters: Arc<SenderCounters>,
    /// Records that were discarded before they came here.
    overrun: u64,
    complete_ns: u64,
    written: WriteSummary,
}

impl RecordsFile {
    /// Writes the messages of `encode`.
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

    /// The file is removed: without its end it is none that can be merged.
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
