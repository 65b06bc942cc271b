// SPDX-License-Identifier: Apache-2.0
//! FNV-1a, for names and numbers that must be the same on every machine and in every version.

/// The 64-bit FNV-1a hash of these octets.
///
/// # Source
/// RFC 9923, section 2.
#[must_use]
pub fn fnv_1a(octets: &[u8]) -> u64 {
    octets.iter().fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
        (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9923, appendix C.
    #[test]
    fn hashes_as_the_rfc_says() {
        assert_eq!(fnv_1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv_1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv_1a(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
