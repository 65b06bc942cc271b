// SPDX-License-Identifier: Apache-2.0
//! AVX-512: masks pick the lanes of each operation, so that a record folds in a dozen instructions.

use std::arch::x86_64::*;

use super::{JOINED_MARKS, MergeGate, Vectors, WithVectors};
use crate::pairs::Pair;
use crate::{Base, MicroflowRecord, Plan};

/// Proof that the machine has AVX-512 F, BW, DQ and VL, and BMI2.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    pub(super) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        found.then_some(Self(()))
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<W: WithVectors>(vectors: Avx512, work: W) -> W::Output {
    work.run(vectors)
}

// Lanes of the first half of a `Base` (64 bits each) and of the rest (32 bits, 8 bits).
const PACKETS_BYTES: __mmask8 = 0b0011;
const FIRST: __mmask8 = 0b0100;
const LAST: __mmask8 = 0b1000;
const MIN_LENGTH: __mmask8 = 0b0001;
const MAX_LENGTH: __mmask8 = 0b0010;
const MIN_TTL: __mmask16 = 1 << 12;
const MAX_TTL: __mmask16 = 1 << 13;

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Base, packets) == 0 && offset_of!(Base, bytes) == 8);
    assert!(offset_of!(Base, first_ns) == 16 && offset_of!(Base, last_ns) == 24);
    assert!(offset_of!(Base, min_length_bytes) == 32 && offset_of!(Base, max_length_bytes) == 36);
    assert!(offset_of!(Base, tcp_flags) == 40 && offset_of!(Base, marks) == 42);
    assert!(offset_of!(Base, tos) == 43 && offset_of!(Base, min_ttl) == 44);
    assert!(offset_of!(Base, max_ttl) == 45);
};

/// Packets, bytes, first, last.
#[inline(always)]
fn head(base: &Base) -> __m256i {
    // SAFETY: the first 32 bytes of 48; an `Avx512` is at hand wherever this is called.
    unsafe { _mm256_loadu_si256(std::ptr::from_ref(base).cast()) }
}

/// Lengths, flags, marks, type of service, times to live.
#[inline(always)]
fn tail(base: &Base) -> __m128i {
    // SAFETY: the last 16 bytes of 48.
    unsafe { _mm_loadu_si128(std::ptr::from_ref(base).cast::<__m128i>().add(2)) }
}

/// Key and base of two records as a line each, compared and merged in one go.
///
/// ```text
/// 64-bit lane   0    1    2        3      4      5     6               7
///             +---------+---------+------+------+-----+-------+-------+-----------------------------+
///             | key     | packets | bytes| first| last| min l.| max l.| flags marks tos ttls end    |
///             +---------+---------+------+------+-----+-------+-------+-----------------------------+
/// ```
///
/// # Safety
/// Both point to a line of memory, aligned to lines, that lies as drawn; the machine has the vectors of
/// [`Avx512`].
#[inline(always)]
unsafe fn merge_line(gate: &MergeGate, flow: *mut __m512i, later: *const __m512i) -> bool {
    // SAFETY: the caller's.
    unsafe {
        let (a, b) = (_mm512_load_si512(flow), _mm512_load_si512(later));
        let lanes = &gate.lanes;
        let last_lane = |bits: u64| _mm512_set_epi64(bits.cast_signed(), 0, 0, 0, 0, 0, 0, 0);
        let marks = |marks: u8| last_lane(u64::from(marks) << 16);
        // (a ^ b) & key, and a | b & c: bits that must not be.
        let wrong =
            _mm512_ternarylogic_epi64::<0x28>(a, b, _mm512_set_epi64(0, 0, 0, 0, 0, 0, -1, -1));
        let wrong = _mm512_ternarylogic_epi64::<0xf8>(wrong, a, marks(gate.flow_marks));
        let wrong = _mm512_ternarylogic_epi64::<0xf8>(wrong, b, marks(gate.later_marks));
        let wrong = _mm512_test_epi64_mask(wrong, wrong);
        let oldest = (
            gate.oldest_last_ns.cast_signed(),
            gate.oldest_first_ns.cast_signed(),
        );
        let oldest = _mm512_set_epi64(0, 0, oldest.0, oldest.1, 0, 0, 0, 0);
        let old = _mm512_cmplt_epu64_mask(a, oldest);
        let oldest_later = _mm512_set1_epi64(gate.oldest_later_ns.cast_signed());
        let start = _mm512_maskz_max_epu64(lanes.first, a, oldest_later);
        let late = _mm512_cmplt_epu64_mask(b, start);
        if (wrong | old | late) != 0 {
            return false;
        }
        let sum = _mm512_mask_add_epi64(a, lanes.sums, a, b);
        let merged = _mm512_mask_max_epu64(sum, lanes.last, a, b);
        let merged = _mm512_mask_min_epu32(merged, lanes.min_length, a, b);
        let merged = _mm512_mask_max_epu32(merged, lanes.max_length, a, b);
        let joins = last_lane(0xffff | (JOINED_MARKS as u64) << 16);
        let merged = _mm512_ternarylogic_epi64::<0xf8>(merged, b, joins);
        let merged = _mm512_mask_min_epu8(merged, lanes.min_ttl, a, b);
        let merged = _mm512_mask_max_epu8(merged, lanes.max_ttl, a, b);
        _mm512_store_si512(flow, merged);
        true
    }
}

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

impl Vectors for Avx512 {
    #[inline(always)]
    fn avx512(self) -> Option<Self> {
        Some(self)
    }

    #[inline(always)]
    fn same_key<const K: usize>(self, a: &[u64; K], b: &[u64; K]) -> bool {
        if K != 2 {
            return a == b;
        }
        // SAFETY: both are two words; `self` proves the vectors.
        unsafe {
            let a = _mm_loadu_si128(a.as_ptr().cast());
            let b = _mm_loadu_si128(b.as_ptr().cast());
            _mm_cmpneq_epi64_mask(a, b) == 0
        }
    }

    #[inline(always)]
    fn passes(self, gate: &MergeGate, flow: &Base, later: &Base) -> bool {
        // SAFETY: `self` proves the vectors.
        unsafe {
            let (a, b) = (head(flow), head(later));
            let oldest = _mm256_set_epi64x(
                gate.oldest_last_ns.cast_signed(),
                gate.oldest_first_ns.cast_signed(),
                0,
                0,
            );
            let oldest_later = _mm256_set1_epi64x(gate.oldest_later_ns.cast_signed());
            let old = _mm256_cmplt_epu64_mask(a, oldest);
            let late = _mm256_mask_cmplt_epu64_mask(FIRST, b, _mm256_max_epu64(a, oldest_later));
            let ending = |marks: u8| _mm_set_epi32(0, i32::from(marks) << 16, 0, 0);
            let ends = if gate.flow_marks == gate.later_marks {
                _mm_test_epi32_mask(
                    _mm_or_si128(tail(flow), tail(later)),
                    ending(gate.flow_marks),
                )
            } else {
                _mm_test_epi32_mask(tail(flow), ending(gate.flow_marks))
                    | _mm_test_epi32_mask(tail(later), ending(gate.later_marks))
            };
            (old | late | ends) == 0
        }
    }

    #[inline(always)]
    fn merge_in_order(self, flow: &mut Base, later: &Base) {
        // SAFETY: whole bases are read, and written back as the scalar merge would; `self` proves the
        // vectors.
        unsafe {
            let (a, b) = (head(flow), head(later));
            // The flow's first time stays: the caller says that `later` began no earlier.
            let merged = _mm256_mask_max_epu64(a, LAST, a, b);
            let merged = _mm256_mask_add_epi64(merged, PACKETS_BYTES, a, b);
            let (c, d) = (tail(flow), tail(later));
            const JOINS: i32 = 0xffff | (JOINED_MARKS as i32) << 16;
            // c | (d & joins): flags and marks; the type of service stays.
            let rest = _mm_ternarylogic_epi64::<0xf8>(c, d, _mm_set_epi32(0, JOINS, 0, 0));
            let rest = _mm_mask_min_epu32(rest, MIN_LENGTH, c, d);
            let rest = _mm_mask_max_epu32(rest, MAX_LENGTH, c, d);
            let rest = _mm_mask_min_epu8(rest, MIN_TTL, c, d);
            let rest = _mm_mask_max_epu8(rest, MAX_TTL, c, d);
            let flow = std::ptr::from_mut(flow);
            _mm256_storeu_si256(flow.cast(), merged);
            _mm_storeu_si128(flow.cast::<__m128i>().add(2), rest);
        }
    }

    #[inline(always)]
    fn merge_if_passes<const K: usize, const N: usize>(
        self,
        gate: &MergeGate,
        flow: &mut MicroflowRecord<K, N>,
        later: &MicroflowRecord<K, N>,
    ) -> bool {
        if K == 2 {
            let flow = std::ptr::from_mut(flow).cast();
            let later = std::ptr::from_ref(later).cast();
            // SAFETY: a record of two key words is at least a line long, aligned to lines, and begins
            // with key and base (asserted below); both are borrowed for the call, one of them mutably.
            return unsafe { merge_line(gate, flow, later) };
        }
        super::merge_in_steps(self, gate, flow, later)
    }

    #[inline(always)]
    fn equal_lanes(self, lanes: &[u16; 32], value: u16) -> u32 {
        // SAFETY: the array is 64 bytes and the load is an unaligned one; `self` proves the vectors.
        unsafe {
            let values = _mm512_set1_epi16(value.cast_signed());
            _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(lanes.as_ptr().cast()), values)
        }
    }

    #[inline(always)]
    unsafe fn merge_states<const N: usize>(self, plan: &Plan, pairs: &[Pair]) {
        // SAFETY: the caller's.
        unsafe { plan.merge_avx512::<N>(self, pairs) };
    }
}
