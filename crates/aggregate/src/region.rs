// SPDX-License-Identifier: Apache-2.0
//! One open-addressed region of a flow table: buckets of 31 tags and 31 records.
//! A record's home is the bucket at its hash's position in the region, so buckets are ordered by
//! hash. A record whose home is full goes to the next bucket with room. Every bucket that it passes
//! counts it. A few spare buckets after the last home take the overflow at the end.
//! counts it. A few spare buckets after the last home take the overflow of the end.
//! Tags and records lie in separate arrays. With both lines of a lookup in one page, the hardware
//! prefetcher of some processors is triggered, and random lookups took twice as long. The states of
//! records, which are their further words, also have an array of their own. Biflows seen in only
//! one direction have no state in use (`Layout::in_two_way_form`). If few biflows have both
//! directions, as in a scan, most pages of that array are never touched and take no memory.

use turboflow_merge::{LaneHash, MicroflowRecord, Plain, Plan};

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

/// A record without its state.
pub(crate) type Head<const K: usize> = MicroflowRecord<K, 0>;

/// A record whose state is stored apart.
pub(crate) struct Parts<'a, const K: usize, const N: usize> {
    pub(crate) head: &'a mut Head<K>,
    state: &'a mut [u64; N],
}

impl<const K: usize, const N: usize> Parts<'_, K, N> {
    /// The record in one piece.
    #[inline(always)]
    pub(crate) fn record(&self, plan: &Plan) -> MicroflowRecord<K, N> {
        let Head { key, base, .. } = *self.head;
        let mut record = MicroflowRecord {
            key,
            base,
            state: [0; N],
        };
        if plan.has_state::<N>(&base) {
            record.state = *self.state;
        }
        record
    }

    /// Stores another record in the place of this one.
    #[inline(always)]
    pub(crate) fn set(&mut self, record: &MicroflowRecord<K, N>, plan: &Plan) {
        self.head.key = record.key;
        self.head.base = record.base;
        if plan.has_state::<N>(&record.base) {
            *self.state = record.state;
        }
    }

    /// Merges a record whose packets arrived later.
    pub(crate) fn merge(&mut self, later: &MicroflowRecord<K, N>, plan: &Plan) {
        plan.merge_apart(&mut self.head.base, self.state, later);
    }
}

pub(crate) struct Region<const K: usize, const N: usize> {
    pub(crate) lines: ZeroedArray<TagLine>,
    pub(crate) records: ZeroedArray<Head<K>>,
    pub(crate) states: ZeroedArray<[u64; N]>,
    /// For each bucket, a lower bound on the due times of its flows, which lets a sweep skip most
    /// buckets.
    pub(crate) dues_ns: ZeroedArray<u64>,
    homes: u32,
}

impl<const K: usize, const N: usize> Region<K, N> {
    /// # Panics
    /// If the system refuses the memory.
    pub(crate) fn new(homes: u32) -> Self {
        let bytes = Self::size_bytes(homes as usize);
        Self::allocated(homes)
            .unwrap_or_else(|| panic!("the system refuses {bytes} bytes for a flow cache"))
    }

    /// A region. `None` if the system refuses the memory, or would then have less than
    /// `spare_bytes` left for the rest of the process.
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
            states: memory.array(buckets * SLOTS),
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
        let record = size_of::<Head<K>>() + size_of::<[u64; N]>();
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

    /// Stores a record with a new key in the first bucket with room. `None` if even the spare
    /// buckets after the last home are full. The record is not due before `due_ns`.
    pub(crate) fn insert(
        &mut self,
        record: &MicroflowRecord<K, N>,
        hash: LaneHash,
        due_ns: u64,
        plan: &Plan,
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
        self.parts(place).set(record, plan);
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
    pub(crate) fn remove(
        &mut self,
        place: Place,
        hash: LaneHash,
        plan: &Plan,
    ) -> MicroflowRecord<K, N> {
        let home = self.home(hash);
        for passed in &mut self.lines[home..place.bucket] {
            passed.forget_passing();
        }
        self.lines[place.bucket].clear(place.slot);
        let parts = self.parts(place);
        let taken = parts.record(plan);
        parts.head.key = [0; K];
        taken
    }

    /// The record at this place.
    #[inline(always)]
    pub(crate) fn parts(&mut self, place: Place) -> Parts<'_, K, N> {
        Parts {
            head: &mut self.records[place.index()],
            state: &mut self.states[place.index()],
        }
    }

    /// The addresses of the records and states, to find the state of a record from its address.
    #[inline(always)]
    pub(crate) const fn states(&self) -> States<K, N> {
        States {
            records: self.records.as_pointer(),
            states: self.states.as_pointer(),
        }
    }
}

/// The addresses of records and of their states.
#[derive(Clone, Copy)]
pub(crate) struct States<const K: usize, const N: usize> {
    records: *mut Head<K>,
    states: *mut [u64; N],
}

impl<const K: usize, const N: usize> States<K, N> {
    /// The state of a record of the region.
    #[inline(always)]
    pub(crate) fn of(&self, record: *mut Head<K>) -> *mut [u64; N] {
        let offset_bytes = record.addr().wrapping_sub(self.records.addr());
        self.states
            .wrapping_add(offset_bytes / size_of::<Head<K>>())
    }
}
