// SPDX-License-Identifier: Apache-2.0
//! What the rest of the house knows of one packet.

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

/// The last time that a packet may have, in 2554. States hold times plus one, so that 0 is none.
pub const LAST_TIME_NS: u64 = u64::MAX - 1;

/// One packet as the laws and the default definition see it.
///
/// `crates/packet` makes it from a frame; an engine never sees the frame itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Addresses, ports, protocol.
    pub tuple: FiveTuple,
    /// Nanoseconds since 1970, no more than [`LAST_TIME_NS`].
    pub timestamp_ns: u64,
    /// Bytes the IP header declares (see `docs/semantics.md`).
    pub ip_length_bytes: u32,
    /// Bytes of the frame on the wire.
    pub frame_length_bytes: u32,
    /// 12-bit TCP flags; 0 where the packet is not TCP or too little of it was captured.
    pub tcp_flags: u16,
    /// IPv4 time to live or IPv6 hop limit.
    pub ttl: u8,
    /// IPv4 type of service or IPv6 traffic class.
    pub tos: u8,
}

/// The inputs of one packet beyond those in [`Packet`], filled only as far as a definition needs.
#[derive(Clone, PartialEq, Eq)]
#[repr(C)]
pub struct InputValues {
    values: ValueTable<INPUT_WORDS>,
    /// Outer source and destination addresses of a decapsulated packet (IPv4 in the first 4 bytes);
    /// zero where no tunnel was entered.
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
    /// Only what is present.
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
    /// Forgets the previous packet.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.present = InputSet::EMPTY;
        self.outer_addresses = [[0; 16]; 2];
    }

    /// Says that the packet carries `input`.
    #[inline(always)]
    pub fn set(&mut self, input: Input, value: u64) {
        self.present = self.present.with(input);
        self.values.set(input as u8, value);
    }

    /// The value, where the packet carries it.
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

    /// The value of the input of that number; any, where the packet lacks it.
    #[inline(always)]
    #[must_use]
    pub const fn value(&self, input: u8) -> u64 {
        self.values.get(input)
    }

    /// The value of the input of that number, and a mask: all ones where the packet carries it.
    #[inline(always)]
    pub const fn masked(&self, input: u8) -> (u64, u64) {
        let present = self.present.contains_number(input) as u64;
        (self.value(input), present.wrapping_neg())
    }
}
