// SPDX-License-Identifier: Apache-2.0
//! A system that refuses threads causes one error, before anything is metered.

use std::process::Command;

use turboflow_formats::{ExportError, FlowWriter, WriteSummary};
use turboflow_record::FlowBatch;
use turboflow_run::{
    ConfigError, Controls, Limits, Meter, Output, PipelineConfig, RunOutputs, Snapshots, Source,
    Stop, run,
};

/// A stack larger than the memory of any machine.
const STACK_BYTES: &str = "1000000000000000";

/// An output that gets no records.
struct Unused;

impl FlowWriter for Unused {
    fn write(&mut self, _batch: &FlowBatch) -> Result<(), ExportError> {
        unreachable!("the run does not start")
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError> {
        unreachable!("the run does not start")
    }
}

/// A helper that runs in a process whose threads would need [`STACK_BYTES`] each.
#[test]
#[ignore = "started by a_refused_thread_is_an_error"]
fn no_thread_starts() {
    let config = PipelineConfig {
        meters_apart: true,
        ..PipelineConfig::default()
    };
    let refused = Meter::new(&config, |_shard| Box::new(|_| ())).map(drop);
    assert!(matches!(
        refused,
        Err(ConfigError::Thread {
            what: "metering",
            ..
        })
    ));
    let output = Output {
        name: "unused".to_owned(),
        writer: Box::new(Unused),
        may_stall: false,
    };
    let config = PipelineConfig::default();
    let stop = Stop::default();
    let controls = Controls {
        limits: Limits::default(),
        stop: &stop,
        snapshots: &Snapshots::new(),
    };
    let outputs = RunOutputs::fixed(vec![output]);
    let refused = run(
        &config,
        Source::files(Vec::new()),
        outputs,
        controls,
        |_| (),
    );
    let refused = refused.map(drop).unwrap_err().to_string();
    assert!(
        refused.starts_with("cannot start a thread for an output: "),
        "{refused}"
    );
}

#[test]
fn a_refused_thread_is_an_error() {
    // The test harness can run one test on the main thread, which needs no new stack.
    let outcome = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "no_thread_starts"])
        .args(["--test-threads", "1"])
        .env("RUST_MIN_STACK", STACK_BYTES)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&outcome.stdout);
    assert!(
        outcome.status.success() && text.contains("1 passed"),
        "{text}"
    );
}
