// SPDX-License-Identifier: Apache-2.0
//! Groups in one piece of memory: words of the key, then words of what was added up.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use crate::QueryError;

/// Limit on groups: about 1 GiB with a key of two addresses.
const GROUPS_MAX: usize = 10_000_000;

/// Groups by their keys.
pub(crate) struct GroupTable {
    /// Makes hashes that no file can foresee.
    seed: u64,
    slots: HashTable<Slot>,
    groups: Vec<u64>,
    key_words: usize,
    /// What a group begins with.
    neutral: Vec<u64>,
    most: usize,
}

/// The number of a group, and enough of the hash to tell most others without a look at the key.
#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    group: u32,
}

impl Slot {
    /// The hash for the table, which takes bits from both ends.
    const fn spread(hash: u32) -> u64 {
        (hash as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl GroupTable {
    pub(crate) fn new(key_words: usize, neutral: Vec<u64>, most: usize) -> Self {
        Self {
            seed: RandomState::new().hash_one(0),
            slots: HashTable::new(),
            groups: Vec::new(),
            key_words,
            neutral,
            most: most.min(GROUPS_MAX),
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.slots.len()
    }

    /// The number of the group of that key, which is created if it is new.
    ///
    /// # Errors
    /// [`QueryError::Groups`].
    #[inline]
    pub(crate) fn group(&mut self, key: &[u64]) -> Result<usize, QueryError> {
        let hash = self.hash(key);
        let stride = self.key_words + self.neutral.len();
        let groups = &self.groups;
        let is_it = |slot: &Slot| {
            let start = slot.group as usize * stride;
            slot.hash == hash && groups[start..start + key.len()] == *key
        };
        match self.slots.find(Slot::spread(hash), is_it) {
            Some(slot) => Ok(slot.group as usize),
            None => self.create(hash, key),
        }
    }

    fn create(&mut self, hash: u32, key: &[u64]) -> Result<usize, QueryError> {
        let group = self.slots.len();
        if group == self.most {
            return Err(QueryError::Groups { limit: self.most });
        }
        let slot = Slot {
            hash,
            group: group as u32,
        };
        let spread = |slot: &Slot| Slot::spread(slot.hash);
        self.slots.insert_unique(Slot::spread(hash), slot, spread);
        self.groups.extend_from_slice(key);
        self.groups.extend_from_slice(&self.neutral);
        Ok(group)
    }

    pub(crate) fn key(&self, group: usize) -> &[u64] {
        let start = group * (self.key_words + self.neutral.len());
        &self.groups[start..][..self.key_words]
    }

    pub(crate) fn sums(&self, group: usize) -> &[u64] {
        let start = group * (self.key_words + self.neutral.len());
        &self.groups[start + self.key_words..][..self.neutral.len()]
    }

    #[inline]
    pub(crate) fn sums_mut(&mut self, group: usize) -> &mut [u64] {
        let start = group * (self.key_words + self.neutral.len());
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
