// SPDX-License-Identifier: Apache-2.0
//! The hot path: merging a batch of microflow records, with every memory access ahead of its use.
//!
//! Three stages run over a chunk at a distance from each other, so that the cache misses of many
//! records overlap (TurboFlow, section 5.2, "Lookup Prefetching", taken further):
//!
//! ```text
//! record i + 2D   hash the key, fetch the tag line of its home bucket
//! record i + D    compare 31 tags, fetch the one record that can be it
//! record i        compare the key, merge
//! ```
//!
//! A place found at stage two may be stale at stage three (its flow left, or the same new flow was
//! opened by a neighbour): the key comparison there sees it, and the long way sorts it out.

use turboflow_record::{KeyHash, MicroflowRecord, Plan, prefetch};

use crate::cache::{ExportSink, FlowCache};
use crate::region::Region;
use crate::tags::{SLOTS, TagLine};
use crate::vectors::{Baseline, Vectors};

/// Records looked at together. Long enough that starting and ending the pipeline costs little,
/// short enough that records and look-ahead stay in the first-level cache.
const CHUNK: usize = 512;
/// How far one stage runs ahead of the next.
const DISTANCE: usize = 32;
/// Set in a bucket or slot number of the old region.
const IN_OLD: u32 = 1 << 31;

/// The widest vectors that this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    Baseline,
}

impl Machine {
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl") {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }
}

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
            if self.table.is_moving() {
                self.merge_chunk_here::<true>(chunk, sink);
            } else {
                self.merge_chunk_here::<false>(chunk, sink);
            }
        }
    }

    /// Picks the code for this machine.
    fn merge_chunk_here<const MOVING: bool>(
        &mut self,
        chunk: &[MicroflowRecord<K, N>],
        sink: &mut impl ExportSink<K, N>,
    ) {
        match self.machine {
            // SAFETY: `Machine::detect` found these features on this machine.
            #[cfg(target_arch = "x86_64")]
            Machine::Avx512 => unsafe { self.merge_chunk_avx512::<MOVING>(chunk, sink) },
            // SAFETY: likewise.
            #[cfg(target_arch = "x86_64")]
            Machine::Avx2 => unsafe { self.merge_chunk_avx2::<MOVING>(chunk, sink) },
            Machine::Baseline => self.merge_chunk::<Baseline, MOVING>(chunk, sink),
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi1,bmi2,lzcnt,popcnt")]
    fn merge_chunk_avx512<const MOVING: bool>(
        &mut self,
        chunk: &[MicroflowRecord<K, N>],
        sink: &mut impl ExportSink<K, N>,
    ) {
        self.merge_chunk::<crate::vectors::Avx512, MOVING>(chunk, sink);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn merge_chunk_avx2<const MOVING: bool>(
        &mut self,
        chunk: &[MicroflowRecord<K, N>],
        sink: &mut impl ExportSink<K, N>,
    ) {
        self.merge_chunk::<crate::vectors::Avx2, MOVING>(chunk, sink);
    }

    /// The pipeline over one chunk. The table does not grow or move meanwhile.
    #[inline(always)]
    fn merge_chunk<V: Vectors, const MOVING: bool>(
        &mut self,
        chunk: &[MicroflowRecord<K, N>],
        sink: &mut impl ExportSink<K, N>,
    ) {
        let views = Views::of(self.table.regions(), self.table.frontier());
        let (hasher, cuts) = (self.hasher, self.cuts);
        let plan: *const Plan = &raw const self.plan;
        let mut homes = [0u32; CHUNK];
        let mut tags = [0u16; CHUNK];
        let mut slots = [0u32; CHUNK];
        let count = chunk.len().min(CHUNK);
        let crowded = self.is_crowded(count);

        let begin = |index: usize, homes: &mut [u32; CHUNK], tags: &mut [u16; CHUNK]| {
            let hash = hasher.hash(&chunk[index].key);
            let home = views.home::<MOVING>(hash);
            homes[index] = home;
            tags[index] = hash.tag();
            let (side, home) = split::<MOVING>(home);
            prefetch(views.lines[side].wrapping_add(home));
        };
        let locate = |index: usize, home: u32, tag: u16, slots: &mut [u32; CHUNK]| {
            let (side, bucket) = split::<MOVING>(home);
            // SAFETY: `bucket` is a home bucket of a region whose arrays outlive this chunk.
            let line = unsafe { &*views.lines[side].add(bucket) };
            // Without a match this is slot 1 of the next bucket, whose key will tell; a region has
            // spare buckets after its last home, so there is one.
            let matches = line.matches::<V>(tag);
            if crowded && matches == 0 {
                // A new flow will put out one of these.
                for slot in line.neighbours(tag) {
                    prefetch(views.records[side].wrapping_add(bucket * SLOTS + slot));
                }
            }
            let slot = bucket * SLOTS + matches.trailing_zeros() as usize;
            slots[index] = slot as u32 | home & if MOVING { IN_OLD } else { 0 };
            prefetch(views.records[side].wrapping_add(slot));
        };

        (0..count.min(2 * DISTANCE)).for_each(|index| begin(index, &mut homes, &mut tags));
        for index in 0..count.min(DISTANCE) {
            locate(index, homes[index], tags[index], &mut slots);
        }
        for index in 0..count {
            if index + 2 * DISTANCE < count {
                begin(index + 2 * DISTANCE, &mut homes, &mut tags);
            }
            let next = index + DISTANCE;
            if next < count {
                locate(next, homes[next], tags[next], &mut slots);
            }
            let microflow = &chunk[index];
            let (side, slot) = split::<MOVING>(slots[index]);
            // SAFETY: stage two computed the slot from a bucket of that region; the arrays live,
            // and no other reference into them does.
            let flow = unsafe { &mut *views.records[side].add(slot) };
            if flow.key == microflow.key && cuts.plainly_continues(&flow.base, &microflow.base) {
                V::merge(&mut flow.base, &microflow.base);
                if N > 0 {
                    // SAFETY: the plan is a field of self that nothing changes.
                    V::merge_state(unsafe { &*plan }, &mut flow.state, &microflow.state);
                }
            } else {
                self.merge_with_care(microflow, sink);
            }
        }
    }
}
