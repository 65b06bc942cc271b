// SPDX-License-Identifier: Apache-2.0
//! Merges the microflow records of remote engines: batches in, flow records out, in memory.

use turboflow_engine::{EngineCounters, MicroflowBatch};
use turboflow_merge::Layout;

use crate::batch::{ShardBatch, TakeBatch};
use crate::clock::Tick;
use crate::engines::Engines;
use crate::feed::{Feed, FinishShards, Shards};
use crate::meter::{Counts, start_threads};
use crate::shard::{DeliverRecords, OwnShard, Shard, ShardReport};
use crate::state_words::with_state_words;
use crate::{ConfigError, InspectionConfig, PipelineConfig};

/// Merges the records of remote engines.
pub(crate) struct Merger {
    work: Box<dyn MergeWork>,
    inspection: Option<InspectionConfig>,
}

trait MergeWork {
    fn microflows(&mut self, batch: &mut MicroflowBatch);
    fn advance(&mut self, complete_ns: u64);
    fn set_back(&mut self, complete_ns: u64);
    fn clock_steps(&self) -> u64;
    fn snapshot(&mut self) -> ShardReport;
    fn finish(self: Box<Self>) -> ShardReport;
}

impl Merger {
    /// A merger without records. `deliver` is called once per shard; the closure that it returns
    /// runs on the thread of that shard.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn new(
        config: &PipelineConfig,
        layout: &Layout,
        deliver: &mut dyn FnMut(usize) -> DeliverRecords,
    ) -> Result<Self, ConfigError> {
        let work = with_state_words!(layout.state_words(), N => {
            start::<N>(config, layout, deliver)?
        });
        let inspection = config.inspection.clone();
        Ok(Self { work, inspection })
    }

    /// Merges records of the current cell. They do not move the clock.
    pub(crate) fn microflows(&mut self, batch: &mut MicroflowBatch) {
        self.work.microflows(batch);
    }

    /// Moves the clock. The records of all packets before this time, in nanoseconds since 1970,
    /// have been merged.
    pub(crate) fn advance(&mut self, complete_ns: u64) {
        self.work.advance(complete_ns);
    }

    /// Sets the clock back to this time: all open flows end.
    pub(crate) fn set_back(&mut self, complete_ns: u64) {
        self.work.set_back(complete_ns);
    }

    /// Counters up to now. `engine` reads those of the engines. It is called after the shards have
    /// reported, so that the counters of an engine are never behind those of the shards.
    pub(crate) fn counts<E>(
        &mut self,
        engine: impl FnOnce() -> Result<EngineCounters, E>,
    ) -> Result<Counts, E> {
        let shards = self.work.snapshot();
        let counts = Counts::of_engine(shards, &engine()?, self.work.clock_steps());
        Ok(counts.inspected_elsewhere(self.inspection.as_ref()))
    }

    /// Flushes everything and returns the final counters.
    pub(crate) fn finish(self, engine: &EngineCounters) -> Counts {
        let clock_steps = self.work.clock_steps();
        let counts = Counts::of_engine(self.work.finish(), engine, clock_steps);
        counts.inspected_elsewhere(self.inspection.as_ref())
    }
}

fn start<const N: usize>(
    config: &PipelineConfig,
    layout: &Layout,
    deliver: &mut dyn FnMut(usize) -> DeliverRecords,
) -> Result<Box<dyn MergeWork>, ConfigError>
where
    ShardBatch<N>: TakeBatch,
{
    let (feed, layout) = (Feed::<N>::new(config), layout.clone());
    // These shards have no packet engine. They have the type of the meter's shards, so that this
    // type is compiled only once.
    let none = None::<Engines>;
    let inspection = config.inspection.as_ref();
    let naming = inspection.and_then(InspectionConfig::naming_elsewhere);
    if !config.has_shard_threads() {
        let shards = OwnShard(Shard::new(
            config,
            &layout,
            none.as_ref(),
            naming,
            deliver(0),
        ));
        return Ok(Box::new(RunningMerger {
            feed,
            layout,
            shards,
        }));
    }
    let shards = start_threads::<_, N>(config, &layout, none, naming, deliver)?;
    Ok(Box::new(RunningMerger {
        feed,
        layout,
        shards,
    }))
}

struct RunningMerger<const N: usize, S> {
    feed: Feed<N>,
    layout: Layout,
    shards: S,
}

impl<const N: usize, S: Shards<N> + FinishShards> MergeWork for RunningMerger<N, S>
where
    ShardBatch<N>: TakeBatch,
{
    fn microflows(&mut self, batch: &mut MicroflowBatch) {
        self.feed.microflows(batch, &self.layout, &mut self.shards);
    }

    fn advance(&mut self, complete_ns: u64) {
        match self.feed.clock.advance(complete_ns) {
            Tick::Stays => {}
            tick => self.feed.change_cell(tick, &mut self.shards),
        }
    }

    fn set_back(&mut self, complete_ns: u64) {
        let tick = self.feed.clock.set_back(complete_ns);
        self.feed.change_cell(tick, &mut self.shards);
    }

    fn clock_steps(&self) -> u64 {
        self.feed.clock_steps
    }

    fn snapshot(&mut self) -> ShardReport {
        self.feed.hand_over(&mut self.shards);
        self.shards.snapshot()
    }

    fn finish(mut self: Box<Self>) -> ShardReport {
        self.feed.hand_over(&mut self.shards);
        self.shards.finish()
    }
}
