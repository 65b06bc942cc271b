// SPDX-License-Identifier: Apache-2.0
//! The keyed hash of flow keys for engines, shards and sketches. The flow cache has its own,
//! [`LaneHasher`](crate::LaneHasher).
//!
//! It folds 64x64-bit multiplications with secret words. It is keyed, so colliding keys cannot be
//! chosen without the seed. It gives equal hashes on every machine, so a run can be repeated with
//! `--seed`. Different parts of one hash have different uses and overlap as little as possible:
//!
//! ```text
//! 63            48            32            16             0
//! +--------------+-------------+-------------+-------------+
//! |   share of a table of any kind (`KeyHash::share`)
//! +--------------+-------------+-------------+-------------+
//!                | slot of the microflow table|
//!                              | shard        |
//! ```

/// A keyed hash function over the words of a flow key.
#[derive(Clone, Copy, Debug)]
pub struct KeyHasher {
    secret: [u64; 4],
}

/// The hash of one flow key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash(pub u64);

impl KeyHasher {
    /// The hash function of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self {
            secret: std::array::from_fn(|_| splitmix(&mut state)),
        }
    }

    /// Hashes the `K` words of a key.
    #[inline(always)]
    #[must_use]
    pub fn hash<const K: usize>(&self, key: &[u64; K]) -> KeyHash {
        let mut hash = self.secret[0];
        let mut index = 0;
        while index + 1 < K {
            hash = fold(hash ^ key[index], self.secret[1] ^ key[index + 1]);
            index += 2;
        }
        if index < K {
            hash ^= key[index];
        }
        // One multiplication alone would map consecutive keys (an address scan) to evenly spaced
        // slots, which coincide for some secrets. The second multiplication breaks the spacing.
        KeyHash(fold(hash ^ self.secret[2], self.secret[3]))
    }
}

impl KeyHash {
    /// Which of `shards` shards the flow belongs to.
    #[inline(always)]
    #[must_use]
    pub const fn shard(self, shards: usize) -> usize {
        ((self.0 >> 16 & 0xffff) as usize * shards) >> 16
    }

    /// Which of `slots` slots of a microflow table the flow belongs to.
    #[inline(always)]
    #[must_use]
    pub const fn slot(self, slots: u32) -> usize {
        (((self.0 >> 16) as u32 as u64 * slots as u64) >> 32) as usize
    }

    /// Which of `parts` equal parts of the hash space contains the hash. Monotonic in the hash.
    #[inline(always)]
    #[must_use]
    pub const fn share(self, parts: u64) -> u64 {
        ((self.0 as u128 * parts as u128) >> 64) as u64
    }
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The SplitMix64 generator, which expands a seed to any number of words.
pub(crate) fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes keys that count up in one of their bytes, under many seeds. Returns the largest
    /// number of keys in one part. The mean is 200.
    fn fullest(part: impl Fn(KeyHash) -> usize, parts: usize) -> u32 {
        let mut fullest = 0;
        for (seed, shift) in (0..96).zip([0, 8, 24, 32, 40, 48].into_iter().cycle()) {
            let hasher = KeyHasher::new(seed);
            let mut filled = vec![0u32; parts];
            for flow in 0..200 * parts as u64 {
                let key = [
                    0x0a00_0001_0a00_0000 ^ flow.rotate_left(shift),
                    0x0406_0050_0000,
                ];
                filled[part(hasher.hash(&key))] += 1;
            }
            fullest = fullest.max(filled.into_iter().max().unwrap());
        }
        fullest
    }

    #[test]
    fn spreads_counting_keys_evenly_under_every_seed() {
        // With 200 keys per part, six standard deviations are 85.
        assert!(fullest(|hash| hash.shard(7), 7) < 285);
        assert!(fullest(|hash| hash.slot(500), 500) < 285);
        assert!(fullest(|hash| hash.share(500) as usize, 500) < 285);
    }

    #[test]
    fn depends_on_every_word_and_on_the_seed() {
        let key = [1u64, 2, 3, 4, 5];
        let hash = KeyHasher::new(1).hash(&key);
        assert_ne!(hash, KeyHasher::new(2).hash(&key));
        for index in 0..5 {
            let mut other = key;
            other[index] ^= 1 << 40;
            assert_ne!(hash, KeyHasher::new(1).hash(&other));
        }
    }
}
