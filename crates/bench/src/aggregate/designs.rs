// SPDX-License-Identifier: Apache-2.0
//! The designs compared.

use std::collections::HashMap;

use turboflow_aggregate::FlowCache;
use turboflow_record::{Base, Definition, KeyHasher, Layout, MicroflowRecord, prefetch};

use crate::microflows::cache;

type Record = MicroflowRecord<2, 0>;

/// A table that merges microflow records into flows.
pub(super) trait Design {
    const NAME: &'static str;
    /// An empty table that will hold `flows`.
    fn new(flows: usize) -> Self;
    fn merge(&mut self, batch: &[Record]);
    /// All packets in it: nothing may get lost.
    fn packets(self) -> u64;
    /// Memory of the table.
    fn size_bytes(&self) -> Option<usize>;
}

/// Ours.
pub(super) struct TurboflowCache {
    cache: FlowCache<2, 0>,
    exported: Vec<Record>,
}

impl Design for TurboflowCache {
    const NAME: &'static str = "turboflow";

    fn new(flows: usize) -> Self {
        let layout = Layout::compile(&Definition::default(), false).expect("default compiles");
        Self {
            cache: cache(&layout, flows),
            exported: Vec::new(),
        }
    }

    fn merge(&mut self, batch: &[Record]) {
        self.cache.merge(batch, &mut self.exported);
    }

    fn packets(mut self) -> u64 {
        self.cache.flush(&mut self.exported);
        self.exported.iter().map(|record| record.base.packets).sum()
    }

    fn size_bytes(&self) -> Option<usize> {
        Some(self.cache.size_bytes())
    }
}

/// The paper's aggregator rebuilt (TurboFlow, section 5.2): linear probing over a flat table at
/// load one half, keys as two 64-bit integers, lookups in batches of ten whose slots are
/// prefetched first.
pub(super) struct PaperTable {
    slots: Vec<Record>,
    mask: usize,
    hasher: KeyHasher,
}

impl Design for PaperTable {
    const NAME: &'static str = "paper";

    fn new(flows: usize) -> Self {
        let slots = (2 * flows).next_power_of_two();
        Self {
            slots: vec![Record::default(); slots],
            mask: slots - 1,
            hasher: KeyHasher::new(1),
        }
    }

    fn merge(&mut self, batch: &[Record]) {
        const PREFETCHED: usize = 10;
        for group in batch.chunks(PREFETCHED) {
            let mut homes = [0; PREFETCHED];
            for (home, record) in homes.iter_mut().zip(group) {
                *home = self.hasher.hash(&record.key).0 as usize & self.mask;
                prefetch(&raw const self.slots[*home]);
            }
            for (&home, record) in homes.iter().zip(group) {
                let mut place = home;
                loop {
                    let slot = &mut self.slots[place];
                    if slot.key == record.key {
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

/// The hashbrown crate with its own default hasher.
pub(super) struct HashbrownTable(hashbrown::HashMap<[u64; 2], Base>);

impl Design for HashbrownTable {
    const NAME: &'static str = "hashbrown";

    fn new(flows: usize) -> Self {
        Self(hashbrown::HashMap::with_capacity(flows))
    }

    fn merge(&mut self, batch: &[Record]) {
        for record in batch {
            self.0
                .entry(record.key)
                .and_modify(|flow| flow.merge(&record.base))
                .or_insert(record.base);
        }
    }

    fn packets(self) -> u64 {
        self.0.values().map(|flow| flow.packets).sum()
    }

    fn size_bytes(&self) -> Option<usize> {
        Some(self.0.allocation_size())
    }
}

/// The standard library's map with its own default hasher.
pub(super) struct StdTable(HashMap<[u64; 2], Base>);

impl Design for StdTable {
    const NAME: &'static str = "std";

    fn new(flows: usize) -> Self {
        Self(HashMap::with_capacity(flows))
    }

    fn merge(&mut self, batch: &[Record]) {
        for record in batch {
            self.0
                .entry(record.key)
                .and_modify(|flow| flow.merge(&record.base))
                .or_insert(record.base);
        }
    }

    fn packets(self) -> u64 {
        self.0.values().map(|flow| flow.packets).sum()
    }

    fn size_bytes(&self) -> Option<usize> {
        None
    }
}
