// SPDX-License-Identifier: Apache-2.0
//! Addresses of the home buckets of eight keys, for the prefetching merge.

use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use turboflow_merge::{LANES, LaneHasher, MicroflowRecord, Vectors, Words};

use crate::reach::Reach;
use crate::region::{Head, Region};
use crate::tags::{SLOTS, TagLine, TagTwice};

/// A region's base addresses and size as vectors, computed once per chunk.
#[derive(Clone, Copy)]
pub(crate) struct View<W> {
    /// Address of the first tag line.
    lines: W,
    /// Address of the first record.
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
    /// The tags of the keys, in both halves of the low 32 bits.
    tags: [u64; LANES],
}

impl Homes {
    pub(crate) const NONE: Self = Self {
        lines: [0; LANES],
        slots: [0; LANES],
        tags: [0; LANES],
    };

    /// Computes the home buckets of eight records.
    #[inline(always)]
    pub(crate) fn set<V: Vectors, const K: usize, const N: usize>(
        &mut self,
        vectors: V,
        hasher: &LaneHasher<K>,
        records: &[MicroflowRecord<K, N>; LANES],
        view: &View<V::Words>,
    ) {
        let bucket_bytes = const {
            let bytes = SLOTS * size_of::<Head<K>>();
            assert!(bytes <= u32::MAX as usize);
            bytes as u64
        };
        let hashes = hasher.hash_keys(vectors, records);
        // Computes `LaneHash::part` and `LaneHash::tag`. The multiplication ignores the upper half
        // of each factor.
        let home = hashes.product_of_halves(view.homes).right::<32>();
        let lines = view.lines.plus(home.left::<6>());
        let bucket_bytes = vectors.all(bucket_bytes);
        let slots = view.slots.plus(home.product_of_halves(bucket_bytes));
        let tags = hashes.third_quarters_twice().joined(vectors.all(0x1_0001));
        lines.store(&mut self.lines);
        slots.store(&mut self.slots);
        tags.store(&mut self.tags);
    }

    /// Prefetches a tag line, if `R` prefetches tag lines.
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

    /// A slot of the home bucket, or of a later bucket.
    #[inline(always)]
    pub(crate) fn slot<const K: usize>(&self, lane: usize, slot: usize) -> *mut Head<K> {
        let slots: *mut Head<K> = with_exposed_provenance_mut(self.slots[lane] as usize);
        slots.wrapping_add(slot)
    }

    /// A key's tag.
    #[inline(always)]
    pub(crate) const fn tag(&self, lane: usize) -> TagTwice {
        TagTwice::of_word(self.tags[lane])
    }
}
