// SPDX-License-Identifier: Apache-2.0
//! The fields of a record in the line, and their widths: one table, both for the SystemVerilog
//! package and for reading records that leave the array.

/// Bits of a time in a cell: a cell has at most 1 s, which is less than 2^30 ns.
pub(crate) const TIME_BITS: u32 = 30;
/// Bits of an IP length. A longer packet travels alone.
pub(crate) const LENGTH_BITS: u32 = 16;
/// Bits of a record's packet count: 268 million packets in a cell.
const PACKET_BITS: u32 = 28;
/// Bits of a record's byte count: 550 Gbit in a cell.
const BYTE_BITS: u32 = 36;

/// How a field of two records merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The sum of both.
    Add,
    /// The value of the earlier record.
    First,
    /// The larger value.
    Max,
    /// The smaller value.
    Min,
    /// The OR of both.
    Or,
}

/// A field of a record in the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) bits: u32,
    pub(crate) class: Class,
    /// The value of the field for a packet `p`, in SystemVerilog.
    pub(crate) of_packet: &'static str,
}

const fn field(name: &'static str, bits: u32, class: Class, of_packet: &'static str) -> Field {
    Field {
        name,
        bits,
        class,
        of_packet,
    }
}

/// The fields of a record, highest bits first: those of `Base`, as far as a cell needs them.
///
/// FIN and RST of `Marks` are bits of the flags. A SYN joins no record, so a record contains a SYN
/// exactly if it starts with one.
pub(crate) const RECORD: [Field; 12] = [
    field("epoch", 1, Class::First, "p.epoch"),
    field("packets", PACKET_BITS, Class::Add, "1"),
    field("bytes", BYTE_BITS, Class::Add, "p.length"),
    field("first", TIME_BITS, Class::First, "p.stamp"),
    field("last", TIME_BITS, Class::Max, "p.stamp"),
    field("min_length", LENGTH_BITS, Class::Min, "p.length"),
    field("max_length", LENGTH_BITS, Class::Max, "p.length"),
    field("tcp_flags", 12, Class::Or, "p.tcp_flags"),
    field("min_ttl", 8, Class::Min, "p.ttl"),
    field("max_ttl", 8, Class::Max, "p.ttl"),
    field("tos", 8, Class::First, "p.tos"),
    field("starts_with_syn", 1, Class::First, "is_syn(p)"),
];

/// The fields of a packet that travels alone, highest bits first.
pub(crate) const ALONE: [(&str, u32); 5] = [
    ("stamp", 64),
    ("length", 32),
    ("tcp_flags", 12),
    ("ttl", 8),
    ("tos", 8),
];
