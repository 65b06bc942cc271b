// SPDX-License-Identifier: Apache-2.0
//! Eight 64-bit words at a time, for hashes of eight keys.

/// How many words, and keys, are processed together.
pub const LANES: usize = 8;

/// Eight words. Only [`super::Vectors`] creates values, so they exist only on machines with the
/// vectors for them.
pub trait Words: Copy {
    /// Stores the words to memory.
    fn store(self, to: &mut [u64; LANES]);
    /// Sums, word by word.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// Sums of the 32-bit halves, without carry between them.
    #[must_use]
    fn plus_in_halves(self, other: Self) -> Self;
    /// Bitwise exclusive or.
    #[must_use]
    fn differing(self, other: Self) -> Self;
    /// Bitwise or.
    #[must_use]
    fn joined(self, other: Self) -> Self;
    /// The words shifted right by `BITS` bits.
    #[must_use]
    fn right<const BITS: u32>(self) -> Self;
    /// The words shifted left by `BITS` bits.
    #[must_use]
    fn left<const BITS: u32>(self) -> Self;
    /// Products of the lower halves.
    #[must_use]
    fn product_of_halves(self, other: Self) -> Self;
    /// The third 16-bit quarter of each word, counted from the lowest, copied to the two lowest
    /// quarters.
    #[must_use]
    fn third_quarters_twice(self) -> Self;
    /// Sums of neighbouring words in `self` and `other`: words 0 and 1 of `self`, of `other`, words
    /// 2 and 3 of `self`, and so on.
    #[must_use]
    fn pair_sums(self, other: Self) -> Self;
}

/// Eight words. The compiler may use vectors for them.
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
