// SPDX-License-Identifier: Apache-2.0
//! The words that program and user space share: `bpf/layout.h` is the other side.

use turboflow_engine::RecordShape;
use turboflow_merge::WORDS_WIDE;
use turboflow_record::{Rejected, WORDS_V6};

/// The word of [`Base`] whose fourth byte holds the half of a record's table.
pub(crate) const HALF_AT: usize = 5;
/// The bits of that word that are not part of a record: the end reason, not yet set, and the half.
const OF_THE_RING: u64 = 0xffff << 16;
/// Words of one CPU's counters.
pub(crate) const COUNTER_WORDS: usize = 12 + 2 * Rejected::COUNT + 3 * INTERFACES;
/// Maximum number of interfaces of an engine.
pub const INTERFACES: usize = 16;
/// Random words of the 5-tuple's hash: one, and one for each 32-bit half.
pub(crate) const TUPLE_HALVES: usize = 1 + 2 * WORDS_V6;
/// Random words of the hash for any key.
pub const KEY_HALVES: usize = 1 + 2 * WORDS_WIDE;

/// The 64-bit words in bytes written by the kernel.
pub(crate) fn words(bytes: &[u8]) -> impl ExactSizeIterator<Item = u64> + '_ {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().copied().map(u64::from_ne_bytes)
}

/// A word of a record as written by the kernel, without the bits of the ring.
#[inline(always)]
pub(crate) const fn record_word(at: usize, word: u64) -> u64 {
    if at == HALF_AT {
        word & !OF_THE_RING
    } else {
        word
    }
}

/// Words of a key in the kernel's map: an IPv4 key is padded with zeros.
pub(crate) fn short_flow_key_words(shape: Option<RecordShape>) -> usize {
    shape
        .and_then(|shape| shape.wide_key_words)
        .unwrap_or(WORDS_V6)
}

#[cfg(test)]
mod tests {
    use turboflow_engine::{MicroflowBatch, RecordShape};
    use turboflow_merge::{Base, Complement, Marks};

    use super::*;

    #[test]
    fn a_record_is_read_as_the_program_writes_it() {
        let lengths = u64::from(!40u32) | 1_500 << 32;
        let rest = u64::from_le_bytes([!62, 64, 0, 1, 0x12, 0x08, 0xb8, 0x05]);
        let mut batch = MicroflowBatch::default();
        let plain = [3, 4, 5, 6, lengths, rest, 11, 12];
        batch.plain_v4.push(|at| record_word(at, plain[at]));
        let shape = RecordShape {
            state_words: 3,
            wide_key_words: Some(1),
        };
        let laid_out = [3, 4, 5, 6, lengths, rest, 7, 8, 9, 11];
        let row = laid_out.iter().enumerate();
        assert!(batch.push_row(row.map(|(at, word)| record_word(at, *word)), shape));
        let read = batch.v4::<0>().next().expect("was read");
        let wide = batch.wide::<8>().next().expect("was read");
        assert_eq!(read.key, [11, 12]);
        assert_eq!(wide.state, [7, 8, 9, 0, 0, 0, 0, 0]);
        assert_eq!(
            (wide.key[..2].to_vec(), wide.base),
            (vec![11, 0], read.base)
        );
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
