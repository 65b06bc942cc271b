// SPDX-License-Identifier: Apache-2.0
//! A table of flows whose size never changes.
//!
//! Flows with the same hash share a set of eight places. If a set is full, the flow that has been
//! silent longest is replaced. So nothing grows or has to expire, and active flows stay.

use crate::FlowKey;

/// Number of places in a set.
const WAYS: usize = 8;

/// Flows, each with a value.
pub(crate) struct FlowTable<V> {
    seed: u64,
    mask: usize,
    /// Some bits of each flow's hash, so that searching a set touches one cache line; 0 marks an
    /// empty place.
    tags: Vec<[u16; WAYS]>,
    entries: Vec<Entry<V>>,
}

#[derive(Clone, Copy)]
struct Entry<V> {
    key: FlowKey,
    seen_ns: u64,
    value: V,
}

/// The place of a flow, valid until the flow is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot(pub(crate) u32);

/// The outcome of [`FlowTable::find_or_insert`].
pub(crate) enum Found<V> {
    /// The flow was already in the table.
    Known(Spot),
    /// The flow was added. It may have replaced another flow, whose value is given.
    New(Spot, Option<V>),
}

impl<V: Copy> FlowTable<V> {
    /// A table with at least this many places, and at most twice as many.
    pub(crate) fn new(places: usize, seed: u64, empty: V) -> Self {
        let sets = places.div_ceil(WAYS).max(1).next_power_of_two();
        // Limits the number of places so that a spot fits in 32 bits.
        let sets = sets.min(1 << 28);
        let empty = Entry {
            key: FlowKey::NONE,
            seen_ns: 0,
            value: empty,
        };
        Self {
            seed,
            mask: sets - 1,
            tags: vec![[0; WAYS]; sets],
            entries: vec![empty; sets * WAYS],
        }
    }

    /// Bytes taken by a table with this many places.
    pub(crate) fn memory_bytes(places: usize) -> usize {
        let sets = places.div_ceil(WAYS).max(1).next_power_of_two();
        sets * (size_of::<[u16; WAYS]>() + WAYS * size_of::<Entry<V>>())
    }

    fn place(&self, key: &FlowKey) -> (usize, u16) {
        let hash = key.hash(self.seed);
        ((hash as usize) & self.mask, (hash >> 48) as u16 | 1)
    }

    /// The spot of the flow with that key, if it is in the table.
    pub(crate) fn find(&self, key: &FlowKey) -> Option<Spot> {
        let (set, tag) = self.place(key);
        self.find_in(set, tag, key)
    }

    fn find_in(&self, set: usize, tag: u16, key: &FlowKey) -> Option<Spot> {
        let tags = &self.tags[set];
        (0..WAYS)
            .find(|way| tags[*way] == tag && self.entries[set * WAYS + way].key == *key)
            .map(|way| Spot((set * WAYS + way) as u32))
    }

    /// The spot of the flow with that key, which is added if it is not in the table. Sets its time.
    pub(crate) fn find_or_insert(&mut self, key: &FlowKey, now_ns: u64, value: V) -> Found<V> {
        let (set, tag) = self.place(key);
        if let Some(spot) = self.find_in(set, tag, key) {
            self.touch(spot, now_ns);
            return Found::Known(spot);
        }
        let way = self.way_for(set);
        let at = set * WAYS + way;
        let left = (self.tags[set][way] != 0).then(|| self.entries[at].value);
        self.tags[set][way] = tag;
        self.entries[at] = Entry {
            key: *key,
            seen_ns: now_ns,
            value,
        };
        Found::New(Spot(at as u32), left)
    }

    /// The way of a set in which a new flow is placed: an empty one, or that of the flow that was
    /// silent longest.
    fn way_for(&self, set: usize) -> usize {
        let empty = (0..WAYS).find(|way| self.tags[set][*way] == 0);
        let silent = || (0..WAYS).min_by_key(|way| self.entries[set * WAYS + way].seen_ns);
        empty.or_else(silent).unwrap_or(0)
    }

    /// The value of the flow that a new flow with that key would replace, if any.
    pub(crate) fn leaves_for(&self, key: &FlowKey) -> Option<&V> {
        let (set, _) = self.place(key);
        let way = self.way_for(set);
        (self.tags[set][way] != 0).then(|| &self.entries[set * WAYS + way].value)
    }

    /// The spot of the flow that a new flow with that key would replace, if any.
    pub(crate) fn spot_that_leaves_for(&self, key: &FlowKey) -> Option<Spot> {
        let (set, _) = self.place(key);
        let way = self.way_for(set);
        (self.tags[set][way] != 0).then_some(Spot((set * WAYS + way) as u32))
    }

    /// Notes when the flow was last seen. The times in a capture may go backwards.
    pub(crate) fn touch(&mut self, spot: Spot, now_ns: u64) {
        let seen = &mut self.entries[spot.0 as usize].seen_ns;
        *seen = now_ns.max(*seen);
    }

    pub(crate) fn key(&self, spot: Spot) -> &FlowKey {
        &self.entries[spot.0 as usize].key
    }

    pub(crate) fn seen_ns(&self, spot: Spot) -> u64 {
        self.entries[spot.0 as usize].seen_ns
    }

    pub(crate) fn get(&self, spot: Spot) -> &V {
        &self.entries[spot.0 as usize].value
    }

    pub(crate) fn get_mut(&mut self, spot: Spot) -> &mut V {
        &mut self.entries[spot.0 as usize].value
    }

    /// The spot with that number, if the table has it.
    pub(crate) fn spot(&self, number: u32) -> Option<Spot> {
        ((number as usize) < self.entries.len()).then_some(Spot(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use turboflow_record::FiveTuple;

    fn key(number: u16) -> FlowKey {
        let [a, b] = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        FlowKey::of(&FiveTuple::new(a, b, number, 53, 17)).0
    }

    #[test]
    fn the_flow_that_was_silent_longest_leaves_a_full_set() {
        let mut table = FlowTable::new(WAYS, 1, 0u32);
        for number in 0..WAYS as u16 {
            let found = table.find_or_insert(&key(number), number.into(), number.into());
            assert!(matches!(found, Found::New(_, None)));
        }
        // The oldest flow is active again.
        assert!(matches!(
            table.find_or_insert(&key(0), 100, 9),
            Found::Known(_)
        ));
        let Found::New(spot, left) = table.find_or_insert(&key(900), 101, 900) else {
            panic!("it was there");
        };
        assert_eq!((left, *table.get(spot)), (Some(1), 900));
        assert_eq!(table.find(&key(1)), None);
        let first = table.find(&key(0)).unwrap();
        assert_eq!((*table.get(first), table.seen_ns(first)), (0, 100));
    }

    #[test]
    fn memory_is_what_was_asked_for() {
        let table = FlowTable::new(1000, 1, 0u64);
        let entries = table.entries.len();
        assert_eq!(entries, 1024);
        let taken = entries * size_of::<Entry<u64>>() + table.tags.len() * size_of::<[u16; WAYS]>();
        assert_eq!(FlowTable::<u64>::memory_bytes(1000), taken);
    }
}
