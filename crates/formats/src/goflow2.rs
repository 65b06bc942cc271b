// SPDX-License-Identifier: Apache-2.0
//! Flow records as goflow2's protobuf `FlowMessage`, each preceded by its length, as ClickHouse's
//! format `Protobuf` expects.
//!
//! Columns for which goflow2 has no field get field numbers from 2000 on, so that goflow2's own
//! consumers skip them. `contrib/kafka/turboflow.proto` describes all fields.
//!
//! # Source
//! Protocol Buffers encoding (varints, tags, length-delimited fields); field numbers below 2000 are
//! those of `FlowMessage` in goflow2 2 and 3.

use std::net::{IpAddr, Ipv6Addr};
use std::ops::Range;

use turboflow_merge::{Machine, Vectors, WithVectors, fnv_1a, prefetch};
use turboflow_record::{Column, ColumnKind, FlowBatch, Value, ValueData, Values};

use crate::Identity;

/// Column names and the numbers of their fields.
const FIELDS: [(&str, u32); 39] = [
    ("src_addr", 6),
    ("dst_addr", 7),
    ("bytes", 9),
    ("packets", 10),
    ("ingress_interface", 18),
    ("egress_interface", 19),
    ("protocol", 20),
    ("src_port", 21),
    ("dst_port", 22),
    ("tos", 23),
    // Of several hops of a network, the one with the highest TTL saw the packet first.
    ("max_ttl", 25),
    ("tcp_flags", 26),
    ("source_mac", 27),
    ("destination_mac", 28),
    ("vlan", 29),
    ("ether_type", 30),
    ("icmp_type", 31),
    ("icmp_code", 32),
    ("identification", 35),
    ("fragment_offset", 36),
    ("flow_label", 37),
    ("first_ns", 111),
    ("last_ns", 112),
    ("end_reason", 2003),
    ("min_length", 2004),
    ("max_length", 2005),
    ("min_ttl", 2006),
    ("application", 2010),
    ("application_category", 2011),
    ("application_confidence", 2012),
    ("risk", 2013),
    ("server_name", 2014),
    ("ja3", 2015),
    ("ja4", 2016),
    ("dns_query_name", 2017),
    ("http_host", 2018),
    ("community_id", 2019),
    ("verdict", 2020),
    ("rule", 2021),
];

const TYPE: u32 = 1;
const SAMPLING_RATE: u32 = 3;
const SEQUENCE_NUMBER: u32 = 4;
const SAMPLER_ADDRESS: u32 = 11;
const ETHER_TYPE: u32 = 30;
const TIME_RECEIVED: u32 = 110;
const EXPORTER: u32 = 2000;
const RUN: u32 = 2001;
const SEQUENCE: u32 = 2002;

/// In this table, addresses have field numbers up to this one, and texts from `FIRST_TEXT` on.
const LAST_ADDRESS: u32 = 7;
const FIRST_TEXT: u32 = 2010;

/// `FlowType` of goflow2, which has no value for flows that a meter saw itself.
const IPFIX: u64 = 4;
const IPV4: u64 = 0x0800;
const IPV6: u64 = 0x86dd;

/// Maximum bytes of a 64-bit varint, and so of the length before a record.
const VARINT_BYTES: usize = 10;
/// Number of records that are encoded side by side. With the default definition, their bytes fit
/// into a first-level cache.
const BLOCK: usize = 32;
/// Number of fields that are derived from columns and from the number of the record.
const DERIVED: usize = 4;
/// Maximum bytes of a field other than a text: a tag of two bytes, and either a number or an
/// address with its length. Although whole words are stored, a field writes no further than this
/// from where it begins, plus the bytes of its text.
const FIELD_BYTES: usize = 2 + 17;

/// Encodes records of one schema.
pub struct Goflow2Messages {
    fields: Vec<Field>,
    /// Columns from which further fields are derived: the address family, and the receive time.
    source: Option<usize>,
    last: Option<usize>,
    /// The fields that are the same in every record.
    constants: Vec<u8>,
    block: Block,
    machine: Machine,
    left_out: Vec<String>,
}

struct Field {
    column: usize,
    tag: Tag,
}

/// Number and wire type of a field, encoded in one or two bytes, because field numbers are below
/// 2048.
#[derive(Clone, Copy)]
struct Tag {
    /// The bytes, little-endian.
    word: u64,
    length: usize,
}

impl Tag {
    /// The tag of a varint field.
    const fn number(number: u32) -> Self {
        Self::new(number << 3)
    }

    /// The tag of a length-delimited field.
    const fn octets(number: u32) -> Self {
        Self::new(number << 3 | 2)
    }

    const fn new(key: u32) -> Self {
        assert!(key < 1 << 14, "a tag has two bytes at most");
        Self {
            word: varint(key as u64),
            length: bytes_of(varint(key as u64)),
        }
    }
}

impl Goflow2Messages {
    /// An encoder of messages with the columns of `schema`.
    #[must_use]
    pub fn new(schema: &[Column], identity: &Identity) -> Self {
        let at = |name: &str| schema.iter().position(|column| column.name == name);
        let fields = FIELDS.iter().filter_map(|&(name, number)| {
            let column = at(name)?;
            let has_form = match schema[column].kind {
                ColumnKind::Float | ColumnKind::List => false,
                ColumnKind::Text => number >= FIRST_TEXT,
                ColumnKind::Address => number <= LAST_ADDRESS,
                _ => number > LAST_ADDRESS && number < FIRST_TEXT,
            };
            let tag = match schema[column].kind {
                ColumnKind::Text | ColumnKind::Address => Tag::octets(number),
                _ => Tag::number(number),
            };
            has_form.then_some(Field { column, tag })
        });
        let fields: Vec<Field> = fields.collect();
        let is_told = |index: &usize| fields.iter().any(|field| field.column == *index);
        let left_out = (0..schema.len()).filter(|index| !is_told(index));
        Self {
            left_out: left_out.map(|index| schema[index].name.clone()).collect(),
            source: at("src_addr").filter(|_| at("ether_type").is_none()),
            last: at("last_ns"),
            constants: constants(identity),
            block: Block::default(),
            machine: Machine::detect(),
            fields,
        }
    }

    /// Names of the columns for which there is no field.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Encodes the records of a batch in order, and calls `put` with the row and the bytes of each:
    /// the length of the record, then the record.
    ///
    /// # Panics
    /// If the batch has other columns.
    pub fn encode(&mut self, batch: &FlowBatch, mut put: impl FnMut(usize, &[u8])) {
        for first in (0..batch.rows()).step_by(BLOCK) {
            let rows = first..batch.rows().min(first + BLOCK);
            self.machine.run(EncodeBlock {
                messages: self,
                batch,
                rows: rows.clone(),
            });
            rows.for_each(|row| put(row, self.block.record(row - first)));
        }
    }
}

/// Encodes records column by column: all values of a column have one type, and records do not wait
/// for each other. It calls no operation of [`Vectors`]: compilers vectorise its loops for each
/// width.
struct EncodeBlock<'a> {
    messages: &'a mut Goflow2Messages,
    batch: &'a FlowBatch,
    rows: Range<usize>,
}

impl WithVectors for EncodeBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vectors>(self, _: V) {
        let Self { batch, rows, .. } = self;
        let Goflow2Messages {
            fields,
            source,
            last,
            constants,
            block,
            ..
        } = self.messages;
        let columns = fields.iter().map(|field| batch.column(field.column));
        let texts: usize = columns.map(|values| longest_text(values, &rows)).sum();
        let field_bytes = (fields.len() + DERIVED) * FIELD_BYTES;
        block.begin(rows.len(), constants, field_bytes + texts);
        for field in fields {
            block.column(field.tag, batch.column(field.column), &rows);
        }
        let sequence = |row: usize| batch.first_number() + row as u64;
        let low = rows.clone().map(|row| u64::from(sequence(row) as u32));
        block.numbers(const { Tag::number(SEQUENCE_NUMBER) }, low);
        block.numbers(const { Tag::number(SEQUENCE) }, rows.clone().map(sequence));
        if let Some(ValueData::Address(sources)) = source.map(|its| &batch.column(its).data) {
            let ether_type = |source: &IpAddr| if source.is_ipv4() { IPV4 } else { IPV6 };
            let ether_types = sources[rows.clone()].iter().map(ether_type);
            block.numbers(const { Tag::number(ETHER_TYPE) }, ether_types);
        }
        if let Some(ValueData::Unsigned(times)) = last.map(|its| &batch.column(its).data) {
            let times = times[rows].iter().copied();
            block.numbers(const { Tag::number(TIME_RECEIVED) }, times);
        }
        block.finish();
    }
}

/// Bytes of the longest text in these rows.
fn longest_text(values: &Values, rows: &Range<usize>) -> usize {
    if !matches!(values.data, ValueData::Text { .. }) {
        return 0;
    }
    let length = |row: usize| match values.get(row) {
        Value::Text(text) => text.len(),
        _ => 0,
    };
    rows.clone().map(length).max().unwrap_or(0)
}

/// Records that are encoded side by side.
#[derive(Default)]
struct Block {
    /// Each record has `stride` bytes, of which the first `VARINT_BYTES` are for its length.
    bytes: Vec<u8>,
    stride: usize,
    /// Offset in `bytes` at which each record's length begins.
    begins: [usize; BLOCK],
    /// Offset of the end of each record in `bytes`.
    ends: Vec<usize>,
}

impl Block {
    /// Begins `records` records with these fields, which are the same in every call, and capacity
    /// for `room` bytes more in each.
    fn begin(&mut self, records: usize, constants: &[u8], room: usize) {
        let fields_at = VARINT_BYTES + constants.len();
        if self.stride < fields_at + room {
            self.stride = fields_at + room;
            self.bytes.clear();
            self.bytes.resize(BLOCK * self.stride, 0);
            for record in self.bytes.chunks_mut(self.stride) {
                record[VARINT_BYTES..fields_at].copy_from_slice(constants);
            }
        }
        self.ends.clear();
        let ends = (0..records).map(|record| record * self.stride + fields_at);
        self.ends.extend(ends);
    }

    /// Appends a column to each record.
    #[inline(always)]
    fn column(&mut self, tag: Tag, values: &Values, rows: &Range<usize>) {
        let is_absent = |row: usize| values.valid.get(row) == Some(&false);
        prefetch_block(values, rows.end);
        match &values.data {
            ValueData::Unsigned(numbers) if values.valid.is_empty() => {
                self.numbers(tag, numbers[rows.clone()].iter().copied());
            }
            ValueData::Unsigned(numbers) => {
                let present = |row: usize| if is_absent(row) { 0 } else { numbers[row] };
                self.numbers(tag, rows.clone().map(present));
            }
            ValueData::Address(addresses) => {
                for (end, row) in self.ends.iter_mut().zip(rows.clone()) {
                    if is_absent(row) {
                        continue;
                    }
                    *end = match addresses[row] {
                        IpAddr::V4(its) => octets(&mut self.bytes, *end, tag, &its.octets()),
                        IpAddr::V6(its) => octets(&mut self.bytes, *end, tag, &its.octets()),
                    };
                }
            }
            ValueData::Text { .. } => {
                for (end, row) in self.ends.iter_mut().zip(rows.clone()) {
                    if let Value::Text(text) = values.get(row) {
                        *end = octets(&mut self.bytes, *end, tag, text.as_bytes());
                    }
                }
            }
            ValueData::Float(_) | ValueData::List { .. } => {}
        }
    }

    /// Appends a number to each record.
    #[inline(always)]
    fn numbers(&mut self, tag: Tag, values: impl Iterator<Item = u64>) {
        let mut numbers = [0; BLOCK];
        let mut all = 0;
        for (number, value) in numbers.iter_mut().zip(values) {
            *number = value;
            all |= value;
        }
        if all < SHORT {
            self.short_numbers(tag, &numbers);
            return;
        }
        for (end, value) in self.ends.iter_mut().zip(numbers) {
            *end = number(&mut self.bytes, *end, tag, value);
        }
    }

    /// Appends numbers below [`SHORT`]. The words of all records are computed first, in a loop that
    /// compilers turn into vector instructions.
    #[inline(always)]
    fn short_numbers(&mut self, tag: Tag, numbers: &[u64; BLOCK]) {
        let mut words = [0; BLOCK];
        for (word, number) in words.iter_mut().zip(numbers) {
            *word = tag.word | varint(*number) << (8 * tag.length);
        }
        for ((end, word), number) in self.ends.iter_mut().zip(words).zip(numbers) {
            store(&mut self.bytes, *end, word);
            *end += if *number == 0 { 0 } else { bytes_of(word) };
        }
    }

    /// Writes each record's length before it.
    #[inline(always)]
    fn finish(&mut self) {
        for (record, end) in self.ends.iter().enumerate() {
            let constants_at = record * self.stride + VARINT_BYTES;
            let length = varint((end - constants_at) as u64);
            let bytes = bytes_of(length);
            // Moved to the end of the word, so that nothing is written into the record.
            store(
                &mut self.bytes,
                constants_at - 8,
                length << (64 - 8 * bytes),
            );
            self.begins[record] = constants_at - bytes;
        }
    }

    /// The bytes of a record, with its length in front.
    fn record(&self, record: usize) -> &[u8] {
        &self.bytes[self.begins[record]..self.ends[record]]
    }
}

/// Prefetches the values of the next block: a block has too few rows for the hardware prefetcher to
/// follow a column.
#[inline(always)]
fn prefetch_block(values: &Values, row: usize) {
    match &values.data {
        ValueData::Unsigned(numbers) => {
            if let Some(next) = numbers.get(row..) {
                prefetch::<[u64; BLOCK]>(next.as_ptr().cast());
            }
        }
        ValueData::Address(addresses) => {
            if let Some(next) = addresses.get(row..) {
                prefetch::<[IpAddr; BLOCK]>(next.as_ptr().cast());
            }
        }
        ValueData::Float(_) | ValueData::List { .. } | ValueData::Text { .. } => {}
    }
}

fn constants(identity: &Identity) -> Vec<u8> {
    let exporter = identity.exporter();
    let mut bytes = vec![0; 6 * FIELD_BYTES + exporter.len()];
    let mut at = number(&mut bytes, 0, Tag::number(TYPE), IPFIX);
    at = number(&mut bytes, at, Tag::number(SAMPLING_RATE), 1);
    at = match sampler(exporter) {
        IpAddr::V4(its) => octets(&mut bytes, at, Tag::octets(SAMPLER_ADDRESS), &its.octets()),
        IpAddr::V6(its) => octets(&mut bytes, at, Tag::octets(SAMPLER_ADDRESS), &its.octets()),
    };
    at = octets(&mut bytes, at, Tag::octets(EXPORTER), exporter.as_bytes());
    at = number(&mut bytes, at, Tag::number(RUN), identity.run());
    bytes.truncate(at);
    bytes
}

/// The address by which goflow2's tables distinguish exporters: `exporter` itself if it is an
/// address, otherwise a unique local address (RFC 4193) made from the FNV-1a hash of the name.
fn sampler(exporter: &str) -> IpAddr {
    exporter.parse().unwrap_or_else(|_| {
        let hash = fnv_1a(exporter.as_bytes());
        Ipv6Addr::from_bits(0xfd << 120 | u128::from(hash)).into()
    })
}

/// A number below this one, and a tag of two bytes, fit into one word of eight bytes.
const SHORT: u64 = 1 << (7 * (8 - 2));

/// Writes a number with its tag at `at`, and returns the offset of its end. Zero is left out, as
/// always in proto3. Whole words are stored, so bytes after the end may be overwritten: the next
/// field begins there, or the spare bytes of the record.
#[inline(always)]
fn number(bytes: &mut [u8], at: usize, tag: Tag, value: u64) -> usize {
    if value == 0 {
        return at;
    }
    store(bytes, at, tag.word);
    let at = at + tag.length;
    if value < 1 << 56 {
        let word = varint(value);
        store(bytes, at, word);
        return at + bytes_of(word);
    }
    store(bytes, at, spread(value) | GOES_ON);
    let rest = (value >> 56) as u8;
    bytes[at + 8] = rest;
    bytes[at + 9] = 1;
    at + if rest < 0x80 { 9 } else { 10 }
}

/// Stores eight bytes at `at`, little-endian.
#[inline(always)]
fn store(bytes: &mut [u8], at: usize, word: u64) {
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// The bit that says that a varint has more bytes, in all bytes of a word.
const GOES_ON: u64 = 0x8080_8080_8080_8080;

/// The varint of a number below 2^56, as a little-endian word. Neither branches nor counts bits, so
/// that vector instructions can compute it.
#[inline(always)]
const fn varint(value: u64) -> u64 {
    let groups = spread(value);
    let mut follow = groups >> 8;
    follow |= follow >> 8;
    follow |= follow >> 16;
    follow |= follow >> 32;
    groups | (follow + 0x7f7f_7f7f_7f7f_7f7f) & GOES_ON
}

/// Bytes of a varint, with or without a tag before it; at least one.
#[inline(always)]
const fn bytes_of(word: u64) -> usize {
    (word | 1).ilog2() as usize / 8 + 1
}

/// Spreads the low 56 bits over the bytes of a word, seven bits in each.
#[inline(always)]
const fn spread(value: u64) -> u64 {
    let value = (value & 0x00ff_ffff_f000_0000) << 4 | value & 0x0fff_ffff;
    let value = (value & 0x0fff_c000_0fff_c000) << 2 | value & 0x0000_3fff_0000_3fff;
    (value & 0x3f80_3f80_3f80_3f80) << 1 | value & 0x007f_007f_007f_007f
}

/// Writes bytes with their tag and length.
#[inline(always)]
fn octets(bytes: &mut [u8], at: usize, tag: Tag, value: &[u8]) -> usize {
    store(bytes, at, tag.word);
    let at = at + tag.length;
    let length = varint(value.len() as u64);
    store(bytes, at, length);
    let at = at + bytes_of(length);
    bytes[at..at + value.len()].copy_from_slice(value);
    at + value.len()
}

#[cfg(test)]
mod tests {
    use turboflow_merge::Plain;

    use super::*;

    /// A field as the specification describes it, byte by byte.
    fn plain(key: u64, value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for mut rest in [key, value] {
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
        }
        if value == 0 { Vec::new() } else { bytes }
    }

    /// A field with each of these numbers, in a record of its own.
    struct Numbers<'a>(Tag, &'a [u64]);

    impl WithVectors for Numbers<'_> {
        type Output = Block;

        #[inline(always)]
        fn run<V: Vectors>(self, _: V) -> Block {
            let Self(tag, values) = self;
            let mut block = Block::default();
            block.begin(values.len(), &[], FIELD_BYTES);
            block.numbers(tag, values.iter().copied());
            block.finish();
            block
        }
    }

    #[test]
    fn numbers_of_every_size_are_encoded_alone_and_side_by_side() {
        let below = |bits: u32| u64::MAX.checked_shr(64 - bits).unwrap_or(0);
        let edges = (0..=64).flat_map(|bits| [below(bits), below(bits) / 2 + 1, below(bits) / 3]);
        let edges: Vec<u64> = edges.collect();
        for field in [1, 15, 16, 2021] {
            let expected = |value| plain(u64::from(field << 3), value);
            let tag = Tag::number(field);
            // In a block, one large number decides how all are encoded.
            for most in [0x7f, SHORT - 1, SHORT, u64::MAX] {
                let smaller = edges.iter().copied().filter(|its| *its <= most);
                let smaller: Vec<u64> = smaller.collect();
                for some in smaller.chunks(BLOCK - 1) {
                    let values = [some, &[most]].concat();
                    for machine in [Machine::Plain(Plain), Machine::detect()] {
                        let block = machine.run(Numbers(tag, &values));
                        for (record, value) in values.iter().enumerate() {
                            let bytes = expected(*value);
                            let framed = [&[bytes.len() as u8], &bytes[..]].concat();
                            assert_eq!(block.record(record), framed, "{value} on {machine:?}");
                        }
                    }
                }
            }
            for value in &edges {
                let mut bytes = [0; 2 * FIELD_BYTES];
                let end = number(&mut bytes, 0, tag, *value);
                assert_eq!(bytes[..end], expected(*value), "{value}");
            }
        }
    }
}
