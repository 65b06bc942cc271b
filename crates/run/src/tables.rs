// SPDX-License-Identifier: Apache-2.0
//! Packet engine and flow cache for keys of one width.

use turboflow_aggregate::{CacheConfig, CacheCounters, Cell, ExportSink, FlowCache};
use turboflow_engine::{EvictAll, Evicted, PacketEngine, PacketEngines};
use turboflow_merge::{KeyHasher, Layout, Marks, MicroflowRecord};

use crate::PipelineConfig;
use crate::batch::batch_records;

/// Counters of one engine and its flow cache.
pub(crate) struct TableCounters {
    pub(crate) evicted: Evicted,
    pub(crate) cache: CacheCounters,
    /// Records evicted but not yet merged.
    pub(crate) waiting: u64,
}

pub(crate) struct Tables<E, const K: usize, const N: usize> {
    /// `None` if records come from a remote engine. Such records are merged as they arrive.
    engine: Option<E>,
    /// `None` in a probe, whose records are merged on another host.
    cache: Option<FlowCache<K, N>>,
    /// The number of records that a probe has passed on.
    handed_on: u64,
    evicted: Vec<MicroflowRecord<K, N>>,
}

impl<E: PacketEngine<K, N>, const K: usize, const N: usize> Tables<E, K, N> {
    pub(crate) fn new<F: PacketEngines<Engine<K, N> = E>>(
        config: &PipelineConfig,
        layout: &Layout,
        engines: Option<&F>,
    ) -> Self {
        let hasher = KeyHasher::new(config.seed);
        let no_linger = config.timeouts.linger_ns == Some(0);
        let evict_after = if no_linger { Marks::ENDS } else { 0 };
        let open = |engines: &F| {
            engines.open::<K, N>(config.shards(), evict_after, layout.plan().clone(), hasher)
        };
        let cache = CacheConfig {
            timeouts: config.timeouts,
            max_flows: config.flows_a_shard(),
            ending_fins: layout.ending_fins(),
            sweep_ns: config.sweep_ns,
        };
        Self {
            engine: engines.map(open),
            cache: match config.probe {
                Some(_) => None,
                None => Some(FlowCache::new(cache, layout.plan().clone(), hasher)),
            },
            handed_on: 0,
            evicted: Vec::with_capacity(engines.map_or(0, |_| batch_records::<N>())),
        }
    }

    /// Takes packets for the engine. Without an engine, takes the records of a remote engine.
    pub(crate) fn take(
        &mut self,
        records: &[MicroflowRecord<K, N>],
        sink: &mut impl ExportSink<K, N>,
    ) {
        let Some(engine) = &mut self.engine else {
            return self.merge(records, sink);
        };
        if engine.is_bypassed() {
            engine.pass(records.len());
            self.merge(records, sink);
            return;
        }
        engine.observe(records, &mut self.evicted);
        // Merging is efficient only for many records at once.
        if self.evicted.len() >= batch_records::<N>() || engine.is_bypassed() {
            self.merge_evicted(sink);
        }
    }

    /// Enters a cell of the clock, after evicting what the engine holds of the previous cell.
    pub(crate) fn enter(&mut self, cell: Cell, sink: &mut impl ExportSink<K, N>) {
        self.evict_all(EvictAll::Cell, sink);
        let needed = match &mut self.cache {
            // Sending a record costs more than a table lookup, so any hit rate pays.
            None => 0,
            Some(cache) => {
                cache.advance(cell, sink);
                hits_needed_percent(cache.size_bytes())
            }
        };
        if let Some(engine) = &mut self.engine {
            engine.enter_cell(cell.watermark_ns, needed);
        }
    }

    /// Flushes engine and flow cache.
    pub(crate) fn flush(&mut self, sink: &mut impl ExportSink<K, N>) {
        self.evict_all(EvictAll::Flush, sink);
        if let Some(cache) = &mut self.cache {
            cache.flush(sink);
        }
    }

    fn evict_all(&mut self, why: EvictAll, sink: &mut impl ExportSink<K, N>) {
        if let Some(engine) = &mut self.engine {
            engine.evict_all(why, &mut self.evicted);
            self.merge_evicted(sink);
        }
    }

    fn merge_evicted(&mut self, sink: &mut impl ExportSink<K, N>) {
        let mut evicted = std::mem::take(&mut self.evicted);
        self.merge(&evicted, sink);
        evicted.clear();
        self.evicted = evicted;
    }

    /// Merges records into flows, or passes them on.
    fn merge(&mut self, records: &[MicroflowRecord<K, N>], sink: &mut impl ExportSink<K, N>) {
        match &mut self.cache {
            Some(cache) => cache.merge(records, sink),
            None => {
                self.handed_on += records.len() as u64;
                sink.export(records);
            }
        }
    }

    pub(crate) fn counters(&self) -> TableCounters {
        let evicted = self.engine.as_ref().map(PacketEngine::evicted);
        TableCounters {
            evicted: evicted.unwrap_or_default(),
            cache: match &self.cache {
                Some(cache) => cache.counters(),
                None => CacheCounters {
                    microflows_merged: self.handed_on,
                    ..CacheCounters::default()
                },
            },
            waiting: self.evicted.len() as u64,
        }
    }
}

/// The hit rate at which the microflow table pays off, by the size of the flow cache behind it, in
/// percent. A merge is cheap while the flow cache fits into the processor's caches, and otherwise
/// costs several table lookups. Estimates from the pipeline benchmark, rows `straight` and `table`.
fn hits_needed_percent(flow_cache_bytes: usize) -> u64 {
    match flow_cache_bytes {
        0..=0x20_0000 => 90,
        0x20_0001..=0x400_0000 => 60,
        _ => 40,
    }
}
