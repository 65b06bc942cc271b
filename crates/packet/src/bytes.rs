// SPDX-License-Identifier: Apache-2.0
//! Bounds-checked reads.

/// `N` bytes at `offset`, if they were captured.
#[inline(always)]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk::<N>().copied()
}

/// The byte at `offset`, if it was captured.
#[inline(always)]
pub(crate) fn u8_at(bytes: &[u8], offset: usize) -> Option<u8> {
    bytes.get(offset).copied()
}

/// The 16-bit number in network order at `offset`.
#[inline(always)]
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_be_bytes)
}

/// The 32-bit number in network order at `offset`.
#[inline(always)]
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_be_bytes)
}

/// The 24-bit number in network order at `offset`.
pub(crate) fn u24_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(|[a, b, c]: [u8; 3]| u32::from_be_bytes([0, a, b, c]))
}

/// The 48-bit number in network order at `offset`.
pub(crate) fn u48_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let [a, b, c, d, e, f]: [u8; 6] = array_at(bytes, offset)?;
    Some(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}
