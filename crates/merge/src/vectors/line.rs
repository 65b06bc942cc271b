// SPDX-License-Identifier: Apache-2.0
//! Compares and merges key and base of two records, each a cache line, in one pass with AVX-512.
//!
//! ```text
//! 64-bit lane   0    1    2        3      4      5     6               7
//!             +---------+---------+------+------+-----+-------+-------+---------------+---------------+
//! a, b        | key     | packets | bytes| first| last| min l.| max l.| ttls, end, oth| flags tos mark|
//!             +---------+---------+------+------+-----+-------+-------+---------------+---------------+
//! line          b - a     b         b      b - a  b - a b               b               a or some of b
//! merged        a         a + line         a      a + l. max(a, line)   max(a, line), byte by byte
//! ```
//!
//! The line has two uses: the gate compares it with the largest allowed values, all lanes at once,
//! and it is merged into the flow. That takes six operations; a separate test and merge would take
//! fourteen. These operations limit the loop on Intel machines, which have two units for 512-bit
//! operations.

use std::arch::x86_64::*;

use super::MergeGate;
use super::gate::JOINED;
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

/// The lanes that each step of a merge affects.
#[derive(Clone, Copy, Debug)]
struct MergeLanes {
    /// Bytes of the last word except the end reason, which open flows do not have.
    bytes: __mmask64,
    lengths: __mmask16,
    flags: __mmask16,
    differences: __mmask8,
    sums: __mmask8,
}

const LANES: MergeLanes = MergeLanes {
    bytes: 0b1111_0011 << 56,
    lengths: 0b11 << 12,
    flags: 1 << 15,
    differences: 0b0011_0011,
    sums: 0b0010_1100,
};

/// The ternary operation on (b, a, c) that gives a | (b & c).
const JOIN: i32 = 0xec;

/// A gate and the lanes of a merge, kept in registers.
#[derive(Clone, Copy, Debug)]
pub struct LineGate {
    gate: MergeGate,
    largest: __m512i,
    /// The bits that a merge adds from the later record, among those that are ORed.
    joins: __m512i,
    lanes: MergeLanes,
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
    pub(super) unsafe fn new(gate: &MergeGate) -> Self {
        let joins = [0, 0, 0, 0, 0, 0, 0, u64::from(JOINED) << 32];
        // SAFETY: as required of the caller; lines have the size of a vector.
        let load = |line: [u64; 8]| unsafe { _mm512_loadu_si512(line.as_ptr().cast()) };
        Self {
            gate: *gate,
            largest: load(gate.largest()),
            joins: load(joins),
            // The compiler would reload known masks at every merge: 5 ns instead of 3.
            lanes: std::hint::black_box(LANES),
        }
    }

    /// Merges `later` into `flow` if it passes the gate and the keys are equal. Returns whether it
    /// merged the record.
    ///
    /// # Safety
    /// Both pointers are to a cache line, aligned, with the layout drawn above. The machine has the
    /// vectors of [`super::Avx512`].
    #[inline(always)]
    pub(super) unsafe fn merge(&self, flow: *mut __m512i, later: *const __m512i) -> bool {
        // SAFETY: as required of the caller.
        unsafe {
            // A separate branch, because this test uses none of the 512-bit units.
            if !self
                .gate
                .is_late_enough(&*later.cast::<u64>().add(2).cast())
            {
                return false;
            }
            let lanes = self.lanes;
            let (a, b) = (_mm512_load_si512(flow), _mm512_load_si512(later));
            // In this order, b need not be kept.
            let line = _mm512_mask_sub_epi64(b, lanes.differences, b, a);
            let line = _mm512_mask_ternarylogic_epi32::<JOIN>(line, lanes.flags, a, self.joins);
            if _mm512_cmpgt_epu64_mask(line, self.largest) != 0 {
                return false;
            }
            let merged = _mm512_mask_add_epi64(a, lanes.sums, a, line);
            let merged = _mm512_mask_max_epu32(merged, lanes.lengths, merged, line);
            let merged = _mm512_mask_max_epu8(merged, lanes.bytes, merged, line);
            _mm512_store_si512(flow, merged);
            true
        }
    }
}
