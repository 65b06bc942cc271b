// SPDX-License-Identifier: Apache-2.0
//! The hot path: merging a batch of microflow records, with every memory access ahead of its use.
//!
//! Three stages run over a chunk, eight records at a time, at a distance from each other, so that the cache misses of many
//! records overlap (TurboFlow, section 5.2, "Lookup Prefetching", taken further):
//!
//! ```text
//! block i + 2D   hash the keys, note where their home buckets are
//! one before     fetch the tag lines of those (of a small table, they are near)
//! block i + D    compare 31 tags, and those behind where records have passed the bucket; fetch the one record that can be it,
//!                or the place of a new one
//! block i        compare the keys, merge
//! ```
//!
//! How far ahead and into which cache depends on the size of the table (`reach.rs`).
//!
//! A place found at stage two may be stale at stage three (its flow left, or the same new flow was
//! opened by a neighbour): the key comparison there sees it, and the long way sorts it out.

use std::ops::Range;

use turboflow_merge::{
    FEW_WORDS, LANES, LaneHash, LaneHasher, MicroflowRecord, PendingStates, Plain, Vectors,
    WithVectors, prefetch,
};

use crate::cache::{ExportSink, FlowCache};
use crate::flow_table::CURRENT;
use crate::homes::{Homes, View};
use crate::reach::{Deep, Near, Reach, Way};
use crate::tags::SLOTS;

/// Records that pass through the stages together. Before them, the table makes room for as many new flows. Long enough that starting
/// and ending the pipeline costs little.
const CHUNK: usize = 2_048;
/// Chunk length while the table grows. Each chunk moves buckets in proportion to its length; a short
/// one bounds the pause.
const GROWING_CHUNK: usize = 512;
/// Records from one stage to the next while the table grows.
const GROWING_APART: usize = 32;

/// What the first two stages have found out about the blocks between them and the last.
struct LookAhead<const K: usize, const N: usize, const RING: usize> {
    /// Whether new flows may put out old ones.
    crowded: bool,
    homes: [Homes; RING],
    /// Where the flows are.
    flows: [[*mut MicroflowRecord<K, N>; LANES]; RING],
}

impl<const K: usize, const N: usize, const RING: usize> LookAhead<K, N, RING> {
    /// Stage one, but for asking for the lines. A last block need not be full.
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

    /// Stages one and two of the first blocks of a chunk of `count`.
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

    /// Asks for what stage two looks at.
    #[inline(always)]
    fn fetch_lines<R: Reach>(&self, blocks: Range<usize>) {
        for block in blocks {
            for lane in 0..LANES {
                self.homes[block % RING].fetch::<R>(lane);
            }
        }
    }

    /// Asks for what stage two has found.
    #[inline(always)]
    fn fetch_flows<R: Reach>(&self, blocks: Range<usize>) {
        for block in blocks {
            for flow in self.flows[block % RING] {
                R::fetch(flow);
            }
        }
    }

    /// Stage two, of one record.
    #[inline(always)]
    fn locate<V: Vectors>(
        &mut self,
        vectors: V,
        block: usize,
        lane: usize,
    ) -> *mut MicroflowRecord<K, N> {
        let homes = &self.homes[block % RING];
        // SAFETY: that of a home bucket of a region whose arrays outlive this chunk.
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

/// Stage two of a record without a match in its home bucket: where a flow may be that was passed on, or a new one will lie. That is seldom
/// needed, or its flow takes far longer to open, and the loop is tighter without.
#[cold]
#[inline(never)]
fn search_on<const K: usize, const N: usize>(
    homes: &Homes,
    lane: usize,
    crowded: bool,
) -> *mut MicroflowRecord<K, N> {
    let (home, tag) = (homes.line(lane), homes.tag(lane));
    let mut line = home;
    // SAFETY: that of a home bucket of a region whose arrays outlive the chunk, or of one behind a bucket that records have passed.
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
    // SAFETY: that of a home bucket.
    let home = unsafe { &*home };
    if crowded {
        // The new flow will put out one of these.
        for slot in home.neighbours(tag.tag()) {
            prefetch(homes.slot::<K, N>(lane, slot));
        }
    }
    // The place that a new flow takes: it is fetched, and by stage three a neighbour may have opened the flow there; if not, its key
    // says so, for that of a free place is all zero. Where the bucket is full, it is slot 1 of the next one, whose key
    // will tell; a region has spare buckets after its last home, so there is one.
    homes.slot(lane, home.free(Plain).trailing_zeros() as usize)
}

/// The work on one chunk, compiled for every width of vectors.
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
        // A few thousand large records fill the caches: the other way is not compiled for them.
        if const { N <= FEW_WORDS }
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
    /// Per record one tag line and one flow record are touched; records of new flows, and of flows
    /// that end, cost a search more.
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

    /// Merges a chunk while the table has two regions: one record at a time, with the lines of later
    /// ones under way. Tables seldom grow, so this is compiled once, without vectors.
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

    /// The pipeline over one chunk. The table does not grow or move meanwhile. The stages are half of `RING` blocks apart.
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
        let mut ahead = LookAhead::<K, N, RING> {
            crowded: self.is_crowded(chunk.len()),
            homes: [Homes::NONE; RING],
            flows: [[std::ptr::null_mut(); LANES]; RING],
        };
        let (hasher, gate) = (self.hasher, vectors.gate(&self.cuts.gate));
        let view = View::of(vectors, &self.table.regions()[CURRENT]);
        let mut pending = PendingStates::new();
        let (blocks, rest) = chunk.as_chunks::<LANES>();
        let count = chunk.len().div_ceil(LANES);
        let records_of = |block: usize| blocks.get(block).map_or(rest, |records| records);
        ahead.start::<V, R>(vectors, &hasher, &view, count, records_of);
        // The long loop, in which all three stages have full blocks. It merges states between blocks only: see `PendingStates::push`.
        const { assert!(LANES <= PendingStates::<N>::ROOM) };
        let long = blocks.len().saturating_sub(RING);
        for (done, microflows) in blocks[..long].iter().enumerate() {
            let (found, begun) = (done + apart, done + RING);
            ahead.begin(vectors, &hasher, &view, begun, &blocks[begun]);
            for (lane, microflow) in microflows.iter().enumerate() {
                // Of the block begun last time: the addresses of this one are still in vectors.
                ahead.homes[(begun - 1) % RING].fetch::<R>(lane);
                let flow = ahead.flows[done % RING][lane];
                self.finish(vectors, &gate, flow, microflow, sink, &mut pending);
                R::fetch(ahead.locate(vectors, found, lane));
            }
            if pending.room() < LANES {
                pending.merge(vectors, &self.plan);
            }
        }
        if long > 0 {
            let begun = long + RING;
            ahead.fetch_lines::<R>(begun - 1..begun);
        }
        for done in long..count {
            let (found, begun) = (done + apart, done + RING);
            pending.merge(vectors, &self.plan);
            for (lane, microflow) in records_of(done).iter().enumerate() {
                let flow = ahead.flows[done % RING][lane];
                self.finish(vectors, &gate, flow, microflow, sink, &mut pending);
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
        pending.merge(vectors, &self.plan);
    }

    /// Stage three.
    #[inline(always)]
    fn finish<V: Vectors, S: ExportSink<K, N>>(
        &mut self,
        vectors: V,
        gate: &V::Gate,
        flow: *mut MicroflowRecord<K, N>,
        microflow: &MicroflowRecord<K, N>,
        sink: &mut S,
        pending: &mut PendingStates<N>,
    ) {
        // SAFETY: stage two found it in a bucket of a region whose arrays live, and no other reference into them does.
        if vectors.merge_if_passes(gate, unsafe { &mut *flow }, microflow) {
            // SAFETY: until they are merged, here or at the end of the chunk, no flow record moves, and none is used but for key
            // and base.
            unsafe { pending.push(flow, microflow) };
        } else {
            pending.merge(vectors, &self.plan);
            // SAFETY: as for the first.
            unsafe { self.merge_after_all(flow, microflow, sink) };
        }
    }

    /// Merges a record that the gate leaves to the rules. Often only because the flow that was found is within a cell of a timeout, or has
    /// a packet after the record's last: where a timeout is hardly longer than a cell, that is every record. It needs no search.
    ///
    /// # Safety
    /// `found` is a place of the table, and no reference to it lives.
    #[cold]
    #[inline(never)]
    unsafe fn merge_after_all(
        &mut self,
        found: *mut MicroflowRecord<K, N>,
        microflow: &MicroflowRecord<K, N>,
        sink: &mut impl ExportSink<K, N>,
    ) {
        // SAFETY: the caller's.
        let flow = unsafe { &mut *found };
        if flow.key == microflow.key && self.cuts.certainly_merges(&flow.base, &microflow.base) {
            flow.merge(microflow, &self.plan);
        } else {
            self.merge_with_care(microflow, sink);
        }
    }
}
