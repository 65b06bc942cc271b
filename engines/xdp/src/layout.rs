// SPDX-License-Identifier: Apache-2.0
//! What the program shares with user space, as words: `bpf/layout.h` is the other side.

use turboflow_merge::{Base, MicroflowRecord, WORDS_WIDE};
use turboflow_packet::Rejected;
use turboflow_record::{WORDS_V4, WORDS_V6};

/// Words of a record before its key.
pub(crate) const BASE_WORDS: usize = size_of::<Base>() / 8;
/// The word of [`Base`] with the first packet's time.
pub(crate) const FIRST_NS_AT: usize = 2;
/// The word of [`Base`] whose fourth byte says in which half of its table a record was.
pub(crate) const HALF_AT: usize = 5;
/// What of that word is not of a record: an end's reason, which there is none of yet, and the half.
const OF_THE_RING: u64 = 0xffff << 16;
/// Words of the counters of one CPU.
pub(crate) const COUNTER_WORDS: usize = 11 + 2 * Rejected::COUNT + 3 * INTERFACES;
/// The most interfaces that an engine can be on.
pub const INTERFACES: usize = 16;
/// Random words that key the hash of the 5-tuple: one, and one for each 32-bit half.
pub(crate) const TUPLE_HALVES: usize = 1 + 2 * WORDS_V6;
/// The same for any key.
pub const KEY_HALVES: usize = 1 + 2 * WORDS_WIDE;

const _: () = assert!(8 * (BASE_WORDS + WORDS_V4) == size_of::<MicroflowRecord<WORDS_V4, 0>>());

/// The 64-bit words of bytes that the kernel wrote.
pub(crate) fn words(bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> + '_ {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().copied().map(u64::from_ne_bytes)
}

/// The record that a base and a key make, and further features between them: as many words of each as there are, zeros up to what
/// the record has room for.
pub(crate) fn record<const K: usize, const N: usize>(
    row: &[u64],
    state_words: usize,
) -> MicroflowRecord<K, N> {
    let (state, key) = row[BASE_WORDS..].split_at(state_words);
    MicroflowRecord {
        key: padded(key),
        base: base(|at| row[at]),
        state: padded(state),
    }
}

fn padded<const N: usize>(words: &[u64]) -> [u64; N] {
    let mut padded = [0; N];
    padded[..words.len()].copy_from_slice(words);
    padded
}

/// The record that the words of base and key make.
#[inline(always)]
pub(crate) fn record_of_words<const K: usize>(
    word: impl Fn(usize) -> u64,
) -> MicroflowRecord<K, 0> {
    MicroflowRecord {
        key: std::array::from_fn(|at| word(BASE_WORDS + at)),
        base: base(word),
        state: [],
    }
}

#[inline(always)]
fn base(word: impl Fn(usize) -> u64) -> Base {
    let mut words: [u64; BASE_WORDS] = std::array::from_fn(word);
    words[HALF_AT] &= !OF_THE_RING;
    Base::from_words(words)
}

#[cfg(test)]
mod tests {
    use turboflow_merge::{Complement, Marks};

    use super::*;

    #[test]
    fn a_record_is_read_as_the_program_writes_it() {
        let lengths = u64::from(!40u32) | 1_500 << 32;
        let rest = u64::from_le_bytes([!62, 64, 0, 1, 0x12, 0x08, 0xb8, 0x05]);
        let read = record_of_words::<WORDS_V4>(|at| [3, 4, 5, 6, lengths, rest, 11, 12][at]);
        assert_eq!(read.key, [11, 12]);
        let planned = record::<WORDS_V6, 8>(&[3, 4, 5, 6, lengths, rest, 7, 8, 9, 11], 3);
        assert_eq!(planned.state, [7, 8, 9, 0, 0, 0, 0, 0]);
        assert_eq!((planned.key, planned.base), ([11, 0, 0, 0, 0], read.base));
        let base = Base {
            packets: 3,
            bytes: 4,
            first_ns: 5,
            last_ns: 6,
            min_length_bytes: Complement::of(40),
            max_length_bytes: 1500,
            tcp_flags: 0x0812,
            marks: Marks(0x05),
            tos: 0xb8,
            min_ttl: Complement::of(62),
            max_ttl: 64,
            ..Base::default()
        };
        assert_eq!(read.base, base);
    }
}
