// SPDX-License-Identifier: Apache-2.0
//! The hash of the flow cache. It is keyed and uses only operations that exist for vectors, so that
//! eight keys take the time of two.
//!
//! The two halves of every word are added to secrets and multiplied with each other, and the
//! products are summed. This is NH of UMAC (Black et al., "UMAC: Fast and Secure Message
//! Authentication", CRYPTO '99, section 4). For two keys chosen without knowledge of the secrets,
//! the sums are equal with a probability of 2^-32, if the secrets are independent. A sum is linear
//! in every half word, so consecutive keys (an address scan) give evenly spaced sums. Two rounds of
//! multiplications by odd constants, with a shift between them, break this spacing. These rounds
//! have no secret. That they add no more collisions than chance would is measured (see the tests
//! below), not proved. They multiply 32 by 32 bits, for which vectors have one instruction. Whole
//! words would take three dependent instructions, and three times the latency.
//!
//! ```text
//! 63            48              32                          0
//! +--------------+---------------+--------------------------+
//! |    (weak)    |      tag      | bucket of the flow cache |
//! +--------------+---------------+--------------------------+
//! ```

use crate::hash::splitmix;
use crate::{KeyHasher, LANES, MicroflowRecord, Vectors, Words};

/// A keyed hash function over keys of `K` words.
#[derive(Clone, Copy, Debug)]
pub struct LaneHasher<const K: usize> {
    pub(crate) secret: [u64; K],
}

/// The hash of one flow key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneHash(pub u64);

impl LaneHash {
    /// The position in the hash space, in units of 1/2^32.
    #[inline(always)]
    #[must_use]
    pub const fn share(self) -> u64 {
        self.0 & u32::MAX as u64
    }

    /// Which of `parts` equal parts of the hash space contains the hash. Monotonic in the position.
    #[inline(always)]
    #[must_use]
    pub const fn part(self, parts: u32) -> u32 {
        ((self.share() * parts as u64) >> 32) as u32
    }

    /// A 16-bit fingerprint, always odd.
    #[inline(always)]
    #[must_use]
    pub const fn tag(self) -> u16 {
        (self.0 >> 32) as u16 | 1
    }
}

/// Odd multipliers without structure (from the finalizers of MurmurHash3).
const SPREAD: [u64; 3] = [0xed55_8ccd, 0xff51_afd7, 0x85eb_ca6b];

impl<const K: usize> LaneHasher<K> {
    /// The hash function of a seed, which `hasher` holds.
    #[must_use]
    pub fn new(hasher: &KeyHasher) -> Self {
        // Unlike hashes of 0, 1, 2, ..., these secrets have no known dependence.
        let mut state = hasher.hash(&[0]).0;
        Self {
            secret: std::array::from_fn(|_| splitmix(&mut state)),
        }
    }

    /// Hashes one key.
    #[inline(always)]
    #[must_use]
    pub fn hash(&self, key: &[u64; K]) -> LaneHash {
        let mut sum = 0u64;
        for (word, secret) in key.iter().zip(self.secret) {
            let low = (*word as u32).wrapping_add(secret as u32);
            let high = ((word >> 32) as u32).wrapping_add((secret >> 32) as u32);
            sum = sum.wrapping_add(u64::from(low) * u64::from(high));
        }
        const LOW: u64 = u32::MAX as u64;
        let spread = ((sum & LOW) * SPREAD[0]).wrapping_add((sum >> 32) * SPREAD[1]);
        LaneHash((((spread ^ spread >> 32) & LOW) * SPREAD[2]) ^ spread)
    }

    /// The hashes of eight records' keys.
    #[inline(always)]
    pub fn hash_keys<V: Vectors, const N: usize>(
        &self,
        vectors: V,
        records: &[MicroflowRecord<K, N>; LANES],
    ) -> V::Words {
        let sum = if K == 2 {
            // Four words hold two keys, in memory order.
            let secret: [u64; LANES] = std::array::from_fn(|word| self.secret[word % K]);
            let secret = vectors.words(&secret);
            let keys = std::array::from_fn(|lane| records[lane].key.as_ptr());
            // SAFETY: keys have two words.
            let [even, odd] = unsafe { vectors.pairs(keys) };
            products_of_halves(even, secret).pair_sums(products_of_halves(odd, secret))
        } else {
            let mut sum = vectors.all(0);
            for word in 0..K {
                let words = std::array::from_fn(|lane| records[lane].key[word]);
                let secret = vectors.all(self.secret[word]);
                sum = sum.plus(products_of_halves(vectors.words(&words), secret));
            }
            sum
        };
        let [low, high, again] = SPREAD.map(|multiplier| vectors.all(multiplier));
        let spread = sum
            .product_of_halves(low)
            .plus(sum.right::<32>().product_of_halves(high));
        spread
            .differing(spread.right::<32>())
            .product_of_halves(again)
            .differing(spread)
    }
}

#[inline(always)]
fn products_of_halves<W: Words>(words: W, secret: W) -> W {
    let halves = words.plus_in_halves(secret);
    halves.product_of_halves(halves.right::<32>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes keys that count up in one of their bytes, under many seeds. Returns the largest
    /// number of keys in one part. The mean is 200.
    fn fullest(part: impl Fn(LaneHash) -> usize, parts: usize) -> u32 {
        let mut fullest = 0;
        for (seed, shift) in (0..96).zip([0, 8, 16, 24, 32, 40, 48, 56].into_iter().cycle()) {
            let hasher = LaneHasher::new(&KeyHasher::new(seed));
            let mut filled = vec![0u32; parts];
            for flow in 0..200 * parts as u64 {
                let word = flow.rotate_left(shift);
                let key = match seed / 8 % 2 {
                    0 => [0x0a00_0001_0a00_0000 ^ word, 0x0406_0050_0000],
                    _ => [0x0a00_0001_0a00_0000, 0x0406_0050_0000 ^ word],
                };
                filled[part(hasher.hash(&key))] += 1;
            }
            fullest = fullest.max(filled.into_iter().max().unwrap());
        }
        fullest
    }

    #[test]
    fn spreads_counting_keys_evenly_under_every_seed() {
        // With 200 keys per part, six standard deviations are 85.
        assert!(fullest(|hash| hash.part(500) as usize, 500) < 285);
        assert!(fullest(|hash| hash.tag() as usize >> 7, 512) < 285);
        // Tags within one part of the hash space are just as evenly distributed.
        let fine = |hash: LaneHash| hash.part(16) as usize * 32 + (hash.tag() as usize >> 1) % 32;
        assert!(fullest(fine, 512) < 285);
    }

    /// Keys that count up share part and tag with another key no more often than by chance. Each
    /// one that does costs a comparison of keys.
    #[test]
    fn tags_tell_counting_keys_apart_under_every_seed() {
        const KEYS: u64 = 100_000;
        const PARTS: u32 = 1 << 14;
        for (seed, shift) in (0..64).zip([0, 8, 16, 24, 32, 40, 48, 56].into_iter().cycle()) {
            let hasher = LaneHasher::new(&KeyHasher::new(seed));
            let mut found: Vec<u32> = (0..KEYS)
                .map(|flow| {
                    let hash = hasher.hash(&[flow.rotate_left(shift) ^ 0x0a00_0001, 0x0406_0050]);
                    hash.part(PARTS) << 16 | u32::from(hash.tag())
                })
                .collect();
            found.sort_unstable();
            let twins = found.windows(2).filter(|two| two[0] == two[1]).count();
            // By chance 9.3 for 2^14 parts and 2^15 tags; six standard deviations are 18.
            assert!(twins < 28, "{twins} under seed {seed}");
        }
    }

    #[test]
    fn depends_on_every_word_and_on_the_seed() {
        let key = [1u64, 2, 3, 4, 5];
        let hasher = LaneHasher::new(&KeyHasher::new(1));
        let hash = hasher.hash(&key);
        assert_ne!(hash, LaneHasher::new(&KeyHasher::new(2)).hash(&key));
        for index in 0..5 {
            for bit in [0, 31, 32, 40, 63] {
                let mut other = key;
                other[index] ^= 1 << bit;
                assert_ne!(hash, hasher.hash(&other));
            }
        }
        assert_ne!(hash, hasher.hash(&[2, 1, 3, 4, 5]));
    }

    /// Keys whose sums differ by a multiple of a combination of four secrets. If the secrets were
    /// hashes of 0 to 3, which are multiples of one number, the difference would be 0 under one
    /// seed of 250.
    #[test]
    fn keys_made_for_dependent_secrets_do_not_collide() {
        let key = |step: u64| {
            let (more, less) = (0x4000_0000 + step, 0x4000_0000 - step);
            [more, less, less, more, 0x0600_0050_0000]
        };
        let mirrored = |step: u64| key(step).map(|word| word.rotate_left(32));
        for seed in 0..20_000 {
            let hasher = LaneHasher::new(&KeyHasher::new(seed));
            for step in 1..8 {
                let step = 4_096 * step;
                assert_ne!(hasher.hash(&key(0)), hasher.hash(&key(step)), "{seed}");
                assert_ne!(
                    hasher.hash(&mirrored(0)),
                    hasher.hash(&mirrored(step)),
                    "{seed}"
                );
            }
        }
    }

    #[test]
    fn a_share_of_the_hash_space_keeps_the_order_of_hashes() {
        let hashes = [3 << 40, u64::MAX >> 33, 1 << 31 | 3 << 40, u64::MAX].map(LaneHash);
        assert_eq!(hashes.map(|hash| hash.part(1_000)), [0, 499, 500, 999]);
        assert!(hashes.iter().all(|hash| hash.tag() % 2 == 1));
    }
}
