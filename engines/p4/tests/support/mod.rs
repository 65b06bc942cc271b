// SPDX-License-Identifier: Apache-2.0
//! Runs captures through a pipeline and through the software engine.

pub(crate) mod conformance;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use turboflow_capture::CaptureFile;
use turboflow_engine_p4::{Came, Frames, P4Record, Port, Replay, ReplayConfig};
use turboflow_formats::{ExportError, FlowWriter, WriteSummary};
use turboflow_packet::Frame;
use turboflow_record::FlowBatch;
use turboflow_run::{
    Controls, Ledger, Limits, Output, PipelineConfig, RunOutputs, Snapshots, Source, Stop,
};
use turboflow_testing::{captures_folder, cases_folder};

/// A port that is used for one run after another.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<dyn Port>>);

impl Shared {
    pub(crate) fn new(port: impl Port + 'static) -> Self {
        Self(Arc::new(Mutex::new(port)))
    }
}

impl Port for Shared {
    fn name(&self) -> &str {
        "shared"
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

/// Runs every capture through this port, one after another. The flow records must equal those of
/// the software engine.
pub(crate) fn all_captures_through(port: impl Port + 'static, slots: u32) {
    let port = Shared::new(port);
    let (mut packets, mut punted, mut differ) = (0, 0, Vec::new());
    for path in captures() {
        let expected = flows_in_software(&path);
        let found = flows_on_pipeline(&path, port.clone(), slots);
        let Run { ledger, .. } = &found;
        assert_eq!(ledger.imbalances_at_the_end(), [], "{}", path.display());
        packets += ledger.packets_recorded;
        punted += ledger.microflows_evicted.bypass;
        if let Some(difference) = expected.difference(&found) {
            differ.push(format!("{}: {difference}", path.display()));
        }
    }
    eprintln!("{slots} slots: {packets} packets, {punted} of them by the receiver's parser");
    assert!(
        differ.is_empty(),
        "{} differ:\n{}",
        differ.len(),
        differ.join("\n")
    );
    assert!(packets > 100_000 && punted > 0 && punted * 10 < packets);
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
    /// The first difference between the records of both runs, regardless of their order.
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

pub(crate) fn run(config: &PipelineConfig, source: Source, stop: &Stop) -> Run {
    let (sender, receiver) = channel();
    let output = Output {
        name: "kept".to_owned(),
        writer: Box::new(Kept(sender)),
        may_stall: false,
    };
    let controls = Controls {
        limits: Limits::default(),
        stop,
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
    run(
        &PipelineConfig::default(),
        Source::files(vec![file]),
        &Stop::new(),
    )
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
    let source = Source::engines(vec![Box::new(replay.unwrap())]);
    run(&config, source, &Stop::new())
}
