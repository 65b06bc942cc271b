// SPDX-License-Identifier: Apache-2.0
//! Microflow records as words: base, state, key.
//!
//! ```text
//!        6 words               S words            2 words (IPv4), 5 (IPv6) or W (any other key)
//! +----------------------+--------------------+--------------------------------+
//! | base                 | further features   | key                            |
//! +----------------------+--------------------+--------------------------------+
//! ```
//!
//! A record in memory has a fixed number of words for key and state. Written as words, it takes
//! only those that its layout uses.

use turboflow_merge::{Base, KeySteps, Layout, MicroflowRecord};
use turboflow_record::{WORDS_V4, WORDS_V6};

/// Words of the base, which precede state and key.
pub const BASE_WORDS: usize = size_of::<Base>() / 8;
/// Indices of the words with packets and bytes.
pub(crate) const PACKETS_AT: usize = 0;
pub(crate) const BYTES_AT: usize = 1;
/// Index of the word with the time of the last packet.
pub(crate) const LAST_NS_AT: usize = 3;
/// Index of the word with the time of the first packet.
pub const FIRST_NS_AT: usize = 2;

const _: () = assert!(8 * (BASE_WORDS + WORDS_V4) == size_of::<MicroflowRecord<WORDS_V4, 0>>());

/// The number of words of a layout's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordShape {
    /// Words of further features.
    pub state_words: usize,
    /// Words of a key that is not the 5-tuple. IPv4 and IPv6 records then have one size.
    pub wide_key_words: Option<usize>,
}

impl RecordShape {
    /// The shape of a layout's records.
    #[must_use]
    pub fn of(layout: &Layout) -> Self {
        assert!(!layout.is_two_way(), "engines fill state words");
        let steps = layout.steps();
        Self {
            state_words: steps.words,
            wide_key_words: match steps.key {
                KeySteps::FiveTuple => None,
                KeySteps::Wide { words, .. } => Some(words),
            },
        }
    }

    /// Whether records are those of the default definition: base and 5-tuple only.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.state_words == 0 && self.wide_key_words.is_none()
    }

    /// Words of an IPv4 record.
    #[must_use]
    pub const fn words_v4(&self) -> usize {
        BASE_WORDS + self.state_words + WORDS_V4
    }

    /// Words of an IPv6 record, or of any record if the key is not the 5-tuple.
    #[must_use]
    pub fn words_v6(&self) -> usize {
        BASE_WORDS + self.state_words + self.wide_key_words.unwrap_or(WORDS_V6)
    }
}

/// The record made of these words. Unused words of key and state are zero.
pub(crate) fn record_of_row<const K: usize, const N: usize>(
    row: &[u64],
    state_words: usize,
) -> MicroflowRecord<K, N> {
    let (state, key) = row[BASE_WORDS..].split_at(state_words);
    MicroflowRecord {
        key: padded(key),
        base: Base::from_words(std::array::from_fn(|at| row[at])),
        state: padded(state),
    }
}

fn padded<const N: usize>(words: &[u64]) -> [u64; N] {
    let mut padded = [0; N];
    padded[..words.len()].copy_from_slice(words);
    padded
}

/// The record of the default definition made of these words.
#[inline(always)]
#[must_use]
pub fn record_of_words<const K: usize>(word: impl Fn(usize) -> u64) -> MicroflowRecord<K, 0> {
    MicroflowRecord {
        key: std::array::from_fn(|at| word(BASE_WORDS + at)),
        base: Base::from_words(std::array::from_fn(word)),
        state: [],
    }
}
