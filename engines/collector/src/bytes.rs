// SPDX-License-Identifier: Apache-2.0
//! Numbers in network byte order, read from bytes that may end too early.

/// The 16-bit number at an offset.
pub(crate) fn two(bytes: &[u8], at: usize) -> Option<u16> {
    let found = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*found))
}

/// The 32-bit number at an offset.
pub(crate) fn four(bytes: &[u8], at: usize) -> Option<u32> {
    let found = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*found))
}

/// A number of any length; of more than eight octets, the last eight.
#[inline(always)]
pub(crate) fn number(octets: &[u8]) -> u64 {
    match *octets {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_be_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_be_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        _ => octets
            .iter()
            .fold(0, |number, octet| number << 8 | u64::from(*octet)),
    }
}

/// Splits off the first `length` bytes.
#[inline(always)]
pub(crate) fn split<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (first, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(first)
}
