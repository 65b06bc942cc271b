// SPDX-License-Identifier: Apache-2.0
//! SHA-1 (FIPS 180-4, section 6.1), which Community IDs use. Nothing here relies on its security.

/// Octets of a digest.
pub(crate) const DIGEST_BYTES: usize = 20;
const BLOCK_BYTES: usize = 64;
/// Octets of the message's length at the end of the last block.
const LENGTH_BYTES: usize = 8;

/// The digest of a message that fits into one block, together with the padding and its length.
pub(crate) fn of_short(message: &[u8]) -> [u8; DIGEST_BYTES] {
    assert!(
        message.len() < BLOCK_BYTES - LENGTH_BYTES,
        "it fits into a block"
    );
    let mut block = [0; BLOCK_BYTES];
    block[..message.len()].copy_from_slice(message);
    block[message.len()] = 0x80;
    let bits = 8 * message.len() as u64;
    block[BLOCK_BYTES - LENGTH_BYTES..].copy_from_slice(&bits.to_be_bytes());
    let mut digest = [0; DIGEST_BYTES];
    let hash = compressed(&block);
    for (octets, word) in digest.chunks_exact_mut(4).zip(hash) {
        octets.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

/// The hash of a single block (section 6.1.2).
fn compressed(block: &[u8; BLOCK_BYTES]) -> [u32; 5] {
    const START: [u32; 5] = [
        0x6745_2301,
        0xefcd_ab89,
        0x98ba_dcfe,
        0x1032_5476,
        0xc3d2_e1f0,
    ];
    let mut schedule = [0u32; 80];
    for (word, octets) in schedule.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*octets);
    }
    for t in 16..80 {
        let mixed = schedule[t - 3] ^ schedule[t - 8] ^ schedule[t - 14] ^ schedule[t - 16];
        schedule[t] = mixed.rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = START;
    for (t, word) in schedule.iter().enumerate() {
        let (f, k) = match t {
            0..20 => (b & c | !b & d, 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc_u32),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = (a.rotate_left(5).wrapping_add(f))
            .wrapping_add(e)
            .wrapping_add(k)
            .wrapping_add(*word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    let worked = [a, b, c, d, e];
    std::array::from_fn(|index| START[index].wrapping_add(worked[index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The short examples of FIPS 180 and RFC 3174.
    #[test]
    fn gives_published_digests() {
        let hex = |message: &[u8]| {
            let digest = of_short(message);
            digest
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        assert_eq!(hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(hex(b"a"), "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8");
    }
}
