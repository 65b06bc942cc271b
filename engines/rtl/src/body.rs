// SPDX-License-Identifier: Apache-2.0
//! Reads the body of a token that left the line: a record, or a packet that travelled alone.

use turboflow_merge::{Base, Complement, Marks};
use turboflow_record::{TCP_FIN, TCP_RST};

use crate::fields::{ALONE, RECORD};

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
