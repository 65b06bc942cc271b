// SPDX-License-Identifier: Apache-2.0
//! The growing table of open flows.
//!
//! It grows without a stall. A larger region is mapped (untouched memory costs nothing), and the
//! buckets of the old region move to it a few at a time, in the order of their hashes. A *frontier*
//! in hash space separates the hashes in the new region from those in the old one, so a lookup
//! costs one comparison and never searches two regions. The memory of moved buckets goes back to
//! the system.

use turboflow_merge::{LaneHash, LaneHasher, MicroflowRecord, Plain, Plan, prefetch, prefetch_far};

use crate::memory::{PAGE_BYTES, RELEASE_STEP_BYTES};
use crate::region::{Parts, Place, Region};
use crate::tags::{SLOTS, TagTwice};

/// Home buckets of a new table: about 4,000 slots.
const FIRST_HOMES: u32 = 128;

/// The fill level at which the table grows, in percent. Above it, full buckets become common.
const GROW_AT_PERCENT: u64 = 80;

/// Up to this size (a million slots) a table doubles. Above it, the table grows by half, which
/// wastes less memory and moves each record about twice in total.
const DOUBLES_UP_TO_HOMES: u32 = 1 << 15;

/// The memory that a growing table leaves to the rest of the process, in bytes, where memory is
/// limited. A table can continue without more memory, but an allocation elsewhere cannot. The
/// largest part is for the buffers of Parquet.
const SPARE_BYTES: usize = 256 << 20;

/// The region for hashes below the frontier.
pub(crate) const CURRENT: usize = 0;
/// The region that is being emptied.
pub(crate) const OLD: usize = 1;

pub(crate) struct FlowTable<const K: usize, const N: usize> {
    /// How its records merge, and whether a record has a state.
    pub(crate) plan: Plan,
    regions: [Region<K, N>; 2],
    /// Whether records are moving from `OLD` to `CURRENT`.
    moving: bool,
    /// During a move: hashes below this value, in 1/2^32, are in `CURRENT`, the rest in `OLD`.
    frontier: u64,
    /// Home buckets of `OLD` that have moved.
    moved: usize,
    /// Bytes returned to the system from `OLD`'s tag lines, records, states and due times.
    released: [usize; 4],
    len: usize,
    max_homes: u32,
}

/// Where a record lies in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    pub(crate) region: usize,
    pub(crate) place: Place,
}

impl<const K: usize, const N: usize> FlowTable<K, N> {
    pub(crate) fn new(max_flows: usize, plan: Plan) -> Self {
        let max_homes = Self::homes_for(max_flows);
        Self {
            plan,
            regions: [Region::new(FIRST_HOMES.min(max_homes)), Region::new(0)],
            moving: false,
            frontier: 0,
            moved: 0,
            released: [0; 4],
            len: 0,
            max_homes,
        }
    }

    /// Upper bound on the memory of a table for `max_flows` flows, in bytes.
    pub(crate) fn max_size_bytes(max_flows: usize) -> usize {
        // During the last step of growth each old array still holds up to one release step, and the
        // part before its first page, in addition to the new region.
        let arrays = if N == 0 { 3 } else { 4 };
        let held_while_moving_bytes = arrays * (RELEASE_STEP_BYTES + PAGE_BYTES);
        Region::<K, N>::size_bytes(Self::homes_for(max_flows) as usize) + held_while_moving_bytes
    }

    fn homes_for(flows: usize) -> u32 {
        let slots = (flows as u64 * 100).div_ceil(GROW_AT_PERCENT);
        u32::try_from(slots.div_ceil(SLOTS as u64))
            .unwrap_or(u32::MAX / 64)
            .max(1)
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn size_bytes(&self) -> usize {
        let mapped = |region: &Region<K, N>| Region::<K, N>::size_bytes(region.homes() as usize);
        let mapped: usize = self.regions.iter().map(mapped).sum();
        mapped - self.released.iter().sum::<usize>()
    }

    pub(crate) const fn regions(&self) -> &[Region<K, N>; 2] {
        &self.regions
    }

    #[inline(always)]
    pub(crate) const fn region_of(&self, hash: LaneHash) -> usize {
        (self.moving && hash.share() >= self.frontier) as usize
    }

    pub(crate) fn find(&self, key: &[u64; K], hash: LaneHash) -> Option<Location> {
        let region = self.region_of(hash);
        let place = self.regions[region].find(key, hash)?;
        Some(Location { region, place })
    }

    /// Prefetches the tag line of a hash's home bucket.
    pub(crate) fn prefetch_line(&self, hash: LaneHash) {
        let region = &self.regions[self.region_of(hash)];
        prefetch_far(&raw const region.lines[region.home(hash)]);
    }

    /// Prefetches the slot that a hash most likely has, or the slot for a new record.
    pub(crate) fn prefetch_record(&self, hash: LaneHash) {
        let region = &self.regions[self.region_of(hash)];
        let bucket = region.home(hash);
        let line = &region.lines[bucket];
        let slots = match line.matches(Plain, TagTwice::of(hash.tag())) {
            0 => line.free(Plain),
            found => found,
        };
        let slot = slots.trailing_zeros() as usize % SLOTS;
        let index = Place { bucket, slot }.index();
        prefetch_far(&raw const region.records[index]);
        if N > 0 && !self.plan.is_two_way::<N>() {
            prefetch_far(&raw const region.states[index]);
        }
    }

    /// The record at a location.
    pub(crate) fn parts(&mut self, location: Location) -> Parts<'_, K, N> {
        self.regions[location.region].parts(location.place)
    }

    /// A copy of the record at a location.
    pub(crate) fn record(&mut self, location: Location) -> MicroflowRecord<K, N> {
        let region = &mut self.regions[location.region];
        region.parts(location.place).record(&self.plan)
    }

    /// Replaces a record by another one of the same flow, and returns the former.
    pub(crate) fn replace(
        &mut self,
        location: Location,
        record: &MicroflowRecord<K, N>,
    ) -> MicroflowRecord<K, N> {
        let mut parts = self.regions[location.region].parts(location.place);
        let former = parts.record(&self.plan);
        parts.set(record, &self.plan);
        former
    }

    /// Merges a record, whose packets arrived later, into the record at a location.
    pub(crate) fn merge(&mut self, location: Location, later: &MicroflowRecord<K, N>) {
        let mut parts = self.regions[location.region].parts(location.place);
        parts.merge(later, &self.plan);
    }

    /// Lowers the due time of a bucket: a flow in it may be due at `due_ns`.
    #[inline(always)]
    pub(crate) fn note_due(&mut self, location: Location, due_ns: u64) {
        self.regions[location.region].note_due(location.place.bucket, due_ns);
    }

    /// A lower bound: no flow of the bucket is due before this time.
    #[inline(always)]
    pub(crate) fn due_of_bucket_ns(&self, region: usize, bucket: usize) -> u64 {
        self.regions[region].dues_ns[bucket]
    }

    /// Sets the bound, after all flows of the bucket have been checked.
    #[inline(always)]
    pub(crate) fn set_due_of_bucket(&mut self, region: usize, bucket: usize, due_ns: u64) {
        self.regions[region].dues_ns[bucket] = due_ns;
    }

    /// Prefetches the fields that decide whether a bucket's records are due. The hardware
    /// prefetcher would stop at every page boundary.
    #[inline(always)]
    pub(crate) fn prefetch_bucket(&self, region: usize, bucket: usize) {
        let region = &self.regions[region];
        let mut taken = region.lines[bucket].taken();
        while taken != 0 {
            let slot = taken.trailing_zeros() as usize;
            taken &= taken - 1;
            let base = &raw const region.records[Place { bucket, slot }.index()].base;
            prefetch(base);
            // With a long key, these fields span two cache lines.
            prefetch(base.wrapping_add(1).cast::<u8>().wrapping_sub(1));
        }
    }

    pub(crate) fn insert(
        &mut self,
        record: &MicroflowRecord<K, N>,
        hash: LaneHash,
        due_ns: u64,
    ) -> Option<Location> {
        let region = self.region_of(hash);
        let place = self.regions[region].insert(record, hash, due_ns, &self.plan)?;
        self.len += 1;
        Some(Location { region, place })
    }

    pub(crate) fn remove(&mut self, location: Location, hash: LaneHash) -> MicroflowRecord<K, N> {
        self.len -= 1;
        self.regions[location.region].remove(location.place, hash, &self.plan)
    }

    /// The least recently active flow among a few neighbours of `hash`'s home. `None` if neither
    /// that bucket nor any later one has a flow.
    ///
    /// An exact LRU order would have to be updated on every packet. The oldest of a few flows is
    /// nearly as old and costs nothing until the table is full.
    pub(crate) fn oldest_near(&self, hash: LaneHash) -> Option<Location> {
        let region = self.region_of(hash);
        let table = &self.regions[region];
        let mut buckets = table.home(hash)..table.buckets();
        let bucket = buckets.find(|&bucket| table.lines[bucket].taken() != 0)?;
        let neighbours = table.lines[bucket].neighbours(hash.tag());
        let places = neighbours.map(|slot| Place { bucket, slot });
        let place = places.min_by_key(|place| table.records[place.index()].base.last_ns)?;
        Some(Location { region, place })
    }

    /// Whether `incoming` more flows would exceed the growth limit, and the table may grow.
    pub(crate) fn wants_to_grow(&self, incoming: usize) -> bool {
        let homes = self.regions[CURRENT].homes();
        !self.is_moving() && self.len + incoming > self.room() && homes < self.max_homes
    }

    /// How many flows the table holds at its present size.
    pub(crate) fn room(&self) -> usize {
        let homes = u64::from(self.regions[CURRENT].homes());
        (homes * SLOTS as u64 * GROW_AT_PERCENT / 100) as usize
    }

    /// Home buckets of the old region that have moved.
    pub(crate) const fn moved_homes(&self) -> usize {
        self.moved
    }

    pub(crate) const fn is_moving(&self) -> bool {
        self.moving
    }

    /// Maps the larger region. Nothing moves yet. Returns false if the system refuses the memory;
    /// the table then never grows again.
    pub(crate) fn start_growing(&mut self) -> bool {
        debug_assert!(!self.is_moving());
        let homes = self.regions[CURRENT].homes();
        let larger = if homes <= DOUBLES_UP_TO_HOMES {
            homes * 2
        } else {
            homes + homes / 2
        };
        let Some(larger) = Region::try_new(larger.min(self.max_homes), SPARE_BYTES) else {
            self.max_homes = homes;
            return false;
        };
        self.regions.swap(CURRENT, OLD);
        self.regions[CURRENT] = larger;
        self.moving = true;
        self.frontier = 0;
        self.moved = 0;
        self.released = [0; 4];
        true
    }

    /// Moves the next `homes` home buckets of the old region. Records for which there is no room go
    /// to `refused`. The keyed hash makes this practically impossible.
    pub(crate) fn move_homes(
        &mut self,
        homes: usize,
        hasher: &LaneHasher<K>,
        refused: &mut Vec<MicroflowRecord<K, N>>,
    ) {
        let old_homes = self.regions[OLD].homes();
        let end = (self.moved + homes).min(old_homes as usize);
        for home in self.moved..end {
            self.move_home(home, hasher, refused);
        }
        self.moved = end;
        self.frontier = ((end as u64) << 32).div_ceil(u64::from(old_homes));
        let old = &mut self.regions[OLD];
        let [of_lines, of_records, of_states, of_dues] = &mut self.released;
        old.lines.release_before(of_lines, end);
        old.records.release_before(of_records, end * SLOTS);
        old.states.release_before(of_states, end * SLOTS);
        old.dues_ns.release_before(of_dues, end);
        if end == old_homes as usize {
            *old = Region::new(0);
            self.moving = false;
            self.moved = 0;
            self.released = [0; 4];
        }
    }

    /// Moves every record whose home is `home`. All earlier homes have moved, so these records lie
    /// in this bucket and, while buckets overflow, in the next ones.
    fn move_home(
        &mut self,
        home: usize,
        hasher: &LaneHasher<K>,
        refused: &mut Vec<MicroflowRecord<K, N>>,
    ) {
        let [current, old] = &mut self.regions;
        for bucket in home.. {
            let overflows = old.lines[bucket].overflows();
            let mut taken = old.lines[bucket].taken();
            while taken != 0 {
                let place = Place {
                    bucket,
                    slot: taken.trailing_zeros() as usize,
                };
                taken &= taken - 1;
                let hash = hasher.hash(&old.records[place.index()].key);
                if old.home(hash) == home {
                    let record = old.remove(place, hash, &self.plan);
                    // With due time 0, the next sweep checks the record. The clock is not known
                    // here.
                    if current.insert(&record, hash, 0, &self.plan).is_none() {
                        self.len -= 1;
                        refused.push(record);
                    }
                }
            }
            if !overflows {
                break;
            }
        }
    }

    /// Removes all records and returns to the initial size.
    pub(crate) fn reset(&mut self) {
        // Frees the old memory first, so that the new region can take it.
        self.regions = [Region::new(0), Region::new(0)];
        self.regions[CURRENT] = Region::new(FIRST_HOMES.min(self.max_homes));
        self.moving = false;
        self.frontier = 0;
        self.moved = 0;
        self.released = [0; 4];
        self.len = 0;
    }
}

#[cfg(test)]
#[path = "flow_table_tests.rs"]
mod tests;
