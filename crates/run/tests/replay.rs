// SPDX-License-Identifier: Apache-2.0
//! Replays: the records equal those of the file, and the pace is the requested one.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use turboflow_capture::CaptureFile;
use turboflow_formats::{ExportError, FlowWriter, WriteSummary};
use turboflow_record::FlowBatch;
use turboflow_run::{
    Controls, Files, Limits, Output, Pace, PaceClock, PipelineConfig, RunOutputs, RunReport,
    Snapshots, Source, Stop,
};
use turboflow_testing::{PATIENCE, until};

/// Sends every batch to the test.
struct SendsBatches(Sender<FlowBatch>);

impl FlowWriter for SendsBatches {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        self.0.send(batch.clone()).unwrap();
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError> {
        Ok(WriteSummary::default())
    }
}

/// Runs a source and returns its report, and its records as sorted lines.
fn run_source(run: impl FnOnce(Vec<Output>) -> RunReport) -> (RunReport, Vec<String>) {
    let (sender, receiver) = channel();
    let name = "kept".to_owned();
    let writer = Box::new(SendsBatches(sender));
    let report = run(vec![Output {
        name,
        writer,
        may_stall: false,
    }]);
    let line = |batch: &FlowBatch, row| {
        let columns = 0..batch.columns().len();
        let cells = columns.map(|column| format!("{:?}", batch.value(row, column)));
        cells.collect::<Vec<_>>().join(",")
    };
    let batches = receiver.iter();
    let mut records: Vec<String> = batches
        .flat_map(|batch| {
            (0..batch.rows())
                .map(|row| line(&batch, row))
                .collect::<Vec<_>>()
        })
        .collect();
    records.sort();
    (report, records)
}

/// Meters files at a pace.
fn replay(
    config: &PipelineConfig,
    files: Vec<CaptureFile>,
    pace: Option<Pace>,
    outputs: Vec<Output>,
    (stop, snapshots): (&Stop, &Snapshots),
) -> RunReport {
    let source = Source::Files(Files {
        files,
        filter: None,
        pace,
    });
    let controls = Controls {
        limits: Limits::default(),
        stop,
        snapshots,
    };
    turboflow_run::run(config, source, RunOutputs::fixed(outputs), controls, |_| ()).unwrap()
}

/// A classic pcap file of UDP packets at these times, in milliseconds.
fn capture(times_ms: &[u64]) -> Vec<CaptureFile> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
        bytes.extend(word.to_le_bytes());
    }
    for time_ms in times_ms {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x08, 0x00];
        frame.extend([0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0]);
        frame.extend([192, 0, 2, 1, 198, 51, 100, 2, 0, 9, 0, 53, 0, 8, 0, 0]);
        let (seconds, micros) = (time_ms / 1_000, time_ms % 1_000 * 1_000);
        let length = frame.len() as u32;
        for word in [
            1_700_000_000 + seconds as u32,
            micros as u32,
            length,
            length,
        ] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(frame);
    }
    vec![CaptureFile::from_bytes("made".to_owned(), bytes).unwrap()]
}

fn config(threads: usize) -> PipelineConfig {
    let mut config = PipelineConfig {
        threads,
        ..PipelineConfig::default()
    };
    config.timeouts.active_ns = Some(500_000_000);
    config.live()
}

/// A clock that advances only by waiting.
const PASSING: PaceClock = PaceClock {
    now: || Duration::from_nanos(PASSED_NS.load(Ordering::SeqCst)),
    wait: |time| {
        PASSED_NS.fetch_add(time.as_nanos() as u64, Ordering::SeqCst);
    },
};
static PASSED_NS: AtomicU64 = AtomicU64::new(0);

#[test]
fn any_speed_gives_the_records_of_the_file() {
    let office = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/office.pcap");
    let files = || vec![CaptureFile::open(office.as_ref()).unwrap()];
    let asked = (&Stop::new(), &Snapshots::new());
    let (report, expected) =
        run_source(|outputs| replay(&config(1), files(), None, outputs, asked));
    assert!(expected.len() > 700);
    for (threads, speed) in [(1, None), (1, Some(200.0)), (2, Some(0.5))] {
        let clock = PASSING;
        let pace = speed.map(|speed| Pace { speed, clock });
        let (replayed, records) =
            run_source(|outputs| replay(&config(threads), files(), pace, outputs, asked));
        assert_eq!(records, expected, "{threads} threads, {speed:?}");
        let packets = replayed.ledger.packets_received;
        assert_eq!(packets, report.ledger.packets_received);
        assert!(replayed.ledger.imbalances().is_empty());
    }
}

/// A clock that advances only by waiting, and stops at [`LIMIT_MS`].
const HELD: PaceClock = PaceClock {
    now: || Duration::from_nanos(HELD_NS.load(Ordering::SeqCst)),
    wait: |time| {
        let limit_ns = LIMIT_MS.load(Ordering::SeqCst) * 1_000_000;
        let later_ns = HELD_NS.load(Ordering::SeqCst) + time.as_nanos() as u64;
        HELD_NS.store(later_ns.min(limit_ns), Ordering::SeqCst);
        std::thread::yield_now();
    },
};
static HELD_NS: AtomicU64 = AtomicU64::new(0);
static LIMIT_MS: AtomicU64 = AtomicU64::new(500);

#[test]
fn packets_come_when_due_and_snapshots_are_answered() {
    let (stop, snapshots) = (Stop::new(), Snapshots::new());
    std::thread::scope(|scope| {
        let replay = scope.spawn(|| {
            let files = capture(&[0, 10, 900]);
            let clock = HELD;
            let pace = Some(Pace { speed: 1.0, clock });
            run_source(|outputs| replay(&config(1), files, pace, outputs, (&stop, &snapshots))).0
        });
        until("half a second has passed", || {
            HELD_NS.load(Ordering::SeqCst) == 500_000_000
        });
        let snapshot = snapshots.ask(PATIENCE);
        let snapshot = snapshot.expect("the last packet is not due yet");
        assert_eq!(snapshot.ledger.packets_received, 2);
        assert!(snapshot.ledger.imbalances().is_empty());
        assert_eq!(snapshot.clock_ns / 1_000_000_000, 1_700_000_000);
        LIMIT_MS.store(60_000, Ordering::SeqCst);
        assert_eq!(replay.join().unwrap().ledger.packets_recorded, 3);
    });
    // Exact to a microsecond, which is the precision of a float here.
    let ended_ns = HELD_NS.load(Ordering::SeqCst);
    assert!((900_000_000..900_001_000).contains(&ended_ns), "{ended_ns}");
}

#[test]
fn long_gaps_are_skipped_and_a_stop_ends_waiting() {
    let clock = PaceClock {
        now: || Duration::ZERO,
        wait: |time| panic!("waits for {time:?}"),
    };
    let (stop, snapshots) = (Stop::new(), Snapshots::new());
    let pace = Some(Pace { speed: 1.0, clock });
    let run = |times: &[u64]| {
        let files = capture(times);
        run_source(|outputs| replay(&config(1), files, pace, outputs, (&stop, &snapshots))).0
    };
    // A gap of an hour, then a clock set back.
    let report = run(&[0, 3_600_000, 5]);
    assert_eq!(report.ledger.packets_recorded, 3);
    stop.ask();
    let report = run(&[0, 9_000]);
    assert!(report.stopped && report.ledger.imbalances().is_empty());
}
