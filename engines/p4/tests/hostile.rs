// SPDX-License-Identifier: Apache-2.0
//! Whatever the port delivers, a run ends, keeps the records that it has, and never panics.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::io;

use turboflow_engine::{MicroflowBatch, RemoteEngine};
use turboflow_engine_p4::{Came, Frames, P4Error, P4Record, Port, Replay, ReplayConfig};
use turboflow_merge::Layout;
use turboflow_packet::{Frame, LinkType};
use turboflow_record::Definition;
use turboflow_workload::random::Random;

const OUTER: [u8; 14] = [2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0x88, 0xb6];
const VERSION: u8 = 0xf1;
const STATUS: u8 = 4;
const KIND_STATUS: u8 = 2;

const CONFIG: ReplayConfig = ReplayConfig {
    slots: 64,
    cell_ns: 1_000_000_000,
    tolerance_ns: u64::MAX,
    cuts_at_ends: false,
    seeds: [1, 2],
    window: None,
};

/// A pipeline that answers, but also sends arbitrary other things.
struct Hostile {
    random: Random,
    /// Commands that are not answered yet.
    tokens: Vec<[u8; 8]>,
    program_id: u64,
    slots: u32,
    word_bits: u16,
    /// How many answers out of 256 are damaged.
    damaged: u64,
    sent: u64,
    /// The number of packets that it claims to have metered. A smaller number than before means a
    /// restart.
    packets: u64,
}

impl Hostile {
    fn new(seed: u64, program_id: u64) -> Self {
        Self {
            random: Random::new(seed),
            tokens: Vec::new(),
            program_id,
            slots: 1024,
            word_bits: 64,
            damaged: 0,
            sent: 0,
            packets: 0,
        }
    }

    /// The answer to a command. Its counters have arbitrary values.
    fn answer(&mut self, token: [u8; 8]) -> Vec<u8> {
        let mut bytes = OUTER.to_vec();
        bytes.extend([VERSION, STATUS, 0, 0]);
        bytes.extend((self.random.below(u64::MAX) as u32).to_be_bytes());
        bytes.extend(self.random.below(u64::MAX).to_be_bytes());
        bytes.extend(token);
        bytes.extend(self.program_id.to_be_bytes());
        bytes.extend(self.slots.to_be_bytes());
        // It lists slots and takes frames over the lane.
        bytes.extend([0, 3]);
        bytes.extend(self.word_bits.to_be_bytes());
        // Nothing is listed, and it has no cells of its own.
        bytes.extend([0; 8]);
        self.packets += self.random.below(1 << 40);
        bytes.extend(self.packets.to_be_bytes());
        for _ in 0..6 {
            bytes.extend(self.random.below(u64::MAX).to_be_bytes());
        }
        bytes
    }

    /// A frame that begins like a report.
    fn strange(&mut self) -> Vec<u8> {
        let length = self.random.below(300) as usize;
        let mut bytes: Vec<u8> = (0..length)
            .map(|_| self.random.below(u64::MAX) as u8)
            .collect();
        for (place, byte) in OUTER.into_iter().enumerate().take(length) {
            bytes[place] = byte;
        }
        if length > 16 && self.random.below(8) > 0 {
            bytes[14] = VERSION;
            bytes[15] = self.random.below(7) as u8;
            if bytes[15] == STATUS {
                // A complete answer with smaller counters would mean that the pipeline was
                // restarted.
                bytes.truncate(100);
            }
        }
        bytes
    }
}

impl Port for Hostile {
    fn name(&self) -> &str {
        "hostile"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        let bytes = parts.concat();
        if bytes[14] >= KIND_STATUS {
            self.tokens.push(bytes[30..38].try_into().unwrap());
        }
    }

    fn exchange(&mut self, _: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        for _ in 0..self.random.below(20) {
            take(&self.strange());
            self.sent += 1;
        }
        for token in std::mem::take(&mut self.tokens) {
            let mut answer = self.answer(token);
            if self.random.below(256) < self.damaged {
                let length = self.random.below(answer.len() as u64) as usize;
                answer.truncate(length);
            }
            take(&answer);
        }
        Ok(true)
    }
}

/// Frames of a thousand cells.
struct Some1000(u64);

impl Frames for Some1000 {
    fn next(&mut self, take: &mut dyn FnMut(&Frame<'_>)) -> io::Result<Came> {
        const FRAME: [u8; 34] = [
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 64, 1, 0, 0, 1,
            1, 1, 1, 2, 2, 2, 2,
        ];
        if self.0 == 1_000 {
            return Ok(Came::End);
        }
        self.0 += 1;
        take(&Frame {
            bytes: &FRAME,
            wire_length_bytes: FRAME.len() as u32,
            timestamp_ns: self.0 * 1_000_000_000,
            interface: 0,
            link_type: LinkType::Ethernet,
        });
        Ok(Came::Frames)
    }
}

#[test]
fn a_run_survives_whatever_comes() {
    let definition = Definition::default();
    let layout = Layout::compile(&definition, false).unwrap();
    for seed in 0..20 {
        let record = P4Record::new(&definition, &layout).unwrap();
        let port = Hostile {
            damaged: [0, 1, 100][seed as usize % 3],
            ..Hostile::new(seed, record.id())
        };
        let input = Box::new(Some1000(0));
        let Ok(mut engine) = Replay::open(Box::new(port), input, record, &layout, &CONFIG) else {
            assert!(seed % 3 != 0, "a pipeline that answers is opened");
            continue;
        };
        let (mut records, mut failed) = (0, false);
        while !engine.has_ended() && !failed {
            let mut batch = MicroflowBatch::default();
            failed = engine.collect(&mut batch).is_err();
            records += batch.len();
        }
        engine.finish().unwrap();
        let strange = engine.strange_frames();
        assert!(
            strange.malformed > 0 && strange.other_version > 0,
            "{strange:?}"
        );
        assert!(records > 0 && engine.reports_lost() > 0);
        assert!(engine.counters().is_ok() && engine.ports().is_ok());
    }
}

/// A pipeline that restarts after some answers.
struct StartedAnew {
    hostile: Hostile,
    answers: u64,
}

impl Port for StartedAnew {
    fn name(&self) -> &str {
        "started anew"
    }

    fn send(&mut self, parts: &[&[u8]]) {
        self.hostile.send(parts);
    }

    fn exchange(&mut self, _: bool, take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        for token in std::mem::take(&mut self.hostile.tokens) {
            self.answers += 1;
            if self.answers == 20 {
                self.hostile.packets = 0;
            }
            take(&self.hostile.answer(token));
        }
        Ok(true)
    }
}

/// Its counters start again, and what was in its table is gone.
#[test]
fn a_pipeline_that_was_started_anew_ends_the_run() {
    let definition = Definition::default();
    let layout = Layout::compile(&definition, false).unwrap();
    let record = P4Record::new(&definition, &layout).unwrap();
    let port = StartedAnew {
        hostile: Hostile {
            packets: 1 << 40,
            ..Hostile::new(1, record.id())
        },
        answers: 0,
    };
    let input = Box::new(Some1000(0));
    let mut engine = Replay::open(Box::new(port), input, record, &layout, &CONFIG).unwrap();
    let mut batch = MicroflowBatch::default();
    let error = loop {
        assert!(!engine.has_ended());
        if let Err(error) = engine.collect(&mut batch) {
            break error;
        }
    };
    assert!(error.to_string().contains("was restarted"), "{error}");
}

/// What a program says of itself must fit the run, or the run does not begin.
#[test]
fn programs_that_do_not_fit_are_refused() {
    let definition = Definition::default();
    let layout = Layout::compile(&definition, false).unwrap();
    let refusal = |change: &dyn Fn(&mut Hostile)| {
        let record = P4Record::new(&definition, &layout).unwrap();
        let mut port = Hostile::new(1, record.id());
        change(&mut port);
        let (port, input) = (Box::new(port), Box::new(Some1000(0)));
        Replay::open(port, input, record, &layout, &CONFIG).err()
    };
    assert!(refusal(&|_| ()).is_none());
    assert!(refusal(&|port| port.slots = 64).is_none());
    assert!(refusal(&|port| port.slots = 1 << 24).is_none());
    for slots in [(1 << 24) + 1, u32::MAX] {
        let error = refusal(&|port| port.slots = slots).unwrap();
        let most = 1 << 24;
        let is_it = |found, limit| (found, limit) == (slots, most);
        assert!(
            matches!(error, P4Error::TooManySlots { slots, most, .. } if is_it(slots, most)),
            "{error}"
        );
    }
    for slots in [0, 63] {
        let error = refusal(&|port| port.slots = slots).unwrap();
        assert!(
            matches!(error, P4Error::Slots { room, wanted: 64, .. } if room == slots),
            "{error}"
        );
    }
    // The words of chips have 32 bits, and their programs say that times wrap.
    for bits in [0, 32, 128] {
        let error = refusal(&|port| port.word_bits = bits).unwrap();
        assert!(matches!(error, P4Error::Words { .. }), "{error}");
    }
    let error = refusal(&|port| port.program_id ^= 1).unwrap();
    assert!(matches!(error, P4Error::Definition { .. }), "{error}");
}
