// SPDX-License-Identifier: Apache-2.0
//! AVX-512: masks select the lanes of each operation, so that key and base of a record are compared
//! and merged in half a dozen operations.

use std::arch::x86_64::*;

use super::gate::JOINED;
use super::line::LineGate;
use super::{Avx512, MergeGate, Vectors, WithVectors, Words, merge_in_steps};
use crate::layout::pair::Pair;
use crate::{Base, LANES, MicroflowRecord, Plan};

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<W: WithVectors>(vectors: Avx512, work: W) -> W::Output {
    work.run(vectors)
}

// Lanes of the first half of a `Base` (64 bits each) and of the rest (32 bits, 8 bits).
const PACKETS_BYTES: __mmask8 = 0b0011;
const LAST: __mmask8 = 0b1000;
const LENGTHS: __mmask8 = 0b0011;
const TTLS: __mmask16 = 0b11 << 8;

const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(Base, packets) == 0 && offset_of!(Base, bytes) == 8);
    assert!(offset_of!(Base, first_ns) == 16 && offset_of!(Base, last_ns) == 24);
    assert!(offset_of!(Base, min_length_bytes) == 32 && offset_of!(Base, max_length_bytes) == 36);
    assert!(offset_of!(Base, min_ttl) == 40 && offset_of!(Base, max_ttl) == 41);
    assert!(offset_of!(Base, tcp_flags) == 44 && offset_of!(Base, tos) == 46);
    assert!(offset_of!(Base, marks) == 47);
};

/// Packets, bytes, first, last.
#[inline(always)]
fn head(base: &Base) -> __m256i {
    // SAFETY: the first 32 bytes of 48; all callers have an `Avx512`.
    unsafe { _mm256_loadu_si256(std::ptr::from_ref(base).cast()) }
}

/// Lengths, times to live, flags, type of service, marks.
#[inline(always)]
fn tail(base: &Base) -> __m128i {
    // SAFETY: the last 16 bytes of 48.
    unsafe { _mm_loadu_si128(std::ptr::from_ref(base).cast::<__m128i>().add(2)) }
}

/// Eight words in one vector.
#[derive(Clone, Copy, Debug)]
pub struct Words512(__m512i);

impl Words for Words512 {
    #[inline(always)]
    fn store(self, to: &mut [u64; LANES]) {
        // SAFETY: `to` has room; words of this type exist only on machines with the vectors.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) };
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        // SAFETY: the words prove the vectors.
        Self(unsafe { _mm512_add_epi64(self.0, other.0) })
    }

    #[inline(always)]
    fn plus_in_halves(self, other: Self) -> Self {
        // SAFETY: the words prove the vectors.
        Self(unsafe { _mm512_add_epi32(self.0, other.0) })
    }

    #[inline(always)]
    fn differing(self, other: Self) -> Self {
        // SAFETY: the words prove the vectors.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn joined(self, other: Self) -> Self {
        // SAFETY: the words prove the vectors.
        Self(unsafe { _mm512_or_si512(self.0, other.0) })
    }

    #[inline(always)]
    fn right<const BITS: u32>(self) -> Self {
        // SAFETY: the words prove the vectors.
        Self(unsafe { _mm512_srli_epi64::<BITS>(self.0) })
    }

    #[inline(always)]
    fn left<const BITS: u32>(self) -> Self {
        // SAFETY: the words prove the vectors.
        Self(unsafe { _mm512_slli_epi64::<BITS>(self.0) })
    }

    #[inline(always)]
    fn product_of_halves(self, other: Self) -> Self {
        // SAFETY: the words prove the vectors.
        Self(unsafe { _mm512_mul_epu32(self.0, other.0) })
    }

    #[inline(always)]
    fn third_quarters_twice(self) -> Self {
        const OF_WORD: [u8; 8] = [4, 5, 4, 5, 0x80, 0x80, 0x80, 0x80];
        const OF_PAIR: [u8; 16] = {
            let mut places = [0x80; 16];
            let mut at = 0;
            while at < 4 {
                places[at] = OF_WORD[at];
                places[at + 8] = OF_WORD[at] + 8;
                at += 1;
            }
            places
        };
        // SAFETY: the words prove the vectors; both arrays have the size of the vectors.
        unsafe {
            let places = _mm_loadu_si128(OF_PAIR.as_ptr().cast());
            Self(_mm512_shuffle_epi8(self.0, _mm512_broadcast_i32x4(places)))
        }
    }

    #[inline(always)]
    fn pair_sums(self, other: Self) -> Self {
        // SAFETY: the words prove the vectors.
        unsafe {
            let first = _mm512_unpacklo_epi64(self.0, other.0);
            let second = _mm512_unpackhi_epi64(self.0, other.0);
            Self(_mm512_add_epi64(first, second))
        }
    }
}

/// # Safety
/// There are two words at each pointer, and the machine has the vectors of [`Avx512`].
#[inline(always)]
unsafe fn four_pairs(a: *const u64, b: *const u64, c: *const u64, d: *const u64) -> __m512i {
    // SAFETY: as required of the caller.
    unsafe {
        let words = _mm512_castsi128_si512(_mm_loadu_si128(a.cast()));
        let words = _mm512_inserti64x2::<1>(words, _mm_loadu_si128(b.cast()));
        let words = _mm512_inserti64x2::<2>(words, _mm_loadu_si128(c.cast()));
        _mm512_inserti64x2::<3>(words, _mm_loadu_si128(d.cast()))
    }
}

impl Vectors for Avx512 {
    type Gate = LineGate;
    type Words = Words512;

    #[inline(always)]
    fn words(self, words: &[u64; LANES]) -> Words512 {
        // SAFETY: there are eight words; `self` proves the vectors.
        Words512(unsafe { _mm512_loadu_si512(words.as_ptr().cast()) })
    }

    #[inline(always)]
    fn all(self, word: u64) -> Words512 {
        // SAFETY: `self` proves the vectors.
        Words512(unsafe { _mm512_set1_epi64(word.cast_signed()) })
    }

    #[inline(always)]
    unsafe fn pairs(self, [a, b, c, d, e, f, g, h]: [*const u64; LANES]) -> [Words512; 2] {
        // SAFETY: as required of the caller; `self` proves the vectors.
        unsafe {
            [
                Words512(four_pairs(a, c, e, g)),
                Words512(four_pairs(b, d, f, h)),
            ]
        }
    }

    #[inline(always)]
    fn gate(self, gate: &MergeGate) -> LineGate {
        // SAFETY: `self` proves the vectors.
        unsafe { LineGate::new(gate) }
    }

    #[inline(always)]
    fn avx512(self) -> Option<Avx512> {
        Some(self)
    }

    #[inline(always)]
    fn same_key<const K: usize>(self, a: &[u64; K], b: &[u64; K]) -> bool {
        if K != 2 {
            return a == b;
        }
        // SAFETY: both are two words long; `self` proves the vectors.
        unsafe {
            let a = _mm_loadu_si128(a.as_ptr().cast());
            let b = _mm_loadu_si128(b.as_ptr().cast());
            _mm_cmpneq_epi64_mask(a, b) == 0
        }
    }

    #[inline(always)]
    fn merge_in_order(self, flow: &mut Base, later: &Base) {
        // SAFETY: whole bases are read, and what is written back is the result of a scalar merge;
        // `self` proves the vectors.
        unsafe {
            let (a, b) = (head(flow), head(later));
            // The flow's first time stays: the caller ensures that `later` began no earlier.
            let merged = _mm256_mask_max_epu64(a, LAST, a, b);
            let merged = _mm256_mask_add_epi64(merged, PACKETS_BYTES, a, b);
            let (c, d) = (tail(flow), tail(later));
            const JOINS: i32 = JOINED.cast_signed();
            // c | (d & joins): flags and marks. The type of service stays.
            let rest = _mm_ternarylogic_epi64::<0xf8>(c, d, _mm_set_epi32(JOINS, 0, 0, 0));
            let rest = _mm_mask_max_epu32(rest, LENGTHS, c, d);
            let rest = _mm_mask_max_epu8(rest, TTLS, c, d);
            let flow = std::ptr::from_mut(flow);
            _mm256_storeu_si256(flow.cast(), merged);
            _mm_storeu_si128(flow.cast::<__m128i>().add(2), rest);
        }
    }

    #[inline(always)]
    fn merge_if_passes<const K: usize, const M: usize, const N: usize>(
        self,
        gate: &LineGate,
        flow: &mut MicroflowRecord<K, M>,
        later: &MicroflowRecord<K, N>,
    ) -> bool {
        if K == 2 {
            let flow = std::ptr::from_mut(flow).cast();
            let later = std::ptr::from_ref(later).cast();
            // SAFETY: a record with two key words is at least a cache line long, aligned to lines,
            // and begins with key and base (asserted in `line.rs`). Both are borrowed for the call,
            // one of them mutably.
            return unsafe { gate.merge(flow, later) };
        }
        merge_in_steps(self, gate.as_ref(), flow, later)
    }

    #[inline(always)]
    fn equal_lanes(self, lanes: &[u16; 32], value_twice: u32) -> u32 {
        // SAFETY: the array has 64 bytes and the load is unaligned; `self` proves the vectors.
        unsafe {
            let values = _mm512_set1_epi32(value_twice.cast_signed());
            let lanes = _mm512_loadu_si512(lanes.as_ptr().cast());
            _mm512_cmpeq_epi16_mask(lanes, values)
        }
    }

    #[inline(always)]
    unsafe fn merge_states<const N: usize>(self, plan: &Plan, pairs: &[Pair]) {
        // SAFETY: as required of the caller.
        unsafe { plan.merge_avx512::<N>(self, pairs) };
    }
}
