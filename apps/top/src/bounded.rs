// SPDX-License-Identifier: Apache-2.0
//! A table of bounded size, which evicts its smallest entries.

use std::collections::HashMap;
use std::hash::Hash;

use crate::bins::Sums;

/// The fraction (a quarter) evicted from a full table at once, so that a flood of new entries has a
/// low amortised cost.
const LEAVING: usize = 4;

/// An entry that can be compared by size.
pub(crate) trait Ranked {
    /// Recent bytes, as seen from bin `newest`.
    fn recent_bytes(&self, newest: u64) -> u64;
    /// The total.
    fn total(&self) -> Sums;
}

/// A map with a limit on entries. Its hash has a random key, so that an attacker cannot choose keys
/// that collide.
#[derive(Debug)]
pub(crate) struct Bounded<K, V> {
    entries: HashMap<K, V>,
    limit: usize,
    /// Number of entries evicted.
    pub(crate) left: u64,
}

impl<K: Eq + Hash + Copy + Ord, V: Ranked + Default> Bounded<K, V> {
    pub(crate) fn new(limit: usize) -> Self {
        assert!(limit >= LEAVING, "part of it can leave");
        Self {
            entries: HashMap::new(),
            limit,
            left: 0,
        }
    }

    /// The entry of a key, which is created if it is new. If the table is full, the quarter with
    /// the fewest recent bytes is evicted.
    pub(crate) fn entry(&mut self, key: K, newest: u64) -> &mut V {
        if self.entries.len() >= self.limit && !self.entries.contains_key(&key) {
            self.evict(newest);
        }
        self.entries.entry(key).or_default()
    }

    fn evict(&mut self, newest: u64) {
        let size = |(key, value): (&K, &V)| (value.recent_bytes(newest), value.total(), *key);
        let mut sizes: Vec<_> = self.entries.iter().map(size).collect();
        let leaving = self.limit / LEAVING;
        let (smallest, _, _) = sizes.select_nth_unstable(leaving);
        for (_, _, key) in smallest {
            self.entries.remove(key);
        }
        self.left += leaving as u64;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ranked for u64 {
        fn recent_bytes(&self, _newest: u64) -> u64 {
            *self
        }

        fn total(&self) -> Sums {
            Sums {
                bytes: *self,
                packets: 1,
            }
        }
    }

    #[test]
    fn the_smallest_entries_are_evicted_and_counted() {
        let mut table: Bounded<u32, u64> = Bounded::new(8);
        for key in 1..=8 {
            *table.entry(key, 0) = u64::from(key);
        }
        *table.entry(3, 0) += 100;
        assert_eq!((table.iter().count(), table.left), (8, 0));
        *table.entry(9, 0) = 9;
        assert_eq!((table.iter().count(), table.left), (7, 2));
        let mut keys: Vec<u32> = table.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        assert_eq!(keys, [3, 4, 5, 6, 7, 8, 9]);
    }
}
