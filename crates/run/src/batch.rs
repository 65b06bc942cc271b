// SPDX-License-Identifier: Apache-2.0
//! Batches of single-packet records for one shard, by key width.

use turboflow_engine::MicroflowBatch;
use turboflow_merge::{MicroflowRecord, WORDS_WIDE};
use turboflow_record::{WORDS_V4, WORDS_V6};

/// Target size of a batch of IPv4 records, in bytes. 128 KiB leave room for the tables in a typical
/// L2 cache. A larger batch wakes a waiting shard less often and keeps the aggregator's prefetching
/// going.
const BATCH_BYTES: usize = 128 << 10;
/// Minimum number of records in a batch, for large records. Keeps the prefetch pipelines of engine
/// and aggregator busy.
const MIN_BATCH_RECORDS: usize = 512;

/// Records per key width in a batch. Used for shards with and without a thread of their own, and
/// for the aggregator.
pub(crate) const fn batch_records<const N: usize>() -> usize {
    let records = BATCH_BYTES / size_of::<MicroflowRecord<WORDS_V4, N>>();
    if records > MIN_BATCH_RECORDS {
        records
    } else {
        MIN_BATCH_RECORDS
    }
}

pub(crate) struct ShardBatch<const N: usize> {
    pub(crate) v4: Vec<MicroflowRecord<WORDS_V4, N>>,
    pub(crate) v6: Vec<MicroflowRecord<WORDS_V6, N>>,
    pub(crate) wide: Vec<MicroflowRecord<WORDS_WIDE, N>>,
}

impl<const N: usize> ShardBatch<N> {
    pub(crate) const fn new() -> Self {
        Self {
            v4: Vec::new(),
            v6: Vec::new(),
            wide: Vec::new(),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty() && self.wide.is_empty()
    }

    pub(crate) const fn len(&self) -> usize {
        self.v4.len() + self.v6.len() + self.wide.len()
    }

    pub(crate) fn clear(&mut self) {
        self.v4.clear();
        self.v6.clear();
        self.wide.clear();
    }
}

/// Takes a whole batch at once, if the batch of a shard stores records of its type.
pub(crate) trait TakeBatch {
    /// Moves the records of the default definition out of `batch` without copying them. Returns
    /// false, and leaves `batch` as it is, for any other definition.
    fn take_batch(&mut self, batch: &mut MicroflowBatch) -> bool;
}

impl TakeBatch for ShardBatch<0> {
    fn take_batch(&mut self, batch: &mut MicroflowBatch) -> bool {
        let is_plain = batch.is_plain();
        if is_plain {
            batch.move_plain(&mut self.v4, &mut self.v6);
        }
        is_plain
    }
}

macro_rules! copies_records {
    ($($words:literal)*) => {$(
        impl TakeBatch for ShardBatch<$words> {
            fn take_batch(&mut self, _batch: &mut MicroflowBatch) -> bool {
                false
            }
        }
    )*};
}
copies_records!(8 24 56 120 504);
