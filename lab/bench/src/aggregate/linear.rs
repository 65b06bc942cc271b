// SPDX-License-Identifier: Apache-2.0
//! The paper's aggregator, rebuilt in the steps that lead to it (TurboFlow, section 5.2, Figure
//! 12): linear probing over a flat table at load factor one half.
//!
//! | design | keys | lookups |
//! |---|---|---|
//! | `flat` | a structure of fields, hashed by the standard library | one by one |
//! | `integers` | two 64-bit integers | one by one |
//! | `paper` | two 64-bit integers | in batches of ten, whose slots are prefetched first |

use std::hash::{BuildHasher, Hash, RandomState};

use turboflow_merge::{KeyHasher, prefetch};

use super::designs::{Design, Record};

/// How keys are hashed and compared.
pub(super) trait KeyScheme: Send {
    fn new() -> Self;
    fn hash(&self, key: &[u64; 2]) -> u64;
    fn same(a: &[u64; 2], b: &[u64; 2]) -> bool;
}

/// Two 64-bit integers.
pub(super) struct Integers(KeyHasher);

impl KeyScheme for Integers {
    fn new() -> Self {
        Self(KeyHasher::new(1))
    }

    #[inline(always)]
    fn hash(&self, key: &[u64; 2]) -> u64 {
        self.0.hash(key).0
    }

    #[inline(always)]
    fn same(a: &[u64; 2], b: &[u64; 2]) -> bool {
        a == b
    }
}

/// A 5-tuple declared in the obvious way, without regard to speed.
#[derive(Hash, PartialEq)]
struct Fields {
    source: [u8; 4],
    destination: [u8; 4],
    source_port: u16,
    destination_port: u16,
    protocol: u8,
}

impl Fields {
    /// The words of the key contain the bytes on the wire, in order.
    #[inline(always)]
    fn of(key: &[u64; 2]) -> Self {
        let [a, b, c, d, e, f, g, h] = key[0].to_le_bytes();
        let [ports @ .., protocol, _, _, _] = key[1].to_le_bytes();
        Self {
            source: [a, b, c, d],
            destination: [e, f, g, h],
            source_port: u16::from_be_bytes([ports[0], ports[1]]),
            destination_port: u16::from_be_bytes([ports[2], ports[3]]),
            protocol,
        }
    }
}

/// A structure of fields, hashed by the standard library.
pub(super) struct ByFields(RandomState);

impl KeyScheme for ByFields {
    fn new() -> Self {
        Self(RandomState::new())
    }

    #[inline(always)]
    fn hash(&self, key: &[u64; 2]) -> u64 {
        self.0.hash_one(Fields::of(key))
    }

    #[inline(always)]
    fn same(a: &[u64; 2], b: &[u64; 2]) -> bool {
        Fields::of(a) == Fields::of(b)
    }
}

/// Linear probing over a flat table. Lookups run in groups of `GROUP` with prefetched slots.
pub(super) struct LinearTable<W, const GROUP: usize> {
    slots: Vec<Record>,
    mask: usize,
    scheme: W,
}

/// Keys of fields, one lookup at a time.
pub(super) type FlatTable = LinearTable<ByFields, 1>;
/// Integer keys, one lookup at a time.
pub(super) type IntegerTable = LinearTable<Integers, 1>;
/// The paper's design: integer keys, ten lookups at a time.
pub(super) type PaperTable = LinearTable<Integers, 10>;

/// The name of a design in the results.
trait Named {
    const NAME: &'static str;
}

impl Named for FlatTable {
    const NAME: &'static str = "flat";
}

impl Named for IntegerTable {
    const NAME: &'static str = "integers";
}

impl Named for PaperTable {
    const NAME: &'static str = "paper";
}

impl<W: KeyScheme, const GROUP: usize> Design for LinearTable<W, GROUP>
where
    Self: Named,
{
    const NAME: &'static str = <Self as Named>::NAME;

    fn new(flows: usize) -> Self {
        let slots = (2 * flows).next_power_of_two();
        Self {
            slots: vec![Record::default(); slots],
            mask: slots - 1,
            scheme: W::new(),
        }
    }

    fn merge(&mut self, batch: &[Record]) {
        for group in batch.chunks(GROUP) {
            let mut homes = [0; GROUP];
            for (home, record) in homes.iter_mut().zip(group) {
                *home = self.scheme.hash(&record.key) as usize & self.mask;
                prefetch(&raw const self.slots[*home]);
            }
            for (&home, record) in homes.iter().zip(group) {
                let mut place = home;
                loop {
                    let slot = &mut self.slots[place];
                    if W::same(&slot.key, &record.key) {
                        slot.base.merge(&record.base);
                        break;
                    }
                    if slot.key == [0, 0] {
                        *slot = *record;
                        break;
                    }
                    place = (place + 1) & self.mask;
                }
            }
        }
    }

    fn packets(self) -> u64 {
        self.slots.iter().map(|record| record.base.packets).sum()
    }

    fn size_bytes(&self) -> Option<usize> {
        Some(self.slots.len() * size_of::<Record>())
    }
}
