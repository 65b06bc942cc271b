// SPDX-License-Identifier: Apache-2.0
//! A table that never holds more than it may: the smallest leave.

use std::collections::HashMap;
use std::hash::Hash;

use crate::bins::Sums;

/// Of a full table, this part leaves at a time, so that a flood of new entries costs little each.
const LEAVING: usize = 4;

/// What knows how large it is.
pub(crate) trait Ranked {
    /// Bytes of late, as seen from bin `newest`.
    fn recent_bytes(&self, newest: u64) -> u64;
    /// In all.
    fn total(&self) -> Sums;
}

/// A map of at most so many entries. Its hash is keyed at random: nobody can choose keys that collide.
#[derive(Debug)]
pub(crate) struct Bounded<K, V> {
    entries: HashMap<K, V>,
    limit: usize,
    /// Entries that have left.
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

    /// The entry of a key, a new one if need be. Where there is no room, the quarter that had the
    /// fewest bytes of late leaves.
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
    fn the_smallest_leave_and_are_counted() {
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
