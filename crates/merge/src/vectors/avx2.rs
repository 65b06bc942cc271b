// SPDX-License-Identifier: Apache-2.0
//! AVX2: merges the small fields of a record together. As scalars they would take half of a merge's
//! instructions.

use std::arch::x86_64::*;

use super::gate::JOINED;
use super::{Avx2, MergeGate, PlainWords, Vectors, WithVectors};
use crate::layout::pair::Pair;
use crate::{Base, LANES, Plan};

#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<W: WithVectors>(vectors: Avx2, work: W) -> W::Output {
    work.run(vectors)
}

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Base, min_length_bytes) == 32 && offset_of!(Base, max_length_bytes) == 36);
    assert!(offset_of!(Base, min_ttl) == 40 && offset_of!(Base, max_ttl) == 41);
    assert!(offset_of!(Base, tcp_flags) == 44 && offset_of!(Base, tos) == 46);
    assert!(offset_of!(Base, marks) == 47);
};

impl Vectors for Avx2 {
    type Gate = MergeGate;
    type Words = PlainWords;

    #[inline(always)]
    fn words(self, words: &[u64; LANES]) -> PlainWords {
        PlainWords::new(*words)
    }

    #[inline(always)]
    fn gate(self, gate: &MergeGate) -> MergeGate {
        *gate
    }

    /// ```text
    /// 32          36          40       41       42   43   44     46    47
    /// | min len   | max len   | min ttl| max ttl| end| oth| flags| tos | marks|
    ///   max u32     max u32     max u8   max u8   a    a    or     a     or     less the first packet's marks
    /// ```
    #[inline(always)]
    fn merge_in_order(self, flow: &mut Base, later: &Base) {
        flow.packets += later.packets;
        flow.bytes += later.bytes;
        flow.last_ns = flow.last_ns.max(later.last_ns);
        const JOINS: i32 = JOINED.cast_signed();
        // SAFETY: bytes 32 to 48 of both bases are read, and what is written back is the result of
        // a scalar merge; `self` proves the vectors.
        unsafe {
            let rest = std::ptr::from_mut(flow).cast::<__m128i>().add(2);
            let other = std::ptr::from_ref(later).cast::<__m128i>().add(2);
            let (a, b) = (_mm_loadu_si128(rest), _mm_loadu_si128(other));
            let joined = _mm_or_si128(a, _mm_and_si128(b, _mm_set_epi32(JOINS, 0, 0, 0)));
            let merged = _mm_blend_epi16::<0b0000_1111>(joined, _mm_max_epu32(a, b));
            _mm_storeu_si128(
                rest,
                _mm_blend_epi16::<0b0001_0000>(merged, _mm_max_epu8(a, b)),
            );
        }
    }

    #[inline(always)]
    fn equal_lanes(self, lanes: &[u16; 32], value_twice: u32) -> u32 {
        // SAFETY: the array has 64 bytes and the loads are unaligned; `self` proves the vectors.
        unsafe {
            let values = _mm256_set1_epi32(value_twice.cast_signed());
            let pointer = lanes.as_ptr().cast::<__m256i>();
            let low = _mm256_cmpeq_epi16(_mm256_loadu_si256(pointer), values);
            let high = _mm256_cmpeq_epi16(_mm256_loadu_si256(pointer.add(1)), values);
            let bytes = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(low, high));
            _mm256_movemask_epi8(bytes).cast_unsigned()
        }
    }

    #[inline(always)]
    unsafe fn merge_states<const N: usize>(self, plan: &Plan, pairs: &[Pair]) {
        for pair in pairs {
            // SAFETY: as required of the caller.
            let (flow, later) = unsafe { (&mut *pair.flow.cast(), &*pair.later.cast()) };
            plan.merge_in_blocks::<N>(flow, later);
        }
    }
}
