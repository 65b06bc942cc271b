// SPDX-License-Identifier: Apache-2.0
//! The engines that meter packets in this process: the software engine, or one that the program
//! supplies. The program's list of all engines is in `apps/turboflow/src/engines.rs`.

use std::sync::Arc;

use turboflow_engine::{BoxedEngine, EvictAll, Evicted, PacketEngine, PacketEngines, PlainEngines};
use turboflow_engine_software::{SoftwareEngine, SoftwareEngines};
use turboflow_merge::{KeyHasher, MicroflowRecord, Plan};

use crate::PipelineConfig;

/// A kind of engine.
#[derive(Clone, Debug)]
pub(crate) enum Engines {
    Given(Arc<dyn PlainEngines>),
    Software(SoftwareEngines),
}

impl Engines {
    pub(crate) fn of(config: &PipelineConfig) -> Self {
        match &config.packet_engines {
            Some(engines) => Self::Given(Arc::clone(engines)),
            None => Self::Software(SoftwareEngines {
                sizing: config.sizing,
            }),
        }
    }
}

/// An engine of one shard. Its kind is looked up once per batch.
pub(crate) enum Engine<const K: usize, const N: usize> {
    Given(BoxedEngine<K, N>),
    Software(Box<SoftwareEngine<K, N>>),
}

impl PacketEngines for Engines {
    type Engine<const K: usize, const N: usize> = Engine<K, N>;

    fn open<const K: usize, const N: usize>(
        &self,
        shards: usize,
        evict_after: u8,
        plan: Plan,
        hasher: KeyHasher,
    ) -> Engine<K, N> {
        match self {
            Self::Given(engines) => Engine::Given(engines.open(shards, evict_after, plan, hasher)),
            Self::Software(engines) => {
                Engine::Software(Box::new(engines.open(shards, evict_after, plan, hasher)))
            }
        }
    }

    fn size_bytes<const K: usize, const N: usize>(&self, shards: usize) -> usize {
        match self {
            Self::Given(engines) => engines.table_bytes(shards, K),
            Self::Software(engines) => engines.size_bytes::<K, N>(shards),
        }
    }
}

impl<const K: usize, const N: usize> PacketEngine<K, N> for Engine<K, N> {
    fn enter_cell(&mut self, start_ns: u64, hits_needed_percent: u64) {
        match self {
            Self::Given(engine) => engine.enter_cell(start_ns, hits_needed_percent),
            Self::Software(engine) => engine.enter_cell(start_ns, hits_needed_percent),
        }
    }

    fn observe(
        &mut self,
        packets: &[MicroflowRecord<K, N>],
        evicted: &mut Vec<MicroflowRecord<K, N>>,
    ) {
        match self {
            Self::Given(engine) => engine.observe(packets, evicted),
            Self::Software(engine) => engine.observe(packets, evicted),
        }
    }

    fn is_bypassed(&self) -> bool {
        match self {
            Self::Given(engine) => engine.is_bypassed(),
            Self::Software(engine) => engine.is_bypassed(),
        }
    }

    fn pass(&mut self, packets: usize) {
        match self {
            Self::Given(engine) => engine.pass(packets),
            Self::Software(engine) => engine.pass(packets),
        }
    }

    fn evict_all(&mut self, why: EvictAll, evicted: &mut Vec<MicroflowRecord<K, N>>) {
        match self {
            Self::Given(engine) => engine.evict_all(why, evicted),
            Self::Software(engine) => engine.evict_all(why, evicted),
        }
    }

    fn evicted(&self) -> Evicted {
        match self {
            Self::Given(engine) => engine.evicted(),
            Self::Software(engine) => engine.evicted(),
        }
    }
}
