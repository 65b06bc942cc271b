// SPDX-License-Identifier: Apache-2.0
//! A field of a template: its information element, and the encoding of its values.

use turboflow_record::{
    BASIC_LIST, Column, ColumnElement, ColumnKind, DataType, Element, REVERSE_ENTERPRISE, Value,
};

use super::applications::{is_application, put_id};
use super::options::put_text;
use super::{Protocol, time_unit_of};

/// Field length of a variable-length element (RFC 7011, section 7).
const VARIABLE: u16 = u16::MAX;
/// Octets of an applicationId: engine, enterprise and selector.
const APPLICATION_ID_BYTES: u16 = 9;
/// Set in an element id when an enterprise number follows.
const ENTERPRISE_BIT: u16 = 1 << 15;
/// List semantic "ordered": the order of the elements matters (RFC 6313, section 4.4.5).
const ORDERED: u8 = 4;
/// List semantic "allOf": every element applies. Used for the one value of a nullable column.
const ALL_OF: u8 = 3;
/// Seconds from the NTP epoch (1900) to 1970.
const NTP_EPOCH_S: u64 = 2_208_988_800;
const NS_PER_S: u64 = 1_000_000_000;
const NS_PER_MS: u64 = 1_000_000;

/// A field of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) column: usize,
    id: u16,
    enterprise: Option<u32>,
    length: u16,
    encoding: Encoding,
}

/// Encoding of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Address,
    /// A constant number, which does not come from a column.
    Constant(u32),
    Float,
    /// A list of numbers, each encoded in as many octets as the largest one needs.
    List {
        times: bool,
        fixed_bytes: Option<u8>,
    },
    /// Milliseconds since 1970, from nanoseconds.
    Milliseconds,
    /// NTP's format, with microsecond or nanosecond resolution.
    NtpMicroseconds,
    NtpNanoseconds,
    /// The low octets of a number, which are sufficient for its column.
    Number,
    /// The low octet of the TCP flags: NetFlow v9 has no room for more.
    LowOctet,
    /// Milliseconds since the exporter's start (NetFlow v9).
    Uptime,
    /// UTF-8, preceded by its length.
    Text,
    /// The number of an application, as an applicationId.
    Application,
    /// A nullable value, as a list of at most one element.
    Optional(ScalarEncoding),
}

/// Encoding of the element of an optional value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScalarEncoding {
    Float,
    Milliseconds,
    NtpMicroseconds,
    NtpNanoseconds,
    Number(u8),
    Text,
    Application,
}

/// Whether NetFlow v9 can carry the column: it has no enterprise elements, no lists, and no texts,
/// because their lengths vary. Applications are excluded too: without their names, their numbers
/// are meaningless.
pub(super) fn is_in_netflow9(column: &ColumnElement) -> bool {
    let is_fixed = !matches!(column.v4.data_type, DataType::String | DataType::OctetArray);
    column.v4.enterprise.is_none() && !column.is_list && is_fixed
}

impl Field {
    /// The field of a column in records of one address family.
    pub(super) fn new(
        protocol: Protocol,
        index: usize,
        column: &Column,
        mapped: &ColumnElement,
        v6: bool,
    ) -> Self {
        let element = if v6 { &mapped.v6 } else { &mapped.v4 };
        let plain = |length, encoding| Self {
            column: index,
            id: element.id,
            enterprise: element.enterprise,
            length,
            encoding,
        };
        if mapped.is_list {
            return plain(VARIABLE, list_of(element));
        }
        if protocol == Protocol::Netflow9 {
            match element.id {
                6 => return plain(1, Encoding::LowOctet),
                // LAST_SWITCHED and FIRST_SWITCHED, which all v9 collectors understand.
                152 | 154 | 156 => return plain(4, Encoding::Uptime).renumbered(22),
                153 | 155 | 157 => return plain(4, Encoding::Uptime).renumbered(21),
                _ => {}
            }
        }
        let length = u16::from(element.bytes);
        match column.kind {
            ColumnKind::Address => plain(length, Encoding::Address),
            ColumnKind::Float => plain(length, Encoding::Float),
            ColumnKind::TimestampNs => plain(length, encoding_of_time(element.data_type)),
            ColumnKind::Text if is_application(mapped) => plain(length, Encoding::Application),
            ColumnKind::Text => plain(VARIABLE, Encoding::Text),
            _ => plain(length, Encoding::Number),
        }
    }

    /// A 32-bit field with a constant value, which does not come from a column.
    pub(super) const fn constant(id: u16, number: u32) -> Self {
        Self {
            column: 0,
            id,
            enterprise: None,
            length: 4,
            encoding: Encoding::Constant(number),
        }
    }

    /// This field in a template for values that may be absent.
    pub(super) fn optional(mut self) -> Self {
        let scalar = match self.encoding {
            Encoding::Float => ScalarEncoding::Float,
            Encoding::Milliseconds => ScalarEncoding::Milliseconds,
            Encoding::NtpMicroseconds => ScalarEncoding::NtpMicroseconds,
            Encoding::NtpNanoseconds => ScalarEncoding::NtpNanoseconds,
            Encoding::Number => ScalarEncoding::Number(self.length as u8),
            Encoding::Text => ScalarEncoding::Text,
            Encoding::Application => ScalarEncoding::Application,
            // The shape determines the family of addresses, lists can be empty, and NetFlow v9 has
            // no lists.
            Encoding::Address
            | Encoding::Constant(_)
            | Encoding::List { .. }
            | Encoding::LowOctet
            | Encoding::Optional(_)
            | Encoding::Uptime => return self,
        };
        self.encoding = Encoding::Optional(scalar);
        self.length = VARIABLE;
        self
    }

    /// This field in a template whose values fit in one octet. Collectors handle TCP flags best in
    /// this form (RFC 7125, section 3): it is the only one that pmacct 1.7.7 reads.
    pub(super) const fn in_one_octet(mut self) -> Self {
        self.length = 1;
        self
    }

    fn renumbered(mut self, id: u16) -> Self {
        self.id = id;
        self
    }

    /// Minimum octets of the field in a record.
    pub(super) fn min_bytes(&self) -> usize {
        match self.length {
            VARIABLE => 1,
            length => usize::from(length),
        }
    }

    /// Octets of a field specifier.
    pub(super) const fn specifier_bytes(&self) -> usize {
        if self.is_list() || self.enterprise.is_none() {
            4
        } else {
            8
        }
    }

    /// Whether the values are times in NTP's format.
    pub(super) const fn is_ntp(&self) -> bool {
        matches!(
            self.encoding,
            Encoding::NtpMicroseconds
                | Encoding::NtpNanoseconds
                | Encoding::List { times: true, .. }
                | Encoding::Optional(
                    ScalarEncoding::NtpMicroseconds | ScalarEncoding::NtpNanoseconds
                )
        )
    }

    /// Whether the field is a basicList, whose values contain the id of the element.
    const fn is_list(&self) -> bool {
        matches!(self.encoding, Encoding::List { .. } | Encoding::Optional(_))
    }

    /// Whether the values are application numbers.
    pub(super) const fn is_application(&self) -> bool {
        matches!(
            self.encoding,
            Encoding::Application | Encoding::Optional(ScalarEncoding::Application)
        )
    }

    /// Appends the field specifier (RFC 7011, section 3.2). For a list, the specifier contains the
    /// id of basicList, and every list contains the id of the element of its values.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |E|  Information Element ident. |        Field Length           |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                      Enterprise Number                        |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    pub(super) fn specify(&self, out: &mut Vec<u8>) {
        if self.is_list() {
            put_specifier(out, BASIC_LIST, None, VARIABLE);
        } else {
            put_specifier(out, self.id, self.enterprise, self.length);
        }
    }

    /// Appends a value; uptimes count from `boot_ms`. Returns false if the value is too long to
    /// encode.
    #[inline]
    pub(super) fn write(&self, value: Value<'_>, boot_ms: u64, out: &mut Vec<u8>) -> bool {
        match (self.encoding, value) {
            (Encoding::Constant(number), _) => out.extend_from_slice(&number.to_be_bytes()),
            (Encoding::Number, Value::Unsigned(number)) => put_number(out, number, self.length),
            (Encoding::Address, Value::Address(std::net::IpAddr::V4(address))) => {
                out.extend_from_slice(&address.octets());
            }
            (Encoding::Address, Value::Address(std::net::IpAddr::V6(address))) => {
                out.extend_from_slice(&address.octets());
            }
            (Encoding::Float, Value::Float(float)) => out.extend_from_slice(&float.to_be_bytes()),
            (Encoding::LowOctet, Value::Unsigned(number)) => out.push(number as u8),
            (Encoding::Milliseconds, Value::Unsigned(ns)) => {
                out.extend_from_slice(&(ns / NS_PER_MS).to_be_bytes());
            }
            (Encoding::NtpMicroseconds, Value::Unsigned(ns)) => {
                out.extend_from_slice(&ntp_microseconds(ns).to_be_bytes());
            }
            (Encoding::NtpNanoseconds, Value::Unsigned(ns)) => {
                out.extend_from_slice(&ntp_nanoseconds(ns).to_be_bytes());
            }
            (Encoding::Uptime, Value::Unsigned(ns)) => {
                let uptime_ms = (ns / NS_PER_MS).saturating_sub(boot_ms) as u32;
                out.extend_from_slice(&uptime_ms.to_be_bytes());
            }
            (Encoding::List { times, fixed_bytes }, Value::List(values)) => {
                return self.write_list(values, times, fixed_bytes, out);
            }
            (Encoding::Text, Value::Text(text)) => return put_text(out, text.as_bytes()),
            (Encoding::Application, Value::Unsigned(number)) => put_id(out, number as u32),
            (Encoding::Optional(scalar), value) => return self.write_optional(scalar, value, out),
            // The template follows from the shape, so a value of a different kind is a bug in the
            // caller. Zeros keep the length of the record correct.
            _ => out.resize(out.len() + self.min_bytes(), 0),
        }
        true
    }

    fn write_list(
        &self,
        values: &[u64],
        times: bool,
        fixed_bytes: Option<u8>,
        out: &mut Vec<u8>,
    ) -> bool {
        let largest = values.iter().copied().max().unwrap_or(0);
        let width = fixed_bytes.map_or_else(|| width_of(largest), u16::from);
        let value_bytes = values.len() * usize::from(width);
        let Some(()) = self.open_list(ORDERED, width, value_bytes, out) else {
            return false;
        };
        for value in values {
            let value = if times {
                ntp_nanoseconds(*value)
            } else {
                *value
            };
            put_number(out, value, width);
        }
        true
    }

    fn write_optional(&self, scalar: ScalarEncoding, value: Value<'_>, out: &mut Vec<u8>) -> bool {
        let width = match scalar {
            ScalarEncoding::Number(bytes) => u16::from(bytes),
            ScalarEncoding::Application => APPLICATION_ID_BYTES,
            ScalarEncoding::Text => VARIABLE,
            _ => 8,
        };
        let mut octets = Vec::new();
        let value_bytes = match value {
            Value::Absent => 0,
            Value::Text(text) if !put_text(&mut octets, text.as_bytes()) => return false,
            Value::Text(_) => octets.len(),
            _ => usize::from(width),
        };
        let Some(()) = self.open_list(ALL_OF, width, value_bytes, out) else {
            return false;
        };
        match value {
            Value::Text(_) => out.append(&mut octets),
            Value::Unsigned(number) if scalar == ScalarEncoding::Application => {
                put_id(out, number as u32);
            }
            Value::Unsigned(number) => {
                let number = match scalar {
                    ScalarEncoding::Milliseconds => number / NS_PER_MS,
                    ScalarEncoding::NtpMicroseconds => ntp_microseconds(number),
                    ScalarEncoding::NtpNanoseconds => ntp_nanoseconds(number),
                    _ => number,
                };
                put_number(out, number, width);
            }
            Value::Float(float) => out.extend_from_slice(&float.to_be_bytes()),
            _ => {}
        }
        true
    }

    /// Starts a basicList (RFC 6313, section 4.5.1). `None` if it is too long for its length field.
    ///
    /// ```text
    /// +---------+-----------+---------------+-------------------+------------+----------
    /// | length  | semantic  |  element id   |  element length   | enterprise | values ...
    /// | 1 or 3  |    1      |       2       |        2          |  0 or 4    |
    /// +---------+-----------+---------------+-------------------+------------+----------
    /// ```
    fn open_list(
        &self,
        semantic: u8,
        width: u16,
        value_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let header = if self.enterprise.is_some() { 9 } else { 5 };
        let length = u16::try_from(header + value_bytes).ok()?;
        match u8::try_from(length) {
            Ok(short) if short < u8::MAX => out.push(short),
            _ => {
                out.push(u8::MAX);
                out.extend_from_slice(&length.to_be_bytes());
            }
        }
        out.push(semantic);
        put_specifier(out, self.id, self.enterprise, width);
        Some(())
    }
}

fn list_of(element: &Element) -> Encoding {
    let times = element.data_type == DataType::DateTimeNanoseconds;
    let fixed = times || element.data_type == DataType::MacAddress;
    Encoding::List {
        times,
        fixed_bytes: fixed.then_some(element.bytes),
    }
}

fn encoding_of_time(data_type: DataType) -> Encoding {
    match data_type {
        DataType::DateTimeMilliseconds => Encoding::Milliseconds,
        DataType::DateTimeMicroseconds => Encoding::NtpMicroseconds,
        _ => Encoding::NtpNanoseconds,
    }
}

/// Whether the element is a flow's start or end time.
pub(super) fn is_flow_time(element: &Element) -> bool {
    element.enterprise.is_none() && time_unit_of(element.id).is_some()
}

/// Whether the element is tcpControlBits, in either direction.
pub(super) fn is_tcp_flags(column: &ColumnElement) -> bool {
    let Element { id, enterprise, .. } = &column.v4;
    *id == 6 && !column.is_list && enterprise.is_none_or(|number| number == REVERSE_ENTERPRISE)
}

/// Appends an element's id, length and enterprise number.
pub(super) fn put_specifier(out: &mut Vec<u8>, id: u16, enterprise: Option<u32>, length: u16) {
    let bit = if enterprise.is_some() {
        ENTERPRISE_BIT
    } else {
        0
    };
    out.extend_from_slice(&(id | bit).to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
    if let Some(enterprise) = enterprise {
        out.extend_from_slice(&enterprise.to_be_bytes());
    }
}

/// Appends a number in `bytes` octets. A number that does not fit is replaced by the largest one
/// that does. This only happens with an invalid batch, because columns are as wide as their values.
#[inline]
pub(super) fn put_number(out: &mut Vec<u8>, number: u64, bytes: u16) {
    let bytes = usize::from(bytes.min(8));
    let largest = if bytes == 0 {
        0
    } else {
        u64::MAX >> (64 - 8 * bytes)
    };
    out.extend_from_slice(&number.min(largest).to_be_bytes()[8 - bytes..]);
}

/// The smallest of the usual widths, in octets, that can hold `largest`.
const fn width_of(largest: u64) -> u16 {
    match largest {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// Nanoseconds since 1970 in NTP format (RFC 7011, section 6.1.10). The fraction is rounded up, so
/// that a reader that rounds down gets the exact nanosecond.
pub(super) const fn ntp_nanoseconds(ns: u64) -> u64 {
    let fraction = ((ns % NS_PER_S) << 32).div_ceil(NS_PER_S);
    ntp_seconds(ns) << 32 | fraction
}

/// Whether a reader can recover the year of the time. Seconds since 1900 have 32 bits, which wrap
/// in 2036. Readers take seconds whose top bit is clear to be after the wrap, so that times up to
/// 2104 are unambiguous (RFC 4330, section 3).
pub(super) const fn fits_ntp(ns: u64) -> bool {
    ns / NS_PER_S + NTP_EPOCH_S < (1 << 32) + (1 << 31)
}

/// NTP format with microsecond resolution (RFC 7011, section 6.1.9): the low 11 bits of the
/// fraction are zero.
const fn ntp_microseconds(ns: u64) -> u64 {
    let us = ns % NS_PER_S / 1_000;
    let fraction = (us << 32).div_ceil(1_000_000).next_multiple_of(1 << 11);
    ntp_seconds(ns) << 32 | fraction
}

/// Seconds of the NTP era: wraps in 2036, as RFC 7011 specifies.
const fn ntp_seconds(ns: u64) -> u64 {
    (ns / NS_PER_S + NTP_EPOCH_S) & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ntp_times_are_read_back_exactly() {
        for ns in [
            0,
            1,
            999,
            999_999_999,
            1_700_000_000_123_456_789,
            4_000_000_000_999_999_999,
        ] {
            let ntp = ntp_nanoseconds(ns);
            let read = ((ntp & 0xffff_ffff) * NS_PER_S) >> 32;
            assert_eq!(read, ns % NS_PER_S);
            assert_eq!(ntp >> 32, (ns / NS_PER_S + NTP_EPOCH_S) & 0xffff_ffff);
            let ntp = ntp_microseconds(ns);
            assert_eq!(
                ((ntp & 0xffff_ffff) * 1_000_000) >> 32,
                ns % NS_PER_S / 1_000
            );
            assert_eq!(ntp & 0x7ff, 0);
        }
    }

    #[test]
    fn numbers_saturate_and_never_wrap() {
        let mut out = Vec::new();
        put_number(&mut out, 0x0102, 2);
        put_number(&mut out, 0x1_0000, 2);
        put_number(&mut out, u64::MAX, 8);
        assert_eq!(out[..4], [1, 2, 0xff, 0xff]);
        assert_eq!(out[4..], [0xff; 8]);
    }
}
