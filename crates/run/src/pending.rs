// SPDX-License-Identifier: Apache-2.0
//! Packets on their way to a shard, as records of one packet, by key width.

#[cfg(all(target_os = "linux", feature = "kernel"))]
use std::any::Any;

#[cfg(all(target_os = "linux", feature = "kernel"))]
use turboflow_engine_xdp::Batch;
use turboflow_merge::{MicroflowRecord, WORDS_WIDE};
use turboflow_record::{WORDS_V4, WORDS_V6};

/// What IPv4 records take that travel together, but for what another engine hands over: as much as the second-level cache has room for
/// beside other things. The aggregator starts to look ahead anew with every batch, and a shard that waits is woken by it.
const BATCH_BYTES: usize = 128 << 10;
/// Of large records, enough to keep the prefetch pipelines of engine and aggregator busy.
const MIN_BATCH_RECORDS: usize = 512;

/// Records of one kind in a batch for a shard, on a thread of its own or on the front's, and for the aggregator.
pub(crate) const fn batch_records<const N: usize>() -> usize {
    let records = BATCH_BYTES / size_of::<MicroflowRecord<WORDS_V4, N>>();
    if records > MIN_BATCH_RECORDS {
        records
    } else {
        MIN_BATCH_RECORDS
    }
}

/// A batch for one shard.
pub(crate) struct Pending<const N: usize> {
    pub(crate) v4: Vec<MicroflowRecord<WORDS_V4, N>>,
    pub(crate) v6: Vec<MicroflowRecord<WORDS_V6, N>>,
    pub(crate) wide: Vec<MicroflowRecord<WORDS_WIDE, N>>,
}

impl<const N: usize> Pending<N> {
    pub(crate) const fn new() -> Self {
        Self {
            v4: Vec::new(),
            v6: Vec::new(),
            wide: Vec::new(),
        }
    }

    /// Takes the records of another engine without a copy, where records here have no further features either; whether it did.
    #[cfg(all(target_os = "linux", feature = "kernel"))]
    pub(crate) fn take(&mut self, batch: &mut Batch) -> bool {
        let (v4, v6): (&mut dyn Any, &mut dyn Any) = (&mut self.v4, &mut self.v6);
        if let (Some(v4), Some(v6)) = (v4.downcast_mut(), v6.downcast_mut()) {
            batch.give_v4(v4);
            batch.give_v6(v6);
            return true;
        }
        false
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
