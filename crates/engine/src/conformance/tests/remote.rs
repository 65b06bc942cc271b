// SPDX-License-Identifier: Apache-2.0
//! A remote engine with its own clock: the plain engine, which stamps packets itself and hands over
//! batches at the end.

use std::collections::VecDeque;
use std::time::Duration;

use turboflow_merge::Base;
use turboflow_record::{WORDS_V4, WORDS_V6};

use crate::conformance::{
    Arrival, Aspect, Event, Lane, LeftOut, OpenRemote, Setup, Subject, Told, plain,
};
use crate::{
    Abilities, Collected, EngineCounters, EngineError, MicroflowBatch, Port, RecordShape,
    RemoteEngine,
};

const LEFT_OUT: [LeftOut; 2] = [
    LeftOut {
        what: Aspect::GivenTimes,
        why: "it has its own clock",
    },
    LeftOut {
        what: Aspect::HandsOverAtOnce,
        why: "it hands records over at the end",
    },
];

/// Opens an [`Engine`].
pub(super) struct OwnClock {
    /// Time between two packets.
    pub(super) step_ns: u64,
}

pub(super) struct Engine {
    abilities: Abilities,
    setup: Setup,
    now_ns: u64,
    arrivals: Vec<Arrival>,
    events: VecDeque<Event>,
    counters: EngineCounters,
}

impl OpenRemote for OwnClock {
    type Engine = Engine;

    fn abilities(&self) -> Abilities {
        plain().abilities()
    }

    fn left_out(&self) -> &[LeftOut] {
        &LEFT_OUT
    }

    fn open(&mut self, setup: &Setup) -> Result<Engine, EngineError> {
        Ok(Engine {
            abilities: self.abilities(),
            setup: setup.clone(),
            now_ns: 1_700_000_000_000_000_000,
            arrivals: Vec::new(),
            events: VecDeque::new(),
            counters: EngineCounters::default(),
        })
    }

    fn give(&mut self, engine: &mut Engine, arrival: &Arrival) -> Result<(), EngineError> {
        let mut arrival = arrival.clone();
        engine.now_ns += self.step_ns;
        if let Ok((packet, _)) = &mut arrival.packet {
            packet.timestamp_ns = engine.now_ns;
        }
        engine.arrivals.push(arrival);
        Ok(())
    }
}

impl RemoteEngine for Engine {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn started_ns(&self) -> u64 {
        0
    }

    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, EngineError> {
        let shape = RecordShape::of(&self.setup.layout);
        while let Some(event) = self.events.pop_front() {
            let (lane, record) = match event.told {
                Told::Record(lane, record) => (lane, record),
                Told::Complete(complete_ns) => return Ok(Collected::all_before(complete_ns)),
                Told::StartsOver => continue,
            };
            let key_words = match lane {
                Lane::V4 => WORDS_V4,
                Lane::V6 => WORDS_V6,
                Lane::Wide => shape.wide_key_words.unwrap_or_default(),
            };
            let state = record.state[..shape.state_words].iter();
            let key = record.key[..key_words].iter();
            let words: Vec<u64> = words_of(&record.base)
                .iter()
                .chain(state)
                .chain(key)
                .copied()
                .collect();
            assert!(batch.push_row(words.into_iter(), shape));
        }
        Ok(Collected::default())
    }

    fn longest_pause(&self) -> Duration {
        Duration::ZERO
    }

    fn counters(&mut self) -> Result<EngineCounters, EngineError> {
        Ok(self.counters)
    }

    fn ports(&mut self) -> Result<Vec<Port>, EngineError> {
        Ok(Vec::new())
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        let observed = plain().observe(&self.setup, &self.arrivals)?;
        self.events = observed.events.into();
        self.counters = observed.counters;
        Ok(())
    }
}

/// The words that [`Base::from_words`] reads.
fn words_of(base: &Base) -> [u64; 6] {
    let lengths = u64::from(!base.min_length_bytes.get()) | u64::from(base.max_length_bytes) << 32;
    let rest = u64::from(!base.min_ttl.get())
        | u64::from(base.max_ttl) << 8
        | u64::from(base.tcp_flags) << 32
        | u64::from(base.tos) << 48
        | u64::from(base.marks.0) << 56;
    [
        base.packets,
        base.bytes,
        base.first_ns,
        base.last_ns,
        lengths,
        rest,
    ]
}
