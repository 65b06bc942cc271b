// SPDX-License-Identifier: Apache-2.0
//! Engine and flow cache for keys of one width.

use turboflow_aggregate::{CacheConfig, CacheCounters, Cell, ExportSink, FlowCache};
use turboflow_engine_software::{Emptying, EngineConfig, EngineCounters, Sizing, SoftwareEngine};
use turboflow_merge::{KeyHasher, Layout, Marks, MicroflowRecord};

use crate::PipelineConfig;
use crate::pending::batch_records;

/// What a lane has counted.
pub(crate) struct LaneCounters {
    pub(crate) engine: EngineCounters,
    pub(crate) cache: CacheCounters,
    /// Records evicted and not merged yet.
    pub(crate) waiting: u64,
}

pub(crate) struct Lane<const K: usize, const N: usize> {
    engine: SoftwareEngine<K, N>,
    cache: FlowCache<K, N>,
    evicted: Vec<MicroflowRecord<K, N>>,
}

impl<const K: usize, const N: usize> Lane<K, N> {
    pub(crate) fn new(config: &PipelineConfig, layout: &Layout) -> Self {
        let hasher = KeyHasher::new(config.seed);
        let sizing = match config.sizing {
            Sizing::Adaptive | Sizing::Off => config.sizing,
            Sizing::Fixed(_) => Sizing::Fixed(config.slots_a_shard()),
        };
        let no_linger = config.timeouts.linger_ns == Some(0);
        let engine = EngineConfig {
            sizing,
            evict_after: if no_linger { Marks::ENDS } else { 0 },
        };
        let cache = CacheConfig {
            timeouts: config.timeouts,
            max_flows: config.flows_a_shard(),
            ending_fins: layout.ending_fins(),
            sweep_ns: config.sweep_ns,
        };
        Self {
            engine: SoftwareEngine::new(engine, layout.plan().clone(), hasher),
            cache: FlowCache::new(cache, layout.plan().clone(), hasher),
            evicted: Vec::with_capacity(batch_records::<N>()),
        }
    }

    pub(crate) fn packets(
        &mut self,
        packets: &[MicroflowRecord<K, N>],
        sink: &mut impl ExportSink<K, N>,
    ) {
        if self.engine.is_bypassed() {
            self.engine.pass(packets.len());
            self.cache.merge(packets, sink);
            return;
        }
        self.engine.observe(packets, &mut self.evicted);
        // Evicted records wait until merging them pays.
        if self.evicted.len() >= batch_records::<N>() || self.engine.is_bypassed() {
            self.merge_evicted(sink);
        }
    }

    /// The clock enters a cell: what the engine holds belongs to the one before.
    pub(crate) fn enter(&mut self, cell: Cell, sink: &mut impl ExportSink<K, N>) {
        self.engine.evict_all(Emptying::Cell, &mut self.evicted);
        self.merge_evicted(sink);
        self.cache.advance(cell, sink);
        let needed = hits_needed_percent(self.cache.size_bytes());
        self.engine.enter_cell(cell.watermark_ns, needed);
    }

    /// Everything open ends.
    pub(crate) fn flush(&mut self, sink: &mut impl ExportSink<K, N>) {
        self.engine.evict_all(Emptying::Flush, &mut self.evicted);
        self.merge_evicted(sink);
        self.cache.flush(sink);
    }

    fn merge_evicted(&mut self, sink: &mut impl ExportSink<K, N>) {
        self.cache.merge(&self.evicted, sink);
        self.evicted.clear();
    }

    pub(crate) fn counters(&self) -> LaneCounters {
        LaneCounters {
            engine: self.engine.counters(),
            cache: self.cache.counters(),
            waiting: self.evicted.len() as u64,
        }
    }
}

/// The share of packets that must hit the microflow table for it to pay, by the size of the flow
/// cache behind it: a merge costs little while the cache lies in the processor's own, and several
/// times a table lookup when it lies in memory. Estimates from the pipeline benchmark, where `straight`
/// and `table` are rows of their own.
fn hits_needed_percent(flow_cache_bytes: usize) -> u64 {
    match flow_cache_bytes {
        0..=0x20_0000 => 90,
        0x20_0001..=0x400_0000 => 60,
        _ => 40,
    }
}
