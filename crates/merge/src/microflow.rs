// SPDX-License-Identifier: Apache-2.0
//! Microflow records and flow records, which share one format.
//!
//! "MFRs have the same format as FRs" (TurboFlow, section 4). A single packet is the smallest
//! microflow record. Engines and the aggregator therefore share one operation, which merges a later
//! record into an earlier one.
//!
//! ```text
//!            K words          6 words                                        N words
//! +-------------------------+----------------------------------------------+------------------+
//! | key (src dst ports ...) | packets bytes first last | lengths | small   | further features |
//! +-------------------------+----------------------------------------------+------------------+
//!   IPv4 default: 16 + 48 = 64 bytes, one cache line     (K = 2, N = 0)
//!   IPv6 default: 40 + 48 = 88, padded to 128 bytes      (K = 5, N = 0)
//! ```

use crate::Plan;
use turboflow_record::{Family, Packet, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN, WORDS_V4, WORDS_V6};

/// The fields of every record: those of the default definition, and those that the rules on cuts,
/// ends and conservation need. A definition selects which of them are exported, and adds further
/// features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Base {
    /// Number of packets.
    pub packets: u64,
    /// Sum of IP lengths, in bytes.
    pub bytes: u64,
    /// Smallest timestamp, nanoseconds since 1970.
    pub first_ns: u64,
    /// Largest timestamp, nanoseconds since 1970.
    pub last_ns: u64,
    /// Smallest IP length, in bytes.
    pub min_length_bytes: Complement<u32>,
    /// Largest IP length, in bytes.
    pub max_length_bytes: u32,
    /// Smallest time to live or hop limit.
    pub min_ttl: Complement<u8>,
    /// Largest time to live or hop limit.
    pub max_ttl: u8,
    /// Why the record ended: a value of [`EndReason`](turboflow_record::EndReason), or 0 while the
    /// flow is open.
    pub end_reason: u8,
    /// 1 if the state holds the packets of the other direction (see
    /// [`Layout::in_two_way_form`](crate::Layout::in_two_way_form)), else 0.
    pub has_other: u8,
    /// OR of the 12-bit TCP flags.
    pub tcp_flags: u16,
    /// Type of service or traffic class of the first packet.
    pub tos: u8,
    /// Events of the flow's TCP connection. They are in the highest byte of the last word, so that
    /// a single comparison of that word tells whether any of [`Marks::ENDS`] is set.
    pub marks: Marks,
}

/// A minimum, stored as the maximum of complements, so that the minima and maxima of a record merge
/// in one operation. The default is the largest number, which is neutral in a merge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Complement<T>(T);

impl<T: Copy + Ord + std::ops::Not<Output = T>> Complement<T> {
    /// The minimum of one number.
    #[inline(always)]
    #[must_use]
    pub fn of(number: T) -> Self {
        Self(!number)
    }

    /// The minimum.
    #[inline(always)]
    #[must_use]
    pub fn get(self) -> T {
        !self.0
    }

    #[inline(always)]
    fn merge(&mut self, other: Self) {
        self.0 = self.0.max(other.0);
    }
}

/// Events of a TCP connection, as bits, which decide where a flow ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Marks(pub u8);

impl Marks {
    /// The record's first packet was a SYN without ACK.
    pub const STARTS_WITH_SYN: u8 = 1 << 0;
    /// The record's first packet ran against the canonical direction of a biflow.
    pub const STARTS_REVERSED: u8 = 1 << 1;
    /// A SYN without ACK was seen in the direction of the key.
    pub const SYN: u8 = 1 << 2;
    /// A SYN without ACK was seen in the reverse direction of a biflow.
    pub const REVERSE_SYN: u8 = 1 << 3;
    /// The record's first packet is an answer ([`Packet::is_answer`]). Set only if the layout uses
    /// it to find the initiator.
    pub const STARTS_WITH_ANSWER: u8 = 1 << 4;
    /// A FIN was seen in the direction of the key (the canonical direction of a biflow).
    pub const FIN: u8 = 1 << 5;
    /// A FIN was seen in the reverse direction of a biflow.
    pub const REVERSE_FIN: u8 = 1 << 6;
    /// An RST was seen in either direction.
    pub const RST: u8 = 1 << 7;
    /// Bits about the record's first packet, which a merge takes from the earlier record.
    pub const OF_FIRST_PACKET: u8 =
        Self::STARTS_WITH_SYN | Self::STARTS_REVERSED | Self::STARTS_WITH_ANSWER;
    /// Bits that may end a flow. These are the highest bits.
    pub const ENDS: u8 = Self::FIN | Self::REVERSE_FIN | Self::RST;

    /// The marks of one packet.
    #[inline(always)]
    #[must_use]
    pub const fn of_packet(tcp_flags: u16, reversed: bool) -> Self {
        const TABLES: [[u8; 32]; 2] = [Marks::table(false), Marks::table(true)];
        Self(TABLES[reversed as usize][(tcp_flags & 0x1f) as usize])
    }

    /// Marks by the low five TCP flags. No other flag affects the marks.
    const fn table(reversed: bool) -> [u8; 32] {
        let mut table = [0; 32];
        let mut flags = 0;
        while flags < 32 {
            let syn = flags & (TCP_SYN | TCP_ACK) == TCP_SYN;
            let fin = flags & TCP_FIN != 0;
            let rst = flags & TCP_RST != 0;
            table[flags as usize] = (syn as u8 * Self::STARTS_WITH_SYN)
                | ((fin as u8 * Self::FIN) << reversed as u8)
                | (rst as u8 * Self::RST)
                | ((syn as u8 * Self::SYN) << reversed as u8)
                | (reversed as u8 * Self::STARTS_REVERSED);
            flags += 1;
        }
        table
    }

    /// Whether any of `bits` is set.
    #[inline(always)]
    #[must_use]
    pub const fn any(self, bits: u8) -> bool {
        self.0 & bits != 0
    }

    /// Whether the flow has ended: by RST, or by FINs from all directions in `fins`.
    #[inline(always)]
    #[must_use]
    pub const fn ended(self, fins: u8) -> bool {
        self.any(Self::RST) || self.0 & fins == fins
    }
}

const _: () = assert!(Marks::FIN << 1 == Marks::REVERSE_FIN);
const _: () = assert!(Marks::SYN << 1 == Marks::REVERSE_SYN);
const _: () = assert!(Marks::ENDS.leading_ones() == Marks::ENDS.count_ones());
const _: () = assert!(size_of::<Base>() == 48);

impl Base {
    /// The record of one packet. `reversed` tells, in biflows, whether the packet runs against the
    /// canonical direction.
    #[inline(always)]
    #[must_use]
    pub const fn of_packet(packet: &Packet, reversed: bool) -> Self {
        let length = packet.ip_length_bytes as u64;
        let marks = Marks::of_packet(packet.tcp_flags, reversed).0 as u64;
        let flags = packet.tcp_flags as u64 | (packet.tos as u64) << 16 | marks << 24;
        let words = [
            1,
            length,
            packet.timestamp_ns,
            packet.timestamp_ns,
            !packet.ip_length_bytes as u64 | length << 32,
            !packet.ttl as u64 | (packet.ttl as u64) << 8 | flags << 32,
        ];
        Self::from_words(words)
    }

    /// The record stored in these words on a little-endian machine. This takes eight stores per
    /// packet; one store per field would take fourteen. Stores limit how fast packets become
    /// records.
    #[inline(always)]
    #[must_use]
    pub const fn from_words(words: [u64; 6]) -> Self {
        let (lengths, rest) = (words[4], words[5]);
        if cfg!(target_endian = "big") {
            return Self {
                packets: words[0],
                bytes: words[1],
                first_ns: words[2],
                last_ns: words[3],
                min_length_bytes: Complement(lengths as u32),
                max_length_bytes: (lengths >> 32) as u32,
                min_ttl: Complement(rest as u8),
                max_ttl: (rest >> 8) as u8,
                end_reason: (rest >> 16) as u8,
                has_other: (rest >> 24) as u8,
                tcp_flags: (rest >> 32) as u16,
                tos: (rest >> 48) as u8,
                marks: Marks((rest >> 56) as u8),
            };
        }
        // SAFETY: both have 48 bytes. A `Base` consists of integers without padding, for which any
        // bytes are valid, and on this machine its fields have the byte order of the words.
        unsafe { std::mem::transmute::<[u64; 6], Self>(words) }
    }

    /// The words from which [`Base::from_words`] makes this record.
    #[must_use]
    pub const fn words(&self) -> [u64; 6] {
        let small = self.min_ttl.0 as u64
            | (self.max_ttl as u64) << 8
            | (self.end_reason as u64) << 16
            | (self.has_other as u64) << 24
            | (self.tcp_flags as u64) << 32
            | (self.tos as u64) << 48
            | (self.marks.0 as u64) << 56;
        [
            self.packets,
            self.bytes,
            self.first_ns,
            self.last_ns,
            self.min_length_bytes.0 as u64 | (self.max_length_bytes as u64) << 32,
            small,
        ]
    }

    /// Merges a record whose packets arrived later.
    #[inline(always)]
    pub fn merge(&mut self, later: &Self) {
        self.packets += later.packets;
        self.bytes += later.bytes;
        self.first_ns = self.first_ns.min(later.first_ns);
        self.last_ns = self.last_ns.max(later.last_ns);
        self.min_length_bytes.merge(later.min_length_bytes);
        self.max_length_bytes = self.max_length_bytes.max(later.max_length_bytes);
        self.tcp_flags |= later.tcp_flags;
        self.marks.0 |= later.marks.0 & !Marks::OF_FIRST_PACKET;
        self.min_ttl.merge(later.min_ttl);
        self.max_ttl = self.max_ttl.max(later.max_ttl);
    }
}

/// A microflow record or flow record: `K` words of key, the fields of every record, and `N` words
/// of further features laid out by a [`Plan`](crate::Plan).
///
/// # Shape
/// Aligned to cache lines. The module comment has a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct MicroflowRecord<const K: usize, const N: usize> {
    /// The flow key; never all zeros.
    pub key: [u64; K],
    /// The fields of every record.
    pub base: Base,
    /// Further features.
    pub state: [u64; N],
}

const _: () = assert!(size_of::<MicroflowRecord<2, 0>>() == 64);
const _: () = assert!(size_of::<MicroflowRecord<5, 0>>() == 128);

impl<const K: usize, const N: usize> Default for MicroflowRecord<K, N> {
    fn default() -> Self {
        Self {
            key: [0; K],
            base: Base::default(),
            state: [0; N],
        }
    }
}

impl<const K: usize, const N: usize> MicroflowRecord<K, N> {
    /// Merges a record of the same flow whose packets arrived later.
    #[inline(always)]
    pub fn merge(&mut self, later: &Self, plan: &Plan) {
        plan.merge_apart(&mut self.base, &mut self.state, later);
    }
}

impl<const N: usize> MicroflowRecord<WORDS_V4, N> {
    /// The record of an IPv4 packet, without further features.
    #[inline(always)]
    #[must_use]
    pub fn of_v4(packet: &Packet) -> Self {
        debug_assert_eq!(packet.tuple.family(), Family::V4);
        let [w0, w1, ..] = *packet.tuple.raw_words();
        Self {
            key: [w0, w1],
            base: Base::of_packet(packet, false),
            state: [0; N],
        }
    }
}

impl<const N: usize> MicroflowRecord<WORDS_V6, N> {
    /// The record of an IPv6 packet, without further features.
    #[inline(always)]
    #[must_use]
    pub fn of_v6(packet: &Packet) -> Self {
        debug_assert_eq!(packet.tuple.family(), Family::V6);
        let base = Base::of_packet(packet, false);
        Self {
            key: *packet.tuple.raw_words(),
            base,
            state: [0; N],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turboflow_record::FiveTuple;

    fn packet(timestamp_ns: u64, length: u32, flags: u16) -> Packet {
        Packet {
            tuple: FiveTuple::v4([10, 0, 0, 1, 10, 0, 0, 2], [0, 1, 0, 2], 6),
            timestamp_ns,
            ip_length_bytes: length,
            frame_length_bytes: length + 14,
            tcp_flags: flags,
            ttl: (length % 251) as u8,
            tos: (length % 7) as u8,
            is_echo_reply: false,
        }
    }

    #[test]
    fn words_make_the_record_they_were_taken_from() {
        let mut base = Base::of_packet(&packet(5, 1_500, 0x12), true);
        base.merge(&Base::of_packet(&packet(9, 40, 0x801), false));
        assert_eq!(Base::from_words(base.words()), base);
    }

    #[test]
    fn merge_is_associative() {
        let records: Vec<Base> = [(5, 40, 2), (9, 1500, 16), (7, 60, 17), (30, 52, 4)]
            .map(|(at, length, flags)| Base::of_packet(&packet(at, length, flags), false))
            .to_vec();
        let mut left = records[0];
        records[1..].iter().for_each(|later| left.merge(later));
        let mut tail = records[2];
        tail.merge(&records[3]);
        let mut right = records[0];
        right.merge(&records[1]);
        right.merge(&tail);
        assert_eq!(left, right);
        assert_eq!(
            (left.packets, left.bytes, left.first_ns, left.last_ns),
            (4, 1652, 5, 30)
        );
        assert_eq!(left.tos, 40 % 7);
    }

    #[test]
    fn marks_say_where_a_connection_starts_and_ends() {
        assert!(Marks::of_packet(TCP_FIN, false).ended(Marks::FIN));
        assert!(!Marks::of_packet(TCP_FIN, true).ended(Marks::FIN | Marks::REVERSE_FIN));
        assert!(Marks::of_packet(TCP_RST, true).ended(Marks::FIN | Marks::REVERSE_FIN));
    }
}
