// SPDX-License-Identifier: Apache-2.0
//! The two inner operations of a merge, in whatever vectors the machine has: comparing 32 tags, and
//! folding one record into another.

#[cfg(target_arch = "x86_64")]
use turboflow_record::Marks;
use turboflow_record::{Base, Plan};

/// A vector width.
pub(crate) trait Vectors {
    /// Whether records fold faster in vectors than one field after the other; that takes AVX2.
    const FOLDS_IN_VECTORS: bool;

    /// A bit for every lane equal to `tag`.
    fn matches(lanes: &[u16; 32], tag: u16) -> u32;

    /// `flow.merge(later)`.
    #[inline(always)]
    fn merge(flow: &mut Base, later: &Base) {
        #[cfg(target_arch = "x86_64")]
        if Self::FOLDS_IN_VECTORS {
            // SAFETY: AVX2 implies SSE4.1.
            return unsafe { merge_in_vectors(flow, later) };
        }
        flow.merge(later);
    }

    /// `plan.merge(flow, later)`.
    #[inline(always)]
    fn merge_state<const N: usize>(plan: &Plan, flow: &mut [u64; N], later: &[u64; N]) {
        if Self::FOLDS_IN_VECTORS {
            plan.merge_in_blocks(flow, later);
        } else {
            plan.merge(flow, later);
        }
    }
}

/// What every machine of the target has.
#[cfg(target_arch = "x86_64")]
pub(crate) type Baseline = Sse2;
/// What every machine of the target has.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) type Baseline = Portable;

/// Plain code.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub(crate) struct Portable;

#[cfg(any(test, not(target_arch = "x86_64")))]
impl Vectors for Portable {
    const FOLDS_IN_VECTORS: bool = false;

    #[inline(always)]
    fn matches(lanes: &[u16; 32], tag: u16) -> u32 {
        let mut mask = 0;
        for (lane, &value) in lanes.iter().enumerate() {
            mask |= u32::from(value == tag) << lane;
        }
        mask
    }
}

/// 128-bit vectors, which every x86-64 machine has.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Sse2;

#[cfg(target_arch = "x86_64")]
impl Vectors for Sse2 {
    const FOLDS_IN_VECTORS: bool = false;

    #[inline(always)]
    fn matches(lanes: &[u16; 32], tag: u16) -> u32 {
        use std::arch::x86_64::*;
        // SAFETY: SSE2 is part of x86-64; the array is 64 bytes and the loads are unaligned ones.
        unsafe {
            let tags = _mm_set1_epi16(tag.cast_signed());
            let pointer = lanes.as_ptr().cast::<__m128i>();
            let equal = |part| _mm_cmpeq_epi16(_mm_loadu_si128(pointer.add(part)), tags);
            let low = _mm_movemask_epi8(_mm_packs_epi16(equal(0), equal(1)));
            let high = _mm_movemask_epi8(_mm_packs_epi16(equal(2), equal(3)));
            (low | high << 16).cast_unsigned()
        }
    }
}

/// 256-bit vectors; only inside functions compiled for AVX2.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Vectors for Avx2 {
    const FOLDS_IN_VECTORS: bool = true;

    #[inline(always)]
    fn matches(lanes: &[u16; 32], tag: u16) -> u32 {
        use std::arch::x86_64::*;
        // SAFETY: callers run this only where AVX2 was found (see `FlowCache::merge`); the array is
        // 64 bytes and the loads are unaligned ones.
        unsafe {
            let tags = _mm256_set1_epi16(tag.cast_signed());
            let pointer = lanes.as_ptr().cast::<__m256i>();
            let low = _mm256_cmpeq_epi16(_mm256_loadu_si256(pointer), tags);
            let high = _mm256_cmpeq_epi16(_mm256_loadu_si256(pointer.add(1)), tags);
            let bytes = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(low, high));
            _mm256_movemask_epi8(bytes).cast_unsigned()
        }
    }
}

/// 512-bit vectors; only inside functions compiled for AVX-512BW.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Vectors for Avx512 {
    const FOLDS_IN_VECTORS: bool = true;

    #[inline(always)]
    fn matches(lanes: &[u16; 32], tag: u16) -> u32 {
        use std::arch::x86_64::*;
        // SAFETY: callers run this only where AVX-512BW was found (see `FlowCache::merge`); the
        // array is 64 bytes and the load is an unaligned one.
        unsafe {
            let tags = _mm512_set1_epi16(tag.cast_signed());
            _mm512_cmpeq_epi16_mask(_mm512_loadu_si512(lanes.as_ptr().cast()), tags)
        }
    }
}

/// Folds the last 16 bytes of a base (lengths, flags, TTLs) in one go: as scalars they are half of
/// a merge's instructions.
///
/// ```text
/// 32          36          40     42     43   44       45       46   47
/// | min len   | max len   | flags| marks| tos| min ttl| max ttl| end| 0 |
///   min u32     max u32     or     or*    a    min u8   max u8   a    a     * less the first packet's
/// ```
///
/// # Safety
/// The machine has SSE4.1.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn merge_in_vectors(flow: &mut Base, later: &Base) {
    use std::arch::x86_64::*;
    use std::mem::offset_of;
    const {
        assert!(offset_of!(Base, min_length_bytes) == 32 && offset_of!(Base, tcp_flags) == 40);
        assert!(offset_of!(Base, marks) == 42 && offset_of!(Base, tos) == 43);
        assert!(offset_of!(Base, min_ttl) == 44 && offset_of!(Base, max_ttl) == 45);
    }
    const JOINED_MARKS: i32 = (!Marks::OF_FIRST_PACKET) as i32;
    flow.packets += later.packets;
    flow.bytes += later.bytes;
    flow.first_ns = flow.first_ns.min(later.first_ns);
    flow.last_ns = flow.last_ns.max(later.last_ns);
    // SAFETY: both references are to whole bases, of which bytes 32 to 48 are read, and written
    // back as values that a scalar merge would have given; the caller vouches for the vectors.
    unsafe {
        let tail = std::ptr::from_mut(flow)
            .cast::<u8>()
            .add(32)
            .cast::<__m128i>();
        let other = std::ptr::from_ref(later)
            .cast::<u8>()
            .add(32)
            .cast::<__m128i>();
        let (a, b) = (_mm_loadu_si128(tail), _mm_loadu_si128(other));
        let joins = _mm_set_epi32(0, 0xffff | JOINED_MARKS << 16, 0, 0);
        let joined = _mm_or_si128(a, _mm_and_si128(b, joins));
        let lengths = _mm_blend_epi16::<0b0000_1100>(_mm_min_epu32(a, b), _mm_max_epu32(a, b));
        let ttls = _mm_blendv_epi8(
            _mm_min_epu8(a, b),
            _mm_max_epu8(a, b),
            _mm_set_epi32(0xff00, 0, 0, 0),
        );
        let merged = _mm_blend_epi16::<0b1111_0000>(lengths, joined);
        _mm_storeu_si128(tail, _mm_blend_epi16::<0b0100_0000>(merged, ttls));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn base() -> impl Strategy<Value = Base> {
        let words = (any::<u32>(), any::<u32>(), any::<u64>(), any::<u64>());
        let small = (any::<u32>(), any::<u32>(), any::<u16>(), any::<[u8; 5]>());
        (words, small).prop_map(|((packets, bytes, first_ns, last_ns), small)| {
            let (
                min_length_bytes,
                max_length_bytes,
                tcp_flags,
                [marks, tos, min_ttl, max_ttl, end],
            ) = small;
            Base {
                packets: u64::from(packets),
                bytes: u64::from(bytes),
                first_ns,
                last_ns,
                min_length_bytes,
                max_length_bytes,
                tcp_flags,
                marks: turboflow_record::Marks(marks),
                tos,
                min_ttl,
                max_ttl,
                end_reason: end,
                padding: 0,
            }
        })
    }

    proptest! {
        #[test]
        fn vectors_merge_as_plain_code_does(flow in base(), later in base()) {
            let mut expected = flow;
            Portable::merge(&mut expected, &later);
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                let mut merged = flow;
                Avx2::merge(&mut merged, &later);
                prop_assert_eq!(merged, expected);
            }
        }
    }
}
