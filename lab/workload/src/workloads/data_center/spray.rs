// SPDX-License-Identifier: Apache-2.0
//! Selects the packets that cross the watched aggregation switch.

use crate::random::{Random, mix};

/// Spreads packets over the aggregation switches: one in four crosses the watched one.
#[derive(Clone, Debug)]
pub(super) struct Spray {
    random: Random,
    word: u64,
    left: u32,
}

impl Spray {
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            random: Random::new(mix(seed) ^ 0x5bd1),
            word: 0,
            left: 0,
        }
    }

    /// Whether a packet and its acknowledgement cross the watched switch.
    #[inline(always)]
    pub(super) const fn both(&mut self) -> (bool, bool) {
        if self.left == 0 {
            self.word = self.random.word();
            self.left = 16;
        }
        let bits = self.word;
        self.word >>= 4;
        self.left -= 1;
        (bits & 3 == 0, bits >> 2 & 3 == 0)
    }
}
