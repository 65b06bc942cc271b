// SPDX-License-Identifier: Apache-2.0
//! Merging 8 words at once, each by its own class, on processors with AVX-512.
//!
//! Measured on an 8-feature definition (24 words of state, `Plan::merge`): see `docs/evaluation.md`.

use std::sync::Arc;

use super::plan::Ends;

/// Which of 8 words are of which class.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneMasks {
    add: u8,
    min: u8,
    or: u8,
    first: u8,
    last: u8,
    /// The low words of wide sums; the high ones follow them.
    wide: u8,
}

impl LaneMasks {
    /// The masks of all lanes that have such words; `None` where the processor cannot use them.
    pub(super) fn of(ends: &Ends) -> Option<Arc<[Self]>> {
        if !is_available() {
            return None;
        }
        let lane = |lane: u32| {
            let mask = |start: u32, end: u32| {
                let words = lane * 8..lane * 8 + 8;
                words.rev().fold(0, |mask, word| {
                    mask << 1 | u8::from(start <= word && word < end)
                })
            };
            Self {
                add: mask(0, ends.add),
                min: mask(ends.add, ends.min),
                or: mask(ends.min, ends.or),
                first: mask(ends.or, ends.first),
                last: mask(ends.first, ends.last),
                wide: mask(ends.wide_start, ends.wide) & 0b0101_0101,
            }
        };
        Some((0..ends.wide.div_ceil(8)).map(lane).collect())
    }

    /// Merges the words that the masks know, and leaves the others as they are in `earlier`.
    #[inline(always)]
    pub(super) fn merge<const N: usize>(lanes: &[Self], earlier: &mut [u64; N], later: &[u64; N]) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `LaneMasks::of` makes masks only where the processor has AVX-512.
        unsafe {
            x86::merge(lanes, earlier, later);
        }
        #[cfg(not(target_arch = "x86_64"))]
        unreachable!("{lanes:?} exist on x86-64 only: {earlier:?} {later:?}");
    }
}

fn is_available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m512i, _mm512_loadu_epi64, _mm512_mask_add_epi64, _mm512_mask_cmplt_epu64_mask,
        _mm512_mask_min_epu64, _mm512_mask_mov_epi64, _mm512_mask_or_epi64, _mm512_mask_sub_epi64,
        _mm512_mask_test_epi64_mask, _mm512_mask_testn_epi64_mask, _mm512_set1_epi64,
        _mm512_storeu_epi64,
    };

    use super::LaneMasks;

    #[target_feature(enable = "avx512f")]
    pub(super) fn merge(lanes: &[LaneMasks], earlier: &mut [u64], later: &[u64]) {
        let words = earlier.chunks_exact_mut(8).zip(later.chunks_exact(8));
        for ((earlier, later), lane) in words.zip(lanes) {
            // SAFETY: both chunks are 8 words long.
            let (a, b) = unsafe {
                (
                    _mm512_loadu_epi64(earlier.as_ptr().cast()),
                    _mm512_loadu_epi64(later.as_ptr().cast()),
                )
            };
            let merged = _mm512_mask_add_epi64(a, lane.add, a, b);
            let merged = _mm512_mask_min_epu64(merged, lane.min, a, b);
            let merged = _mm512_mask_or_epi64(merged, lane.or, a, b);
            let empty_in_a = _mm512_mask_testn_epi64_mask(lane.first, a, a);
            let merged = _mm512_mask_mov_epi64(merged, empty_in_a, b);
            let filled_in_b = _mm512_mask_test_epi64_mask(lane.last, b, b);
            let merged = _mm512_mask_mov_epi64(merged, filled_in_b, b);
            let merged = if lane.wide == 0 {
                merged
            } else {
                add_wide(merged, lane.wide, a, b)
            };
            // SAFETY: the chunk is 8 words long.
            unsafe { _mm512_storeu_epi64(earlier.as_mut_ptr().cast(), merged) };
        }
    }
    /// Adds pairs of words, and makes a sum that leaves 128 bits the largest there is. `low` says
    /// which words are the low ones.
    #[target_feature(enable = "avx512f")]
    fn add_wide(merged: __m512i, low: u8, a: __m512i, b: __m512i) -> __m512i {
        let high = low << 1;
        let sum = _mm512_mask_add_epi64(merged, low | high, a, b);
        let carry = _mm512_mask_cmplt_epu64_mask(low, sum, b) << 1;
        let overflow = _mm512_mask_cmplt_epu64_mask(high, sum, b);
        let ones = _mm512_set1_epi64(-1);
        let sum = _mm512_mask_sub_epi64(sum, carry, sum, ones);
        // A carry into all ones makes them zeros.
        let overflow = overflow | _mm512_mask_testn_epi64_mask(carry, sum, sum);
        _mm512_mask_mov_epi64(sum, overflow | overflow >> 1, ones)
    }
}
