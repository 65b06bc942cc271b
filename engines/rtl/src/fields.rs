// SPDX-License-Identifier: Apache-2.0
//! The fields of a record in the line, and their widths: one table for the SystemVerilog package
//! and for reading what leaves the array.

use turboflow_merge::{Base, Complement, Marks};
use turboflow_record::{TCP_FIN, TCP_RST};

/// Bits of a time in a cell: a cell has at most 1 s, which is less than 2^30 ns.
pub(crate) const TIME_BITS: u32 = 30;
/// Bits of an IP length. A longer packet travels alone.
pub(crate) const LENGTH_BITS: u32 = 16;
/// Bits of the packets of a record: 268 million in a cell.
const PACKET_BITS: u32 = 28;
/// Bits of the bytes of a record: 550 Gbit in a cell.
const BYTE_BITS: u32 = 36;

/// How a field of two records merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Their sum.
    Add,
    /// That of the earlier record.
    First,
    /// The larger one.
    Max,
    /// The smaller one.
    Min,
    /// The OR of their bits.
    Or,
}

/// A field of a record in the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) bits: u32,
    pub(crate) class: Class,
    /// Its value for a packet `p`, in SystemVerilog.
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

/// The fields of a record, highest bits first: those of [`Base`], as far as a cell needs them.
///
/// FIN and RST of [`Marks`] are bits of the flags. A SYN joins no record, so that a record has one
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

/// Bits of a record in the line.
pub(crate) const RECORD_BITS: u32 = {
    let (mut sum, mut at) = (0, 0);
    while at < RECORD.len() {
        sum += RECORD[at].bits;
        at += 1;
    }
    sum
};

/// 32-bit words of a record in the line.
pub(crate) const BODY_WORDS: usize = RECORD_BITS.div_ceil(32) as usize;

/// Reads fields from the lowest bit on.
struct Bits<'a> {
    words: &'a [u32],
    at: u32,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> u64 {
        let mut value = 0;
        for bit in 0..count {
            let at = self.at + bit;
            let word = self.words[(at / 32) as usize];
            value |= u64::from(word >> (at % 32) & 1) << bit;
        }
        self.at += count;
        value
    }
}

/// The fields of a record that left the line, and the parity of the cell it belongs to. Times are
/// from the start of that cell, which `start_of` knows.
pub(crate) fn base_of_record(body: &[u32], start_of: impl FnOnce(usize) -> u64) -> Base {
    let mut bits = Bits { words: body, at: 0 };
    let mut values = [0; RECORD.len()];
    for (value, field) in values.iter_mut().zip(&RECORD).rev() {
        *value = bits.take(field.bits);
    }
    let [
        epoch,
        packets,
        bytes,
        first,
        last,
        min_length,
        max_length,
        flags,
        min_ttl,
        max_ttl,
        tos,
        syn,
    ] = values;
    let start_ns = start_of(epoch as usize);
    let tcp_flags = flags as u16;
    let mark = |is_set: bool, mark: u8| if is_set { mark } else { 0 };
    let marks = mark(syn == 1, Marks::STARTS_WITH_SYN | Marks::SYN)
        | mark(tcp_flags & TCP_FIN != 0, Marks::FIN)
        | mark(tcp_flags & TCP_RST != 0, Marks::RST);
    Base {
        packets,
        bytes,
        first_ns: start_ns + first,
        last_ns: start_ns + last,
        min_length_bytes: Complement::of(min_length as u32),
        max_length_bytes: max_length as u32,
        min_ttl: Complement::of(min_ttl as u8),
        max_ttl: max_ttl as u8,
        tcp_flags,
        tos: tos as u8,
        marks: Marks(marks),
        ..Base::default()
    }
}

/// The fields of a packet that left the line alone: time, length, flags, TTL and type of service.
pub(crate) fn alone_of_body(body: &[u32]) -> (u64, u32, u16, u8, u8) {
    let mut bits = Bits { words: body, at: 0 };
    let mut values = [0; ALONE.len()];
    for (value, (_, count)) in values.iter_mut().zip(&ALONE).rev() {
        *value = bits.take(*count);
    }
    let [stamp, length, flags, ttl, tos] = values;
    (stamp, length as u32, flags as u16, ttl as u8, tos as u8)
}
