// SPDX-License-Identifier: Apache-2.0
//! The payload of an MPLS label stack, whose type is in no header field.

use crate::Rejected;
use crate::bytes::{array_at, u8_at, u16_at};
use crate::ip::IPV6_HEADER_BYTES;
use crate::link::{CUT, LinkFields, LinkLimits, Network, Version, by_nibble, ether_type};

/// Labels that determine the payload.
const EXPLICIT_NULL_V4: u32 = 0;
const EXPLICIT_NULL_V6: u32 = 2;

/// The IP header after the label stack that ends at `offset`. Also the EtherType if the header is
/// inside a pseudowire.
///
/// If the last label is an explicit null, it determines the payload (RFC 3032, section 2.1).
/// Otherwise, a payload that cannot be IP is taken as an Ethernet pseudowire. Its destination
/// address may begin with any nibble (RFC 4448, section 4.6; RFC 4385, section 3).
pub(crate) fn payload(
    bytes: &[u8],
    offset: usize,
    last_label: u32,
    limits: LinkLimits,
) -> Result<(Network, Option<u16>), Rejected> {
    const NOT_IP: Rejected = Rejected::MplsNotIp;
    let network = by_nibble(bytes, offset, NOT_IP).ok();
    let announced = match last_label {
        EXPLICIT_NULL_V4 => Some(Version::V4),
        EXPLICIT_NULL_V6 => Some(Version::V6),
        _ => None,
    };
    if let Some(network) = network.filter(|network| Some(network.version) == announced) {
        return Ok((network, None));
    }
    if let Some(network) = network.filter(|network| can_be_ip(bytes, *network, limits.wire_end))
        && (network.version == Version::V4 || !is_ethernet(bytes, offset, limits.wire_end))
    {
        return Ok((network, None));
    }
    let control_word = match u8_at(bytes, offset).ok_or(CUT)? >> 4 {
        0 => Some(offset + 4),
        // A control channel (RFC 5586).
        1 => return Err(NOT_IP),
        _ => None,
    };
    let Some(pseudowires) = limits.pseudowires.checked_sub(1) else {
        return Err(NOT_IP);
    };
    let limits = LinkLimits {
        pseudowires,
        ..limits
    };
    control_word
        .and_then(|offset| behind_ethernet(bytes, offset, limits))
        .or_else(|| behind_ethernet(bytes, offset, limits))
        .ok_or(NOT_IP)
}

/// The IP header in an Ethernet frame at `offset`, and its EtherType.
fn behind_ethernet(
    bytes: &[u8],
    offset: usize,
    limits: LinkLimits,
) -> Option<(Network, Option<u16>)> {
    let mut link = LinkFields::default();
    let network = link.ethernet(bytes, offset, limits).ok()?;
    has_version(bytes, network).then_some((network, link.ether_type))
}

/// Whether bytes that could begin an IPv6 header can be an Ethernet frame, with at most two tags,
/// that contains an IP header. Because IPv6 has no header checksum, the EtherType is the stronger
/// evidence.
fn is_ethernet(bytes: &[u8], offset: usize, wire_end: u32) -> bool {
    let mut at = offset + 12;
    for _ in 0..=2 {
        let version = match u16_at(bytes, at) {
            Some(ether_type::IPV4) => Version::V4,
            Some(ether_type::IPV6) => Version::V6,
            Some(ether_type::VLAN | ether_type::SERVICE_VLAN | ether_type::OLD_SERVICE_VLAN) => {
                at += 4;
                continue;
            }
            _ => return false,
        };
        let network = Network {
            offset: at + 2,
            version,
        };
        return has_version(bytes, network) && can_be_ip(bytes, network, wire_end);
    }
    false
}

/// Whether the version nibble is the announced one. Also true if it was not captured.
fn has_version(bytes: &[u8], network: Network) -> bool {
    u8_at(bytes, network.offset).is_none_or(|first| {
        first >> 4
            == match network.version {
                Version::V4 => 4,
                Version::V6 => 6,
            }
    })
}

/// Whether bytes whose nibble is that of IP can be an IP header. IPv4 is checked by length and
/// checksum, IPv6 by length. An incompletely captured header passes.
fn can_be_ip(bytes: &[u8], network: Network, wire_end: u32) -> bool {
    let offset = network.offset;
    match network.version {
        Version::V4 => {
            let header_bytes = u8_at(bytes, offset).map_or(0, |first| usize::from(first & 0xf) * 4);
            if header_bytes < 20 {
                return false;
            }
            let Some(header) = bytes.get(offset..offset + header_bytes) else {
                return true;
            };
            let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
            checksum(header) == 0xffff && (total == 0 || total >= header_bytes)
        }
        Version::V6 => {
            let Some([high, low]) = array_at(bytes, offset + 4) else {
                return true;
            };
            let payload = usize::from(u16::from_be_bytes([high, low]));
            offset + IPV6_HEADER_BYTES + payload <= wire_end as usize
        }
    }
}

/// The sum of a header and its checksum (RFC 1071): 0xffff if the checksum is right.
fn checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks_exact(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}
