// SPDX-License-Identifier: Apache-2.0
//! Key and base of two records as a line of memory each, compared and merged in one go with AVX-512.
//!
//! ```text
//! 64-bit lane   0    1    2        3      4      5     6               7
//!             +---------+---------+------+------+-----+-------+-------+-----------------------------+
//!             | key     | packets | bytes| first| last| min l.| max l.| flags marks tos ttls end 0  |
//!             +---------+---------+------+------+-----+-------+-------+-----------------------------+
//! ```
//!
//! As a whole where a machine has units of 512 bits. Where one makes two of 256 of every such operation, in halves: most of what is
//! done with a line concerns one of them. On Zen 4 a merge within the caches takes less time so.

use std::arch::x86_64::*;

use super::MergeGate;
use super::gate::{JOINED_MARKS, LineLanes};
use crate::MicroflowRecord;

const _: () = {
    use std::mem::{align_of, offset_of};
    assert!(
        offset_of!(MicroflowRecord<2, 0>, key) == 0
            && offset_of!(MicroflowRecord<2, 0>, base) == 16
    );
    assert!(
        offset_of!(MicroflowRecord<2, 8>, key) == 0
            && offset_of!(MicroflowRecord<2, 8>, base) == 16
    );
    assert!(align_of::<MicroflowRecord<2, 8>>() == 64);
};

/// A gate, and the lanes of what a merge does, in registers: of whole lines, or, in the lower half, of the upper half of lines.
#[derive(Clone, Copy, Debug)]
pub struct LineGate {
    gate: MergeGate,
    in_halves: bool,
    oldest: __m512i,
    oldest_later: __m512i,
    flow: __m512i,
    later: __m512i,
    /// Always of whole lines.
    any: __m512i,
    /// Bits that a merge takes over from the later record.
    joins: __m512i,
    min_ttl: __mmask64,
    max_ttl: __mmask64,
    min_length: __mmask16,
    max_length: __mmask16,
    key_and_first: __mmask8,
    sums: __mmask8,
    last: __mmask8,
}

impl AsRef<MergeGate> for LineGate {
    #[inline(always)]
    fn as_ref(&self) -> &MergeGate {
        &self.gate
    }
}

impl LineGate {
    /// # Safety
    /// The machine has the vectors of [`super::Avx512`].
    #[inline(always)]
    pub(super) unsafe fn new(gate: &MergeGate, in_halves: bool) -> Self {
        let lines = gate.lines();
        let lanes = std::hint::black_box(if in_halves {
            LineLanes::OF_HALVES
        } else {
            LineLanes::ALL
        });
        // SAFETY: the caller's; lines are as long as vectors.
        let load = |line: [u64; 8]| unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        let load_part = |mut line: [u64; 8]| {
            if in_halves {
                line.rotate_left(4);
            }
            load(line)
        };
        Self {
            gate: *gate,
            in_halves,
            oldest: load_part(lines.oldest),
            oldest_later: load_part(lines.oldest_later),
            flow: load_part(lines.flow),
            later: load_part(lines.later),
            any: load(lines.any),
            joins: load_part([0, 0, 0, 0, 0, 0, 0, 0xffff | (JOINED_MARKS as u64) << 16]),
            min_ttl: lanes.min_ttl,
            max_ttl: lanes.max_ttl,
            min_length: lanes.min_length,
            max_length: lanes.max_length,
            key_and_first: lanes.key_and_first,
            sums: lanes.sums,
            last: lanes.last,
        }
    }

    /// Merges `later` into `flow`, if it passes and the keys are the same; whether it did.
    ///
    /// # Safety
    /// Both point to a line of memory, aligned to lines, that lies as drawn; the machine has the vectors of [`super::Avx512`].
    #[inline(always)]
    pub(super) unsafe fn merge(&self, flow: *mut __m512i, later: *const __m512i) -> bool {
        // SAFETY: the caller's.
        unsafe {
            debug_assert_eq!(*flow.cast::<u8>().add(63), 0, "padding is zero");
            if self.in_halves {
                self.merge_halves(flow.cast(), later.cast())
            } else {
                self.merge_whole(flow, later)
            }
        }
    }

    /// # Safety
    /// That of [`LineGate::merge`].
    #[inline(always)]
    unsafe fn merge_whole(&self, flow: *mut __m512i, later: *const __m512i) -> bool {
        // SAFETY: the caller's.
        unsafe {
            let (a, b) = (_mm512_load_si512(flow), _mm512_load_si512(later));
            // Of the key, any bit of the difference is wrong; of times, that of the sign.
            let wrong = _mm512_maskz_sub_epi64(self.key_and_first, b, a);
            // wrong | more & bits
            let more = _mm512_sub_epi64(a, self.oldest);
            let wrong = _mm512_ternarylogic_epi64::<0xf8>(wrong, more, self.flow);
            let more = _mm512_sub_epi64(b, self.oldest_later);
            let wrong = _mm512_ternarylogic_epi64::<0xf8>(wrong, more, self.later);
            if _mm512_test_epi64_mask(wrong, self.any) != 0 {
                return false;
            }
            let merged = _mm512_mask_add_epi64(a, self.sums, a, b);
            let merged = _mm512_mask_max_epu64(merged, self.last, a, b);
            let merged = _mm512_mask_min_epu32(merged, self.min_length, a, b);
            let merged = _mm512_mask_max_epu32(merged, self.max_length, a, b);
            let merged = _mm512_ternarylogic_epi64::<0xf8>(merged, b, self.joins);
            let merged = _mm512_mask_min_epu8(merged, self.min_ttl, a, b);
            let merged = _mm512_mask_max_epu8(merged, self.max_ttl, a, b);
            _mm512_store_si512(flow, merged);
            true
        }
    }

    /// # Safety
    /// That of [`LineGate::merge`]; the gate is one of halves.
    #[inline(always)]
    unsafe fn merge_halves(&self, flow: *mut __m256i, later: *const __m256i) -> bool {
        // SAFETY: the caller's.
        unsafe {
            let (key, later_key) = (_mm256_load_si256(flow), _mm256_load_si256(later));
            let (a, b) = (
                _mm256_load_si256(flow.add(1)),
                _mm256_load_si256(later.add(1)),
            );
            let before = _mm256_maskz_sub_epi64(self.key_and_first, b, a);
            // (before | more) & bits
            let more = _mm256_sub_epi64(a, _mm512_castsi512_si256(self.oldest));
            let wrong =
                _mm256_ternarylogic_epi64::<0xa8>(before, more, _mm512_castsi512_si256(self.flow));
            // wrong | more & bits
            let more = _mm256_sub_epi64(b, _mm512_castsi512_si256(self.oldest_later));
            let wrong =
                _mm256_ternarylogic_epi64::<0xf8>(wrong, more, _mm512_castsi512_si256(self.later));
            // The lower half of `any` has the key's bits, and no other.
            let other = _mm256_xor_si256(key, later_key);
            let wrong =
                _mm256_ternarylogic_epi64::<0xf8>(wrong, other, _mm512_castsi512_si256(self.any));
            if _mm256_test_epi64_mask(wrong, wrong) != 0 {
                return false;
            }
            let sums = _mm256_mask_add_epi64(key, self.sums, key, later_key);
            let merged = _mm256_mask_max_epu64(a, self.last, a, b);
            let merged = _mm256_mask_min_epu32(merged, self.min_length as __mmask8, a, b);
            let merged = _mm256_mask_max_epu32(merged, self.max_length as __mmask8, a, b);
            let merged =
                _mm256_ternarylogic_epi64::<0xf8>(merged, b, _mm512_castsi512_si256(self.joins));
            let merged = _mm256_mask_min_epu8(merged, self.min_ttl as __mmask32, a, b);
            let merged = _mm256_mask_max_epu8(merged, self.max_ttl as __mmask32, a, b);
            _mm256_store_si256(flow, sums);
            _mm256_store_si256(flow.add(1), merged);
            true
        }
    }
}
