// SPDX-License-Identifier: Apache-2.0
//! What the program shares with user space, as bytes: `bpf/layout.h` is the other side.

use turboflow_packet::Rejected;
use turboflow_record::{Base, Marks, MicroflowRecord, WORDS_V4, WORDS_V6};

/// Bytes of a row of the table, and of an IPv6 record in the ring.
pub(crate) const ROW_BYTES: usize = 8 * WORDS_V6 + size_of::<Base>();
/// Bytes of an IPv4 record in the ring.
pub(crate) const V4_BYTES: usize = 8 * WORDS_V4 + size_of::<Base>();
/// Words of the counters of one CPU.
pub(crate) const COUNTER_WORDS: usize = 12 + 2 * Rejected::COUNT;
/// Random words that key the hash: one, and one for each 32-bit half of a key.
pub const KEY_HALVES: usize = 1 + 2 * WORDS_V6;

const _: () = assert!(ROW_BYTES == 88);
const _: () = assert!(V4_BYTES == size_of::<MicroflowRecord<WORDS_V4, 0>>());

/// The 64-bit words of bytes that the kernel wrote.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().copied().map(u64::from_ne_bytes)
}

/// A record of the ring or a row of the table; `None` where the size is not `K` words and a base.
pub(crate) fn record<const K: usize>(bytes: &[u8]) -> Option<MicroflowRecord<K, 0>> {
    if bytes.len() != 8 * K + size_of::<Base>() {
        return None;
    }
    let mut words = words(bytes);
    let mut next = || words.next().unwrap_or_default();
    let key = std::array::from_fn(|_| next());
    let [packets, bytes, first_ns, last_ns, lengths, rest] = std::array::from_fn(|_| next());
    let [flags_low, flags_high, marks, tos, min_ttl, max_ttl, ..] = rest.to_le_bytes();
    let base = Base {
        packets,
        bytes,
        first_ns,
        last_ns,
        min_length_bytes: lengths as u32,
        max_length_bytes: (lengths >> 32) as u32,
        tcp_flags: u16::from_le_bytes([flags_low, flags_high]),
        marks: Marks(marks),
        tos,
        min_ttl,
        max_ttl,
        ..Base::default()
    };
    Some(MicroflowRecord {
        key,
        base,
        state: [],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_the_program_writes_it() {
        let mut bytes = Vec::new();
        for word in [11u64, 12, 3, 4, 5, 6] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(40u32.to_le_bytes());
        bytes.extend(1500u32.to_le_bytes());
        bytes.extend(0x0812u16.to_le_bytes());
        bytes.extend([0x11, 0xb8, 62, 64, 0, 0]);
        let read = record::<WORDS_V4>(&bytes).expect("64 bytes");
        assert_eq!(read.key, [11, 12]);
        let base = Base {
            packets: 3,
            bytes: 4,
            first_ns: 5,
            last_ns: 6,
            min_length_bytes: 40,
            max_length_bytes: 1500,
            tcp_flags: 0x0812,
            marks: Marks(0x11),
            tos: 0xb8,
            min_ttl: 62,
            max_ttl: 64,
            ..Base::default()
        };
        assert_eq!(read.base, base);
        assert!(record::<WORDS_V6>(&bytes).is_none());
    }
}
