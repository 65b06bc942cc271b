// SPDX-License-Identifier: Apache-2.0
//! Groups in one contiguous array: the words of a group's key, then the words of its sums.
//!
//! If the table exceeds the processor's caches, finding a group takes two reads of memory: its slot
//! and its key. A block of keys first does the first read for all of them, then the second, so that
//! the reads of a block overlap.

use std::hash::{BuildHasher, RandomState};

use crate::QueryError;

/// Limit on groups: up to 2 GiB with a key of two addresses, while the table doubles its memory.
const GROUPS_MAX: usize = 10_000_000;

/// Maximum number of keys in a block. The data of a block stays in the L1 cache.
pub(crate) const BLOCK: usize = 256;

/// Groups by their keys.
pub(crate) struct GroupTable {
    /// Random, so that no file can be crafted to make hashes collide.
    seed: u64,
    /// Open addressing; the length is a power of two, and at most half of the slots are taken.
    slots: Vec<Slot>,
    groups: Vec<u64>,
    count: usize,
    key_words: usize,
    /// The sums of a new group.
    neutral: Vec<u64>,
    most: usize,
}

/// The number of a group, and enough bits of the hash to rule out most other keys without reading
/// them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Slot {
    hash: u32,
    group: u32,
}

impl Slot {
    const NONE: Self = Self {
        hash: 0,
        group: u32::MAX,
    };
}

impl GroupTable {
    pub(crate) fn new(key_words: usize, neutral: Vec<u64>, most: usize) -> Self {
        Self {
            seed: RandomState::new().hash_one(0),
            slots: vec![Slot::NONE; 16],
            groups: Vec::new(),
            count: 0,
            key_words,
            neutral,
            most: most.min(GROUPS_MAX),
        }
    }

    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// The number of the group with that key, which is created if it is new.
    ///
    /// # Errors
    /// [`QueryError::Groups`].
    #[inline]
    pub(crate) fn group(&mut self, key: &[u64]) -> Result<u32, QueryError> {
        let hash = self.hash(key);
        self.probe(hash, key)
    }

    /// The numbers of the groups of several keys, which lie one after another: at most [`BLOCK`].
    ///
    /// # Errors
    /// As [`Self::group`].
    pub(crate) fn groups(&mut self, keys: &[u64], found: &mut Vec<u32>) -> Result<(), QueryError> {
        let words = self.key_words;
        if keys.len() == words {
            found.clear();
            found.push(self.group(keys)?);
            return Ok(());
        }
        let mut slots = [Slot::NONE; BLOCK];
        let mut hashes = [0; BLOCK];
        let places = hashes.iter_mut().zip(&mut slots);
        for ((hash, slot), key) in places.zip(keys.chunks_exact(words)) {
            *hash = self.hash(key);
            *slot = self.slots[self.place(*hash)];
        }
        found.clear();
        let slots = slots.iter().zip(&hashes);
        let slots = slots.zip(keys.chunks_exact(words));
        found.extend(slots.map(|((slot, hash), key)| {
            let is_it = slot.hash == *hash && slot.group != u32::MAX;
            match is_it && is_same(self.key(slot.group), key) {
                true => slot.group,
                false => u32::MAX,
            }
        }));
        // New keys, and keys whose first slot belongs to another key.
        for (place, group) in found.iter_mut().enumerate() {
            if *group == u32::MAX {
                *group = self.probe(hashes[place], &keys[place * words..][..words])?;
            }
        }
        Ok(())
    }

    fn probe(&mut self, hash: u32, key: &[u64]) -> Result<u32, QueryError> {
        let mut place = self.place(hash);
        loop {
            let slot = self.slots[place];
            if slot.group == u32::MAX {
                return self.create(place, hash, key);
            }
            if slot.hash == hash && is_same(self.key(slot.group), key) {
                return Ok(slot.group);
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }

    fn create(&mut self, place: usize, hash: u32, key: &[u64]) -> Result<u32, QueryError> {
        if self.count == self.most {
            return Err(QueryError::Groups { limit: self.most });
        }
        let group = self.count as u32;
        self.slots[place] = Slot { hash, group };
        self.groups.extend_from_slice(key);
        self.groups.extend_from_slice(&self.neutral);
        self.count += 1;
        if self.count * 2 > self.slots.len() {
            self.grow();
        }
        Ok(group)
    }

    fn grow(&mut self) {
        let slots = vec![Slot::NONE; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, slots);
        for slot in old.into_iter().filter(|slot| *slot != Slot::NONE) {
            let mut place = self.place(slot.hash);
            while self.slots[place] != Slot::NONE {
                place = (place + 1) & (self.slots.len() - 1);
            }
            self.slots[place] = slot;
        }
    }

    #[inline]
    const fn place(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    #[inline]
    pub(crate) fn key(&self, group: u32) -> &[u64] {
        let start = group as usize * (self.key_words + self.neutral.len());
        &self.groups[start..][..self.key_words]
    }

    pub(crate) fn sums(&self, group: u32) -> &[u64] {
        let start = group as usize * (self.key_words + self.neutral.len());
        &self.groups[start + self.key_words..][..self.neutral.len()]
    }

    #[inline]
    pub(crate) fn sums_mut(&mut self, group: u32) -> &mut [u64] {
        let start = group as usize * (self.key_words + self.neutral.len());
        &mut self.groups[start + self.key_words..][..self.neutral.len()]
    }

    #[inline]
    fn hash(&self, key: &[u64]) -> u32 {
        let fold = |hash: u64, word: &u64| {
            let product = u128::from(hash ^ word) * 0xa076_1d64_78bd_642f;
            (product >> 64) as u64 ^ product as u64
        };
        let hash = key.iter().fold(self.seed, fold);
        (hash >> 32) as u32 ^ hash as u32
    }
}

/// Whether two keys are equal. Keys are a few words long, so a call would take longer than this
/// loop.
#[inline]
fn is_same(one: &[u64], other: &[u64]) -> bool {
    let pairs = one.iter().zip(other);
    pairs.fold(0, |differing, (one, other)| differing | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Blocks and single keys, through several doublings, find what a map finds.
        #[test]
        fn every_key_has_one_group(
            keys in prop::collection::vec(prop_oneof![0..9u64, any::<u64>()], 1..2000),
            block in 1..=BLOCK,
        ) {
            let mut table = GroupTable::new(2, vec![7], usize::MAX);
            let mut known = HashMap::new();
            let mut found = Vec::new();
            for (turn, some) in keys.chunks(block).enumerate() {
                let words: Vec<u64> = some.iter().flat_map(|key| [*key, key ^ 5]).collect();
                if turn % 3 == 2 {
                    let groups = words.chunks(2).map(|key| table.group(key).unwrap());
                    found = groups.collect();
                } else {
                    table.groups(&words, &mut found).unwrap();
                }
                prop_assert_eq!(found.len(), some.len());
                for (key, group) in some.iter().zip(&found) {
                    let next = known.len() as u32;
                    prop_assert_eq!(*known.entry(*key).or_insert(next), *group);
                    prop_assert_eq!(table.key(*group), [*key, key ^ 5]);
                    prop_assert_eq!(table.sums(*group), [7]);
                }
            }
            prop_assert_eq!(table.count(), known.len());
        }
    }

    #[test]
    fn more_groups_than_the_limit_are_an_error() {
        let mut table = GroupTable::new(1, vec![0], 3);
        let mut found = Vec::new();
        table.groups(&[1, 2, 1, 3], &mut found).unwrap();
        assert_eq!(found, [0, 1, 0, 2]);
        let error = table.groups(&[3, 4], &mut found).unwrap_err();
        assert!(matches!(error, QueryError::Groups { limit: 3 }));
    }
}
