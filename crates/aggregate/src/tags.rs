// SPDX-License-Identifier: Apache-2.0
//! A bucket's fingerprints: one cache line that answers "which slot, if any" without touching the
//! records.

use turboflow_merge::{Plain, Vectors};

use crate::memory::PlainBytes;

/// Records in a bucket.
pub(crate) const SLOTS: usize = 31;

/// Flows compared when the table is full and one must go.
pub(crate) const NEIGHBOURS: usize = 4;

/// What a record that passed a bucket adds to its count: no tag, which are odd, equals an even number, so the count needs not be
/// told from tags.
const PASSED: u16 = 2;
/// Where the count stays.
const MOST_PASSED: u16 = u16::MAX - 1;

/// The mask of all slots.
const ALL: u32 = (1 << SLOTS) - 1;

/// A tag in both halves of a word, as vectors load it without more ado.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TagTwice(u32);

impl TagTwice {
    #[inline(always)]
    pub(crate) const fn of(tag: u16) -> Self {
        Self(tag as u32 * 0x1_0001)
    }

    /// Of a word of [`turboflow_merge::Words::third_quarters_twice`], made odd.
    #[inline(always)]
    pub(crate) const fn of_word(word: u64) -> Self {
        Self(word as u32)
    }

    #[inline(always)]
    pub(crate) const fn tag(self) -> u16 {
        self.0 as u16
    }
}

/// 31 fingerprints (0 = free slot) and the count of records that found this bucket full and live in
/// a later one; a search goes on only while that count is not 0.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct TagLine {
    tags: [u16; SLOTS],
    /// [`PASSED`] for each record that passed.
    overflowed: u16,
}

const _: () = assert!(size_of::<TagLine>() == 64);

// SAFETY: an array of integers without padding.
unsafe impl PlainBytes for TagLine {}

impl TagLine {
    /// A bit for every slot with a tag.
    #[inline(always)]
    pub(crate) fn matches<V: Vectors>(&self, vectors: V, tag: TagTwice) -> u32 {
        debug_assert!(tag.0 % 2 == 1 && self.overflowed.is_multiple_of(PASSED));
        vectors.equal_lanes(self.lanes(), tag.0)
    }

    /// A bit for every free slot.
    #[inline(always)]
    pub(crate) fn free<V: Vectors>(&self, vectors: V) -> u32 {
        vectors.equal_lanes(self.lanes(), 0) & ALL
    }

    /// A bit for every taken slot.
    #[inline(always)]
    pub(crate) fn taken(&self) -> u32 {
        !self.free(Plain) & ALL
    }

    /// Up to [`NEIGHBOURS`] taken slots, others for every tag.
    #[inline(always)]
    pub(crate) fn neighbours(&self, tag: u16) -> impl Iterator<Item = usize> + use<> {
        let start = u32::from(tag) % SLOTS as u32;
        let taken = u64::from(self.taken());
        let mut rotated = (taken | taken << SLOTS) >> start & u64::from(ALL);
        std::iter::from_fn(move || {
            let slot = (rotated != 0).then(|| (rotated.trailing_zeros() + start) as usize % SLOTS);
            rotated &= rotated.wrapping_sub(1);
            slot
        })
        .take(NEIGHBOURS)
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, slot: usize, tag: u16) {
        self.tags[slot] = tag;
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self, slot: usize) {
        self.tags[slot] = 0;
    }

    #[inline(always)]
    pub(crate) fn overflows(&self) -> bool {
        self.overflowed != 0
    }

    /// One more record passed this bucket. A count that reached the top stays there: searches are
    /// then longer than need be, never wrong.
    pub(crate) fn count_passing(&mut self) {
        self.overflowed = self.overflowed.saturating_add(PASSED).min(MOST_PASSED);
    }

    /// A record that had passed this bucket is gone.
    pub(crate) fn forget_passing(&mut self) {
        if self.overflowed != MOST_PASSED {
            debug_assert!(self.overflowed > 0);
            self.overflowed -= PASSED;
        }
    }

    #[inline(always)]
    fn lanes(&self) -> &[u16; 32] {
        // SAFETY: the struct is 64 bytes of u16 without padding (repr(C), asserted above).
        unsafe { &*std::ptr::from_ref(self).cast() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(tags: &[(usize, u16)]) -> TagLine {
        let mut line = TagLine {
            tags: [0; SLOTS],
            overflowed: 8,
        };
        tags.iter().for_each(|&(slot, tag)| line.set(slot, tag));
        line
    }

    #[test]
    fn finds_every_slot_of_a_tag_and_never_the_count() {
        let line = line(&[(0, 7), (15, 7), (16, 9), (30, 7)]);
        let expected = 1 | 1 << 15 | 1 << 30;
        assert_eq!(line.matches(Plain, TagTwice::of(7)), expected);
        assert_eq!(line.matches(Plain, TagTwice::of(9)), 1 << 16);
        assert_eq!(line.taken(), expected | 1 << 16);
        assert_eq!(line.free(Plain), ALL & !line.taken());
    }
}
