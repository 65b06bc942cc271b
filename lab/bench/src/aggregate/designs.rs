// SPDX-License-Identifier: Apache-2.0
//! The designs compared.

use std::collections::HashMap;

use turboflow_aggregate::FlowCache;
use turboflow_merge::{Base, Layout, MicroflowRecord};
use turboflow_record::Definition;

use crate::microflows::cache;

pub(super) type Record = MicroflowRecord<2, 0>;

/// A table that merges microflow records into flows.
pub(super) trait Design: Send {
    const NAME: &'static str;
    /// An empty table for `flows` flows.
    fn new(flows: usize) -> Self;
    fn merge(&mut self, batch: &[Record]);
    /// Total packets in the table, to check that none was lost.
    fn packets(self) -> u64;
    /// Memory of the table, in bytes.
    fn size_bytes(&self) -> Option<usize>;
}

/// TurboFlow's flow cache.
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

/// The hashbrown crate with its default hasher.
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

/// The standard library's map with its default hasher.
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
