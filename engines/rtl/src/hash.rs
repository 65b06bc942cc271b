// SPDX-License-Identifier: Apache-2.0
//! The keyed hash of the line: Toeplitz, as in `rtl/tf_hash_toeplitz.sv`.

use crate::line::Key;
use crate::size::{Build, LineConfig, Size};

/// 64-bit words of a seed. The largest key and hash take 296 + 44 - 1 bits.
pub const SEED_WORDS: usize = 8;

/// The place of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The stage, unless a table gives another one.
    pub stage: u32,
    /// The entry of the table that gives the stage; 0 if there is no table.
    pub entry: u32,
    /// The bucket in each subtable; the second is 0 if there is only one subtable.
    pub bucket: [u32; 2],
    /// The tag.
    pub tag: u32,
}

/// A keyed hash function: bit `i` is the parity of the key under the seed from bit `i` on.
#[derive(Clone, Debug)]
pub struct Toeplitz {
    build: Build,
    size: Size,
    /// For every bit of a key, the hash of that bit alone. Other hashes are XORs of these.
    of_bits: Vec<u64>,
}

impl Toeplitz {
    pub(crate) fn new(config: &LineConfig) -> Self {
        let Build {
            stage_bits,
            bucket_bits,
            tag_bits,
            subtables,
            entry_bits,
            ..
        } = config.build;
        let hash_bits = subtables * bucket_bits + (stage_bits + tag_bits).max(entry_bits);
        let seed_bit = |at: usize| config.seed[at / 64] >> (at % 64) & 1;
        let hash_of_bit = |bit: u32| {
            let bits = (0..hash_bits).map(|i| seed_bit((bit + i) as usize) << i);
            bits.sum::<u64>()
        };
        Self {
            build: config.build,
            size: config.size,
            of_bits: (0..config.build.key_bits).map(hash_of_bit).collect(),
        }
    }

    /// The place of a key.
    #[must_use]
    pub fn place(&self, key: &Key) -> Place {
        let mut hash = 0;
        for (word, bits) in key.iter().zip(self.of_bits.chunks(64)) {
            let mut rest = *word;
            while rest != 0 {
                hash ^= bits.get(rest.trailing_zeros() as usize).unwrap_or(&0);
                rest &= rest - 1;
            }
        }
        let Build {
            bucket_bits,
            tag_bits,
            subtables,
            entry_bits,
            ..
        } = self.build;
        let bucket_mask = u64::from(self.size.buckets - 1);
        let mut bucket = [0; 2];
        for (subtable, bucket) in bucket.iter_mut().enumerate().take(subtables as usize) {
            *bucket = (hash >> (subtable as u32 * bucket_bits) & bucket_mask) as u32;
        }
        let above = hash >> (subtables * bucket_bits);
        Place {
            stage: (above >> tag_bits) as u32 & (self.size.stages - 1),
            entry: above as u32 & ((1 << entry_bits) - 1),
            bucket,
            tag: above as u32 & ((1 << tag_bits) - 1),
        }
    }
}
