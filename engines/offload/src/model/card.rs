// SPDX-License-Identifier: Apache-2.0
//! The card: its rows, their counters, and when orders take effect.

use std::collections::{HashMap, VecDeque};

use turboflow_engine::MicroflowBatch;
use turboflow_merge::{Base, Complement, Marks, MicroflowRecord};

use super::cuckoo::mixed;
use super::{CardProfile, Cuckoo, Shape};
use crate::{
    EndCause, EndedRow, FlowKey, FlowTable, Limits, Order, OrderKind, Outcome, TableError, Times,
    Verdict,
};

/// Maximum number of rows that are displaced for a new one.
const MAX_MOVES: usize = 500;

/// A packet that the card sees.
#[derive(Clone, Copy, Debug)]
pub struct CardPacket {
    /// Flow of the packet.
    pub key: FlowKey,
    /// Whether the packet goes from the greater end of the key to the smaller.
    pub is_reversed: bool,
    /// Length according to the IP header, in bytes.
    pub ip_length_bytes: u32,
    /// Flags of a TCP packet; 0 for other protocols.
    pub tcp_flags: u16,
}

/// Whether the host or the card handles a packet, and counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// The host.
    ByHost,
    /// The card, by this verdict.
    ByCard(Verdict),
}

/// The state of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// From this time on, packets meet the row.
    Counts { from_ns: u64 },
    /// From this time on, packets go to the host.
    Leaves { from_ns: u64, cause: EndCause },
}

/// Counters of one direction of a row since the last collection.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    base: Base,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    key: FlowKey,
    hash: u64,
    verdict: Verdict,
    phase: Phase,
    seen_ns: u64,
    counted: [Counted; 2],
    is_touched: bool,
}

/// A card with a table of flows.
pub struct ModelCard {
    profile: CardProfile,
    table: Cuckoo,
    rows: Vec<Option<Row>>,
    free: Vec<u32>,
    by_key: HashMap<FlowKey, u32>,
    /// Rows that have counted since the last collection.
    touched: Vec<u32>,
    /// Rows that leave, each with the time from which no packet counts in it any more.
    leaving: VecDeque<(u64, u32)>,
    /// Records of rows that are gone.
    final_records: MicroflowBatch,
    /// Ends of rows, each with the time at which the card reports it.
    events: VecDeque<(u64, EndedRow)>,
    now_ns: u64,
    /// The time at which all orders so far are carried out.
    idle_from_ns: u64,
    scanned_ns: u64,
    idle_ns: u64,
}

impl ModelCard {
    /// A card without rows. The rows of flows that are silent for `idle_ns` nanoseconds leave.
    #[must_use]
    pub fn new(profile: CardProfile, idle_ns: u64) -> Self {
        let shape = Shape {
            ways: profile.ways,
            slots_per_bucket: profile.slots,
        };
        Self {
            table: Cuckoo::new(shape, profile.rows.into(), MAX_MOVES, profile.seed),
            profile,
            rows: Vec::new(),
            free: Vec::new(),
            by_key: HashMap::new(),
            touched: Vec::new(),
            leaving: VecDeque::new(),
            final_records: MicroflowBatch::default(),
            events: VecDeque::new(),
            now_ns: 0,
            idle_from_ns: 0,
            scanned_ns: 0,
            idle_ns,
        }
    }

    /// Number of rows, including those that leave.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.by_key.len()
    }

    /// Takes a packet. Times do not decrease.
    pub fn take(&mut self, packet: &CardPacket, now_ns: u64) -> Handled {
        self.advance(now_ns);
        let Some(&number) = self.by_key.get(&packet.key) else {
            return Handled::ByHost;
        };
        let Some(row) = &mut self.rows[number as usize] else {
            return Handled::ByHost;
        };
        let counts = match row.phase {
            Phase::Counts { from_ns } => now_ns >= from_ns,
            Phase::Leaves { from_ns, .. } => now_ns < from_ns,
        };
        if !counts {
            return Handled::ByHost;
        }
        row.seen_ns = now_ns;
        row.counted[usize::from(packet.is_reversed)].count(packet, now_ns);
        if !row.is_touched {
            row.is_touched = true;
            self.touched.push(number);
        }
        Handled::ByCard(row.verdict)
    }

    /// Does what is due by `now_ns`: reads and deletes rows whose flow was handed to the host, and
    /// hands silent flows to the host.
    pub fn advance(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        while let Some(&(due_ns, number)) = self.leaving.front()
            && due_ns <= self.now_ns
        {
            self.leaving.pop_front();
            self.delete(number, due_ns);
        }
        if self.now_ns.saturating_sub(self.scanned_ns) >= self.profile.scan_ns {
            self.scanned_ns = self.now_ns;
            for number in 0..self.rows.len() as u32 {
                let is_silent = self.rows[number as usize].is_some_and(|row| {
                    matches!(row.phase, Phase::Counts { .. })
                        && self.now_ns.saturating_sub(row.seen_ns) >= self.idle_ns
                });
                if is_silent {
                    self.turn_to_host(number, EndCause::Idle);
                }
            }
        }
    }

    /// Spends the time of an order, after earlier orders. Returns when packets see its effect.
    fn execute(&mut self, accesses: u32) -> u64 {
        let second = 1_000_000_000;
        let by_rate = second / self.profile.learning_rate.max(1);
        let by_memory = u64::from(accesses) * second / self.profile.accesses_per_second.max(1);
        self.idle_from_ns = self.idle_from_ns.max(self.now_ns) + by_rate.max(by_memory);
        self.idle_from_ns + self.profile.programming_delay_ns
    }

    fn add(&mut self, key: FlowKey, verdict: Verdict) -> Outcome {
        if self.by_key.contains_key(&key) {
            return Outcome::Exists;
        }
        let wait_ns = self.idle_from_ns.saturating_sub(self.now_ns);
        if wait_ns > self.profile.longest_wait_ns {
            return Outcome::TooFast;
        }
        let words = key.words().into_iter();
        let hash = words.fold(self.profile.seed, |hash, word| mixed(hash ^ word));
        let number = self.free.last().copied();
        let number = number.unwrap_or(self.rows.len() as u32);
        let insertion = self.table.insert(hash, number);
        // An insertion that finds no room also takes time.
        let from_ns = self.execute(insertion.accesses);
        if !insertion.is_placed {
            return Outcome::Full;
        }
        let row = Some(Row {
            key,
            hash,
            verdict,
            phase: Phase::Counts { from_ns },
            seen_ns: from_ns,
            counted: [Counted::default(); 2],
            is_touched: false,
        });
        match self.free.pop() {
            Some(_) => self.rows[number as usize] = row,
            None => self.rows.push(row),
        }
        self.by_key.insert(key, number);
        Outcome::Done
    }

    fn change(&mut self, key: FlowKey, verdict: Verdict) -> Outcome {
        match self.by_key.get(&key).copied() {
            Some(number) => {
                self.execute(1);
                if let Some(row) = &mut self.rows[number as usize] {
                    row.verdict = verdict;
                }
                Outcome::Done
            }
            None => Outcome::Absent,
        }
    }

    fn remove(&mut self, key: FlowKey) -> Outcome {
        match self.by_key.get(&key).copied() {
            Some(number) => {
                self.turn_to_host(number, EndCause::Removed);
                Outcome::Done
            }
            None => Outcome::Absent,
        }
    }

    /// The first step of a removal: packets go to the host. The row's counters are read when no
    /// more packets can count in it.
    fn turn_to_host(&mut self, number: u32, cause: EndCause) {
        let from_ns = self.execute(1);
        let Some(row) = &mut self.rows[number as usize] else {
            return;
        };
        if let Phase::Leaves { .. } = row.phase {
            return;
        }
        row.phase = Phase::Leaves { from_ns, cause };
        self.leaving
            .push_back((from_ns + self.profile.drain_ns, number));
    }

    fn delete(&mut self, number: u32, now_ns: u64) {
        let Some(mut row) = self.rows[number as usize].take() else {
            return;
        };
        row.put_records(&mut self.final_records);
        self.table.remove(row.hash, number);
        self.by_key.remove(&row.key);
        self.free.push(number);
        let cause = match row.phase {
            Phase::Leaves { cause, .. } => cause,
            Phase::Counts { .. } => EndCause::Removed,
        };
        let key = row.key;
        self.events
            .push_back((now_ns + self.profile.event_lag_ns, EndedRow { key, cause }));
    }
}

impl Counted {
    fn count(&mut self, packet: &CardPacket, now_ns: u64) {
        let base = &mut self.base;
        let length = packet.ip_length_bytes;
        let is_first = base.packets == 0;
        if is_first {
            base.first_ns = now_ns;
            base.min_length_bytes = Complement::of(length);
        }
        base.packets += 1;
        base.bytes += u64::from(length);
        base.last_ns = now_ns;
        if length < base.min_length_bytes.get() {
            base.min_length_bytes = Complement::of(length);
        }
        base.max_length_bytes = base.max_length_bytes.max(length);
        base.tcp_flags |= packet.tcp_flags;
        let marks = Marks::of_packet(packet.tcp_flags, false).0;
        base.marks.0 |= match is_first {
            true => marks,
            false => marks & !Marks::OF_FIRST_PACKET,
        };
    }
}

impl Row {
    /// Moves the row's counters into records, one for each direction.
    fn put_records(&mut self, batch: &mut MicroflowBatch) {
        for (counted, is_reversed) in self.counted.iter_mut().zip([false, true]) {
            let base = std::mem::take(&mut counted.base);
            if base.packets == 0 {
                continue;
            }
            let words = self.key.directed(is_reversed);
            match self.key.is_v6() {
                true => batch.plain_v6.push_record(MicroflowRecord {
                    key: words,
                    base,
                    state: [],
                }),
                false => batch.plain_v4.push_record(MicroflowRecord {
                    key: [words[0], words[1]],
                    base,
                    state: [],
                }),
            }
        }
        self.is_touched = false;
    }
}

impl FlowTable for ModelCard {
    fn limits(&self) -> Limits {
        let rows = self.table.capacity() as u64;
        Limits {
            rows_v4: rows,
            rows_v6: rows,
            is_shared: true,
            learning_rate: Some(self.profile.learning_rate),
        }
    }

    fn ages_rows(&self) -> bool {
        true
    }

    fn program(
        &mut self,
        orders: &[Order],
        times: Times,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<u64, TableError> {
        self.advance(times.now_ns);
        for order in orders {
            outcomes.push(match order.kind {
                OrderKind::Add(verdict) => self.add(order.key, verdict),
                OrderKind::Change(verdict) => self.change(order.key, verdict),
                OrderKind::Remove | OrderKind::Age => self.remove(order.key),
            });
        }
        Ok(self.now_ns)
    }

    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<(), TableError> {
        batch.append(&mut self.final_records);
        for number in std::mem::take(&mut self.touched) {
            if let Some(row) = &mut self.rows[number as usize] {
                row.put_records(batch);
            }
        }
        Ok(())
    }

    fn ended(&mut self, ended: &mut Vec<EndedRow>) {
        while let Some(&(due_ns, row)) = self.events.front()
            && due_ns <= self.now_ns
        {
            self.events.pop_front();
            ended.push(row);
        }
    }
}
