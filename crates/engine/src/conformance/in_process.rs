// SPDX-License-Identifier: Apache-2.0
//! Any packet engine as a subject. The clock is driven as in a run, and evicted records are handed
//! over at once.

use turboflow_merge::{KeyHasher, KeyWidths, MicroflowRecord, WORDS_WIDE};
use turboflow_record::{Family, WORDS_V4, WORDS_V6};

use super::cells::{Cells, Tick};
use super::{Arrival, Event, Lane, Observed, Record, Setup, Subject, Told};
use crate::{
    Abilities, EngineCounters, EngineError, EvictAll, Evicted, PacketEngine, PacketEngines,
};

/// Engines in this process, created with a given number of slots.
pub struct InProcess<F> {
    abilities: Abilities,
    of_slots: fn(u32) -> F,
}

impl<F: PacketEngines> InProcess<F> {
    /// Engines with these abilities. `of_slots` creates an engine with a given number of slots.
    #[must_use]
    pub const fn new(abilities: Abilities, of_slots: fn(u32) -> F) -> Self {
        Self {
            abilities,
            of_slots,
        }
    }
}

impl<F: PacketEngines> Subject for InProcess<F> {
    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn observe(&mut self, setup: &Setup, arrivals: &[Arrival]) -> Result<Observed, EngineError> {
        let engines = (self.of_slots)(setup.slots);
        Ok(with_state_words!(setup.layout.state_words(), N => {
            Metering::<F, N>::new(&engines, setup).run(arrivals)
        }))
    }
}

/// A running trial, with one table per kind of record in the layout.
struct Metering<'a, F: PacketEngines, const N: usize> {
    setup: &'a Setup,
    cells: Cells,
    v4: Option<Table<F::Engine<WORDS_V4, N>, WORDS_V4, N>>,
    v6: Option<Table<F::Engine<WORDS_V6, N>, WORDS_V6, N>>,
    wide: Option<Table<F::Engine<WORDS_WIDE, N>, WORDS_WIDE, N>>,
    observed: Observed,
    /// How many frames have been given.
    given: usize,
}

impl<'a, F: PacketEngines, const N: usize> Metering<'a, F, N> {
    fn new(engines: &F, setup: &'a Setup) -> Self {
        let by_family = setup.layout.key_widths() == KeyWidths::ByFamily;
        let hasher = KeyHasher::new(setup.seed);
        let plan = || setup.layout.plan().clone();
        let evict_after = setup.evict_after();
        Self {
            setup,
            cells: Cells::new(setup),
            v4: by_family
                .then(|| Table::new(Lane::V4, engines.open(1, evict_after, plan(), hasher))),
            v6: by_family
                .then(|| Table::new(Lane::V6, engines.open(1, evict_after, plan(), hasher))),
            wide: (!by_family)
                .then(|| Table::new(Lane::Wide, engines.open(1, evict_after, plan(), hasher))),
            observed: Observed::default(),
            given: 0,
        }
    }

    fn run(mut self, arrivals: &[Arrival]) -> Observed {
        for arrival in arrivals {
            self.give(arrival);
            self.given += 1;
            if self.given.is_multiple_of(self.setup.look_every) {
                self.each_table(|table, told| table.meter(told));
            }
        }
        self.each_table(|table, told| table.evict_all(EvictAll::Flush, told));
        let mut evicted = Evicted::default();
        self.each_table(|table, _| evicted += table.evicted());
        self.observed.counters.evicted = evicted;
        self.observed
    }

    fn give(&mut self, arrival: &Arrival) {
        count(&mut self.observed.counters, arrival);
        let Ok((packet, values)) = &arrival.packet else {
            return;
        };
        match self.cells.tick(packet.timestamp_ns) {
            Tick::Enters => self.enter(EvictAll::Cell, Told::Complete),
            Tick::SetBack => self.enter(EvictAll::Flush, |_| Told::StartsOver),
            Tick::Stays => {}
        }
        let layout = &self.setup.layout;
        if let Some(table) = &mut self.wide {
            table.waiting.push(layout.open(packet, values));
            return;
        }
        match packet.tuple.family() {
            Family::V4 => push(&mut self.v4, || layout.open(packet, values)),
            Family::V6 => push(&mut self.v6, || layout.open(packet, values)),
        }
    }

    /// Ends the cell: evicts all records, then reports the cell as complete.
    fn enter(&mut self, why: EvictAll, told: fn(u64) -> Told) {
        self.each_table(|table, told| table.evict_all(why, told));
        let start_ns = self.cells.moment().cell_start_ns;
        self.observed.events.push(Event {
            given: self.given,
            told: told(start_ns),
        });
        self.each_table(|table, _| table.enter_cell(start_ns));
    }

    fn each_table(&mut self, mut act: impl FnMut(&mut dyn AnyTable, &mut Vec<Told>)) {
        let mut told = Vec::new();
        let tables: [Option<&mut dyn AnyTable>; 3] = [
            self.v4.as_mut().map(|table| table as _),
            self.v6.as_mut().map(|table| table as _),
            self.wide.as_mut().map(|table| table as _),
        ];
        for table in tables.into_iter().flatten() {
            act(table, &mut told);
        }
        let given = self.given;
        let events = told.into_iter().map(|told| Event { given, told });
        self.observed.events.extend(events);
    }
}

fn push<E, const K: usize, const N: usize>(
    table: &mut Option<Table<E, K, N>>,
    open: impl Fn() -> MicroflowRecord<K, N>,
) {
    if let Some(table) = table {
        table.waiting.push(open());
    }
}

/// Counts what a run counts before packets reach an engine in this process.
fn count(counters: &mut EngineCounters, arrival: &Arrival) {
    counters.packets_received += 1;
    counters.bytes_received += arrival.wire_bytes();
    match &arrival.packet {
        Ok((packet, _)) => {
            counters.packets_metered += 1;
            counters.bytes_metered += u64::from(packet.ip_length_bytes);
        }
        Err(reason) => {
            counters.rejected_packets[reason.index()] += 1;
            counters.rejected_bytes[reason.index()] += arrival.wire_bytes();
        }
    }
}

/// A table of any key width.
trait AnyTable {
    /// Meters the pending packets.
    fn meter(&mut self, told: &mut Vec<Told>);
    /// Meters the pending packets, then evicts everything.
    fn evict_all(&mut self, why: EvictAll, told: &mut Vec<Told>);
    fn enter_cell(&mut self, start_ns: u64);
    fn evicted(&self) -> Evicted;
}

struct Table<E, const K: usize, const N: usize> {
    lane: Lane,
    engine: E,
    waiting: Vec<MicroflowRecord<K, N>>,
    evicted: Vec<MicroflowRecord<K, N>>,
}

impl<E: PacketEngine<K, N>, const K: usize, const N: usize> Table<E, K, N> {
    const fn new(lane: Lane, engine: E) -> Self {
        Self {
            lane,
            engine,
            waiting: Vec::new(),
            evicted: Vec::new(),
        }
    }

    fn hand_over(&mut self, told: &mut Vec<Told>) {
        let records = self.evicted.drain(..);
        told.extend(records.map(|record| Told::Record(self.lane, Box::new(widened(&record)))));
    }
}

impl<E: PacketEngine<K, N>, const K: usize, const N: usize> AnyTable for Table<E, K, N> {
    fn meter(&mut self, told: &mut Vec<Told>) {
        if self.engine.is_bypassed() {
            self.engine.pass(self.waiting.len());
            self.evicted.append(&mut self.waiting);
        } else if !self.waiting.is_empty() {
            self.engine.observe(&self.waiting, &mut self.evicted);
            self.waiting.clear();
        }
        self.hand_over(told);
    }

    fn evict_all(&mut self, why: EvictAll, told: &mut Vec<Told>) {
        self.meter(told);
        self.engine.evict_all(why, &mut self.evicted);
        self.hand_over(told);
    }

    fn enter_cell(&mut self, start_ns: u64) {
        // Only engines that can be bypassed use this number.
        const HITS_NEEDED_PERCENT: u64 = 50;
        self.engine.enter_cell(start_ns, HITS_NEEDED_PERCENT);
    }

    fn evicted(&self) -> Evicted {
        self.engine.evicted()
    }
}

/// The record, widened to hold any key and any state.
pub(super) fn widened<const K: usize, const N: usize>(record: &MicroflowRecord<K, N>) -> Record {
    let mut wide = Record {
        base: record.base,
        ..Record::default()
    };
    wide.key[..K].copy_from_slice(&record.key);
    wide.state[..N].copy_from_slice(&record.state);
    wide
}
