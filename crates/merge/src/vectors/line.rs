// SPDX-License-Identifier: Apache-2.0
//! Key and base of two records as a line of memory each, compared and merged in one go with AVX-512.
//!
//! ```text
//! 64-bit lane   0    1    2        3      4      5     6               7
//!             +---------+---------+------+------+-----+-------+-------+---------------+---------------+
//! a, b        | key     | packets | bytes| first| last| min l.| max l.| ttls, end, 0  | flags tos mark|
//!             +---------+---------+------+------+-----+-------+-------+---------------+---------------+
//! line          b - a     b         b      b - a  b - a b               b               a or some of b
//! merged        a         a + line         a      a + l. max(a, line)   max(a, line), byte by byte
//! ```
//!
//! The line between is both: what the gate compares with the largest that may be, all at once, and what is merged into the flow. That is
//! six operations where a test and a merge of their own take fourteen, and on Intel's machines those with units of 512 bits, of
//! which they have two, are what bounds the loop.
//!
//! As a whole where a machine has units of 512 bits. Where one makes two of 256 of every such operation, in halves: most of what is
//! done with a line concerns one of them. On Zen 4 a merge within the caches takes less time so.

use std::arch::x86_64::*;

use super::MergeGate;
use super::gate::{JOINED, LineLanes};
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

/// A gate, and the lanes of what a merge does, in registers: of whole lines, or, with `HALVES`, in their lower half, of the upper half of
/// lines.
#[derive(Clone, Copy, Debug)]
pub struct LineGate<const HALVES: bool> {
    gate: MergeGate,
    largest: __m512i,
    /// Bits that a merge takes over from the later record, of those that are OR'ed.
    joins: __m512i,
    small: __mmask64,
    lengths: __mmask16,
    flags: __mmask16,
    differences: __mmask8,
    sums: __mmask8,
}

impl<const HALVES: bool> AsRef<MergeGate> for LineGate<HALVES> {
    #[inline(always)]
    fn as_ref(&self) -> &MergeGate {
        &self.gate
    }
}

/// The ternary operation on (b, a, c) that gives a | (b & c).
const JOIN: i32 = 0xec;

impl<const HALVES: bool> LineGate<HALVES> {
    /// # Safety
    /// The machine has the vectors of [`super::Avx512`].
    #[inline(always)]
    pub(super) unsafe fn new(gate: &MergeGate) -> Self {
        let lanes = std::hint::black_box(if HALVES {
            LineLanes::OF_HALVES
        } else {
            LineLanes::ALL
        });
        let load = |mut line: [u64; 8]| {
            if HALVES {
                line.rotate_left(4);
            }
            // SAFETY: the caller's; lines are as long as vectors.
            unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
        };
        Self {
            gate: *gate,
            largest: load(gate.largest()),
            joins: load([0, 0, 0, 0, 0, 0, 0, u64::from(JOINED) << 32]),
            small: lanes.small,
            lengths: lanes.lengths,
            flags: lanes.flags,
            differences: lanes.differences,
            sums: lanes.sums,
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
            // A branch of its own, for it takes nothing of what is scarce.
            if !self
                .gate
                .is_late_enough(&*later.cast::<u64>().add(2).cast())
            {
                return false;
            }
            if HALVES {
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
            // In this order, b needs not be kept.
            let line = _mm512_mask_sub_epi64(b, self.differences, b, a);
            let line = _mm512_mask_ternarylogic_epi32::<JOIN>(line, self.flags, a, self.joins);
            if _mm512_cmpgt_epu64_mask(line, self.largest) != 0 {
                return false;
            }
            let merged = _mm512_mask_add_epi64(a, self.sums, a, line);
            let merged = _mm512_mask_max_epu32(merged, self.lengths, merged, line);
            let merged = _mm512_mask_max_epu8(merged, self.small, merged, line);
            _mm512_store_si512(flow, merged);
            true
        }
    }

    /// # Safety
    /// That of [`LineGate::merge`]; the gate is one of halves.
    #[inline(always)]
    unsafe fn merge_halves(&self, flow: *mut __m256i, later: *const __m256i) -> bool {
        const LAST: __mmask8 = 0b0010;
        // SAFETY: the caller's.
        unsafe {
            let (key, later_key) = (_mm256_load_si256(flow), _mm256_load_si256(later));
            let (a, b) = (
                _mm256_load_si256(flow.add(1)),
                _mm256_load_si256(later.add(1)),
            );
            let joins = _mm512_castsi512_si256(self.joins);
            let half = _mm256_mask_sub_epi64(b, self.differences, b, a);
            let half =
                _mm256_mask_ternarylogic_epi32::<JOIN>(half, self.flags as __mmask8, a, joins);
            let other = _mm_cmpneq_epi64_mask(
                _mm256_castsi256_si128(key),
                _mm256_castsi256_si128(later_key),
            );
            let more = _mm256_cmpgt_epu64_mask(half, _mm512_castsi512_si256(self.largest));
            if other | more != 0 {
                return false;
            }
            let sums = _mm256_mask_add_epi64(key, self.sums, key, later_key);
            let merged = _mm256_mask_mov_epi64(a, LAST, b);
            let merged = _mm256_mask_max_epu32(merged, self.lengths as __mmask8, merged, half);
            let merged = _mm256_mask_max_epu8(merged, self.small as __mmask32, merged, half);
            _mm256_store_si256(flow, sums);
            _mm256_store_si256(flow.add(1), merged);
            true
        }
    }
}
