// SPDX-License-Identifier: Apache-2.0
//! The first bytes of transport headers.

use crate::bytes::{array_at, u8_at, u16_at};

/// Protocol numbers (IANA) that mean something here.
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

    /// Whether its header starts with two ports.
    pub(crate) const fn has_ports(protocol: u8) -> bool {
        matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
    }

    /// Whether it is ICMP or ICMPv6.
    pub(crate) const fn is_icmp(protocol: u8) -> bool {
        matches!(protocol, ICMP | ICMPV6)
    }
}

/// The wire bytes of source and destination port, 0/0 where there are none.
pub(crate) fn ports(protocol: u8, transport: &[u8], icmp_ports: bool) -> [u8; 4] {
    if protocol::has_ports(protocol) {
        array_at(transport, 0).unwrap_or_default()
    } else if icmp_ports && protocol::is_icmp(protocol) {
        array_at(transport, 0).map_or([0; 4], |[kind, code]| [0, 0, kind, code])
    } else {
        [0; 4]
    }
}

/// The 12-bit flags field (RFC 9293, section 3.1, and the reserved bits before it).
pub(crate) fn tcp_flags(transport: &[u8]) -> Option<u16> {
    u16_at(transport, 12).map(|word| word & 0x0fff)
}

/// Bytes of the transport header as it says itself, `None` where that was not captured or is
/// impossible. Protocols that TurboFlow does not know count as payload wholly.
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

/// TCP option kinds as a bit set: bit `kind` for the kinds 0 to 63.
pub(crate) fn tcp_options(transport: &[u8]) -> Option<u64> {
    let end = header_bytes(protocol::TCP, transport)? as usize;
    let options = transport.get(20..end.min(transport.len())).unwrap_or(&[]);
    Some(option_bits(options, |kind| kind))
}

/// Options of type, length, value, where 0 ends the list and 1 is a byte of padding: the form that
/// IPv4 (RFC 791, section 3.1) and TCP (RFC 9293, section 3.1) share. Stops at an impossible length.
pub(crate) fn option_bits(options: &[u8], bit: impl Fn(u8) -> u8) -> u64 {
    let (mut bits, mut offset) = (0, 0);
    // At most 40 bytes of options, at least one byte each.
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
