// SPDX-License-Identifier: Apache-2.0
//! The line in the simplest possible code: one packet after another, without stages or clocks.

use turboflow_merge::{Base, Marks};

use crate::fields::{LENGTH_BITS, TIME_BITS};
use crate::hash::{Place, Toeplitz};
use crate::line::{Arrival, Key, Left, Line, Step, Why};
use crate::size::LineConfig;
use crate::spread::Spread;

/// Ages are counted in periods modulo this, because they have 2 bits.
const AGES: u32 = 4;
/// A slot is idle if its last use was this many periods ago, modulo [`AGES`].
const IDLE_AGES: std::ops::RangeInclusive<u32> = 1..=2;
/// Packets from the first one that writes a new period to the first one that is compared with it:
/// the delay of the pipeline.
const TURNING_PACKETS: u64 = 8;

/// A slot that is in use.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The tag, without the other bucket, which is compared too.
    tag: u32,
    other_bucket: u32,
    /// The period of its last use, modulo [`AGES`]; one period later if it was used more than once.
    age: u32,
    key: Key,
    base: Base,
}

/// A line without stages and clocks. It returns the records of the array in the same order, except
/// that records leaving at the end of a cell come in the order of slots.
#[derive(Clone, Debug)]
pub struct Model {
    config: LineConfig,
    hash: Toeplitz,
    /// The table that gives the stage of a key; `None` if the hash gives it.
    spread: Option<Spread>,
    slots: Vec<Option<Slot>>,
    cell_start_ns: u64,
    /// Packets metered so far. A period is a number of packets.
    packets: u64,
}

impl Model {
    /// An empty line.
    #[must_use]
    pub fn new(config: LineConfig) -> Self {
        Self {
            hash: config.hash(),
            spread: (config.build.entry_bits > 0)
                .then(|| Spread::new(config.build.entry_bits, config.size.stages)),
            slots: vec![None; config.build.slots(config.size) as usize],
            cell_start_ns: 0,
            packets: 0,
            config,
        }
    }

    /// Number of records in the line.
    #[must_use]
    pub fn resident(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// The number of slots in use of each bucket, by stage and within it by subtable.
    #[must_use]
    pub fn loads(&self) -> Vec<usize> {
        let buckets = self.slots.chunks(self.per_bucket());
        buckets
            .map(|slots| slots.iter().flatten().count())
            .collect()
    }

    /// The place of a key, or the place that it would get if its packet came now.
    #[must_use]
    pub fn place(&self, key: &Key) -> Place {
        let place = self.hash.place(key);
        let stage = self.spread.as_ref().map(|spread| spread.stage(place.entry));
        Place {
            stage: stage.unwrap_or(place.stage),
            ..place
        }
    }

    /// Whether a packet with this key would displace a record of another flow, or find no free
    /// slot.
    #[must_use]
    pub fn is_full_for(&self, key: &Key) -> bool {
        let place = self.place(key);
        self.free_slot(&place).is_none() && self.held_by(&place).is_none()
    }

    fn per_bucket(&self) -> usize {
        1 << self.config.build.slot_bits
    }

    fn subtables(&self) -> usize {
        self.config.build.subtables as usize
    }

    /// The first slot of a place's bucket.
    fn bucket(&self, place: &Place, subtable: usize) -> usize {
        let row = (place.stage as usize * self.subtables() + subtable)
            * self.config.size.buckets as usize
            + place.bucket[subtable] as usize;
        row * self.per_bucket()
    }

    /// The slots of a place's bucket in one subtable.
    fn slots_of(&self, place: &Place, subtable: usize) -> std::ops::Range<usize> {
        let first = self.bucket(place, subtable);
        first..first + self.per_bucket()
    }

    fn other_bucket(&self, place: &Place, subtable: usize) -> u32 {
        match self.subtables() {
            2 => place.bucket[1 - subtable],
            _ => 0,
        }
    }

    /// The slot that has the signature of the place.
    fn held_by(&self, place: &Place) -> Option<usize> {
        let mut subtables = 0..self.subtables();
        subtables.find_map(|subtable| {
            let other_bucket = self.other_bucket(place, subtable);
            self.slots_of(place, subtable).find(|&at| {
                let slot = &self.slots[at];
                let same = |slot: &Slot| slot.tag == place.tag && slot.other_bucket == other_bucket;
                slot.as_ref().is_some_and(same)
            })
        })
    }

    /// The first free slot of the emptier bucket, or of the left one on a tie.
    fn free_slot(&self, place: &Place) -> Option<(usize, usize)> {
        let free = |subtable: &usize| {
            let slots = self.slots_of(place, *subtable);
            slots.filter(|&at| self.slots[at].is_none()).count()
        };
        // `max_by_key` returns the last of equal elements.
        let emptier = (0..self.subtables()).rev().max_by_key(free)?;
        let mut slots = self.slots_of(place, emptier);
        let slot = slots.find(|&at| self.slots[at].is_none())?;
        Some((emptier, slot))
    }

    /// The record that makes room: the first idle one. If there is none, bits of the tag choose.
    fn victim(&self, place: &Place, age: u32) -> (usize, usize) {
        let slot_bits = self.config.build.slot_bits;
        let bit = |at: u32| (place.tag >> at & 1) as usize & (self.subtables() - 1);
        let left_or_right = bit(slot_bits + 1);
        for subtable in [left_or_right, 1 - left_or_right] {
            if subtable >= self.subtables() {
                continue;
            }
            let is_idle = |slot: &Slot| IDLE_AGES.contains(&((age + AGES - slot.age) % AGES));
            let mut slots = self.slots_of(place, subtable);
            if let Some(at) = slots.find(|&at| self.slots[at].as_ref().is_some_and(is_idle)) {
                return (subtable, at);
            }
        }
        let any = place.tag as usize & (self.per_bucket() - 1);
        let subtable = bit(slot_bits);
        (subtable, self.bucket(place, subtable) + any)
    }

    /// The period after this many packets, modulo [`AGES`].
    fn age_after(&self, packets: u64) -> u32 {
        (packets / u64::from(self.config.age_period) % u64::from(AGES)) as u32
    }

    /// Whether a packet may join a record of its flow, by the rule for engines in
    /// `docs/decisions/0001-cells.md`.
    fn joins(&self, record: &Base, packet: &Base) -> bool {
        let has_ended = self.config.ends_cut && record.marks.any(Marks::ENDS);
        record.first_ns <= packet.first_ns
            && !packet.marks.any(Marks::STARTS_WITH_SYN)
            && !has_ended
    }

    fn packet(&mut self, packet: &Arrival, left: &mut Vec<Left>) {
        let base = packet.base();
        let place = self.place(&packet.key);
        let held = self.held_by(&place);
        let offset_ns = packet.time_ns.checked_sub(self.cell_start_ns);
        let fits = offset_ns.is_some_and(|ns| ns >> TIME_BITS == 0)
            && packet.length_bytes >> LENGTH_BITS == 0;
        if !fits {
            let flushed = held.and_then(|at| self.slots[at].take());
            left.extend(flushed.map(|slot| slot.displaced_by(&packet.key)));
            let (key, why) = (packet.key, Why::Cut);
            left.push(Left { key, base, why });
            return;
        }
        if let Some(spread) = &mut self.spread {
            spread.take(place.entry);
        }
        let now = self.age_after(self.packets.saturating_sub(TURNING_PACKETS));
        let mut age = self.age_after(self.packets);
        self.packets += 1;
        let (subtable, at) = match held {
            Some(at) => {
                age = (now + 1) % AGES;
                if let Some(slot) = &self.slots[at]
                    && slot.key == packet.key
                    && self.joins(&slot.base, &base)
                {
                    let mut slot = *slot;
                    slot.base.merge(&base);
                    slot.age = age;
                    self.slots[at] = Some(slot);
                    return;
                }
                let in_right = self.subtables() == 2 && self.slots_of(&place, 1).contains(&at);
                (usize::from(in_right), at)
            }
            None => self
                .free_slot(&place)
                .unwrap_or_else(|| self.victim(&place, now)),
        };
        let slot = Slot {
            tag: place.tag,
            other_bucket: self.other_bucket(&place, subtable),
            age,
            key: packet.key,
            base,
        };
        let displaced = self.slots[at].replace(slot);
        left.extend(displaced.map(|slot| slot.displaced_by(&packet.key)));
    }
}

impl Slot {
    /// This record, displaced by a packet with that key.
    fn displaced_by(self, key: &Key) -> Left {
        let why = match self.key == *key {
            true => Why::Cut,
            false => Why::Collision,
        };
        Left {
            key: self.key,
            base: self.base,
            why,
        }
    }
}

impl Line for Model {
    fn latency(&self) -> usize {
        0
    }

    fn give(&mut self, steps: &[Step], left: &mut Vec<Left>) {
        for step in steps {
            match step {
                Step::Idle => {}
                Step::Packet(packet) => self.packet(packet, left),
                Step::Cell(start_ns) => {
                    self.cell_start_ns = *start_ns;
                    if let Some(spread) = &mut self.spread {
                        spread.begin_cell();
                    }
                    let resident = self.slots.iter_mut().filter_map(Option::take);
                    left.extend(resident.map(|slot| Left {
                        key: slot.key,
                        base: slot.base,
                        why: Why::Age,
                    }));
                }
            }
        }
    }
}
