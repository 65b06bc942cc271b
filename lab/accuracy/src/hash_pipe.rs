// SPDX-License-Identifier: Apache-2.0
//! HashPipe (Sivaraman and others, SOSR 2017): a pipeline of hash tables that keeps heavy flows and
//! drops light ones at its end.

use std::collections::HashMap;

use turboflow_merge::KeyHasher;

use crate::count_min::hashers;
use crate::{Answer, FlowCounter};

/// A flow and its packets; 0 packets mean an empty slot.
#[derive(Clone, Copy, Debug)]
struct Slot<const K: usize> {
    key: [u64; K],
    packets: u32,
}

/// A sequence of stages with one hash table each.
///
/// A packet always gets a slot in the first stage. The record that it displaces is carried on. In
/// each later stage, the carried record merges with an entry of its own flow, takes an empty slot,
/// or changes places with a lighter resident. A record carried past the last stage is dropped. So
/// counts are never too high. A flow may occupy several stages; its counts are summed at the end.
#[derive(Clone, Debug)]
pub struct HashPipe<const K: usize> {
    stages: Vec<KeyHasher>,
    slots_a_stage: usize,
    slots: Vec<Slot<K>>,
}

impl<const K: usize> HashPipe<K> {
    /// Bytes of a slot in a switch: an IPv4 5-tuple and a 32-bit counter.
    pub const SWITCH_SLOT_BYTES: usize = 13 + 4;

    /// A pipe of `stages` tables with `slots_a_stage` slots each.
    ///
    /// # Panics
    /// If one of them is 0.
    #[must_use]
    pub fn new(stages: usize, slots_a_stage: usize, seed: u64) -> Self {
        assert!(
            stages > 0 && slots_a_stage > 0,
            "stages and slots are positive"
        );
        let empty = Slot {
            key: [0; K],
            packets: 0,
        };
        Self {
            stages: hashers(stages, seed),
            slots_a_stage,
            slots: vec![empty; stages * slots_a_stage],
        }
    }

    #[inline(always)]
    fn slot(&mut self, stage: usize, key: &[u64; K]) -> &mut Slot<K> {
        let index = self.stages[stage]
            .hash(key)
            .share(self.slots_a_stage as u64);
        &mut self.slots[stage * self.slots_a_stage + index as usize]
    }
}

impl<const K: usize> FlowCounter<K> for HashPipe<K> {
    #[inline(always)]
    fn observe(&mut self, key: &[u64; K]) {
        let newcomer = Slot {
            key: *key,
            packets: 1,
        };
        let first = self.slot(0, key);
        if first.packets > 0 && first.key == *key {
            first.packets = first.packets.saturating_add(1);
            return;
        }
        let mut carried = std::mem::replace(first, newcomer);
        for stage in 1..self.stages.len() {
            if carried.packets == 0 {
                return;
            }
            let resident = self.slot(stage, &carried.key);
            if resident.packets > 0 && resident.key == carried.key {
                resident.packets = resident.packets.saturating_add(carried.packets);
                return;
            }
            // An empty slot has 0 packets, which is less than any carried record has.
            if resident.packets < carried.packets {
                std::mem::swap(resident, &mut carried);
            }
        }
    }

    fn size_bytes(&self) -> usize {
        size_of_val(self.slots.as_slice())
    }

    fn answer(self: Box<Self>) -> Answer<K> {
        let mut listed = HashMap::new();
        for slot in self.slots.iter().filter(|slot| slot.packets > 0) {
            *listed.entry(slot.key).or_default() += u64::from(slot.packets);
        }
        Answer {
            listed,
            others: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::streams::{Stream, key};

    /// The share of the `heavy` heaviest flows that are not among the `heavy` heaviest flows of the
    /// answer.
    fn false_negatives(stream: &Stream, answer: &Answer<2>, heavy: usize) -> f64 {
        let heaviest = |packets: &HashMap<[u64; 2], u64>| -> HashSet<[u64; 2]> {
            let mut flows: Vec<_> = packets.iter().collect();
            flows.sort_by_key(|(key, packets)| (std::cmp::Reverse(**packets), **key));
            flows.into_iter().take(heavy).map(|(key, _)| *key).collect()
        };
        let found = heaviest(&answer.listed);
        let missed = heaviest(&stream.truth.packets);
        missed.difference(&found).count() as f64 / heavy as f64
    }

    #[test]
    fn finds_95_percent_of_the_300_heaviest_of_400_000_flows_in_80_kb() {
        // The claim of the paper's abstract, on traffic of the same size: 400,000 flows under
        // Zipf's law, and 10 M packets. Six stages are what the paper recommends for this memory.
        let stream = Stream::zipf(400_000, 10_000_000, 1);
        let slots = 80_000 / HashPipe::<2>::SWITCH_SLOT_BYTES;
        let mut pipe = Box::new(HashPipe::new(6, slots / 6, 1));
        stream.packets.iter().for_each(|key| pipe.observe(key));
        let missed = false_negatives(&stream, &pipe.answer(), 300);
        assert!(missed <= 0.05, "{missed}");
    }

    #[test]
    fn more_memory_finds_more_of_the_heavy_flows() {
        let stream = Stream::zipf(50_000, 500_000, 2);
        let missed = |slots: usize| {
            let mut pipe = Box::new(HashPipe::new(4, slots, 3));
            stream.packets.iter().for_each(|key| pipe.observe(key));
            false_negatives(&stream, &pipe.answer(), 200)
        };
        let (little, some, much) = (missed(25), missed(100), missed(2_000));
        assert!(little > some && some > much, "{little} {some} {much}");
        assert!(much < 0.01, "{much}");
    }

    #[test]
    fn never_overestimates() {
        let stream = Stream::zipf(5_000, 100_000, 3);
        let mut pipe = Box::new(HashPipe::new(3, 64, 4));
        stream.packets.iter().for_each(|key| pipe.observe(key));
        let answer = pipe.answer();
        for (key, packets) in &answer.listed {
            assert!(*packets <= stream.truth.packets[key]);
        }
        assert!(answer.listed.values().sum::<u64>() < 100_000);
    }

    #[test]
    fn the_first_stage_admits_every_flow_and_later_stages_keep_the_heavier() {
        let mut pipe = Box::new(HashPipe::<2>::new(2, 1, 5));
        (0..5).for_each(|_| pipe.observe(&key(1)));
        pipe.observe(&key(2)); // flow 1 moves on
        pipe.observe(&key(3)); // flow 2 is lighter than flow 1 and is dropped
        let answer = pipe.answer();
        assert_eq!([1, 2, 3].map(|flow| answer.packets(&key(flow))), [5, 0, 1]);
    }
}
