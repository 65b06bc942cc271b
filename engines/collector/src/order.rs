// SPDX-License-Identifier: Apache-2.0
//! Puts records into time order.
//!
//! An exporter sends a record when its flow has ended or its active timeout has passed. So records
//! arrive up to a timeout after their first packet, in any order. Here they wait, in buckets of a
//! cell of the run's clock, until no older ones are expected: for the lag, or until the buffer is
//! full.

use std::collections::BTreeMap;

use turboflow_engine::MicroflowBatch;
use turboflow_merge::Base;

use crate::counts::Counts;

/// Records and their sums.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    pub(crate) batch: MicroflowBatch,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Whether some records are from TurboFlow processes: several may have parts of one flow in one
    /// cell.
    has_pieces: bool,
}

impl Bucket {
    /// Moves records to the end of this bucket.
    fn take(&mut self, batch: &mut MicroflowBatch) {
        let sums = batch.sums();
        self.packets += sums.packets;
        self.bytes += sums.bytes;
        self.batch.append(batch);
        self.has_pieces = true;
    }

    /// Moves the records and sums of another bucket to the end of this one.
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.batch.append(&mut other.batch);
        self.packets += std::mem::take(&mut other.packets);
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

/// Records by the time of their first packet.
#[derive(Debug)]
pub(crate) struct Order {
    cell_ns: u64,
    most_records: usize,
    buckets: BTreeMap<u64, Bucket>,
    records: usize,
    /// Records older than those that were already handed over.
    late: Bucket,
    /// Everything before this time was handed over: the start of a cell.
    complete_ns: u64,
}

/// What comes next in time order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The first bucket: records from the first time on, and before the second.
    Bucket(u64, u64),
    /// No record.
    Empty,
}

impl Order {
    pub(crate) fn new(cell_ns: u64, most_records: usize) -> Self {
        Self {
            cell_ns: cell_ns.max(1),
            most_records,
            buckets: BTreeMap::new(),
            records: 0,
            late: Bucket::default(),
            complete_ns: 0,
        }
    }

    /// The start of a time's cell.
    pub(crate) const fn floor(&self, time_ns: u64) -> u64 {
        time_ns / self.cell_ns * self.cell_ns
    }

    pub(crate) const fn complete_ns(&self) -> u64 {
        self.complete_ns
    }

    pub(crate) const fn is_late(&self, first_ns: u64) -> bool {
        first_ns < self.complete_ns
    }

    /// The batch for one record that begins at this time.
    #[inline(always)]
    pub(crate) fn batch_of(&mut self, base: &Base) -> &mut MicroflowBatch {
        let bucket = if self.is_late(base.first_ns) {
            &mut self.late
        } else {
            self.records += 1;
            self.buckets.entry(self.floor(base.first_ns)).or_default()
        };
        bucket.packets += base.packets;
        bucket.bytes += base.bytes;
        &mut bucket.batch
    }

    /// Puts the records of a batch into the buckets of their cells. Returns how many were late.
    pub(crate) fn put(&mut self, batch: &mut MicroflowBatch) -> u64 {
        let mut late = MicroflowBatch::default();
        batch.split_off_before(self.complete_ns, &mut late);
        let late_records = late.len() as u64;
        self.late.take(&mut late);
        while let Some(first_ns) = batch.first_ns() {
            let start_ns = self.floor(first_ns);
            let mut of_cell = MicroflowBatch::default();
            match start_ns.checked_add(self.cell_ns) {
                Some(end_ns) => batch.split_off_before(end_ns, &mut of_cell),
                None => of_cell.append(batch),
            }
            self.records += of_cell.len();
            self.buckets.entry(start_ns).or_default().take(&mut of_cell);
        }
        late_records
    }

    pub(crate) fn len(&self) -> usize {
        self.records + self.late.batch.len()
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.records >= self.most_records
    }

    pub(crate) fn next(&self) -> Next {
        self.buckets.keys().next().map_or(Next::Empty, |&start_ns| {
            Next::Bucket(start_ns, start_ns.saturating_add(self.cell_ns))
        })
    }

    /// Hands over records that came late.
    pub(crate) fn hand_over_late(&mut self, to: &mut Bucket) {
        to.append(&mut self.late);
    }

    /// Hands over the first bucket. The clock stays at its start.
    pub(crate) fn hand_over(&mut self, to: &mut Bucket) {
        if let Some((_, mut bucket)) = self.buckets.pop_first() {
            self.records -= bucket.batch.len();
            if bucket.has_pieces {
                bucket.batch.sort_by_start();
            }
            to.append(&mut bucket);
        }
    }

    /// Marks everything before a time as complete. Times never go back.
    pub(crate) fn complete(&mut self, time_ns: u64) {
        debug_assert!(
            self.buckets
                .keys()
                .next()
                .is_none_or(|start| *start >= time_ns)
        );
        self.complete_ns = self.complete_ns.max(time_ns);
    }

    /// Counts the records of the first bucket as released early.
    pub(crate) fn count_early(&self, counts: &mut Counts) {
        let first = self.buckets.values().next();
        counts.released_early += first.map_or(0, |bucket| bucket.batch.len() as u64);
    }
}
