// SPDX-License-Identifier: Apache-2.0
//! Eight words of 64 bits at a time: what hashes of eight keys are made of.

use crate::LANES;

/// Eight words. There are some only where the machine has the vectors for them: [`super::Vectors`] makes them.
pub trait Words: Copy {
    /// Puts them into memory.
    fn store(self, to: &mut [u64; LANES]);
    /// Sums.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// Sums of their halves, 32 bits each, without a carry between them.
    #[must_use]
    fn plus_in_halves(self, other: Self) -> Self;
    /// Bits that are in one of the two.
    #[must_use]
    fn differing(self, other: Self) -> Self;
    /// Bits that are in any of the two.
    #[must_use]
    fn joined(self, other: Self) -> Self;
    /// All bits, `BITS` lower.
    #[must_use]
    fn right<const BITS: u32>(self) -> Self;
    /// All bits, `BITS` higher.
    #[must_use]
    fn left<const BITS: u32>(self) -> Self;
    /// Products of their lower halves.
    #[must_use]
    fn product_of_halves(self, other: Self) -> Self;
    /// Of each, the third of its quarters from below, in the two lowest.
    #[must_use]
    fn third_quarters_twice(self) -> Self;
    /// Of neighbours in `self` and `other`, each sum of two: word 0 and 1 of `self`, of `other`, words 2 and 3 of `self`, ...
    #[must_use]
    fn pair_sums(self, other: Self) -> Self;
}

/// Eight words that the compiler finds vectors for, or none.
#[derive(Clone, Copy, Debug)]
pub struct PlainWords([u64; LANES]);

impl PlainWords {
    #[inline(always)]
    pub(super) const fn new(words: [u64; LANES]) -> Self {
        Self(words)
    }

    #[inline(always)]
    fn with(self, other: Self, op: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|lane| op(self.0[lane], other.0[lane])))
    }
}

impl Words for PlainWords {
    #[inline(always)]
    fn store(self, to: &mut [u64; LANES]) {
        *to = self.0;
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        self.with(other, u64::wrapping_add)
    }

    #[inline(always)]
    fn plus_in_halves(self, other: Self) -> Self {
        self.with(other, |a, b| {
            let high = (a >> 32).wrapping_add(b >> 32) << 32;
            high | u64::from((a as u32).wrapping_add(b as u32))
        })
    }

    #[inline(always)]
    fn differing(self, other: Self) -> Self {
        self.with(other, |a, b| a ^ b)
    }

    #[inline(always)]
    fn joined(self, other: Self) -> Self {
        self.with(other, |a, b| a | b)
    }

    #[inline(always)]
    fn right<const BITS: u32>(self) -> Self {
        Self(self.0.map(|word| word >> BITS))
    }

    #[inline(always)]
    fn left<const BITS: u32>(self) -> Self {
        Self(self.0.map(|word| word << BITS))
    }

    #[inline(always)]
    fn product_of_halves(self, other: Self) -> Self {
        self.with(other, |a, b| u64::from(a as u32) * u64::from(b as u32))
    }

    #[inline(always)]
    fn third_quarters_twice(self) -> Self {
        Self(self.0.map(|word| (word >> 32 & 0xffff) * 0x1_0001))
    }

    #[inline(always)]
    fn pair_sums(self, other: Self) -> Self {
        Self(std::array::from_fn(|lane| {
            let source = if lane % 2 == 0 { &self.0 } else { &other.0 };
            let at = lane / 2 * 2;
            source[at].wrapping_add(source[at + 1])
        }))
    }
}
