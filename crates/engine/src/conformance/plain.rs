// SPDX-License-Identifier: Apache-2.0
//! A microflow table in the simplest code: the golden model for the golden model.

use turboflow_merge::{Base, KeyHasher, MOST_STATE_WORDS, Marks, MicroflowRecord, Plan};
use turboflow_record::{Input, InputSet};

use super::InProcess;
use crate::{Abilities, EvictAll, Evicted, KeyAbility, PacketEngine, PacketEngines};

/// The subject that packet engines are compared with.
#[must_use]
pub fn plain() -> InProcess<PlainEngines> {
    let abilities = Abilities {
        inputs: Input::ALL.into_iter().collect::<InputSet>(),
        keys: KeyAbility::Any,
        state_words: MOST_STATE_WORDS,
        cuts_on_gap: true,
        evicts_on_end: true,
        ordered: true,
        biflow: true,
        ..Abilities::none("plain")
    };
    InProcess::new(abilities, |slots| PlainEngines { slots })
}

/// Tables with a given number of slots.
#[derive(Clone, Copy, Debug)]
pub struct PlainEngines {
    /// Number of slots.
    pub slots: u32,
}

impl PacketEngines for PlainEngines {
    type Engine<const K: usize, const N: usize> = PlainEngine<K, N>;

    fn open<const K: usize, const N: usize>(
        &self,
        _shards: usize,
        evict_after: u8,
        plan: Plan,
        hasher: KeyHasher,
    ) -> PlainEngine<K, N> {
        PlainEngine {
            slots: vec![None; self.slots as usize],
            hasher,
            plan,
            cell_start_ns: 0,
            evict_after,
            evicted: Evicted::default(),
        }
    }

    fn size_bytes<const K: usize, const N: usize>(&self, _shards: usize) -> usize {
        self.slots as usize * size_of::<Option<MicroflowRecord<K, N>>>()
    }
}

/// Meters packet by packet. A flow has exactly one slot.
pub struct PlainEngine<const K: usize, const N: usize> {
    slots: Vec<Option<MicroflowRecord<K, N>>>,
    hasher: KeyHasher,
    plan: Plan,
    cell_start_ns: u64,
    evict_after: u8,
    evicted: Evicted,
}

impl<const K: usize, const N: usize> PlainEngine<K, N> {
    /// Whether a packet joins the resident record, by the rule for engines in
    /// `docs/decisions/0001-cells.md`.
    fn joins(&self, resident: &Base, packet: &Base) -> bool {
        let in_cell = self.cell_start_ns <= resident.first_ns;
        let in_order = resident.first_ns <= packet.first_ns;
        let may_begin_anew = packet.marks.any(Marks::STARTS_WITH_SYN);
        let has_ended = resident.marks.any(self.evict_after);
        in_cell && in_order && !may_begin_anew && !has_ended
    }
}

impl<const K: usize, const N: usize> PacketEngine<K, N> for PlainEngine<K, N> {
    fn enter_cell(&mut self, start_ns: u64, _hits_needed_percent: u64) {
        self.cell_start_ns = start_ns;
    }

    fn observe(
        &mut self,
        packets: &[MicroflowRecord<K, N>],
        evicted: &mut Vec<MicroflowRecord<K, N>>,
    ) {
        for packet in packets {
            let slot = self.hasher.hash(&packet.key).slot(self.slots.len() as u32);
            let Some(mut resident) = self.slots[slot].take() else {
                self.slots[slot] = Some(*packet);
                continue;
            };
            let is_of_flow = resident.key == packet.key;
            if is_of_flow && self.joins(&resident.base, &packet.base) {
                resident.merge(packet, &self.plan);
                self.slots[slot] = Some(resident);
                continue;
            }
            match is_of_flow {
                true => self.evicted.cut += 1,
                false => self.evicted.collision += 1,
            }
            evicted.push(resident);
            self.slots[slot] = Some(*packet);
        }
    }

    fn is_bypassed(&self) -> bool {
        false
    }

    fn pass(&mut self, packets: usize) {
        self.evicted.bypass += packets as u64;
    }

    fn evict_all(&mut self, why: EvictAll, evicted: &mut Vec<MicroflowRecord<K, N>>) {
        for resident in self.slots.iter_mut().filter_map(Option::take) {
            match why {
                EvictAll::Cell => self.evicted.age += 1,
                EvictAll::Flush => self.evicted.flush += 1,
            }
            evicted.push(resident);
        }
    }

    fn evicted(&self) -> Evicted {
        self.evicted
    }
}
