// SPDX-License-Identifier: Apache-2.0
//! A line: its input and its output.

use turboflow_merge::{Base, Complement, Marks};
use turboflow_record::{Family, WORDS_V4, WORDS_V6};

/// The bits of a flow key, lowest first: addresses, ports and protocol as in the words of a
/// [`FiveTuple`](turboflow_record::FiveTuple), without the family. Unused words are zero.
pub type Key = [u64; WORDS_V6];

/// Bits of the last word of a 5-tuple without the family.
const TRANSPORT_BITS: u32 = 40;

/// Bits of a key with `K` words.
#[must_use]
pub const fn key_bits<const K: usize>() -> u32 {
    64 * (K as u32 - 1) + TRANSPORT_BITS
}

/// The key in the line for the words of a record's key.
pub(crate) fn key_of_words<const K: usize>(words: &[u64; K]) -> Key {
    let mut key = [0; WORDS_V6];
    key[..K].copy_from_slice(words);
    key[K - 1] &= (1 << TRANSPORT_BITS) - 1;
    key
}

/// The words of a record's key for a key in the line.
pub(crate) fn words_of_key<const K: usize>(key: &Key) -> [u64; K] {
    let family = match K {
        WORDS_V4 => Family::V4,
        _ => Family::V6,
    };
    let mut words = std::array::from_fn(|at| key[at]);
    words[K - 1] |= (family as u64) << TRANSPORT_BITS;
    words
}

/// A packet at the head of the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// The key.
    pub key: Key,
    /// Time of arrival, in nanoseconds since 1970.
    pub time_ns: u64,
    /// IP length, in bytes.
    pub length_bytes: u32,
    /// 12 bits of TCP flags; 0 for other protocols.
    pub tcp_flags: u16,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// Type of service or traffic class.
    pub tos: u8,
}

impl Arrival {
    /// The packet in a record of one packet.
    #[must_use]
    pub fn of_record<const K: usize>(key: &[u64; K], base: &Base) -> Self {
        Self {
            key: key_of_words(key),
            time_ns: base.first_ns,
            length_bytes: base.max_length_bytes,
            tcp_flags: base.tcp_flags,
            ttl: base.max_ttl,
            tos: base.tos,
        }
    }

    /// The record of this packet.
    #[must_use]
    pub fn base(&self) -> Base {
        Base {
            packets: 1,
            bytes: self.length_bytes.into(),
            first_ns: self.time_ns,
            last_ns: self.time_ns,
            min_length_bytes: Complement::of(self.length_bytes),
            max_length_bytes: self.length_bytes,
            min_ttl: Complement::of(self.ttl),
            max_ttl: self.ttl,
            tcp_flags: self.tcp_flags,
            tos: self.tos,
            marks: Marks::of_packet(self.tcp_flags, false),
            ..Base::default()
        }
    }
}

/// The next input at the head of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A cell begins at this time, in nanoseconds since 1970. All resident records leave.
    Cell(u64),
    /// One clock without a packet.
    Idle,
    /// A packet.
    Packet(Arrival),
}

/// Why a record left, in the terms of [`Evicted`](turboflow_engine::Evicted).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Displaced by a packet of another flow.
    Collision,
    /// Its cell ended.
    Age,
    /// The next packet of its flow had to start a new record, or this is a packet for which no
    /// record has room.
    Cut,
}

/// A record that left the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The key of the record.
    pub key: Key,
    /// The fields of the record.
    pub base: Base,
    /// Why it left.
    pub why: Why,
}

/// A line of stages.
pub trait Line: Send {
    /// Gives steps to the head of the line, in order, and appends the records that leave meanwhile.
    ///
    /// Records of one flow leave in the order of its packets. Records that are displaced leave in
    /// the order of the packets that displace them.
    fn give(&mut self, steps: &[Step], left: &mut Vec<Left>);

    /// Number of clocks without a packet after which all records displaced by earlier packets have
    /// left.
    fn latency(&self) -> usize;
}
