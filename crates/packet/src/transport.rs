// SPDX-License-Identifier: Apache-2.0
//! The first bytes of transport headers.

use crate::bytes::{array_at, u8_at, u16_at};

/// The protocol numbers (IANA) that the parser distinguishes.
pub(crate) mod protocol {
    pub(crate) const ICMP: u8 = 1;
    pub(crate) const IPV4: u8 = 4;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const DCCP: u8 = 33;
    pub(crate) const IPV6: u8 = 41;
    pub(crate) const GRE: u8 = 47;
    pub(crate) const ICMPV6: u8 = 58;
    pub(crate) const SCTP: u8 = 132;
    pub(crate) const UDP_LITE: u8 = 136;

    /// Whether the transport header starts with two ports.
    pub(crate) const fn has_ports(protocol: u8) -> bool {
        matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
    }

    /// Whether the protocol is ICMP or ICMPv6.
    pub(crate) const fn is_icmp(protocol: u8) -> bool {
        matches!(protocol, ICMP | ICMPV6)
    }
}

/// Source and destination port in wire order; 0/0 if there are none. Plain packets are not handled
/// here: `fast.rs` reads their ports in one load.
pub(crate) fn ports(protocol: u8, transport: &[u8], icmp_ports: bool) -> [u8; 4] {
    if protocol::has_ports(protocol) {
        array_at(transport, 0).unwrap_or_default()
    } else if icmp_ports && protocol::is_icmp(protocol) {
        array_at(transport, 0).map_or([0; 4], |[kind, code]| [0, 0, kind, code])
    } else {
        [0; 4]
    }
}

/// Whether the message is an echo reply (RFC 792; RFC 4443, section 4.2).
pub(crate) fn is_echo_reply(protocol: u8, transport: &[u8]) -> bool {
    let kind = u8_at(transport, 0);
    matches!(
        (protocol, kind),
        (protocol::ICMP, Some(0)) | (protocol::ICMPV6, Some(129))
    )
}

/// The 12-bit flags field (RFC 9293, section 3.1), including reserved bits.
pub(crate) fn tcp_flags(transport: &[u8]) -> Option<u16> {
    u16_at(transport, 12).map(|word| word & 0x0fff)
}

/// Length of the transport header according to its own field. `None` if the field was not captured
/// or is invalid. With an unknown protocol everything is payload, so the header has 0 bytes.
pub(crate) fn header_bytes(protocol: u8, transport: &[u8]) -> Option<u32> {
    match protocol {
        protocol::TCP => u8_at(transport, 12)
            .map(|byte| u32::from(byte >> 4) * 4)
            .filter(|&b| b >= 20),
        protocol::DCCP => u8_at(transport, 4)
            .map(|words| u32::from(words) * 4)
            .filter(|&b| b >= 12),
        protocol::UDP | protocol::UDP_LITE | protocol::ICMP | protocol::ICMPV6 => Some(8),
        protocol::SCTP => Some(12),
        _ => Some(0),
    }
}

/// TCP option kinds as a bit set: bit `kind` for kinds 0 to 63.
pub(crate) fn tcp_options(transport: &[u8]) -> Option<u64> {
    let end = header_bytes(protocol::TCP, transport)? as usize;
    let options = transport.get(20..end.min(transport.len())).unwrap_or(&[]);
    Some(option_bits(options, |kind| kind))
}

/// Options in type-length-value form, where 0 ends the list and 1 is padding. IPv4 (RFC 791,
/// section 3.1) and TCP (RFC 9293, section 3.1) share it. Stops at an invalid length.
pub(crate) fn option_bits(options: &[u8], bit: impl Fn(u8) -> u8) -> u64 {
    let (mut bits, mut offset) = (0, 0);
    // At most 40 bytes of options, of at least one byte each.
    while let Some(kind) = u8_at(options, offset) {
        bits |= 1_u64.checked_shl(u32::from(bit(kind))).unwrap_or(0);
        offset += match (kind, u8_at(options, offset + 1)) {
            (0, _) => break,
            (1, _) => 1,
            (_, Some(length)) if length >= 2 => usize::from(length),
            _ => break,
        };
    }
    bits
}
