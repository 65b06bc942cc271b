// SPDX-License-Identifier: Apache-2.0
//! The hot path: merging a batch of microflow records, with every memory access ahead of its use.
//!
//! Three stages run over a chunk, eight records at a time, at a distance from each other, so that the cache misses of many
//! records overlap (TurboFlow, section 5.2, "Lookup Prefetching", taken further):
//!
//! ```text
//! block i + 2D   hash the keys, note where their home buckets are
//! one before     fetch the tag lines of those
//! block i + D    compare 31 tags, and those behind where records have passed the bucket; fetch the one record that can be it,
//!                or the place of a new one
//! block i        compare the keys, merge
//! ```
//!
//! A place found at stage two may be stale at stage three (its flow left, or the same new flow was
//! opened by a neighbour): the key comparison there sees it, and the long way sorts it out.

use turboflow_record::{
    LANES, LaneHasher, MicroflowRecord, PendingStates, Vectors, WithVectors, prefetch, prefetch_far,
};

use crate::cache::{ExportSink, FlowCache};
use crate::homes::{Homes, Views};
use crate::tags::SLOTS;

/// Records looked at together. Long enough that starting and ending the pipeline costs little,
/// short enough that records and look-ahead stay in the first-level cache.
const CHUNK: usize = 512;
/// How many blocks one stage runs ahead of the next.
const DISTANCE: usize = 4;
/// Blocks between the first stage and the last, as a power of two.
const RING: usize = 2 * DISTANCE;
/// From this size on, flow records lie in no cache as a rule, and are fetched into the second level: with a million flows that come in
/// no order a merge takes three quarters of the time on Zen 4, and no other on Zen 5. Where most lie in a cache it costs more than it saves.
const FAR_BYTES: usize = 32 << 20;

/// What the first two stages have found out about the blocks between them and the last.
struct LookAhead<const K: usize, const N: usize> {
    /// Whether new flows may put out old ones.
    crowded: bool,
    homes: [Homes; RING],
    /// Where the flows are.
    flows: [[*mut MicroflowRecord<K, N>; LANES]; RING],
}

impl<const K: usize, const N: usize> LookAhead<K, N> {
    /// Stage one, but for asking for the lines. A last block need not be full.
    #[inline(always)]
    fn begin<V: Vectors>(
        &mut self,
        vectors: V,
        hasher: &LaneHasher<K>,
        views: &Views<V::Words>,
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
        self.homes[block % RING].set(vectors, hasher, records, views);
    }

    /// Stage one, of a block.
    #[inline(always)]
    fn fetch(&self, block: usize) {
        for lane in 0..LANES {
            self.homes[block % RING].fetch(lane);
        }
    }

    /// Stage two, of one record.
    #[inline(always)]
    fn locate<V: Vectors, const FAR: bool>(&mut self, vectors: V, block: usize, lane: usize) {
        let homes = &self.homes[block % RING];
        let (mut line, mut slots) = (homes.line(lane), homes.slots::<K, N>(lane));
        // SAFETY: that of a home bucket of a region whose arrays outlive this chunk.
        let mut found = unsafe { (*line).matches(vectors, homes.tag(lane)) };
        if found == 0 {
            let tag = homes.tag(lane);
            // SAFETY: likewise, or one behind a bucket that records have passed.
            unsafe {
                while found == 0 && (*line).overflows() {
                    line = line.add(1);
                    slots = slots.add(SLOTS);
                    found = (*line).matches(vectors, tag);
                }
                if found == 0 {
                    (line, slots) = (homes.line(lane), homes.slots(lane));
                    found = (*line).free(vectors);
                    if self.crowded {
                        fetch_neighbours::<K, N>(homes, lane);
                    }
                }
            }
        }
        // Without a match this is the place that a new flow takes: it is fetched, and by stage three a
        // neighbour may have opened the flow there; if not, its key says so, for that of a free place is all
        // zero. Where the bucket is full, it is slot 1 of the next one, whose key will tell; a region
        // has spare buckets after its last home, so there is one.
        let flow = slots.wrapping_add(found.trailing_zeros() as usize);
        self.flows[block % RING][lane] = flow;
        if FAR {
            prefetch_far(flow);
        } else {
            prefetch(flow);
        }
    }
}

/// A new flow will put out one of these.
#[cold]
#[inline(never)]
fn fetch_neighbours<const K: usize, const N: usize>(homes: &Homes, lane: usize) {
    // SAFETY: that of a home bucket of a region whose arrays outlive the chunk.
    let line = unsafe { &*homes.line(lane) };
    for slot in line.neighbours(homes.tag(lane)) {
        prefetch(homes.slots::<K, N>(lane).wrapping_add(slot));
    }
}

/// The work on one chunk, compiled for every width of vectors.
struct MergeChunk<'a, S, const K: usize, const N: usize> {
    cache: &'a mut FlowCache<K, N>,
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
        if cache.size_bytes() >= FAR_BYTES {
            cache.merge_chunk::<V, true>(vectors, chunk, sink);
        } else {
            cache.merge_chunk::<V, false>(vectors, chunk, sink);
        }
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
        for chunk in microflows.chunks(CHUNK) {
            self.keep_room(chunk.len(), sink);
            self.counters.microflows_merged += chunk.len() as u64;
            let machine = self.machine;
            machine.run_loop::<N, _>(MergeChunk {
                cache: self,
                chunk,
                sink,
            });
        }
    }

    /// The pipeline over one chunk. The table does not grow or move meanwhile.
    #[inline(always)]
    fn merge_chunk<V: Vectors, const FAR: bool>(
        &mut self,
        vectors: V,
        chunk: &[MicroflowRecord<K, N>],
        sink: &mut impl ExportSink<K, N>,
    ) {
        let mut ahead = LookAhead {
            crowded: self.is_crowded(chunk.len()),
            homes: [Homes::NONE; RING],
            flows: [[std::ptr::null_mut(); LANES]; RING],
        };
        let (hasher, gate) = (self.hasher, vectors.gate(&self.cuts.gate));
        let views = Views::of(vectors, &self.table);
        let mut pending = PendingStates::new();
        let (blocks, rest) = chunk.as_chunks::<LANES>();
        let count = chunk.len().div_ceil(LANES);
        let records_of = |block: usize| blocks.get(block).map_or(rest, |records| records);
        for block in 0..count.min(2 * DISTANCE) {
            ahead.begin(vectors, &hasher, &views, block, records_of(block));
        }
        for block in 0..count.min(2 * DISTANCE) {
            ahead.fetch(block);
        }
        for block in 0..count.min(DISTANCE) {
            for lane in 0..LANES {
                ahead.locate::<V, FAR>(vectors, block, lane);
            }
        }
        // The long loop, in which all three stages have full blocks. It merges states between blocks only: see `PendingStates::push`.
        const { assert!(LANES <= PendingStates::<N>::ROOM) };
        for (done, microflows) in blocks[..blocks.len().saturating_sub(2 * DISTANCE)]
            .iter()
            .enumerate()
        {
            let block = done + 2 * DISTANCE;
            ahead.begin(vectors, &hasher, &views, block, &blocks[block]);
            for (lane, microflow) in microflows.iter().enumerate() {
                // Of the block begun last time: the addresses of this one have not come out of the vectors yet.
                ahead.homes[(block - 1) % RING].fetch(lane);
                let flow = ahead.flows[done % RING][lane];
                self.finish(vectors, &gate, flow, microflow, sink, &mut pending);
                ahead.locate::<V, FAR>(vectors, done + DISTANCE, lane);
            }
            if pending.room() < LANES {
                pending.merge(vectors, &self.plan);
            }
        }
        for done in blocks.len().saturating_sub(2 * DISTANCE)..count {
            let (begun, found) = (done + 2 * DISTANCE, done + DISTANCE);
            pending.merge(vectors, &self.plan);
            for (lane, microflow) in records_of(done).iter().enumerate() {
                let flow = ahead.flows[done % RING][lane];
                self.finish(vectors, &gate, flow, microflow, sink, &mut pending);
            }
            if begun <= count {
                ahead.fetch(begun - 1);
            }
            if begun < count {
                ahead.begin(vectors, &hasher, &views, begun, records_of(begun));
            }
            if found < count {
                for lane in 0..LANES {
                    ahead.locate::<V, FAR>(vectors, found, lane);
                }
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
            self.merge_with_care(microflow, sink);
        }
    }
}
