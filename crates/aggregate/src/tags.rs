// SPDX-License-Identifier: Apache-2.0
//! The fingerprints of a bucket. One cache line is enough to find the slot of a key, without
//! touching the records.

use turboflow_merge::{Plain, Vectors};

use crate::memory::PlainBytes;

/// Records in a bucket.
pub(crate) const SLOTS: usize = 31;

/// The number of flows that are compared when the table is full and one must be displaced.
pub(crate) const NEIGHBOURS: usize = 4;

/// Added to a bucket's overflow count for each record that passed it. The count is always even and
/// tags are odd, so a comparison with all 32 lanes never matches the count.
const PASSED: u16 = 2;
/// The largest overflow count; it saturates here.
const MOST_PASSED: u16 = u16::MAX - 1;

/// The mask of all slots.
const ALL: u32 = (1 << SLOTS) - 1;

/// A tag in both halves of a word, the form that vectors load directly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TagTwice(u32);

impl TagTwice {
    #[inline(always)]
    pub(crate) const fn of(tag: u16) -> Self {
        Self(tag as u32 * 0x1_0001)
    }

    /// Takes a word of [`turboflow_merge::Words::third_quarters_twice`] and makes it odd.
    #[inline(always)]
    pub(crate) const fn of_word(word: u64) -> Self {
        Self(word as u32)
    }

    #[inline(always)]
    pub(crate) const fn tag(self) -> u16 {
        self.0 as u16
    }
}

/// 31 fingerprints (0 means a free slot), and the number of records that found this bucket full and
/// are in a later one. A search continues only if that number is not 0.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct TagLine {
    tags: [u16; SLOTS],
    /// [`PASSED`] times the number of records that passed this bucket.
    overflowed: u16,
}

const _: () = assert!(size_of::<TagLine>() == 64);

// SAFETY: an array of integers without padding.
unsafe impl PlainBytes for TagLine {}

impl TagLine {
    /// Mask of the slots with this tag.
    #[inline(always)]
    pub(crate) fn matches<V: Vectors>(&self, vectors: V, tag: TagTwice) -> u32 {
        debug_assert!(tag.0 % 2 == 1 && self.overflowed.is_multiple_of(PASSED));
        vectors.equal_lanes(self.lanes(), tag.0)
    }

    /// Mask of the free slots.
    #[inline(always)]
    pub(crate) fn free<V: Vectors>(&self, vectors: V) -> u32 {
        vectors.equal_lanes(self.lanes(), 0) & ALL
    }

    /// Mask of the taken slots.
    #[inline(always)]
    pub(crate) fn taken(&self) -> u32 {
        !self.free(Plain) & ALL
    }

    /// Up to [`NEIGHBOURS`] taken slots. The tag determines which ones.
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

    /// Counts a record that passed this bucket. A saturated count stays saturated. Searches are
    /// then longer than necessary, but never wrong.
    pub(crate) fn count_passing(&mut self) {
        self.overflowed = self.overflowed.saturating_add(PASSED).min(MOST_PASSED);
    }

    /// Removes a record that had passed this bucket from the count.
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
