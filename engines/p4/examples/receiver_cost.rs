// SPDX-License-Identifier: Apache-2.0
//! What the receiver costs: records a second on one core, ten reports a frame as a switch coalesces
//! them. `cargo run --release --package turboflow-engine-p4 --example receiver_cost`

use std::io;
use std::time::Instant;

use turboflow_engine::{MicroflowBatch, RemoteEngine};
use turboflow_engine_p4::{Came, Frames, P4Error, P4Record, Port, Replay, ReplayConfig};
use turboflow_merge::Layout;
use turboflow_packet::Frame;
use turboflow_record::Definition;

const OUTER: [u8; 14] = [2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x88, 0xb6];
const VERSION: u8 = 0xf1;
const COLLISION: u8 = 1;
const STATUS: u8 = 4;
const REPORTS_A_FRAME: u32 = 10;
const FRAMES_A_TURN: u32 = 1_000;
const TURNS: u32 = 1_000;

/// A pipeline that evicts all the time.
struct Busy {
    tokens: Vec<[u8; 8]>,
    program_id: u64,
    record_bytes: usize,
    sequence: u32,
    frame: Vec<u8>,
}

impl Busy {
    fn report(&mut self, cause: u8) {
        self.frame.extend([VERSION, cause, 0, 0]);
        self.frame.extend(self.sequence.to_be_bytes());
        self.frame.extend([0; 8]);
        self.sequence = self.sequence.wrapping_add(1);
    }
}

impl Port for Busy {
    fn name(&self) -> &str {
        "busy"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        let bytes = parts.concat();
        let token: Option<[u8; 8]> = bytes.get(30..38).and_then(|token| token.try_into().ok());
        self.tokens.extend(token);
    }

    fn exchange(&mut self, _: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        for number in 0..FRAMES_A_TURN {
            self.frame.clear();
            self.frame.extend(OUTER);
            for record in 0..REPORTS_A_FRAME {
                self.report(COLLISION);
                let start = self.frame.len();
                self.frame.resize(start + self.record_bytes, 0);
                // Another flow each time: its source address, and the version of IP.
                let flow = number * REPORTS_A_FRAME + record;
                self.frame[start + 12..start + 16].copy_from_slice(&flow.to_be_bytes());
                self.frame[start + 39] = 4;
                self.frame[start + 47] = 1;
            }
            take(&self.frame);
        }
        for token in std::mem::take(&mut self.tokens) {
            self.frame.clear();
            self.frame.extend(OUTER);
            self.report(STATUS);
            self.frame.extend(token);
            self.frame.extend(self.program_id.to_be_bytes());
            self.frame.extend(1024_u32.to_be_bytes());
            self.frame.resize(OUTER.len() + 16 + 88, 0);
            take(&self.frame);
        }
        Ok(true)
    }
}

/// Nothing goes in.
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
    let port = Busy {
        tokens: Vec::new(),
        program_id: record.id(),
        record_bytes: 8 * record.words(),
        sequence: 0,
        frame: Vec::new(),
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
