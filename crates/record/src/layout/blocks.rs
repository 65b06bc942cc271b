// SPDX-License-Identifier: Apache-2.0
//! Folding eight words of any class at a time, with AVX-512: a mask says which lanes of a cache line
//! belong to which class.

use std::arch::x86_64::*;

use super::gap::{GapWords, NONE};
use super::plan::{BLOCK, Ends, MAX_GAPS};
use super::words::encode_max;
use crate::Avx512;

/// Which lanes of eight words belong to which class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lanes {
    add: __mmask8,
    min: __mmask8,
    or: __mmask8,
    first: __mmask8,
    last: __mmask8,
    /// Low words of sums of 128 bits; their high words are the lanes above.
    wide: __mmask8,
    gaps: [GapLanes; MAX_GAPS],
}

/// Which lanes a gap goes into.
#[derive(Clone, Copy, Debug, Default)]
struct GapLanes {
    min: __mmask8,
    max: __mmask8,
    /// Low words.
    sum: __mmask8,
    /// Low words.
    squares: __mmask8,
}

/// A bit for each word from `start` to `end` that lies in block number `block`.
fn lanes(block: usize, start: u32, end: u32) -> __mmask8 {
    let inside = |lane: &usize| (start as usize..end as usize).contains(&(block * BLOCK + lane));
    (0..BLOCK)
        .filter(inside)
        .fold(0, |mask, lane| mask | 1 << lane)
}

impl Lanes {
    /// The lanes of all blocks whose words merge one by one or in pairs.
    pub(super) fn of(ends: &Ends, gaps: &[GapWords]) -> Box<[Self]> {
        const LOW_WORDS: __mmask8 = 0b0101_0101;
        let blocks = (ends.wide as usize).div_ceil(BLOCK);
        let of_block = |block| Self {
            add: lanes(block, 0, ends.add),
            min: lanes(block, ends.add, ends.min),
            or: lanes(block, ends.min, ends.or),
            first: lanes(block, ends.or, ends.first),
            last: lanes(block, ends.first, ends.last),
            wide: lanes(block, ends.wide_start, ends.wide) & LOW_WORDS,
            gaps: std::array::from_fn(|index| {
                gaps.get(index)
                    .map_or_else(GapLanes::default, |gap| GapLanes::of(gap, block))
            }),
        };
        (0..blocks).map(of_block).collect()
    }

    /// Folds the words of a later record, and the gaps before it, into those of an earlier one.
    #[inline(always)]
    pub(super) fn fold<const GAPS: usize>(
        &self,
        _proof: Avx512,
        earlier: &mut [u64; BLOCK],
        later: &[u64; BLOCK],
        gaps: &[MetGap; GAPS],
    ) {
        // SAFETY: whole arrays of 64 bytes are read and written; the proof vouches for the vectors.
        unsafe {
            let a = _mm512_loadu_si512(earlier.as_ptr().cast());
            let mut b = _mm512_loadu_si512(later.as_ptr().cast());
            for (lanes, gap) in self.gaps.iter().zip(gaps) {
                b = lanes.fold(b, gap);
            }
            let mut words = _mm512_mask_add_epi64(a, self.add, a, b);
            words = _mm512_mask_min_epu64(words, self.min, a, b);
            words = _mm512_mask_or_epi64(words, self.or, a, b);
            let no_first = _mm512_mask_testn_epi64_mask(self.first, a, a);
            words = _mm512_mask_mov_epi64(words, no_first, b);
            let a_last = _mm512_mask_test_epi64_mask(self.last, b, b);
            words = _mm512_mask_mov_epi64(words, a_last, b);
            if self.wide != 0 {
                words = add_wide(words, b, self.wide);
            }
            _mm512_storeu_si512(earlier.as_mut_ptr().cast(), words);
        }
    }
}

impl GapLanes {
    fn of(gap: &GapWords, block: usize) -> Self {
        let lane = |word: u16| match word {
            NONE => 0,
            word => lanes(block, u32::from(word), u32::from(word) + 1),
        };
        Self {
            min: lane(gap.min),
            max: lane(gap.max),
            sum: lane(gap.wide_sum),
            squares: lane(gap.wide_squares),
        }
    }

    /// # Safety
    /// The machine has AVX-512.
    #[inline(always)]
    unsafe fn fold(&self, words: __m512i, gap: &MetGap) -> __m512i {
        // SAFETY: the caller vouches for the vectors.
        unsafe {
            let all = |word: u64| _mm512_set1_epi64(word.cast_signed());
            let mut words = _mm512_mask_min_epu64(words, self.min, words, all(gap.min));
            words = _mm512_mask_min_epu64(words, self.max, words, all(gap.max));
            if self.sum != 0 {
                words = add_wide(
                    words,
                    _mm512_maskz_mov_epi64(self.sum, all(gap.sum)),
                    self.sum,
                );
            }
            if self.squares != 0 {
                let square = u128::from(gap.sum) * u128::from(gap.sum);
                let low = _mm512_maskz_mov_epi64(self.squares, all(square as u64));
                let high = all((square >> 64) as u64);
                let square = _mm512_mask_mov_epi64(low, self.squares << 1, high);
                words = add_wide(words, square, self.squares);
            }
            words
        }
    }
}

/// The gap where two records meet, as words to fold; each changes nothing where one of the two has
/// no packet of that side.
#[derive(Clone, Copy, Debug)]
pub(super) struct MetGap {
    min: u64,
    /// As [`encode_max`] has it.
    max: u64,
    sum: u64,
}

impl MetGap {
    pub(super) const NONE: Self = Self {
        min: u64::MAX,
        max: u64::MAX,
        sum: 0,
    };

    #[inline(always)]
    pub(super) fn new(gap_ns: Option<u64>) -> Self {
        gap_ns.map_or(Self::NONE, |ns| Self {
            min: ns,
            max: encode_max(ns),
            sum: ns,
        })
    }
}

/// a + b in the pairs of lanes whose low words `low` names; saturates, as [`super::plan::add_wide`].
///
/// # Safety
/// The machine has AVX-512.
#[inline(always)]
unsafe fn add_wide(a: __m512i, b: __m512i, low: __mmask8) -> __m512i {
    // SAFETY: the caller vouches for the vectors.
    unsafe {
        let high = low << 1;
        let sum = _mm512_mask_add_epi64(a, low | high, a, b);
        let carries = _mm512_mask_cmplt_epu64_mask(low | high, sum, b);
        // Sums that leave 64 bits are rare.
        if carries == 0 {
            sum
        } else {
            carry(sum, carries, low)
        }
    }
}

/// The second half of [`add_wide`], where a lane in `carries` has overflowed.
///
/// # Safety
/// The machine has AVX-512.
#[cold]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn carry(sum: __m512i, carries: __mmask8, low: __mmask8) -> __m512i {
    let ones = _mm512_set1_epi64(-1);
    let carried = (carries & low) << 1;
    let full = _mm512_mask_cmpeq_epi64_mask(carried, sum, ones) | carries & low << 1;
    // Less minus one: one more.
    let sum = _mm512_mask_sub_epi64(sum, carried, sum, ones);
    _mm512_mask_mov_epi64(sum, full | full >> 1, ones)
}
