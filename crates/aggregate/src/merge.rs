// SPDX-License-Identifier: Apache-2.0
//! The hot path: merges a batch of microflow records, with every memory access prefetched.
//!
//! Three stages run over a chunk, eight records at a time and at a distance from each other, so
//! that the cache misses of many records overlap. This extends "Lookup Prefetching" (TurboFlow,
//! section 5.2):
//!
//! ```text
//! block i + 2D   hash the keys, compute the addresses of their home buckets
//! one before     prefetch those tag lines (those of a small table are cached already)
//! block i + D    compare 31 tags, and those of later buckets if records overflowed from here;
//!                prefetch the one record that can match, or the slot for a new one
//! block i        compare the keys, merge
//! ```
//!
//! The distance and the target cache depend on the size of the table and of its records
//! (`reach.rs`).
//!
//! A slot found in stage two may be stale in stage three: its flow has left, or an earlier record
//! of the chunk has opened the new flow. The key comparison detects that, and the record is merged
//! by the full rules.

use std::ops::Range;

use turboflow_merge::{
    LANES, LaneHash, LaneHasher, MicroflowRecord, PendingStates, Plain, Vectors, WithVectors,
    prefetch,
};

use crate::cache::{ExportSink, FlowCache};
use crate::flow_table::CURRENT;
use crate::homes::{Homes, View};
use crate::reach::{Deep, Near, Reach, Way};
use crate::region::{Head, States};
use crate::tags::SLOTS;

/// The number of records that pass through the stages together. Before each chunk, the table makes
/// room for as many new flows. The chunk is long enough to make filling and draining the pipeline
/// cheap.
const CHUNK: usize = 2_048;
/// Chunk length while the table grows. Each chunk moves buckets in proportion to its length, so a
/// short one bounds the pause.
const GROWING_CHUNK: usize = 512;
/// Records between two stages while the table grows.
const GROWING_APART: usize = 32;

/// Records with more further words than this are always merged with `Deep`.
const NEAR_WORDS: usize = 8;

/// Results of the first two stages for the blocks that have not reached the last stage.
struct LookAhead<const K: usize, const N: usize, const RING: usize> {
    /// Whether new flows may displace old ones.
    crowded: bool,
    homes: [Homes; RING],
    /// Slots of the flows.
    flows: [[*mut Head<K>; LANES]; RING],
    /// Where the states of these flows are.
    states: States<K, N>,
    fetches_states: bool,
}

impl<const K: usize, const N: usize, const RING: usize> LookAhead<K, N, RING> {
    /// Creates the look-ahead for a chunk of `count` records.
    #[inline(always)]
    fn new(cache: &mut FlowCache<K, N>, count: usize) -> Self {
        Self {
            crowded: cache.is_crowded(count),
            homes: [Homes::NONE; RING],
            flows: [[std::ptr::null_mut(); LANES]; RING],
            states: cache.table.regions()[CURRENT].states(),
            fetches_states: cache.fetches_states(),
        }
    }

    /// Stage one without the prefetch of tag lines. The last block may be incomplete.
    #[inline(always)]
    fn begin<V: Vectors>(
        &mut self,
        vectors: V,
        hasher: &LaneHasher<K>,
        view: &View<V::Words>,
        block: usize,
        records: &[MicroflowRecord<K, N>],
    ) {
        let padded;
        let records = if let Ok(records) = records.try_into() {
            records
        } else {
            let mut some = [MicroflowRecord::default(); LANES];
            some[..records.len()].copy_from_slice(records);
            padded = some;
            &padded
        };
        self.homes[block % RING].set(vectors, hasher, records, view);
    }

    /// Stages one and two for the first blocks of a chunk of `count` blocks.
    #[inline(always)]
    fn start<'a, V: Vectors, R: Reach>(
        &mut self,
        vectors: V,
        hasher: &LaneHasher<K>,
        view: &View<V::Words>,
        count: usize,
        records_of: impl Fn(usize) -> &'a [MicroflowRecord<K, N>],
    ) {
        let (found, begun) = (count.min(RING / 2), count.min(RING));
        for block in 0..begun {
            self.begin(vectors, hasher, view, block, records_of(block));
        }
        self.fetch_lines::<R>(0..begun);
        for block in 0..found {
            for lane in 0..LANES {
                self.locate(vectors, block, lane);
            }
        }
        self.fetch_flows::<R>(0..found);
    }

    /// Prefetches the tag lines that stage two reads.
    #[inline(always)]
    fn fetch_lines<R: Reach>(&self, blocks: Range<usize>) {
        for block in blocks {
            for lane in 0..LANES {
                self.homes[block % RING].fetch::<R>(lane);
            }
        }
    }

    /// Prefetches the slots that stage two has found.
    #[inline(always)]
    fn fetch_flows<R: Reach>(&self, blocks: Range<usize>) {
        for block in blocks {
            for flow in self.flows[block % RING] {
                self.fetch_flow::<R>(flow);
            }
        }
    }

    #[inline(always)]
    fn fetch_flow<R: Reach>(&self, flow: *mut Head<K>) {
        R::fetch(flow);
        if N > 0 && self.fetches_states {
            R::fetch(self.states.of(flow));
        }
    }

    /// The slot that stage two has found for a record: the addresses of its key and base, and of
    /// its state.
    #[inline(always)]
    fn slot(&self, block: usize, lane: usize) -> (*mut Head<K>, *mut [u64; N]) {
        let flow = self.flows[block % RING][lane];
        (flow, self.states.of(flow))
    }

    /// Stage two for one record.
    #[inline(always)]
    fn locate<V: Vectors>(&mut self, vectors: V, block: usize, lane: usize) -> *mut Head<K> {
        let homes = &self.homes[block % RING];
        // SAFETY: the tag line is that of a home bucket, in a region whose arrays outlive this
        // chunk.
        let found = unsafe { (*homes.line(lane)).matches(vectors, homes.tag(lane)) };
        let flow = if found == 0 {
            search_on(homes, lane, self.crowded)
        } else {
            homes.slot(lane, found.trailing_zeros() as usize)
        };
        self.flows[block % RING][lane] = flow;
        flow
    }
}

/// Stage two for a record without a match in its home bucket: finds the slot of a flow that
/// overflowed, or the slot for a new flow. This is out of line because the loop is faster without
/// it. An overflow is rare, and opening a flow takes far longer than a call.
#[cold]
#[inline(never)]
fn search_on<const K: usize>(homes: &Homes, lane: usize, crowded: bool) -> *mut Head<K> {
    let (home, tag) = (homes.line(lane), homes.tag(lane));
    let mut line = home;
    // SAFETY: each tag line is that of a home bucket, or of the bucket after one that overflowed,
    // in a region whose arrays outlive the chunk.
    unsafe {
        while (*line).overflows() {
            line = line.add(1);
            let found = (*line).matches(Plain, tag);
            if found != 0 {
                let passed = line.offset_from_unsigned(home);
                return homes.slot(lane, passed * SLOTS + found.trailing_zeros() as usize);
            }
        }
    }
    // SAFETY: the tag line is that of a home bucket.
    let home = unsafe { &*home };
    if crowded {
        // The new flow will displace one of these.
        for slot in home.neighbours(tag.tag()) {
            prefetch(homes.slot::<K>(lane, slot));
        }
    }
    // The slot for a new flow. By stage three, an earlier record may have opened the flow there.
    // Otherwise the key comparison fails, because the key of a free slot is zero. If the bucket is
    // full, this is slot 1 of the next bucket, whose key decides in the same way. There is a next
    // bucket, because a region ends with spare ones.
    homes.slot(lane, home.free(Plain).trailing_zeros() as usize)
}

/// The work on one chunk, compiled for every vector width.
struct MergeChunk<'a, S, const K: usize, const N: usize> {
    cache: &'a mut FlowCache<K, N>,
    way: Way,
    chunk: &'a [MicroflowRecord<K, N>],
    sink: &'a mut S,
}

impl<S, const K: usize, const N: usize> WithVectors for MergeChunk<'_, S, K, N>
where
    S: ExportSink<K, N>,
{
    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        let (cache, chunk, sink) = (self.cache, self.chunk, self.sink);
        // A few thousand large records fill the caches, so `Near` is not compiled for them.
        if const { N <= NEAR_WORDS }
            && let Way::Near = self.way
        {
            return cache.merge_chunk::<V, Near, 8>(vectors, chunk, sink);
        }
        cache.merge_chunk::<V, Deep, 32>(vectors, chunk, sink);
    }
}

impl<const K: usize, const N: usize> FlowCache<K, N> {
    /// Merges a batch of microflow records, in order.
    ///
    /// # Complexity
    /// Each record touches one tag line and one flow record. Records that open or end a flow need
    /// an additional search.
    pub fn merge(
        &mut self,
        microflows: &[MicroflowRecord<K, N>],
        sink: &mut impl ExportSink<K, N>,
    ) {
        let mut rest = microflows;
        while !rest.is_empty() {
            let most = if self.table.is_moving() {
                GROWING_CHUNK
            } else {
                CHUNK
            };
            let (chunk, after) = rest.split_at(rest.len().min(most));
            rest = after;
            self.keep_room(chunk.len(), sink);
            self.counters.microflows_merged += chunk.len() as u64;
            if self.table.is_moving() {
                self.merge_while_growing(chunk, sink);
                continue;
            }
            let size_bytes = self.size_bytes();
            let way = self.always.unwrap_or_else(|| Way::of_size(size_bytes));
            let machine = self.machine;
            machine.run_loop::<N, _>(MergeChunk {
                cache: self,
                way,
                chunk,
                sink,
            });
        }
    }

    /// Merges a chunk while the table has two regions: one record at a time, with the tag lines of
    /// later records prefetched. Tables seldom grow, so this is compiled once, without vectors.
    fn merge_while_growing(
        &mut self,
        chunk: &[MicroflowRecord<K, N>],
        sink: &mut impl ExportSink<K, N>,
    ) {
        const RING: usize = 2 * GROWING_APART;
        let mut hashes = [LaneHash::default(); RING];
        for begun in 0..chunk.len() + RING {
            if let Some(done) = begun.checked_sub(RING) {
                self.merge_with_care(&chunk[done], sink);
            }
            if let Some(microflow) = chunk.get(begun) {
                let hash = self.hasher.hash(&microflow.key);
                self.table.prefetch_line(hash);
                hashes[begun % RING] = hash;
            }
            let found = begun.wrapping_sub(GROWING_APART);
            if found < chunk.len() {
                self.table.prefetch_record(hashes[found % RING]);
            }
        }
    }

    /// The pipeline over one chunk. The table neither grows nor moves during it. The stages are
    /// half of `RING` blocks apart.
    #[inline(always)]
    fn merge_chunk<V: Vectors, R: Reach, const RING: usize>(
        &mut self,
        vectors: V,
        chunk: &[MicroflowRecord<K, N>],
        sink: &mut impl ExportSink<K, N>,
    ) {
        const { assert!(RING.is_power_of_two() && RING >= 2) };
        debug_assert!(!self.table.is_moving());
        let apart = RING / 2;
        let mut ahead = LookAhead::<K, N, RING>::new(self, chunk.len());
        let (hasher, gate) = (self.hasher, vectors.gate(&self.cuts.gate));
        let view = View::of(vectors, &self.table.regions()[CURRENT]);
        let mut pending = PendingStates::new();
        let (blocks, rest) = chunk.as_chunks::<LANES>();
        let count = chunk.len().div_ceil(LANES);
        let records_of = |block: usize| blocks.get(block).map_or(rest, |records| records);
        ahead.start::<V, R>(vectors, &hasher, &view, count, records_of);
        // The steady state, in which all three stages have full blocks. States are merged only
        // between blocks: see `PendingStates::push`.
        const { assert!(LANES <= PendingStates::<N>::ROOM) };
        let long = blocks.len().saturating_sub(RING);
        for (done, microflows) in blocks[..long].iter().enumerate() {
            let (found, begun) = (done + apart, done + RING);
            ahead.begin(vectors, &hasher, &view, begun, &blocks[begun]);
            for (lane, microflow) in microflows.iter().enumerate() {
                // Prefetches for the block begun in the last iteration: the addresses of the
                // current block are still in vector registers.
                ahead.homes[(begun - 1) % RING].fetch::<R>(lane);
                let slot = ahead.slot(done, lane);
                self.finish(vectors, &gate, slot, microflow, sink, &mut pending);
                let flow = ahead.locate(vectors, found, lane);
                ahead.fetch_flow::<R>(flow);
            }
            if pending.room() < LANES {
                pending.merge(vectors, &self.table.plan);
            }
        }
        if long > 0 {
            let begun = long + RING;
            ahead.fetch_lines::<R>(begun - 1..begun);
        }
        for done in long..count {
            let (found, begun) = (done + apart, done + RING);
            pending.merge(vectors, &self.table.plan);
            for (lane, microflow) in records_of(done).iter().enumerate() {
                let slot = ahead.slot(done, lane);
                self.finish(vectors, &gate, slot, microflow, sink, &mut pending);
            }
            if begun < count {
                ahead.begin(vectors, &hasher, &view, begun, records_of(begun));
                ahead.fetch_lines::<R>(begun..begun + 1);
            }
            if found < count {
                for lane in 0..LANES {
                    ahead.locate(vectors, found, lane);
                }
                ahead.fetch_flows::<R>(found..found + 1);
            }
        }
        pending.merge(vectors, &self.table.plan);
    }

    /// Whether states are prefetched with their records. A biflow has no state in use before both
    /// directions have been seen.
    fn fetches_states(&mut self) -> bool {
        let seen = std::mem::take(&mut self.states_seen);
        !self.table.plan.is_two_way::<N>() || seen != 0
    }

    /// Stage three for one record. `flow` and `state` are the slot that stage two has found.
    #[inline(always)]
    fn finish<V: Vectors, S: ExportSink<K, N>>(
        &mut self,
        vectors: V,
        gate: &V::Gate,
        (flow, state): (*mut Head<K>, *mut [u64; N]),
        microflow: &MicroflowRecord<K, N>,
        sink: &mut S,
        pending: &mut PendingStates<N>,
    ) {
        let plan = &self.table.plan;
        // SAFETY: stage two found the slot in a bucket of a region whose arrays live, and no other
        // reference to it exists. Until the pending states are merged, here or at the end of the
        // chunk, no flow record moves, and only its key and base are used.
        let merged =
            unsafe { pending.merge_if_passes(vectors, plan, gate, flow, state, microflow) };
        if !merged {
            pending.merge(vectors, plan);
            // SAFETY: as above.
            unsafe { self.merge_after_all((flow, state), microflow, sink) };
        }
        if self.table.plan.is_two_way::<N>() {
            // SAFETY: the slot is still there: a chunk does not change the arrays.
            self.states_seen |= unsafe { (*flow).base.has_other };
        }
    }

    /// Merges a record that did not pass the gate. Often no search is needed, because the flow
    /// found is merely within a cell of a timeout, or has a packet later than the record's last
    /// one. If a timeout is hardly longer than a cell, this applies to every record.
    ///
    /// # Safety
    /// `flow` and `state` are a slot of the table, to which no reference exists.
    #[cold]
    #[inline(never)]
    unsafe fn merge_after_all(
        &mut self,
        (flow, state): (*mut Head<K>, *mut [u64; N]),
        microflow: &MicroflowRecord<K, N>,
        sink: &mut impl ExportSink<K, N>,
    ) {
        // SAFETY: the caller guarantees it.
        let (flow, state) = unsafe { (&mut *flow, &mut *state) };
        if flow.key == microflow.key && self.cuts.certainly_merges(&flow.base, &microflow.base) {
            self.table
                .plan
                .merge_apart(&mut flow.base, state, microflow);
        } else {
            self.merge_with_care(microflow, sink);
        }
    }
}
