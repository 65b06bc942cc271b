// SPDX-License-Identifier: Apache-2.0
//! A parsed packet, as every crate after the parser sees it.

use crate::input::ValueTable;
use crate::{FiveTuple, INPUT_WORDS, Input, InputSet};

/// TCP FIN.
pub const TCP_FIN: u16 = 0x01;
/// TCP SYN.
pub const TCP_SYN: u16 = 0x02;
/// TCP RST.
pub const TCP_RST: u16 = 0x04;
/// TCP ACK.
pub const TCP_ACK: u16 = 0x10;

/// The largest timestamp of a packet, in nanoseconds since 1970: in the year 2554. State words hold
/// times plus one, so that 0 means none.
pub const LAST_TIME_NS: u64 = u64::MAX - 1;

/// A packet with the fields that the default definition and the rules of conservation need.
///
/// `crates/packet` parses it from a frame. Engines never see the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Addresses, ports, protocol.
    pub tuple: FiveTuple,
    /// Nanoseconds since 1970, at most [`LAST_TIME_NS`].
    pub timestamp_ns: u64,
    /// Length according to the IP header, in bytes (see `docs/semantics.md`).
    pub ip_length_bytes: u32,
    /// Length of the frame on the wire, in bytes.
    pub frame_length_bytes: u32,
    /// The 12 TCP flag bits; 0 if the packet is not TCP or they were not captured.
    pub tcp_flags: u16,
    /// IPv4 time to live or IPv6 hop limit.
    pub ttl: u8,
    /// IPv4 type of service or IPv6 traffic class.
    pub tos: u8,
    /// Whether it is an ICMP or ICMPv6 echo reply.
    pub is_echo_reply: bool,
}

impl Packet {
    /// Whether the packet is an answer to its receiver: a SYN with ACK, or an echo reply.
    #[inline(always)]
    #[must_use]
    pub const fn is_answer(&self) -> bool {
        const SYN_ACK: u16 = TCP_SYN | TCP_ACK;
        self.tcp_flags & SYN_ACK == SYN_ACK || self.is_echo_reply
    }
}

/// Inputs of a packet beyond the fields of [`Packet`]. Only those that a definition needs are
/// filled.
#[derive(Clone, PartialEq, Eq)]
#[repr(C)]
pub struct InputValues {
    values: ValueTable<INPUT_WORDS>,
    /// Outer source and destination address of a decapsulated packet (IPv4 in the first 4 bytes);
    /// zero if no tunnel was entered.
    pub outer_addresses: [[u8; 16]; 2],
    present: InputSet,
}

impl Default for InputValues {
    fn default() -> Self {
        Self {
            values: ValueTable::ZEROS,
            outer_addresses: [[0; 16]; 2],
            present: InputSet::EMPTY,
        }
    }
}

impl std::fmt::Debug for InputValues {
    /// Prints only the inputs that are present.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let present = self
            .present()
            .iter()
            .map(|input| (input, self.value(input as u8)));
        f.debug_map()
            .entries(present)
            .entry(&"outer", &self.outer_addresses)
            .finish()
    }
}

impl InputValues {
    /// Removes the inputs of the previous packet.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.present = InputSet::EMPTY;
        self.outer_addresses = [[0; 16]; 2];
    }

    /// Sets an input that the packet carries.
    #[inline(always)]
    pub fn set(&mut self, input: Input, value: u64) {
        self.present = self.present.with(input);
        self.values.set(input as u8, value);
    }

    /// The value of `input`, if the packet carries it.
    #[inline(always)]
    #[must_use]
    pub fn get(&self, input: Input) -> Option<u64> {
        self.present()
            .contains(input)
            .then(|| self.value(input as u8))
    }

    /// The inputs that the packet carries.
    #[inline(always)]
    #[must_use]
    pub const fn present(&self) -> InputSet {
        self.present
    }

    /// The value of the input with this number. Arbitrary if the packet does not carry it.
    #[inline(always)]
    #[must_use]
    pub const fn value(&self, input: u8) -> u64 {
        self.values.get(input)
    }

    /// The value of the input with this number, and a mask: all ones if the packet carries the
    /// input, else 0.
    #[inline(always)]
    pub const fn masked(&self, input: u8) -> (u64, u64) {
        let present = self.present.contains_number(input) as u64;
        (self.value(input), present.wrapping_neg())
    }
}
