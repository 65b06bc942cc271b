// SPDX-License-Identifier: Apache-2.0
//! Feeds the shards. Each record goes to the shard of its key, and each new cell to all shards.

use turboflow_aggregate::Cell;
use turboflow_engine::MicroflowBatch;
use turboflow_merge::{KeyHasher, KeyWidths, Layout, MicroflowRecord};

use crate::PipelineConfig;
use crate::batch::{ShardBatch, TakeBatch, batch_records};
use crate::clock::{CellClock, Tick};
use crate::shard::ShardReport;

/// The destination of records: one or more shards.
pub(crate) trait Shards<const N: usize> {
    /// Takes the records of a batch and leaves the batch empty.
    fn take(&mut self, shard: usize, batch: &mut ShardBatch<N>);
    /// Makes all shards enter a cell.
    fn enter(&mut self, cell: Cell);
    /// Makes all shards flush, and then enter a cell of the new time.
    fn set_back(&mut self, cell: Cell);
}

/// Shards that report their counters.
pub(crate) trait FinishShards {
    /// The report, once everything that was given to the shards has been metered.
    fn snapshot(&mut self) -> ShardReport;
    /// Flushes, and returns the final report.
    fn finish(self) -> ShardReport;
}

pub(crate) struct Feed<const N: usize> {
    pub(crate) clock: CellClock,
    hasher: KeyHasher,
    pub(crate) pending: Vec<ShardBatch<N>>,
    /// How many times the clock was set back.
    pub(crate) clock_steps: u64,
}

impl<const N: usize> Feed<N> {
    pub(crate) fn new(config: &PipelineConfig) -> Self {
        Self {
            clock: CellClock::new(&config.timeouts, config.max_age_ns),
            hasher: KeyHasher::new(config.seed),
            pending: (0..config.threads).map(|_| ShardBatch::new()).collect(),
            clock_steps: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn shard_of<const K: usize>(&self, key: &[u64; K]) -> usize {
        match self.pending.len() {
            1 => 0,
            count => self.hasher.hash(key).shard(count),
        }
    }

    #[inline(always)]
    pub(crate) fn push<const K: usize>(
        &mut self,
        record: MicroflowRecord<K, N>,
        of_width: impl Fn(&mut ShardBatch<N>) -> &mut Vec<MicroflowRecord<K, N>>,
        shards: &mut impl Shards<N>,
    ) {
        let shard = self.shard_of(&record.key);
        let records = of_width(&mut self.pending[shard]);
        records.push(record);
        if records.len() == batch_records::<N>() {
            shards.take(shard, &mut self.pending[shard]);
        }
    }

    /// Hands over pending records, then enters the cell that the tick begins.
    pub(crate) fn change_cell(&mut self, tick: Tick, shards: &mut impl Shards<N>) {
        self.hand_over(shards);
        match tick {
            Tick::Stays => {}
            Tick::Enters(cell) => shards.enter(cell),
            Tick::SetBack(cell) => {
                self.clock_steps += 1;
                shards.set_back(cell);
            }
        }
    }

    /// Hands over pending records.
    pub(crate) fn hand_over(&mut self, shards: &mut impl Shards<N>) {
        for (shard, batch) in self.pending.iter_mut().enumerate() {
            if !batch.is_empty() {
                shards.take(shard, batch);
            }
        }
    }
}

impl<const N: usize> Feed<N>
where
    ShardBatch<N>: TakeBatch,
{
    /// Passes records of a remote engine to their shards. The records must have this layout.
    pub(crate) fn microflows(
        &mut self,
        batch: &mut MicroflowBatch,
        layout: &Layout,
        shards: &mut impl Shards<N>,
    ) {
        if let [pending] = &mut self.pending[..]
            && pending.take_batch(batch)
        {
            if !pending.is_empty() {
                shards.take(0, pending);
            }
            return;
        }
        if layout.key_widths() == KeyWidths::Wide {
            for record in batch.wide() {
                self.push(record, |pending| &mut pending.wide, shards);
            }
            return;
        }
        for record in batch.v4() {
            self.push(record, |pending| &mut pending.v4, shards);
        }
        for record in batch.v6() {
            self.push(record, |pending| &mut pending.v6, shards);
        }
    }
}
