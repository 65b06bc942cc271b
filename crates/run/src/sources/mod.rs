// SPDX-License-Identifier: Apache-2.0
//! Where the packets or microflow records of a run come from, and the one driver over all of them.
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
use std::time::Duration;

use turboflow_capture::CaptureFile;
use turboflow_capture::filter::FileFilter;
#[cfg(target_os = "linux")]
use turboflow_capture::live::Interface;
use turboflow_engine::{PortState, RemoteEngine};
use turboflow_packet::Frame;

use crate::outputs::Outputs;
use crate::{ConfigError, Meter, PipelineConfig, RunOutputs, Snapshots, Stop};
pub use pace::{Pace, PaceClock};
pub use report::RunReport;
use sink::Inspector;

pub use shared::wall_ns;

/// Where packets or microflow records come from. Everything is open.
pub enum Source {
    /// Capture files, read one after the other as one stream of packets.
    Files(Files),
    /// For each reader its own ring of every interface.
    #[cfg(target_os = "linux")]
    Interfaces(Vec<Vec<Interface>>),
    /// Engines that work elsewhere and hand over microflow records.
    Engines(Vec<Box<dyn RemoteEngine>>),
}

/// Capture files as a source.
#[derive(Default)]
pub struct Files {
    /// The files, in the order in which they are read.
    pub files: Vec<CaptureFile>,
    /// Packets that it does not match are counted and go no further.
    pub filter: Option<Box<FileFilter>>,
    /// At what pace packets are read. `None`: as fast as they can be.
    pub pace: Option<Pace>,
}

impl Source {
    /// Capture files without a filter, read as fast as they can be.
    #[must_use]
    pub fn files(files: Vec<CaptureFile>) -> Self {
        Self::Files(Files {
            files,
            ..Files::default()
        })
    }

    /// Whether packets are metered as they arrive, rather than read from files.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        !matches!(self, Self::Files(_))
    }
}

/// When a live run ends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// After this time.
    pub duration: Option<Duration>,
    /// After this many packets.
    pub packets: Option<u64>,
}

/// How a run is steered from outside.
#[derive(Clone, Copy)]
pub struct Controls<'a> {
    /// When a live run ends by itself.
    pub limits: Limits,
    /// Ends the run when it is asked.
    pub stop: &'a Stop,
    /// Where other threads ask how the run stands.
    pub snapshots: &'a Snapshots,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Over capture files.
    Files(FilesProgress),
    /// Over interfaces or engines.
    Live(LiveProgress),
}

/// How far a run over capture files has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilesProgress {
    /// Packets read.
    pub packets: u64,
    /// Bytes of the files read, compressed where they are.
    pub bytes_read: u64,
    /// Bytes of all files; `None` where one is a pipe.
    pub bytes_total: Option<u64>,
}

/// How far a live run has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveProgress {
    /// Packets read.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets that the source dropped.
    pub dropped: u64,
}

/// What happens during a run.
#[derive(Clone, Copy, Debug)]
pub enum RunEvent<'a> {
    /// A port has changed its state.
    Changed(&'a str, PortState),
    /// Some time has passed, or some thousand packets of a file.
    Progress(Progress),
    /// An engine that was asked to hand up frames it cannot read has handed one up.
    Unparsed(Frame<'a>),
}

/// Meters a source until it ends, a limit is reached, or `controls.stop` is asked. What was read is
/// metered then, everything open is exported, and the outputs are completed.
///
/// `observe` is called many times a second by live sources, and every few thousand packets by
/// files.
///
/// # Errors
/// What is wrong with the configuration. What fails later is in the report: what was recorded
/// before stays recorded.
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
        schema: layout.schema().clone(),
        changes,
        end_patience,
        controls,
    };
    let report = match source {
        Source::Files(files) => {
            // No packet of a file is lost by waiting for an output.
            steps.writing.wait_for_all(None);
            let meter = Meter::new(config, |_shard| steps.writing.deliver(&steps.schema))?;
            files::read(files, meter, &steps, observe)
        }
        #[cfg(target_os = "linux")]
        Source::Interfaces(readers) => interfaces::capture(config, readers, &mut steps, observe)?,
        Source::Engines(engines) => engines::merge(config, &layout, engines, &mut steps, observe)?,
    };
    Ok(report.with_outputs(steps.writing.finish()))
}

/// Hands the frames of a source to `take` instead of metering them, until the source ends, a limit
/// is reached, or `stop` is asked. The report says what was not handed over; it has no flows.
///
/// # Errors
/// Remote engines have no frames.
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

/// What a driver does between batches of packets: outputs change, questions are answered.
struct Steps<'a> {
    writing: Outputs,
    schema: turboflow_record::Schema,
    changes: std::sync::mpsc::Receiver<crate::OutputChange>,
    end_patience: Option<Duration>,
    controls: Controls<'a>,
}

impl Steps<'_> {
    fn change_outputs(&mut self) {
        self.writing.change(&self.changes);
    }

    /// The last changes, and from now on outputs are waited for: nothing arrives any more.
    fn end(&mut self) {
        self.change_outputs();
        self.writing.wait_for_all(self.end_patience);
    }
}
