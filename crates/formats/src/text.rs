// SPDX-License-Identifier: Apache-2.0
//! Formats values as text. Most of the cost of CSV and JSON output is here, so it has to be fast.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use turboflow_record::protocol_name;

use crate::names::end_reason_name;
use crate::quotes::{csv_field, json_string};
use crate::text_options::Written;
use crate::time::civil;

const NS_PER_S: u64 = 1_000_000_000;

/// Longest text of an address, such as `ffff:...:ffff`.
pub(crate) const ADDRESS_BYTES: usize = 39;
/// Longest text of an unsigned 64-bit number.
pub(crate) const UNSIGNED_BYTES: usize = 20;
/// Length of the text of a MAC address.
pub(crate) const MAC_BYTES: usize = 17;
/// Longest text of a time: ISO 8601, or seconds.
pub(crate) const TIME_BYTES: usize = 30;
/// Longest name of a protocol or an end reason, or longest 8-bit number.
pub(crate) const NAME_BYTES: usize = 20;
/// Longest text of a float.
pub(crate) const FLOAT_BYTES: usize = 24;

/// Maximum bytes of a quoted text of `length` bytes in CSV or JSON: six for each byte, and two
/// quotes.
pub(crate) const fn quoted_bytes(length: usize) -> usize {
    6 * length + 2
}

/// A text buffer that grows only in [`Text::reserve`], so that no value needs a capacity check of
/// its own.
#[derive(Default)]
pub(crate) struct Text {
    bytes: Vec<u8>,
    length: usize,
}

impl Text {
    /// Reserves `extra` bytes.
    #[inline]
    pub(crate) fn reserve(&mut self, extra: usize) {
        if self.bytes.len() < self.length + extra {
            let room = (self.length + extra).next_power_of_two();
            self.bytes.resize(room, 0);
        }
    }

    /// The bytes written.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Number of bytes written.
    pub(crate) const fn len(&self) -> usize {
        self.length
    }

    /// Clears the text and keeps the allocation.
    pub(crate) const fn clear(&mut self) {
        self.length = 0;
    }

    #[inline(always)]
    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes[self.length] = byte;
        self.length += 1;
    }

    #[inline(always)]
    pub(crate) fn raw(&mut self, text: &[u8]) {
        self.bytes[self.length..self.length + text.len()].copy_from_slice(text);
        self.length += text.len();
    }

    /// Copies all `N` bytes and keeps the first `length`: one store instead of a call to memcpy.
    #[inline(always)]
    fn fixed<const N: usize>(&mut self, text: [u8; N], length: usize) {
        self.bytes[self.length..self.length + N].copy_from_slice(&text);
        self.length += length;
    }

    /// Writes a decimal number. Needs [`UNSIGNED_BYTES`] + 4 reserved bytes.
    #[inline(always)]
    pub(crate) fn unsigned(&mut self, value: u64) {
        if value < 1000 {
            let digits = SMALL[value as usize];
            self.fixed([digits[0], digits[1], digits[2], 0], usize::from(digits[3]));
        } else {
            let mut digits = itoa::Buffer::new();
            self.raw(digits.format(value).as_bytes());
        }
    }

    /// Writes the shortest decimal that parses to `value`; otherwise `NaN`, `inf` or `-inf`.
    pub(crate) fn float(&mut self, value: f64) {
        self.raw(ryu::Buffer::new().format(value).as_bytes());
    }

    /// Writes `aa:bb:cc:dd:ee:ff`.
    pub(crate) fn mac(&mut self, value: u64) {
        for (index, byte) in value.to_be_bytes()[2..].iter().enumerate() {
            if index > 0 {
                self.byte(b':');
            }
            self.byte(HEX[usize::from(byte >> 4)]);
            self.byte(HEX[usize::from(byte & 15)]);
        }
    }

    /// Writes a list in brackets: `[1;2;3]` if `separator` is `;`. Needs [`UNSIGNED_BYTES`] + 1
    /// reserved bytes per element.
    pub(crate) fn list(&mut self, elements: &[u64], separator: u8) {
        self.byte(b'[');
        for (index, &element) in elements.iter().enumerate() {
            if index > 0 {
                self.byte(separator);
            }
            self.unsigned(element);
        }
        self.byte(b']');
    }

    /// Writes seconds since 1970, with nine decimals. Needs [`TIME_BYTES`] + 4 reserved bytes.
    pub(crate) fn seconds(&mut self, time_ns: u64) {
        self.unsigned(time_ns / NS_PER_S);
        self.byte(b'.');
        self.digits::<9>(time_ns % NS_PER_S);
    }

    /// Writes ISO 8601 in UTC, always with nine decimals, so that sorting the texts sorts the
    /// times. Needs [`TIME_BYTES`] reserved bytes.
    pub(crate) fn iso(&mut self, time_ns: u64) {
        let second = time_ns / NS_PER_S;
        let (year, month, day) = civil(second / 86_400);
        self.digits::<4>(year);
        let parts = [
            (b'-', month),
            (b'-', day),
            (b'T', second / 3_600 % 24),
            (b':', second / 60 % 60),
            (b':', second % 60),
        ];
        for (before, number) in parts {
            self.byte(before);
            self.digits::<2>(number);
        }
        self.byte(b'.');
        self.digits::<9>(time_ns % NS_PER_S);
        self.byte(b'Z');
    }

    /// Writes the last `N` digits of a number.
    fn digits<const N: usize>(&mut self, mut number: u64) {
        let mut digits = [0; N];
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        self.raw(&digits);
    }

    /// Writes a text as a CSV field. Needs [`quoted_bytes`] of its length as reserved bytes.
    pub(crate) fn csv_text(&mut self, text: &str) {
        self.raw(csv_field(text).as_bytes());
    }

    /// Writes a text as a JSON string. Needs [`quoted_bytes`] of its length as reserved bytes.
    pub(crate) fn json_text(&mut self, text: &str) {
        let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..b' ');
        if text.as_bytes().iter().all(is_plain) {
            self.byte(b'"');
            self.raw(text.as_bytes());
            return self.byte(b'"');
        }
        self.raw(json_string(text).as_bytes());
    }

    /// Writes a number in the form that its column has.
    #[inline(always)]
    pub(crate) fn number(&mut self, number: u64, written: Written) {
        match written {
            Written::Number => self.unsigned(number),
            Written::Mac => self.mac(number),
            written => self.time_or_name(number, written),
        }
    }

    #[inline(never)]
    fn time_or_name(&mut self, number: u64, written: Written) {
        let name = match written {
            Written::Seconds => return self.seconds(number),
            Written::Iso => return self.iso(number),
            Written::Protocol => protocol_name(number),
            Written::EndReason => end_reason_name(number),
            Written::AsItIs | Written::Number | Written::Mac => None,
        };
        match name {
            Some(name) => self.raw(name.as_bytes()),
            None => self.unsigned(number),
        }
    }

    /// Replaces the last separator with a newline.
    #[inline(always)]
    pub(crate) fn end_line(&mut self) {
        self.bytes[self.length - 1] = b'\n';
    }

    /// Writes an address, IPv6 as in RFC 5952. Needs [`ADDRESS_BYTES`] + 4 reserved bytes.
    #[inline(always)]
    pub(crate) fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => self.v4(address),
            IpAddr::V6(address) => self.v6(address),
        }
    }

    #[inline(always)]
    fn v4(&mut self, address: Ipv4Addr) {
        let octets = address.octets();
        for octet in octets {
            let [a, b, c, length] = SMALL[usize::from(octet)];
            let mut text = [a, b, c, 0];
            text[usize::from(length)] = b'.';
            self.fixed(text, usize::from(length) + 1);
        }
        self.length -= 1;
    }

    fn v6(&mut self, address: Ipv6Addr) {
        if let Some(mapped) = address.to_ipv4_mapped() {
            self.raw(b"::ffff:");
            return self.v4(mapped);
        }
        let groups = address.segments();
        let (start, end) = longest_zero_run(&groups);
        for (index, &group) in groups.iter().enumerate() {
            if (start..end).contains(&index) {
                if index == start {
                    self.raw(b"::");
                }
                continue;
            }
            if index > 0 && index != end {
                self.byte(b':');
            }
            self.hex(group);
        }
    }

    fn hex(&mut self, group: u16) {
        let digits = ((19 - (group | 1).leading_zeros()) / 4).max(1);
        for digit in (0..digits).rev() {
            self.byte(HEX[usize::from(group >> (4 * digit) & 15)]);
        }
    }
}

/// Start and end of the longest run of at least two zero groups, the first one if several are
/// equally long (RFC 5952, section 4.2); an empty range past the end if there is none.
fn longest_zero_run(groups: &[u16; 8]) -> (usize, usize) {
    let (mut best, mut start) = ((9, 9), 0);
    let zeros = groups.iter().map(|group| *group == 0);
    for (end, zero) in zeros.chain([false]).enumerate() {
        if !zero {
            if end - start >= 2 && end - start > best.1 - best.0 {
                best = (start, end);
            }
            start = end + 1;
        }
    }
    best
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Decimal digits of the numbers below 1,000, each with the number of its digits.
static SMALL: [[u8; 4]; 1000] = small_numbers();

const fn small_numbers() -> [[u8; 4]; 1000] {
    let mut table = [[0; 4]; 1000];
    let mut value = 0;
    while value < 1000 {
        let (a, b, c) = (value / 100, value / 10 % 10, value % 10);
        let (a, b, c) = (b'0' + a as u8, b'0' + b as u8, b'0' + c as u8);
        table[value] = match value {
            0..10 => [c, 0, 0, 1],
            10..100 => [b, c, 0, 2],
            _ => [a, b, c, 3],
        };
        value += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(write: impl FnOnce(&mut Text)) -> String {
        let mut text = Text::default();
        text.reserve(64);
        write(&mut text);
        String::from_utf8(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn writes_the_corner_cases() {
        for value in [0, 9, 10, 99, 100, 999, 1000, u64::MAX] {
            assert_eq!(text(|t| t.unsigned(value)), value.to_string());
        }
        assert_eq!(text(|t| t.mac(0x0a0b_0c0d_0e0f)), "0a:0b:0c:0d:0e:0f");
        assert_eq!(text(|t| t.float(0.1)), "0.1");
        for address in [
            "::",
            "::1",
            "1::",
            "1:0:0:2::3",
            "::ffff:1.2.3.4",
            "1:0:2:3:4:5:6:7",
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(text(|t| t.address(address)), address.to_string());
        }
    }

    proptest! {
        #[test]
        fn writes_what_the_standard_library_writes(
            number: u64,
            v4: u32,
            groups in prop::array::uniform8(prop_oneof![Just(0u16), 0u16..300, any::<u16>()]),
        ) {
            prop_assert_eq!(text(|t| t.unsigned(number)), number.to_string());
            for address in [IpAddr::from(Ipv4Addr::from(v4)), IpAddr::from(groups)] {
                prop_assert_eq!(text(|t| t.address(address)), address.to_string());
            }
        }
    }
}
