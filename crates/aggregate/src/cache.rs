// SPDX-License-Identifier: Apache-2.0
//! The flow cache: open flows, merging, and the reasons for which flows leave.

use turboflow_merge::{KeyHasher, LaneHash, LaneHasher, Machine, MicroflowRecord, Plan};
use turboflow_record::EndReason;

use crate::flow_table::{CURRENT, FlowTable, Location, OLD};
use crate::reach::Way;
use crate::region::Place;
use crate::timeouts::{Cell, Cuts, Timeouts};

/// The settings of a flow cache.
#[derive(Clone, Debug)]
pub struct CacheConfig {
    /// When flows end.
    pub timeouts: Timeouts,
    /// The most flows that may be open at once. If the cache is full, old flows leave early
    /// (flowEndReason 5). At least 1.
    pub max_flows: usize,
    /// The FIN marks that end a flow
    /// ([`Layout::ending_fins`](turboflow_merge::Layout::ending_fins)).
    pub ending_fins: u8,
    /// The time in which the expiry sweep covers the whole cache, in nanoseconds. An expired flow
    /// leaves at most this much later.
    pub sweep_ns: u64,
}

/// Takes the flow records that leave a cache.
///
/// Their `base.end_reason` says why they ended.
pub trait ExportSink<const K: usize, const N: usize> {
    /// Takes a batch of finished records.
    fn export(&mut self, records: &[MicroflowRecord<K, N>]);
}

impl<const K: usize, const N: usize> ExportSink<K, N> for Vec<MicroflowRecord<K, N>> {
    fn export(&mut self, records: &[MicroflowRecord<K, N>]) {
        self.extend_from_slice(records);
    }
}

/// Counters of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Microflow records that were merged into a flow or opened one.
    pub microflows_merged: u64,
    /// Flows opened, including those that continue after an active-timeout export.
    pub flows_opened: u64,
    /// Flow records exported, by flowEndReason (index 0 unused).
    pub flows_exported: [u64; EndReason::ALL.len() + 1],
    /// Flows that are open now.
    pub flows_open: u64,
    /// The most flows that were open at once.
    pub flows_peak: u64,
    /// How often the system refused memory for a larger table. After that, the cache is full at its
    /// present size.
    pub growths_refused: u64,
}

impl std::ops::AddAssign for CacheCounters {
    fn add_assign(&mut self, other: Self) {
        self.microflows_merged += other.microflows_merged;
        self.flows_opened += other.flows_opened;
        for (mine, others) in self.flows_exported.iter_mut().zip(other.flows_exported) {
            *mine += others;
        }
        self.flows_open += other.flows_open;
        self.flows_peak += other.flows_peak;
        self.growths_refused += other.growths_refused;
    }
}

/// The most records per call of the sink.
const EXPORT_BATCH: usize = 256;
/// Minimum number of home buckets that each chunk moves while the table grows.
const MIN_HOMES_A_STEP: usize = 4;

/// The table of open flows of one shard and one key width.
///
/// The time is set by [`FlowCache::advance`]. The rules are those of
/// `docs/decisions/0001-cells.md`.
pub struct FlowCache<const K: usize, const N: usize> {
    pub(crate) table: FlowTable<K, N>,
    pub(crate) cuts: Cuts,
    pub(crate) hasher: LaneHasher<K>,
    leaving: Vec<MicroflowRecord<K, N>>,
    config: CacheConfig,
    /// Position of the sweep in hash space, in units of 1/2^32.
    sweep_position: u64,
    pub(crate) counters: CacheCounters,
    pub(crate) machine: Machine,
    /// Not 0 if a flow of the last chunk held both directions. Only a hint: a stale slot may set
    /// it.
    pub(crate) states_seen: u8,
    /// Overrides the choice of prefetch distance in tests.
    pub(crate) always: Option<Way>,
}

impl<const K: usize, const N: usize> FlowCache<K, N> {
    /// An empty cache.
    #[must_use]
    pub fn new(config: CacheConfig, plan: Plan, hasher: KeyHasher) -> Self {
        assert!(config.max_flows > 0 && config.sweep_ns > 0);
        Self {
            table: FlowTable::new(config.max_flows, plan),
            cuts: Cuts::new(&config.timeouts, config.ending_fins),
            hasher: LaneHasher::new(&hasher),
            leaving: Vec::with_capacity(EXPORT_BATCH),
            config,
            sweep_position: 0,
            counters: CacheCounters::default(),
            machine: Machine::detect(),
            states_seen: 0,
            always: None,
        }
    }

    /// Fixes the prefetch distance for tests, whatever the size of the table, because small tables
    /// would use only one. The records do not depend on it.
    #[doc(hidden)]
    #[must_use]
    pub fn always(mut self, way: Way) -> Self {
        self.always = Some(way);
        self
    }

    /// Upper bound on the memory of a cache for `max_flows` flows, in bytes.
    #[must_use]
    pub fn max_size_bytes(max_flows: usize) -> usize {
        FlowTable::<K, N>::max_size_bytes(max_flows)
    }

    /// Upper bound on the memory of the table at its present size, in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.table.size_bytes()
    }

    /// Flows that are open now.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no flow is open.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The counters so far.
    #[must_use]
    pub fn counters(&self) -> CacheCounters {
        CacheCounters {
            flows_open: self.table.len() as u64,
            flows_peak: self.counters.flows_peak.max(self.table.len() as u64),
            ..self.counters
        }
    }

    /// Enters a cell of the clock: all records before it have been merged. Exports the due flows in
    /// the part of the cache that the sweep now covers.
    pub fn advance(&mut self, cell: Cell, sink: &mut impl ExportSink<K, N>) {
        let passed_ns = cell.watermark_ns.saturating_sub(self.cuts.watermark_ns);
        self.cuts.enter(cell);
        let share = (u128::from(passed_ns) << 32) / u128::from(self.config.sweep_ns);
        self.sweep(u64::try_from(share).unwrap_or(u64::MAX).min(1 << 32), sink);
        self.hand_over(sink);
    }

    /// Exports every flow: due flows with their reason, all others as forced end. Afterwards the
    /// cache is empty and has its initial size; the clock does not change.
    pub fn flush(&mut self, sink: &mut impl ExportSink<K, N>) {
        self.note_peak();
        for region in [CURRENT, OLD] {
            let first = if region == OLD {
                self.table.moved_homes()
            } else {
                0
            };
            for bucket in first..self.table.regions()[region].buckets() {
                self.flush_bucket(region, bucket, sink);
            }
        }
        self.hand_over(sink);
        self.table.reset();
        self.sweep_position = 0;
    }

    fn flush_bucket(&mut self, region: usize, bucket: usize, sink: &mut impl ExportSink<K, N>) {
        let mut taken = self.table.regions()[region].lines[bucket].taken();
        while taken != 0 {
            let place = Place {
                bucket,
                slot: taken.trailing_zeros() as usize,
            };
            taken &= taken - 1;
            let record = self.table.record(Location { region, place });
            let reason = self.cuts.due(&record.base).unwrap_or(EndReason::ForcedEnd);
            self.leave(record, reason, sink);
        }
    }

    /// Looks for due flows in the next `share` of hash space, in units of 1/2^32.
    fn sweep(&mut self, share: u64, sink: &mut impl ExportSink<K, N>) {
        let start = self.sweep_position;
        let end = start + share;
        for (from, to) in [(start, end.min(1 << 32)), (0, end.saturating_sub(1 << 32))] {
            for region in [CURRENT, OLD] {
                self.sweep_region(region, from, to, sink);
            }
        }
        self.sweep_position = end & ((1 << 32) - 1);
    }

    fn sweep_region(
        &mut self,
        region: usize,
        from: u64,
        to: u64,
        sink: &mut impl ExportSink<K, N>,
    ) {
        let (homes, buckets) = {
            let table = &self.table.regions()[region];
            (u64::from(table.homes()), table.buckets())
        };
        if homes == 0 || to <= from {
            return;
        }
        let bucket_of = |share: u64| ((share * homes) >> 32) as usize;
        // The spare buckets after the last home belong to the last share.
        let last = if to == 1 << 32 {
            buckets
        } else {
            bucket_of(to)
        };
        // Buckets that have moved are empty. Reading them would make the system allocate their
        // pages again.
        let first = match region {
            OLD => bucket_of(from).max(self.table.moved_homes()),
            _ => bucket_of(from),
        };
        for bucket in first..last {
            if bucket + 1 < last && self.may_be_due(region, bucket + 1) {
                self.table.prefetch_bucket(region, bucket + 1);
            }
            if self.may_be_due(region, bucket) {
                self.sweep_bucket(region, bucket, sink);
            }
        }
    }

    /// Whether a bucket may contain a due flow.
    fn may_be_due(&self, region: usize, bucket: usize) -> bool {
        self.table.due_of_bucket_ns(region, bucket) < self.cuts.watermark_ns
    }

    fn sweep_bucket(&mut self, region: usize, bucket: usize, sink: &mut impl ExportSink<K, N>) {
        let mut taken = self.table.regions()[region].lines[bucket].taken();
        let mut earliest_ns = u64::MAX;
        while taken != 0 {
            let place = Place {
                bucket,
                slot: taken.trailing_zeros() as usize,
            };
            taken &= taken - 1;
            let location = Location { region, place };
            let head = self.table.parts(location).head;
            if let Some(reason) = self.cuts.due(&head.base) {
                let hash = self.hasher.hash(&head.key);
                let record = self.table.remove(location, hash);
                self.leave(record, reason, sink);
            } else {
                earliest_ns = earliest_ns.min(self.cuts.earliest_due_ns(&head.base));
            }
        }
        self.table.set_due_of_bucket(region, bucket, earliest_ns);
    }

    /// Merges one record by the full rules: its flow may not exist yet, or may have to end first.
    #[cold]
    #[inline(never)]
    pub(crate) fn merge_with_care(
        &mut self,
        microflow: &MicroflowRecord<K, N>,
        sink: &mut impl ExportSink<K, N>,
    ) {
        let hash = self.hasher.hash(&microflow.key);
        let Some(location) = self.table.find(&microflow.key, hash) else {
            return self.open(microflow, hash, sink);
        };
        let flow = &self.table.parts(location).head.base;
        if let Some(reason) = self.cuts.cut(flow, &microflow.base) {
            let ended = self.table.replace(location, microflow);
            self.counters.flows_opened += 1;
            self.leave(ended, reason, sink);
        } else {
            self.table.merge(location, microflow);
        }
        let flow = &self.table.parts(location).head.base;
        if self.cuts.leaves_at_once(flow) {
            let record = self.table.remove(location, hash);
            self.leave(record, EndReason::EndOfFlow, sink);
        } else {
            let due_ns = self.cuts.earliest_due_ns(flow);
            self.table.note_due(location, due_ns);
        }
    }

    fn open(
        &mut self,
        microflow: &MicroflowRecord<K, N>,
        hash: LaneHash,
        sink: &mut impl ExportSink<K, N>,
    ) {
        self.counters.flows_opened += 1;
        if self.cuts.leaves_at_once(&microflow.base) {
            return self.leave(*microflow, EndReason::EndOfFlow, sink);
        }
        if self.table.len() >= self.config.max_flows {
            self.make_room(hash, sink);
        }
        let due_ns = self.cuts.earliest_due_ns(&microflow.base);
        while self.table.insert(microflow, hash, due_ns).is_none() {
            self.make_room(hash, sink);
        }
    }

    /// Exports an old flow early, because the cache is full.
    fn make_room(&mut self, hash: LaneHash, sink: &mut impl ExportSink<K, N>) {
        let near = self.table.oldest_near(hash);
        // The cache may be full, but empty from this hash on: then takes a flow from the start.
        let victim = near.or_else(|| self.table.oldest_near(LaneHash(0)));
        let Some(location) = victim else { return };
        let hash = self.hasher.hash(&self.table.parts(location).head.key);
        let record = self.table.remove(location, hash);
        let reason = self
            .cuts
            .due(&record.base)
            .unwrap_or(EndReason::LackOfResources);
        self.leave(record, reason, sink);
    }

    /// Whether `incoming` new flows would fill the cache.
    pub(crate) const fn is_crowded(&self, incoming: usize) -> bool {
        self.table.len() + incoming > self.config.max_flows
    }

    /// Lets the table grow between chunks of records, when no pointer into it is in use.
    pub(crate) fn keep_room(&mut self, incoming: usize, sink: &mut impl ExportSink<K, N>) {
        self.note_peak();
        if self.table.wants_to_grow(incoming) && !self.table.start_growing() {
            self.counters.growths_refused += 1;
            self.config.max_flows = self.config.max_flows.min(self.table.room());
        }
        if self.table.is_moving() {
            // A table grows by at least half, so 0.5 · 0.8 · 31 = 12 records may arrive per home
            // bucket that has to move. Moving one bucket per four records leaves ample slack. The
            // last step of growth may be smaller; it ends at `max_flows`.
            let mut refused = Vec::new();
            let homes = MIN_HOMES_A_STEP + incoming / 4;
            self.table.move_homes(homes, &self.hasher, &mut refused);
            for record in refused {
                self.leave(record, EndReason::LackOfResources, sink);
            }
        }
    }

    fn note_peak(&mut self) {
        self.counters.flows_peak = self.counters.flows_peak.max(self.table.len() as u64);
    }

    fn leave(
        &mut self,
        mut record: MicroflowRecord<K, N>,
        reason: EndReason,
        sink: &mut impl ExportSink<K, N>,
    ) {
        record.base.end_reason = reason as u8;
        self.counters.flows_exported[reason as usize] += 1;
        self.leaving.push(record);
        if self.leaving.len() == EXPORT_BATCH {
            self.hand_over(sink);
        }
    }

    fn hand_over(&mut self, sink: &mut impl ExportSink<K, N>) {
        if !self.leaving.is_empty() {
            sink.export(&self.leaving);
            self.leaving.clear();
        }
    }

    /// Merges one record without prefetching, for tests and for tools that handle one record at a
    /// time.
    pub fn merge_one(
        &mut self,
        microflow: &MicroflowRecord<K, N>,
        sink: &mut impl ExportSink<K, N>,
    ) {
        self.keep_room(1, sink);
        self.counters.microflows_merged += 1;
        self.merge_with_care(microflow, sink);
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
