// SPDX-License-Identifier: Apache-2.0
//! Runs captures through the pipeline and through the software engine.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use turboflow_capture::CaptureFile;
use turboflow_engine_p4::{Came, Frames, P4Record, PROGRAMS, Port, Replay, ReplayConfig, SwxPort};
use turboflow_formats::{ExportError, FlowWriter, WriteSummary};
use turboflow_packet::Frame;
use turboflow_record::FlowBatch;
use turboflow_run::{
    Controls, Ledger, Limits, Output, PipelineConfig, RunOutputs, Snapshots, Source, Stop,
};
use turboflow_testing::{captures_folder, cases_folder};

/// A pipeline with the program of this definition.
pub(crate) fn port(definition: &str) -> SwxPort {
    let runner = Path::new(env!("CARGO_BIN_EXE_turboflow-swx"));
    let mut programs = PROGRAMS.iter();
    let program = programs.find(|program| program.definition == definition);
    SwxPort::start(runner, program.unwrap().spec).unwrap()
}

/// A port for one run after the other.
pub(crate) struct Shared(pub(crate) Arc<Mutex<SwxPort>>);

impl Port for Shared {
    fn name(&self) -> &str {
        "swx"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        self.0.lock().unwrap().send(parts);
    }

    fn exchange(&mut self, wait: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        self.0.lock().unwrap().exchange(wait, take)
    }
}

/// The frames of a capture.
pub(crate) struct OfFile(pub(crate) CaptureFile);

impl Frames for OfFile {
    fn next(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> io::Result<Came> {
        match self.0.next_batch(256) {
            Ok(Some(batch)) => {
                batch.frames().iter().for_each(take);
                Ok(Came::Frames)
            }
            Ok(None) => Ok(Came::End),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

/// All captures that can be opened.
pub(crate) fn captures() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for folder in [captures_folder(), cases_folder()].into_iter().flatten() {
        find(&folder, &mut paths);
    }
    paths.retain(|path| CaptureFile::open(path).is_ok());
    paths.sort();
    paths
}

fn find(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, paths);
        } else {
            paths.push(path);
        }
    }
}

/// The records of a run, in order, and its ledger.
pub(crate) struct Run {
    pub(crate) rows: Vec<String>,
    pub(crate) ledger: Ledger,
}

impl Run {
    /// The first difference of the records, in whatever order they came.
    pub(crate) fn difference(&self, other: &Self) -> Option<String> {
        let sorted = |run: &Self| {
            let mut rows = run.rows.clone();
            rows.sort_unstable();
            rows
        };
        let (here, there) = (sorted(self), sorted(other));
        if here == there {
            return None;
        }
        let first = here.iter().find(|row| !there.contains(row));
        let other = there.iter().find(|row| !here.contains(row));
        Some(format!(
            "{} rows, not {}:\n  {}\n  {}",
            there.len(),
            here.len(),
            first.map_or("", String::as_str),
            other.map_or("", String::as_str)
        ))
    }
}

struct Kept(Sender<FlowBatch>);

impl FlowWriter for Kept {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        self.0.send(batch.clone()).unwrap();
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError> {
        Ok(WriteSummary::default())
    }
}

fn run(config: &PipelineConfig, source: Source) -> Run {
    let (sender, receiver) = channel();
    let output = Output {
        name: "kept".to_owned(),
        writer: Box::new(Kept(sender)),
        may_stall: false,
    };
    let controls = Controls {
        limits: Limits::default(),
        stop: &Stop::new(),
        snapshots: &Snapshots::new(),
    };
    let outputs = RunOutputs::fixed(vec![output]);
    let report = turboflow_run::run(config, source, outputs, controls, |_| ()).unwrap();
    let columns = config.compile().unwrap().schema().iter().count();
    let mut rows = Vec::new();
    for batch in receiver.iter() {
        for row in 0..batch.rows() {
            let values = (0..columns).map(|column| format!("{:?}", batch.value(row, column)));
            rows.push(values.collect::<Vec<_>>().join(" "));
        }
    }
    Run {
        rows,
        ledger: report.ledger,
    }
}

pub(crate) fn flows_in_software(path: &Path) -> Run {
    let file = CaptureFile::open(path).unwrap();
    run(&PipelineConfig::default(), Source::files(vec![file]))
}

pub(crate) fn flows_on_pipeline(path: &Path, port: impl Port + 'static, slots: u32) -> Run {
    let config = PipelineConfig::default();
    let layout = config.compile().unwrap();
    let record = P4Record::new(&config.definition, &layout).unwrap();
    let replay_config = ReplayConfig {
        slots,
        cell_ns: config.timeouts.cell_ns(config.max_age_ns),
        tolerance_ns: config.timeouts.idle_ns.unwrap_or(u64::MAX),
        cuts_at_ends: config.timeouts.linger_ns == Some(0),
        seeds: [config.seed, !config.seed],
        window: None,
    };
    let input = OfFile(CaptureFile::open(path).unwrap());
    let replay = Replay::open(
        Box::new(port),
        Box::new(input),
        record,
        &layout,
        &replay_config,
    );
    run(&config, Source::Engines(vec![Box::new(replay.unwrap())]))
}

/// What a lossy port has lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) records: u64,
    /// Packets and bytes in these records.
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Frames that the pipeline handed up.
    pub(crate) frames: u64,
}

/// A port that loses some of the records that come from the pipeline, and of the frames that it
/// hands up.
pub(crate) struct LosesReports {
    pub(crate) port: Shared,
    /// Every how many of them one is lost.
    pub(crate) every: u64,
    pub(crate) came: u64,
    pub(crate) lost: Arc<Mutex<Lost>>,
}

impl Port for LosesReports {
    fn name(&self) -> &str {
        "lossy swx"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        self.port.send(parts);
    }

    fn exchange(&mut self, wait: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        const STATUS: u8 = 4;
        const PUNTED: u8 = 5;
        let (every, came) = (self.every, &mut self.came);
        let mut lost = self.lost.lock().unwrap();
        self.port.exchange(wait, &mut |frame| {
            let cause = frame[15];
            *came += u64::from(cause != STATUS);
            if cause == STATUS || !came.is_multiple_of(every) {
                return take(frame);
            }
            if cause == PUNTED {
                lost.frames += 1;
                return;
            }
            let word = |at: usize| u64::from_be_bytes(frame[at..][..8].try_into().unwrap());
            lost.records += 1;
            lost.packets += word(14 + 16 + 40);
            lost.bytes += word(14 + 16 + 48);
        })
    }
}
