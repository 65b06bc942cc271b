// SPDX-License-Identifier: Apache-2.0
//! Where in memory the home buckets of eight keys lie: what the merge looks ahead with.

use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use turboflow_merge::{LANES, LaneHasher, MicroflowRecord, Vectors, Words};

use crate::reach::Reach;
use crate::region::Region;
use crate::tags::{SLOTS, TagLine, TagTwice};

/// A region, as numbers of which there are eight each, taken once a chunk.
#[derive(Clone, Copy)]
pub(crate) struct View<W> {
    /// Where the tag lines begin.
    lines: W,
    /// Where the records begin.
    slots: W,
    homes: W,
}

impl<W: Words> View<W> {
    #[inline(always)]
    pub(crate) fn of<V: Vectors<Words = W>, const K: usize, const N: usize>(
        vectors: V,
        region: &Region<K, N>,
    ) -> Self {
        Self {
            lines: vectors.all(region.lines.as_pointer().expose_provenance() as u64),
            slots: vectors.all(region.records.as_pointer().expose_provenance() as u64),
            homes: vectors.all(region.homes().into()),
        }
    }
}

/// The home buckets of eight keys.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Homes {
    /// Addresses of their tag lines.
    lines: [u64; LANES],
    /// Addresses of their first slots.
    slots: [u64; LANES],
    /// The tags of the keys, twice, in the lowest bits.
    tags: [u64; LANES],
}

impl Homes {
    pub(crate) const NONE: Self = Self {
        lines: [0; LANES],
        slots: [0; LANES],
        tags: [0; LANES],
    };

    /// Those of eight records.
    #[inline(always)]
    pub(crate) fn set<V: Vectors, const K: usize, const N: usize>(
        &mut self,
        vectors: V,
        hasher: &LaneHasher<K>,
        records: &[MicroflowRecord<K, N>; LANES],
        view: &View<V::Words>,
    ) {
        let bucket_bytes = const {
            let bytes = SLOTS * size_of::<MicroflowRecord<K, N>>();
            assert!(bytes <= u32::MAX as usize);
            bytes as u64
        };
        let hashes = hasher.hash_keys(vectors, records);
        // As `LaneHash::part` and `LaneHash::tag`; of products, a factor's upper half is no part.
        let home = hashes.product_of_halves(view.homes).right::<32>();
        let lines = view.lines.plus(home.left::<6>());
        let bucket_bytes = vectors.all(bucket_bytes);
        let slots = view.slots.plus(home.product_of_halves(bucket_bytes));
        let tags = hashes.third_quarters_twice().joined(vectors.all(0x1_0001));
        lines.store(&mut self.lines);
        slots.store(&mut self.slots);
        tags.store(&mut self.tags);
    }

    /// Asks for a tag line, if that is worth it.
    #[inline(always)]
    pub(crate) fn fetch<R: Reach>(&self, lane: usize) {
        if R::LINES {
            R::fetch(self.line(lane));
        }
    }

    /// The tag line of a home bucket.
    #[inline(always)]
    pub(crate) fn line(&self, lane: usize) -> *const TagLine {
        with_exposed_provenance(self.lines[lane] as usize)
    }

    /// A slot of it, or of a bucket behind it.
    #[inline(always)]
    pub(crate) fn slot<const K: usize, const N: usize>(
        &self,
        lane: usize,
        slot: usize,
    ) -> *mut MicroflowRecord<K, N> {
        let slots: *mut MicroflowRecord<K, N> =
            with_exposed_provenance_mut(self.slots[lane] as usize);
        slots.wrapping_add(slot)
    }

    /// A key's tag.
    #[inline(always)]
    pub(crate) const fn tag(&self, lane: usize) -> TagTwice {
        TagTwice::of_word(self.tags[lane])
    }
}
