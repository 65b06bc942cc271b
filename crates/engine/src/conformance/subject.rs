// SPDX-License-Identifier: Apache-2.0
//! An engine under test, and what it output.

use turboflow_merge::{Layout, MOST_STATE_WORDS, MicroflowRecord, WORDS_WIDE};
use turboflow_record::{InputValues, Packet, Rejected};

use super::Setup;
use crate::{Abilities, EngineCounters, EngineError};

/// A microflow record of any layout. Words that its layout does not use are zero.
pub type Record = MicroflowRecord<WORDS_WIDE, MOST_STATE_WORDS>;

/// A frame given to an engine.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The bytes of the frame; empty if no subject reads them.
    pub frame: Vec<u8>,
    /// The parsed packet with its inputs, or why there is none.
    pub packet: Result<(Packet, InputValues), Rejected>,
}

impl Arrival {
    /// A packet, for engines that take packets instead of frames.
    #[must_use]
    pub const fn of_packet(packet: Packet, values: InputValues) -> Self {
        Self {
            frame: Vec::new(),
            packet: Ok((packet, values)),
        }
    }

    /// Its length on the wire.
    #[must_use]
    pub fn wire_bytes(&self) -> u64 {
        match &self.packet {
            Ok((packet, _)) => packet.frame_length_bytes.into(),
            Err(_) => self.frame.len() as u64,
        }
    }
}

/// The table that a record comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// The table of IPv4 flows.
    V4,
    /// The table of IPv6 flows.
    V6,
    /// The table of flows whose key is not the 5-tuple.
    Wide,
}

/// What an engine output.
#[derive(Clone, Debug)]
pub enum Told {
    /// A watermark: all packets before this time have been handed over.
    Complete(u64),
    /// A microflow record.
    Record(Lane, Box<Record>),
    /// The clock went backwards: earlier watermarks no longer apply.
    StartsOver,
}

/// An output of an engine, and when it was made.
#[derive(Clone, Debug)]
pub struct Event {
    /// How many frames the engine had been given.
    pub given: usize,
    /// The output.
    pub told: Told,
}

/// Everything that an engine output for a sequence.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The events, in order.
    pub events: Vec<Event>,
    /// The counters at the end.
    pub counters: EngineCounters,
}

impl Observed {
    /// The records, with the index of their event.
    pub fn records(&self) -> impl Iterator<Item = (usize, Lane, &Record)> {
        let numbered = self.events.iter().enumerate();
        numbered.filter_map(|(place, event)| match &event.told {
            Told::Record(lane, record) => Some((place, *lane, &**record)),
            Told::Complete(_) | Told::StartsOver => None,
        })
    }

    /// The watermarks, with the index of their event.
    pub fn watermarks(&self) -> impl Iterator<Item = (usize, u64)> {
        let numbered = self.events.iter().enumerate();
        numbered.filter_map(|(place, event)| match event.told {
            Told::Complete(complete_ns) => Some((place, complete_ns)),
            Told::Record(..) | Told::StartsOver => None,
        })
    }
}

/// A property that the suite relies on, and that some engines do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// Counts records evicted by age separately from flushed ones. Without this aspect, the suite
    /// compares the sum of both.
    AgeApartFromFlush,
    /// Takes the timestamps of a sequence. Without this aspect, the suite reads the engine's own
    /// timestamps from its records. It cannot test late packets, silences and clocks that go
    /// backwards.
    GivenTimes,
    /// Hands records over as soon as they are evicted. Without this aspect, the number of resident
    /// records is known only if all packets are in one cell.
    HandsOverAtOnce,
    /// Maps flows to the slots of the golden model. Without this aspect, records are compared one
    /// by one only in tables of one slot. In larger tables a record may also end before a packet of
    /// another flow.
    SameSlots,
    /// Evicts no records because records are collected. Without this aspect, record boundaries are
    /// checked only if records are collected only at the end, or if all packets are in one cell.
    UndisturbedByLooks,
}

/// An aspect that is not tested on a subject, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The aspect.
    pub what: Aspect,
    /// The reason.
    pub why: &'static str,
}

/// An engine under test. Every trial opens it anew.
///
/// A trial is one call, so that its output is a value. Wrappers can change this value to act as
/// faulty engines and lossy transports, and the golden model is just another subject.
pub trait Subject {
    /// What the engine supports as configured here.
    fn abilities(&self) -> Abilities;

    /// The aspects that are not tested.
    fn left_out(&self) -> &[LeftOut] {
        &[]
    }

    /// Whether the engine supports a layout that its abilities allow.
    fn takes(&self, _layout: &Layout) -> bool {
        true
    }

    /// Opens an engine, gives it frames or packets, and collects records after every
    /// [`Setup::look_every`] of them, and at the end.
    ///
    /// # Errors
    /// If the engine fails.
    fn observe(&mut self, setup: &Setup, arrivals: &[Arrival]) -> Result<Observed, EngineError>;
}
