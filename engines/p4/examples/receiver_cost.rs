// SPDX-License-Identifier: Apache-2.0
//! Measures the cost of the receiver: records per second on one core, with ten reports in a frame,
//! as a switch batches them. `cargo run --release --package turboflow-engine-p4 --example
//! receiver_cost`

mod busy;

use std::io;
use std::time::Instant;

use turboflow_engine::{MicroflowBatch, RemoteEngine};
use turboflow_engine_p4::{Came, Frames, P4Error, P4Record, Port, Replay, ReplayConfig};
use turboflow_merge::Layout;
use turboflow_packet::Frame;
use turboflow_record::Definition;

use busy::{Busy, REPORTS_A_FRAME};

/// Length of the Ethernet header before the reports.
const OUTER_BYTES: usize = 14;
const FRAMES_A_TURN: usize = 1_000;
const TURNS: u32 = 1_000;

/// A pipeline in memory.
struct InMemory {
    busy: Busy,
    answers: Vec<Vec<u8>>,
    frames: Vec<Vec<u8>>,
}

impl Port for InMemory {
    fn name(&self) -> &str {
        "busy"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        self.answers.extend(self.busy.answer(&parts.concat(), 0));
    }

    fn exchange(&mut self, _: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        for frame in &mut self.frames {
            renumber(frame, &mut self.busy.sequence);
            take(frame);
        }
        self.answers.drain(..).for_each(|answer| take(&answer));
        Ok(true)
    }
}

/// Gives the reports of a frame the next numbers.
fn renumber(frame: &mut [u8], next: &mut u32) {
    let reports = &mut frame[OUTER_BYTES..];
    let report_bytes = reports.len() / REPORTS_A_FRAME as usize;
    for report in reports.chunks_exact_mut(report_bytes) {
        report[4..8].copy_from_slice(&next.to_be_bytes());
        *next = next.wrapping_add(1);
    }
}

/// An input without frames.
struct Silent;

impl Frames for Silent {
    fn next(&mut self, _: &mut dyn FnMut(&Frame<'_>)) -> io::Result<Came> {
        Ok(Came::Nothing)
    }
}

fn main() -> Result<(), P4Error> {
    let definition = Definition::default();
    let layout = Layout::compile(&definition, false).expect("the default definition compiles");
    let record = P4Record::new(&definition, &layout).expect("a pipeline has all of it");
    let mut busy = Busy::new(&record, FRAMES_A_TURN as u32 * REPORTS_A_FRAME);
    let mut frames = vec![Vec::new(); FRAMES_A_TURN];
    frames.iter_mut().for_each(|frame| busy.evict(0, frame));
    let port = InMemory {
        busy,
        answers: Vec::new(),
        frames,
    };
    let config = ReplayConfig {
        slots: 1024,
        cell_ns: 1_000_000_000,
        tolerance_ns: u64::MAX,
        cuts_at_ends: false,
        seeds: [1, 2],
        window: None,
    };
    let mut engine = Replay::open(Box::new(port), Box::new(Silent), record, &layout, &config)?;
    let (mut records, mut batch) = (0, MicroflowBatch::default());
    #[allow(clippy::disallowed_methods, reason = "it measures")]
    let began = Instant::now();
    for _ in 0..TURNS {
        engine.collect(&mut batch).expect("the pipeline answers");
        records += batch.len();
        batch.clear();
    }
    let took = began.elapsed();
    println!(
        "{records} records, {REPORTS_A_FRAME} a frame: {:.1} M/s, {:.1} ns each; {} lost",
        records as f64 / took.as_secs_f64() / 1e6,
        took.as_secs_f64() * 1e9 / records as f64,
        engine.reports_lost()
    );
    Ok(())
}
