// SPDX-License-Identifier: Apache-2.0
//! Any bytes from the port of a P4 pipeline: a run ends, and its counters can be read.
//!
//! Input: a byte, whose lowest bit makes the pipeline a chip with words of 32 bits, the others the
//! length of its cells; then frames, each preceded by its length in a byte.

#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use turboflow_engine::{MicroflowBatch, RemoteEngine};
use turboflow_engine_p4::{
    Came, Frames, LIVE_CELL_NS, Live, LiveConfig, P4Record, Port, Replay, ReplayConfig,
};
use turboflow_merge::Layout;
use turboflow_packet::Frame;
use turboflow_record::Definition;

/// What comes before every report.
const OUTER: [u8; 14] = [2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x88, 0xb6];
/// A report that answers: version, cause, flags, family, sequence, time.
const ANSWER: [u8; 16] = [0xf1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Answers commands, and sends the input besides.
struct Fuzzed {
    frames: Vec<Vec<u8>>,
    tokens: Vec<[u8; 8]>,
    program_id: u64,
    is_chip: bool,
    cell_shift: u8,
}

impl Port for Fuzzed {
    fn name(&self) -> &str {
        "fuzzed"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        let bytes = parts.concat();
        let token = bytes.get(30..38).and_then(|token| token.try_into().ok());
        self.tokens.extend::<Option<[u8; 8]>>(token);
    }

    fn exchange(&mut self, _: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        if let Some(frame) = self.frames.pop() {
            take(&frame);
        }
        for token in std::mem::take(&mut self.tokens) {
            let mut answer = [&OUTER[..], &ANSWER, &token].concat();
            answer.extend(self.program_id.to_be_bytes());
            answer.extend(64_u32.to_be_bytes());
            // Abilities and the size of words; nothing is listed; the length of cells.
            let (abilities, word_bits) = if self.is_chip {
                (4_u16, 32_u16)
            } else {
                (3, 64)
            };
            answer.extend(abilities.to_be_bytes());
            answer.extend(word_bits.to_be_bytes());
            answer.extend([0, 0, 0, 0, 0, 0, 0, self.cell_shift]);
            answer.resize(OUTER.len() + ANSWER.len() + 88, 0);
            take(&answer);
        }
        Ok(!self.frames.is_empty())
    }
}

struct Silent;

impl Frames for Silent {
    fn next(&mut self, _: &mut dyn FnMut(&Frame<'_>)) -> io::Result<Came> {
        Ok(Came::Nothing)
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((kind, mut rest)) = input.split_first() else {
        return;
    };
    let (is_chip, cell_shift) = (kind & 1 != 0, kind >> 1);
    let mut frames = Vec::new();
    while let Some((length, behind)) = rest.split_first() {
        let (frame, behind) = behind.split_at(behind.len().min(usize::from(*length)));
        frames.push([&OUTER, frame].concat());
        rest = behind;
    }
    let definition = Definition::default();
    let layout = Layout::compile(&definition, false).expect("the default definition compiles");
    let record = P4Record::new(&definition, &layout).expect("a pipeline has all of it");
    let port = Box::new(Fuzzed {
        frames,
        tokens: Vec::new(),
        program_id: record.id(),
        is_chip,
        cell_shift,
    });
    if is_chip {
        live(port, record, &layout)
    } else {
        replay(port, record, &layout)
    }
});

/// Collects until the port ends.
fn collect(engine: &mut impl RemoteEngine) {
    let mut batch = MicroflowBatch::default();
    while engine.collect(&mut batch).is_ok() && !engine.has_ended() {}
    engine.counters().expect("counters are always known");
}

fn live(port: Box<dyn Port>, record: P4Record, layout: &Layout) {
    let config = LiveConfig {
        slots: 64,
        cell_ns: LIVE_CELL_NS,
        seeds: [1, 2],
        window: 24,
        wall_ns: || 1 << 60,
        interface_index: None,
    };
    if let Ok(mut engine) = Live::open(port, record, layout, &config) {
        collect(&mut engine);
        let _ = engine.finish();
    }
}

fn replay(port: Box<dyn Port>, record: P4Record, layout: &Layout) {
    let config = ReplayConfig {
        slots: 64,
        cell_ns: 1_000_000_000,
        tolerance_ns: u64::MAX,
        cuts_at_ends: false,
        seeds: [1, 2],
        window: None,
    };
    if let Ok(mut engine) = Replay::open(port, Box::new(Silent), record, layout, &config) {
        collect(&mut engine);
    }
}
