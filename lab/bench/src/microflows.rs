// SPDX-License-Identifier: Apache-2.0
//! Streams of microflow records for benchmarks of the aggregator.

use turboflow_merge::{Complement, Layout, MicroflowRecord};
use turboflow_record::{Family, WORDS_V4};
use turboflow_workload::traffic::{FlowNumbers, five_tuple, keys};

use crate::Spread;

/// Records in a batch, as in the pipeline with the default definition (`batch_records`).
pub(crate) const BATCH: usize = 2_048;

/// Fills batches with the microflow records of randomly drawn flows.
pub(crate) struct Microflows {
    numbers: FlowNumbers,
    at_ns: u64,
}

impl Microflows {
    pub(crate) fn new(flows: u64, spread: Spread) -> Self {
        Self::with_seed(flows, spread, 1)
    }

    pub(crate) fn with_seed(flows: u64, spread: Spread, seed: u64) -> Self {
        let numbers = keys(flows, spread.skew(), seed).expect("the benchmark's flows are in range");
        Self { numbers, at_ns: 1 }
    }

    /// The next `BATCH` records.
    pub(crate) fn fill<const N: usize>(&mut self, batch: &mut Vec<MicroflowRecord<WORDS_V4, N>>) {
        self.at_ns += 1;
        batch.clear();
        for _ in 0..BATCH {
            batch.push(microflow(self.numbers.next_number(), self.at_ns));
        }
    }
}

/// Every flow once, in batches.
pub(crate) fn every_flow<const N: usize>(
    flows: u64,
    mut batch_of: impl FnMut(&[MicroflowRecord<WORDS_V4, N>]),
) {
    let mut batch = Vec::with_capacity(BATCH);
    for start in (0..flows).step_by(BATCH) {
        batch.clear();
        batch.extend((start..flows.min(start + BATCH as u64)).map(|flow| microflow(flow, 1)));
        batch_of(&batch);
    }
}

/// A microflow record of three packets of flow number `flow`.
#[inline(always)]
fn microflow<const N: usize>(flow: u64, at_ns: u64) -> MicroflowRecord<WORDS_V4, N> {
    let mut record = MicroflowRecord::default();
    let tuple = five_tuple(flow, Family::V4, 6);
    record.key.copy_from_slice(tuple.words());
    record.base.packets = 3;
    record.base.bytes = 1_800;
    record.base.first_ns = at_ns;
    record.base.last_ns = at_ns + 1_000;
    record.base.min_length_bytes = Complement::of(52);
    record.base.max_length_bytes = 1_500;
    record.base.tcp_flags = 0x10;
    record.base.min_ttl = Complement::of(60);
    record.base.max_ttl = 60;
    record
}

/// A flow cache for `flows` flows, which never expire.
pub(crate) fn cache<const N: usize>(
    layout: &Layout,
    flows: usize,
) -> turboflow_aggregate::FlowCache<WORDS_V4, N> {
    use turboflow_aggregate::{CacheConfig, Cell, FlowCache, Timeouts};
    let config = CacheConfig {
        timeouts: Timeouts::default(),
        max_flows: flows,
        ending_fins: layout.ending_fins(),
        sweep_ns: 10_000_000_000,
    };
    let hasher = turboflow_merge::KeyHasher::new(1);
    let mut cache = FlowCache::new(config, layout.plan().clone(), hasher);
    let cell = Cell {
        watermark_ns: 0,
        end_ns: 1_000_000_000,
    };
    cache.advance(cell, &mut Vec::new());
    cache
}
