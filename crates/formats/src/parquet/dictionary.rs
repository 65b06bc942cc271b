// SPDX-License-Identifier: Apache-2.0
//! Dictionaries: each distinct value of a column chunk gets an index, in order of appearance.
//!
//! The library's interner hashes and compares byte strings, which took three quarters of the cost
//! of a record in a test with 300,000 addresses. Here addresses stay numbers until the chunk ends.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::IpAddr;

/// A key of a [`Dictionary`]'s table.
trait Key: Copy + Eq + Default {
    fn mix(self, seed: u64) -> u64;
}

/// Multiplies to a 128-bit product and folds it, as wyhash does.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Key for u32 {
    #[inline(always)]
    fn mix(self, seed: u64) -> u64 {
        fold(u64::from(self) ^ seed, 0x9e37_79b9_7f4a_7c15)
    }
}

impl Key for u64 {
    #[inline(always)]
    fn mix(self, seed: u64) -> u64 {
        fold(self ^ seed, 0x9e37_79b9_7f4a_7c15 ^ seed.rotate_left(32))
    }
}

impl Key for u128 {
    #[inline(always)]
    fn mix(self, seed: u64) -> u64 {
        fold(
            self as u64 ^ seed,
            (self >> 64) as u64 ^ seed.rotate_left(32) ^ 0xa076_1d64_78bd_642f,
        )
    }
}

/// Marks an empty slot. It is not 0, so that memory is written before it is read when the table
/// grows: reading system-zeroed memory first costs two faults per page, and a TLB shootdown on
/// every other processor.
const EMPTY: u32 = u32::MAX;

/// Open addressing, at most half full. Key and index are adjacent: one cache line per lookup.
struct Table<K> {
    /// Key and index.
    slots: Vec<(K, u32)>,
    used: usize,
    seed: u64,
}

impl<K: Key> Table<K> {
    fn new() -> Self {
        // The random seed prevents an attacker from choosing addresses that collide.
        Self {
            slots: Vec::new(),
            used: 0,
            seed: RandomState::new().hash_one(0),
        }
    }

    /// The index of `key`; if the key is new, it gets index `next`.
    #[inline(always)]
    fn number(&mut self, key: K, next: u32) -> u32 {
        if self.used * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = self.slot(key);
        let (found, number) = &mut self.slots[slot];
        if *number == EMPTY {
            (*found, *number) = (key, next);
            self.used += 1;
        }
        *number
    }

    #[inline(always)]
    fn slot(&self, key: K) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = key.mix(self.seed) as usize & mask;
        while self.slots[slot].1 != EMPTY && self.slots[slot].0 != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let size = (self.slots.len() * 4).max(1 << 10);
        let old = std::mem::replace(&mut self.slots, vec![(K::default(), EMPTY); size]);
        for (key, number) in old.into_iter().filter(|slot| slot.1 != EMPTY) {
            let slot = self.slot(key);
            self.slots[slot] = (key, number);
        }
    }
}

/// The distinct addresses of a chunk.
pub(crate) struct AddressDictionary {
    v4: Table<u32>,
    v6: Table<u128>,
    values: Vec<IpAddr>,
}

impl AddressDictionary {
    pub(crate) fn new() -> Self {
        Self {
            v4: Table::new(),
            v6: Table::new(),
            values: Vec::new(),
        }
    }

    #[inline(always)]
    pub(crate) fn number(&mut self, address: IpAddr) -> u32 {
        let next = self.values.len() as u32;
        let number = match address {
            IpAddr::V4(address) => self.v4.number(address.to_bits(), next),
            IpAddr::V6(address) => self.v6.number(address.to_bits(), next),
        };
        if number == next {
            self.values.push(address);
        }
        number
    }

    /// All distinct addresses, by index.
    pub(crate) fn values(&self) -> &[IpAddr] {
        &self.values
    }
}

/// Numbers below this are looked up directly in an array.
const DIRECT: usize = 1 << 12;

/// The distinct numbers of a chunk.
pub(crate) struct NumberDictionary {
    direct: Vec<u32>,
    others: Table<u64>,
    values: Vec<u64>,
}

impl NumberDictionary {
    pub(crate) fn new() -> Self {
        Self {
            direct: vec![EMPTY; DIRECT],
            others: Table::new(),
            values: Vec::new(),
        }
    }

    #[inline(always)]
    pub(crate) fn number(&mut self, value: u64) -> u32 {
        let next = self.values.len() as u32;
        let number = match self.direct.get_mut(value as usize) {
            Some(slot) => {
                if *slot == EMPTY {
                    *slot = next;
                }
                *slot
            }
            None => self.others.number(value, next),
        };
        if number == next {
            self.values.push(value);
        }
        number
    }

    /// All distinct numbers, by index.
    pub(crate) fn values(&self) -> &[u64] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_values_in_order_of_appearance() {
        let mut numbers = NumberDictionary::new();
        let values: Vec<u64> = (0..20_000).map(|n: u64| n * n % 7919 * 977).collect();
        let places: Vec<u32> = values.iter().map(|&value| numbers.number(value)).collect();
        for (value, place) in values.iter().zip(places) {
            assert_eq!(numbers.values()[place as usize], *value);
        }
        assert_eq!(numbers.values()[0], 0);
    }

    #[test]
    fn keeps_families_apart() {
        let mut addresses = AddressDictionary::new();
        let texts = [
            "0.0.0.0",
            "::",
            "10.0.0.1",
            "::ffff:10.0.0.1",
            "::a00:1",
            "10.0.0.1",
        ];
        let places = texts.map(|text| addresses.number(text.parse().unwrap()));
        assert_eq!(places, [0, 1, 2, 3, 4, 2]);
        assert_eq!(addresses.values().len(), 5);
    }
}
