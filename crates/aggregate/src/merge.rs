// SPDX-License-Identifier: Apache-2.0
//! The hot path: merging a batch of microflow records, with every memory access ahead of its use.
//!
//! Three stages run over a chunk at a distance from each other, so that the cache misses of many
//! records overlap (TurboFlow, section 5.2, "Lookup Prefetching", taken further):
//!
//! ```text
//! record i + 2D   hash the key, fetch the tag line of its home bucket
//! record i + D    compare 31 tags, and those behind where records have passed the bucket; fetch the one record that can be it,
//!                 or the place of a new one
//! record i        compare the key, merge
//! ```
//!
//! A place found at stage two may be stale at stage three (its flow left, or the same new flow was
//! opened by a neighbour): the key comparison there sees it, and the long way sorts it out.

use turboflow_record::{
    KeyHash, MergeGate, MicroflowRecord, PendingStates, Vectors, WithVectors, prefetch,
    prefetch_far,
};

use crate::cache::{ExportSink, FlowCache};
use crate::region::Region;
use crate::tags::{SLOTS, TagLine};

/// Records looked at together. Long enough that starting and ending the pipeline costs little,
/// short enough that records and look-ahead stay in the first-level cache.
const CHUNK: usize = 512;
/// How far one stage runs ahead of the next.
const DISTANCE: usize = 32;
/// From this size on, flow records lie in no cache as a rule, and are fetched into the second level: with a million flows that come in
/// no order a merge takes three quarters of the time on Zen 4, and no other on Zen 5. Where most lie in a cache it costs more than it saves.
const FAR_BYTES: usize = 32 << 20;
/// Set in a bucket or slot number of the old region.
const IN_OLD: u32 = 1 << 31;

/// Raw views of both regions, taken once a chunk.
#[derive(Clone, Copy)]
struct Views<const K: usize, const N: usize> {
    lines: [*mut TagLine; 2],
    records: [*mut MicroflowRecord<K, N>; 2],
    homes: [u64; 2],
    frontier: u64,
}

impl<const K: usize, const N: usize> Views<K, N> {
    fn of(regions: &[Region<K, N>; 2], frontier: u64) -> Self {
        Self {
            lines: std::array::from_fn(|side| regions[side].lines.as_pointer()),
            records: std::array::from_fn(|side| regions[side].records.as_pointer()),
            homes: std::array::from_fn(|side| u64::from(regions[side].homes())),
            frontier,
        }
    }

    /// Home bucket of a hash, with [`IN_OLD`] where it lies in the old region. Without `MOVING`
    /// there is no old region.
    #[inline(always)]
    fn home<const MOVING: bool>(&self, hash: KeyHash) -> u32 {
        let side = MOVING && hash.0 >= self.frontier;
        let home = hash.share(self.homes[usize::from(side)]) as u32;
        home | (u32::from(side) * IN_OLD)
    }

    /// A new flow will put out one of these.
    #[cold]
    #[inline(never)]
    fn fetch_neighbours(&self, side: usize, bucket: usize, tag: u16) {
        // SAFETY: `bucket` is a home bucket of a region whose arrays outlive this view.
        let line = unsafe { &*self.lines[side].add(bucket) };
        for slot in line.neighbours(tag) {
            prefetch(self.records[side].wrapping_add(bucket * SLOTS + slot));
        }
    }
}

/// What the first two stages have found out about a chunk.
struct LookAhead<const K: usize, const N: usize, const MOVING: bool> {
    views: Views<K, N>,
    /// Whether new flows may put out old ones.
    crowded: bool,
    /// Whether flow records are many.
    far: bool,
    homes: [u32; CHUNK],
    tags: [u16; CHUNK],
    slots: [u32; CHUNK],
}

impl<const K: usize, const N: usize, const MOVING: bool> LookAhead<K, N, MOVING> {
    /// Stage one.
    #[inline(always)]
    fn begin(&mut self, index: usize, hash: KeyHash) {
        let home = self.views.home::<MOVING>(hash);
        self.homes[index] = home;
        self.tags[index] = hash.tag();
        let (side, home) = split::<MOVING>(home);
        prefetch(self.views.lines[side].wrapping_add(home));
    }

    /// Stage two.
    #[inline(always)]
    fn locate<V: Vectors>(&mut self, vectors: V, index: usize) {
        let (home, tag) = (self.homes[index], self.tags[index]);
        let (side, home_bucket) = split::<MOVING>(home);
        let line = |bucket| {
            // SAFETY: a home bucket of a region whose arrays outlive this chunk, or one behind a bucket that records have passed.
            unsafe { &*self.views.lines[side].add(bucket) }
        };
        let mut bucket = home_bucket;
        let mut found = line(bucket).matches(vectors, tag);
        while found == 0 && line(bucket).overflows() {
            bucket += 1;
            found = line(bucket).matches(vectors, tag);
        }
        if found == 0 {
            bucket = home_bucket;
            found = line(bucket).matches(vectors, 0);
            if self.crowded {
                self.views.fetch_neighbours(side, bucket, tag);
            }
        }
        // Without a match this is the place that a new flow takes: it is fetched, and by stage three a
        // neighbour may have opened the flow there; if not, its key says so, for that of a free place is all
        // zero. Where the bucket is full, it is slot 1 of the next one, whose key will tell; a region
        // has spare buckets after its last home, so there is one.
        let slot = bucket * SLOTS + found.trailing_zeros() as usize;
        self.slots[index] = slot as u32 | home & if MOVING { IN_OLD } else { 0 };
        let record = self.views.records[side].wrapping_add(slot);
        if self.far {
            prefetch_far(record);
        } else {
            prefetch(record);
        }
    }
}

/// Splits a number with [`IN_OLD`] into region and index.
#[inline(always)]
const fn split<const MOVING: bool>(number: u32) -> (usize, usize) {
    if MOVING {
        ((number / IN_OLD) as usize, (number % IN_OLD) as usize)
    } else {
        (0, number as usize)
    }
}

/// What the last stage holds. Apart from [`LookAhead`] and from the pairs that wait, whose arrays would keep it in memory: the gate stays
/// in registers.
struct LastStage<'a, S> {
    /// What certainly merges.
    gate: MergeGate,
    sink: &'a mut S,
}

/// The work on one chunk, compiled for every width of vectors.
struct MergeChunk<'a, S, const K: usize, const N: usize, const MOVING: bool> {
    cache: &'a mut FlowCache<K, N>,
    chunk: &'a [MicroflowRecord<K, N>],
    sink: &'a mut S,
}

impl<S, const K: usize, const N: usize, const MOVING: bool> WithVectors
    for MergeChunk<'_, S, K, N, MOVING>
where
    S: ExportSink<K, N>,
{
    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, vectors: V) {
        self.cache
            .merge_chunk::<V, MOVING>(vectors, self.chunk, self.sink);
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
            if self.table.is_moving() {
                machine.run_loop::<N, _>(MergeChunk::<_, K, N, true> {
                    cache: self,
                    chunk,
                    sink,
                });
            } else {
                machine.run_loop::<N, _>(MergeChunk::<_, K, N, false> {
                    cache: self,
                    chunk,
                    sink,
                });
            }
        }
    }

    /// The pipeline over one chunk. The table does not grow or move meanwhile.
    #[inline(always)]
    fn merge_chunk<V: Vectors, const MOVING: bool>(
        &mut self,
        vectors: V,
        chunk: &[MicroflowRecord<K, N>],
        sink: &mut impl ExportSink<K, N>,
    ) {
        let count = chunk.len();
        assert!(count <= CHUNK);
        let mut ahead = LookAhead::<K, N, MOVING> {
            views: Views::of(self.table.regions(), self.table.frontier()),
            crowded: self.is_crowded(count),
            far: self.size_bytes() >= FAR_BYTES,
            homes: [0; CHUNK],
            tags: [0; CHUNK],
            slots: [0; CHUNK],
        };
        let hasher = self.hasher;
        let mut last = LastStage {
            gate: self.cuts.gate,
            sink,
        };
        let mut pending = PendingStates::new();
        for (index, microflow) in chunk.iter().enumerate().take(2 * DISTANCE) {
            ahead.begin(index, hasher.hash(&microflow.key));
        }
        for index in 0..count.min(DISTANCE) {
            ahead.locate(vectors, index);
        }
        // Three loops, so that the long one need not ask whether there is more to look ahead to. None merges states on its way: see
        // `PendingStates::push`.
        const { assert!(DISTANCE <= PendingStates::<N>::ROOM) };
        let mut index = 2 * DISTANCE;
        while index < count {
            let end = count.min(index.saturating_add(PendingStates::<N>::ROOM));
            for index in index..end {
                ahead.begin(index, hasher.hash(&chunk[index].key));
                ahead.locate(vectors, index - DISTANCE);
                let done = index - 2 * DISTANCE;
                self.finish(vectors, &ahead, done, &chunk[done], &mut last, &mut pending);
            }
            pending.merge(vectors, &self.plan);
            index = end;
        }
        for index in DISTANCE.max(count.saturating_sub(DISTANCE))..count {
            ahead.locate(vectors, index);
            let done = index - DISTANCE;
            self.finish(vectors, &ahead, done, &chunk[done], &mut last, &mut pending);
        }
        pending.merge(vectors, &self.plan);
        for (done, microflow) in chunk
            .iter()
            .enumerate()
            .skip(count.saturating_sub(DISTANCE))
        {
            self.finish(vectors, &ahead, done, microflow, &mut last, &mut pending);
        }
        pending.merge(vectors, &self.plan);
    }

    /// Stage three.
    #[inline(always)]
    fn finish<V: Vectors, S: ExportSink<K, N>, const MOVING: bool>(
        &mut self,
        vectors: V,
        ahead: &LookAhead<K, N, MOVING>,
        index: usize,
        microflow: &MicroflowRecord<K, N>,
        last: &mut LastStage<'_, S>,
        pending: &mut PendingStates<N>,
    ) {
        let (side, slot) = split::<MOVING>(ahead.slots[index]);
        // SAFETY: stage two computed the slot from a bucket of that region; the arrays live, and no
        // other reference into them does.
        let flow = unsafe { ahead.views.records[side].add(slot) };
        // SAFETY: likewise.
        if vectors.merge_if_passes(&last.gate, unsafe { &mut *flow }, microflow) {
            // SAFETY: until they are merged, here or at the end of the chunk, no flow record moves, and none is used but for key
            // and base.
            unsafe { pending.push(flow, microflow) };
        } else {
            pending.merge(vectors, &self.plan);
            self.merge_with_care(microflow, last.sink);
        }
    }
}
