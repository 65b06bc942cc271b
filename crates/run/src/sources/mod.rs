// SPDX-License-Identifier: Apache-2.0
//! Where packets or microflow records come from, and the driver of a run.
//!
//! [`run`] meters a source to its end: capture files, network interfaces, or remote engines.
//! [`inspect`] hands the frames of files and interfaces to a closure instead of metering them.

mod engines;
mod files;
#[cfg(target_os = "linux")]
mod interfaces;
mod pace;
mod report;
mod shared;
mod sink;

use std::io;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use turboflow_capture::CaptureFile;
use turboflow_capture::filter::FileFilter;
#[cfg(target_os = "linux")]
use turboflow_capture::live::Interface;
use turboflow_engine::wire::WordColumns;
use turboflow_engine::{PortState, RemoteEngine};
use turboflow_packet::Frame;
use turboflow_record::Schema;

use crate::outputs::Outputs;
use crate::{ConfigError, Meter, OutputChange, PipelineConfig, RunOutputs, Snapshots, Stop};
pub use files::FileCounters;
pub use pace::{Pace, PaceClock};
pub use report::RunReport;
use sink::Inspector;

pub use shared::wall_ns;

/// An open source of packets or microflow records.
pub enum Source {
    /// Capture files, read one after the other as one stream of packets.
    Files(Files),
    /// For each reader, its own ring of every interface.
    #[cfg(target_os = "linux")]
    Interfaces(Vec<Vec<Interface>>),
    /// Engines outside this process that hand over microflow records.
    Engines(Engines),
}

/// Remote engines as a source.
#[derive(Default)]
pub struct Engines {
    /// The engines.
    pub engines: Vec<Box<dyn RemoteEngine>>,
    /// What capture files that the engines read themselves have besides frames. Complete once the
    /// engines have ended.
    pub files: Arc<Mutex<FileCounters>>,
}

/// Capture files as a source.
#[derive(Default)]
pub struct Files {
    /// The files, in reading order.
    pub files: Vec<CaptureFile>,
    /// Packets that do not match are only counted.
    pub filter: Option<Box<FileFilter>>,
    /// The pace of the packets. `None`: as fast as possible.
    pub pace: Option<Pace>,
}

impl Source {
    /// Capture files without a filter, which are read as fast as possible.
    #[must_use]
    pub fn files(files: Vec<CaptureFile>) -> Self {
        Self::Files(Files {
            files,
            ..Files::default()
        })
    }

    /// Remote engines that read no capture files.
    #[must_use]
    pub fn engines(engines: Vec<Box<dyn RemoteEngine>>) -> Self {
        Self::Engines(Engines {
            engines,
            ..Engines::default()
        })
    }

    /// Whether packets are metered as they arrive and are not read from files.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        !matches!(self, Self::Files(_))
    }
}

/// Limits after which a run ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum duration of a live run.
    pub duration: Option<Duration>,
    /// Maximum number of packets.
    pub packets: Option<u64>,
}

/// Controls of a run for other threads.
#[derive(Clone, Copy)]
pub struct Controls<'a> {
    /// Limits after which the run ends by itself.
    pub limits: Limits,
    /// Ends the run on request.
    pub stop: &'a Stop,
    /// Where other threads request snapshots.
    pub snapshots: &'a Snapshots,
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Progress over capture files.
    Files(FilesProgress),
    /// Progress over interfaces or engines.
    Live(LiveProgress),
}

/// Progress of a run over capture files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesProgress {
    /// Packets read.
    pub packets: u64,
    /// Bytes read from the files, before decompression.
    pub bytes_read: u64,
    /// Total bytes of the files; `None` if one is a pipe.
    pub bytes_total: Option<u64>,
}

/// Progress of a live run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveProgress {
    /// Packets read.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets that the source dropped.
    pub dropped: u64,
}

/// An event during a run.
#[derive(Clone, Copy, Debug)]
pub enum RunEvent<'a> {
    /// The state of a port has changed.
    Changed(&'a str, PortState),
    /// An engine failed, and others continue without it.
    Failed(&'a io::Error),
    /// Progress: at intervals in a live run, every few thousand packets in a file.
    Progress(Progress),
    /// A frame that an engine could not parse, if it was asked for these.
    Unparsed(Frame<'a>),
}

/// Meters a source until it ends, a limit is reached, or `controls.stop` is set. Then meters what
/// was read, flushes all flows, and completes the outputs.
///
/// `observe` is called many times a second for live sources, and every few thousand packets for
/// files.
///
/// # Errors
/// If the configuration is invalid, or a thread cannot start. Later failures are in the report, and
/// what was recorded before them stays recorded.
pub fn run(
    config: &PipelineConfig,
    source: Source,
    outputs: RunOutputs,
    controls: Controls<'_>,
    observe: impl FnMut(RunEvent<'_>),
) -> Result<RunReport, ConfigError> {
    let layout = config.compile()?;
    let RunOutputs {
        first,
        changes,
        end_patience,
    } = outputs;
    let mut steps = Steps {
        writing: Outputs::start(first, config.prompt)?,
        schema: match config.probe {
            Some(_) => WordColumns::new(&layout).schema().clone(),
            None => layout.schema().clone(),
        },
        changes,
        end_patience,
        controls,
    };
    let report = match source {
        Source::Files(files) => {
            // Waiting for an output loses no packets of a file.
            steps.writing.wait_for_all(None);
            let meter = Meter::new(config, |_shard| steps.writing.deliver(&steps.schema))?;
            files::read(files, meter, &steps, observe)
        }
        #[cfg(target_os = "linux")]
        Source::Interfaces(readers) => interfaces::capture(config, readers, &mut steps, observe)?,
        Source::Engines(engines) => {
            let layout = match config.texts() {
                Some(texts) => layout.with_texts(Arc::clone(texts)),
                None => layout,
            };
            engines::merge(config, &layout, engines, &mut steps, observe)?
        }
    };
    if let Some(probe) = &config.probe {
        // Before the outputs end, because they send the final counters.
        probe.finish(report.ledger.of_sender());
    }
    Ok(report.with_outputs(steps.writing.finish()))
}

/// Hands the frames of a source to `take` instead of metering them. Ends when the source ends, a
/// limit is reached or `stop` is set; the limits apply to interfaces only, and files are read to
/// their end. The report counts what was not handed over, and has no flows.
///
/// # Errors
/// If the source is a remote engine, which has no frames.
pub fn inspect(
    source: Source,
    limits: Limits,
    stop: &Stop,
    take: impl FnMut(&[Frame<'_>]),
) -> io::Result<RunReport> {
    let sink = Inspector::new(take);
    match source {
        Source::Files(files) => Ok(files::inspect(files, stop, sink)),
        #[cfg(target_os = "linux")]
        Source::Interfaces(readers) => Ok(interfaces::inspect(readers, limits, stop, sink)),
        Source::Engines(_) => Err(io::Error::other("remote engines hand over no frames")),
    }
}

/// What a driver does between batches of packets: changes outputs and answers requests.
struct Steps<'a> {
    writing: Outputs,
    schema: Schema,
    changes: Receiver<OutputChange>,
    end_patience: Option<Duration>,
    controls: Controls<'a>,
}

impl Steps<'_> {
    fn change_outputs(&mut self) {
        self.writing.change(&self.changes);
    }

    /// Applies the last changes. From now on metering may wait for outputs, because no more packets
    /// arrive.
    fn end(&mut self) {
        self.change_outputs();
        self.writing.wait_for_all(self.end_patience);
    }
}
