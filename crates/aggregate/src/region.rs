// SPDX-License-Identifier: Apache-2.0
//! One open-addressed region of a flow table: buckets of 31 tags and 31 records.
//!
//! A record's home is the bucket at its hash's share of the region, so buckets are ordered by hash.
//! A record whose home is full goes to the next bucket with room, and every bucket that it passes
//! counts it. A few spare buckets after the last home take the overflow of the end.
//!
//! Tags and records lie in separate arrays. Where both lines of a lookup lie in one page, the
//! hardware prefetcher of some processors is triggered, and random lookups took twice the time.

use turboflow_merge::{LaneHash, MicroflowRecord, Plain};

use crate::memory::{Mapping, ZeroedArray};
use crate::tags::{SLOTS, TagLine, TagTwice};

/// Buckets after the last home.
const SPARE_BUCKETS: usize = 16;

/// Where a record lies in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) bucket: usize,
    pub(crate) slot: usize,
}

impl Place {
    #[inline(always)]
    pub(crate) const fn index(self) -> usize {
        self.bucket * SLOTS + self.slot
    }
}

pub(crate) struct Region<const K: usize, const N: usize> {
    pub(crate) lines: ZeroedArray<TagLine>,
    pub(crate) records: ZeroedArray<MicroflowRecord<K, N>>,
    /// For each bucket, a lower bound on the due times of its flows: a sweep skips most buckets.
    pub(crate) dues_ns: ZeroedArray<u64>,
    homes: u32,
}

impl<const K: usize, const N: usize> Region<K, N> {
    /// # Panics
    /// When the system refuses the memory.
    pub(crate) fn new(homes: u32) -> Self {
        let bytes = Self::size_bytes(homes as usize);
        Self::allocated(homes)
            .unwrap_or_else(|| panic!("the system refuses {bytes} bytes for a flow cache"))
    }

    /// A region, unless the system refuses the memory, or would then have less than `spare_bytes`
    /// left for the rest of the process.
    pub(crate) fn try_new(homes: u32, spare_bytes: usize) -> Option<Self> {
        // Memory that is not touched costs nothing.
        let with_spare = Mapping::new(Self::size_bytes(homes as usize) + spare_bytes)?;
        drop(with_spare);
        Self::allocated(homes)
    }

    fn allocated(homes: u32) -> Option<Self> {
        let buckets = Self::buckets_for(homes as usize);
        let mut memory = Mapping::new(Self::size_bytes(homes as usize))?;
        Some(Self {
            lines: memory.array(buckets),
            records: memory.array(buckets * SLOTS),
            dues_ns: memory.array(buckets),
            homes,
        })
    }

    /// Home and spare buckets; 0 for an empty region.
    const fn buckets_for(homes: usize) -> usize {
        if homes == 0 { 0 } else { homes + SPARE_BUCKETS }
    }

    /// Memory of a region with `homes` home buckets once all of it is touched, in bytes.
    pub(crate) const fn size_bytes(homes: usize) -> usize {
        let record = size_of::<MicroflowRecord<K, N>>();
        Self::buckets_for(homes) * (size_of::<TagLine>() + SLOTS * record + size_of::<u64>())
    }

    pub(crate) const fn homes(&self) -> u32 {
        self.homes
    }

    /// Home and spare buckets.
    pub(crate) fn buckets(&self) -> usize {
        self.lines.len()
    }

    /// The home bucket of a hash.
    #[inline(always)]
    pub(crate) const fn home(&self, hash: LaneHash) -> usize {
        hash.part(self.homes) as usize
    }

    /// The slot of `key`, in any bucket.
    #[inline]
    pub(crate) fn find(&self, key: &[u64; K], hash: LaneHash) -> Option<Place> {
        let mut bucket = self.home(hash);
        loop {
            let line = &self.lines[bucket];
            let mut matches = line.matches(Plain, TagTwice::of(hash.tag()));
            while matches != 0 {
                let place = Place {
                    bucket,
                    slot: matches.trailing_zeros() as usize,
                };
                if self.records[place.index()].key == *key {
                    return Some(place);
                }
                matches &= matches - 1;
            }
            if !line.overflows() {
                return None;
            }
            bucket += 1;
        }
    }

    /// Stores a record with a new key in the first bucket with room; `None` when even the spare
    /// buckets after its home are full. The record is not due before `due_ns`.
    pub(crate) fn insert(
        &mut self,
        record: &MicroflowRecord<K, N>,
        hash: LaneHash,
        due_ns: u64,
    ) -> Option<Place> {
        let home = self.home(hash);
        let bucket =
            (home..self.lines.len()).find(|&bucket| self.lines[bucket].free(Plain) != 0)?;
        for passed in &mut self.lines[home..bucket] {
            passed.count_passing();
        }
        let slot = self.lines[bucket].free(Plain).trailing_zeros() as usize;
        let place = Place { bucket, slot };
        self.lines[bucket].set(slot, hash.tag());
        self.records[place.index()] = *record;
        self.note_due(bucket, due_ns);
        Some(place)
    }

    /// Lowers the due time of a bucket: a flow in it may be due at `due_ns`.
    #[inline(always)]
    pub(crate) fn note_due(&mut self, bucket: usize, due_ns: u64) {
        let noted_ns = &mut self.dues_ns[bucket];
        *noted_ns = due_ns.min(*noted_ns);
    }

    /// Removes a record. Its key is zeroed, so that a slot found before the removal is recognised
    /// as stale.
    pub(crate) fn remove(&mut self, place: Place, hash: LaneHash) -> MicroflowRecord<K, N> {
        let home = self.home(hash);
        for passed in &mut self.lines[home..place.bucket] {
            passed.forget_passing();
        }
        self.lines[place.bucket].clear(place.slot);
        let record = &mut self.records[place.index()];
        let taken = *record;
        record.key = [0; K];
        taken
    }
}
