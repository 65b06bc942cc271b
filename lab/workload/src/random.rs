// SPDX-License-Identifier: Apache-2.0
//! Deterministic random numbers, equal on every machine and in every version.

/// A bijection of 64-bit words that scatters their bits (the finalizer of SplitMix64).
#[inline(always)]
pub(crate) const fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// SplitMix64: one addition and one `mix` per number, so that a CPU overlaps several numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator whose sequence depends on the seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// 64 random bits.
    #[inline(always)]
    pub(crate) const fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which must not be 0. Deviates from uniform by at most `bound /
    /// 2^64`.
    #[inline(always)]
    pub const fn below(&mut self, bound: u64) -> u64 {
        scale(self.word(), bound)
    }

    /// A number between 0 and 1, both excluded.
    #[inline(always)]
    pub(crate) const fn fraction(&mut self) -> f64 {
        ((self.word() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// A sample of the exponential distribution with mean 1.
    #[inline(always)]
    pub(crate) fn exponential(&mut self) -> f64 {
        -self.fraction().ln()
    }

    /// A sample of the normal distribution with mean 0 and deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.fraction()).cos()
    }

    /// True with a probability of `percent` in 100.
    pub(crate) const fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`, which must not be empty.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Maps a random word to a number below `bound`.
#[inline(always)]
pub(crate) const fn scale(word: u64, bound: u64) -> u64 {
    ((word as u128 * bound as u128) >> 64) as u64
}
