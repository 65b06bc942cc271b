// SPDX-License-Identifier: Apache-2.0
//! An engine under test, and what it did.

use turboflow_merge::{Layout, MicroflowRecord, WORDS_WIDE};
use turboflow_record::{InputValues, Packet, Rejected};

use super::Setup;
use crate::{Abilities, EngineCounters, EngineError};

/// Room for any state.
pub const MOST_STATE_WORDS: usize = 504;

/// A microflow record of any layout: the words that its layout does not use are zero.
pub type Record = MicroflowRecord<WORDS_WIDE, MOST_STATE_WORDS>;

/// One frame that is given to an engine.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Its bytes; empty where no subject reads them.
    pub frame: Vec<u8>,
    /// The packet in it with its inputs, or why there is none.
    pub packet: Result<(Packet, InputValues), Rejected>,
}

impl Arrival {
    /// A packet, for engines that are given packets.
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
    /// That of IPv4 flows.
    V4,
    /// That of IPv6 flows.
    V6,
    /// That of a key other than the 5-tuple.
    Wide,
}

/// What an engine told.
#[derive(Clone, Debug)]
pub enum Told {
    /// All packets before this time have been handed over.
    Complete(u64),
    /// It handed over a record.
    Record(Lane, Box<Record>),
    /// The clock was set back: what follows is of another time.
    StartsOver,
}

/// Something that an engine told, and when.
#[derive(Clone, Debug)]
pub struct Event {
    /// How many frames it had been given.
    pub given: usize,
    /// What it told.
    pub told: Told,
}

/// All that an engine did with a sequence.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// What it told, in this order.
    pub events: Vec<Event>,
    /// What it had counted at the end.
    pub counters: EngineCounters,
}

impl Observed {
    /// The records, with the place of their event.
    pub fn records(&self) -> impl Iterator<Item = (usize, Lane, &Record)> {
        let numbered = self.events.iter().enumerate();
        numbered.filter_map(|(place, event)| match &event.told {
            Told::Record(lane, record) => Some((place, *lane, &**record)),
            Told::Complete(_) | Told::StartsOver => None,
        })
    }

    /// The times before which all packets had been handed over, with the place of their event.
    pub fn watermarks(&self) -> impl Iterator<Item = (usize, u64)> {
        let numbered = self.events.iter().enumerate();
        numbered.filter_map(|(place, event)| match event.told {
            Told::Complete(complete_ns) => Some((place, complete_ns)),
            Told::Record(..) | Told::StartsOver => None,
        })
    }
}

/// Something that the suite asks of engines, and that not every one of them can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// Records that were evicted by age are counted apart from those of the flush. Without: the two
    /// together.
    AgeApartFromFlush,
    /// Packets come at the times that a sequence says. Without: late packets, silences and clocks
    /// that are set back cannot be put to it. Its own times are read from its records, and the
    /// packets take them.
    GivenTimes,
    /// Records are handed over as they leave the table. Without: how many are resident is known
    /// only where all packets are of one cell.
    HandsOverAtOnce,
    /// A flow has the slot that it has in the golden model. Without: records are compared one by
    /// one in tables of one slot; in others they may also end where another flow's packet came.
    SameSlots,
    /// Looking for records does not cut any. Without: where records end beyond the rules is
    /// compared only without a look before the end, or if all packets are of one cell.
    UndisturbedByLooks,
}

/// What a subject is not asked, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// What.
    pub what: Aspect,
    /// Why.
    pub why: &'static str,
}

/// An engine under test: every trial opens it anew.
///
/// A trial is one call, so that what an engine did is a value: wrong engines and lossy ways are
/// wrappers that change it, and the golden model is one more subject.
pub trait Subject {
    /// What it can do, as it is set up here.
    fn abilities(&self) -> Abilities;

    /// What it is not asked.
    fn left_out(&self) -> &[LeftOut] {
        &[]
    }

    /// Whether it takes a layout that its abilities reach.
    fn takes(&self, _layout: &Layout) -> bool {
        true
    }

    /// Opens an engine, gives it frames or packets, and looks for records every
    /// [`Setup::look_every`] of them, and at the end.
    ///
    /// # Errors
    /// Where the engine fails.
    fn observe(&mut self, setup: &Setup, arrivals: &[Arrival]) -> Result<Observed, EngineError>;
}
