// SPDX-License-Identifier: Apache-2.0
//! Tunnels over UDP, recognised by their registered ports.

use super::{Inner, Tunnel, TunnelSet};
use crate::Rejected;
use crate::bytes::{array_at, u8_at, u16_at, u24_at, u32_at};
use crate::link::{LinkLimits, Network, Version, by_nibble, ether_type};

/// The most GTP-U extension headers that are followed.
const MAX_GTP_EXTENSIONS: usize = 16;

const L2TP_PORT: u16 = 1701;
const GTP_U_PORT: u16 = 2152;
const TEREDO_PORT: u16 = 3544;
const VXLAN_PORT: u16 = 4789;
const GENEVE_PORT: u16 = 6081;
const VXLAN_GPE_PORT: u16 = 4790;
/// Linux's VXLAN port from before the port was registered.
const OLD_VXLAN_PORT: u16 = 8472;

/// The tunnels that the destination port and the source port indicate. Senders of VXLAN and GENEVE
/// vary the source port, so only the destination port counts.
fn tunnels_of(source: u16, destination: u16) -> [Option<Tunnel>; 2] {
    let either = |port| match port {
        GTP_U_PORT => Some(Tunnel::GtpU),
        TEREDO_PORT => Some(Tunnel::Teredo),
        L2TP_PORT => Some(Tunnel::L2tp),
        _ => None,
    };
    let by_destination = match destination {
        VXLAN_PORT | VXLAN_GPE_PORT | OLD_VXLAN_PORT => Some(Tunnel::Vxlan),
        GENEVE_PORT => Some(Tunnel::Geneve),
        port => either(port),
    };
    [by_destination, either(source)]
}

/// Whether UDP ports, in wire order, may be those of a tunnel.
pub(crate) fn may_be_tunnel(ports: [u8; 4]) -> bool {
    let [a, b, c, d] = ports;
    tunnels_of(u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])) != [None, None]
}

/// The header inside a UDP datagram at `offset`, if it carries one of the `entered` tunnels.
pub(super) fn enter(
    bytes: &[u8],
    offset: usize,
    entered: TunnelSet,
    limits: LinkLimits,
) -> Option<Inner> {
    let (source, destination) = (u16_at(bytes, offset)?, u16_at(bytes, offset + 2)?);
    let payload = offset + 8;
    let wanted = tunnels_of(source, destination).into_iter().flatten();
    wanted
        .filter(|tunnel| entered.contains(*tunnel))
        .find_map(|tunnel| enter_one(bytes, payload, tunnel, destination, limits))
}

fn enter_one(
    bytes: &[u8],
    payload: usize,
    tunnel: Tunnel,
    destination: u16,
    limits: LinkLimits,
) -> Option<Inner> {
    match tunnel {
        Tunnel::Vxlan if destination == VXLAN_GPE_PORT => vxlan_gpe(bytes, payload, limits),
        Tunnel::Vxlan => vxlan(bytes, payload, limits),
        Tunnel::Geneve => geneve(bytes, payload, limits),
        Tunnel::GtpU => gtp_u(bytes, payload),
        Tunnel::Teredo => teredo(bytes, payload),
        Tunnel::L2tp => l2tp(bytes, payload, limits),
        Tunnel::Ipip | Tunnel::SixInFour | Tunnel::Gre | Tunnel::Pseudowire => None,
    }
}

/// RFC 7348, section 5: flags with the I bit, VNI in bytes 4 to 6, then Ethernet.
fn vxlan(bytes: &[u8], offset: usize, limits: LinkLimits) -> Option<Inner> {
    if u8_at(bytes, offset)? & 0x08 == 0 {
        return None;
    }
    let mut inner = Inner::behind_ethernet(bytes, offset + 8, limits)?;
    inner.fields.vni = u24_at(bytes, offset + 4);
    Some(inner)
}

/// draft-ietf-nvo3-vxlan-gpe, section 3: like VXLAN, but if the P bit is set, the last reserved
/// byte names the protocol of the payload.
fn vxlan_gpe(bytes: &[u8], offset: usize, limits: LinkLimits) -> Option<Inner> {
    let [flags, _, _, next]: [u8; 4] = array_at(bytes, offset)?;
    let announced = match (flags & 0x04 != 0, next) {
        (false, _) | (true, 3) => return vxlan(bytes, offset, limits),
        (true, 1) => ether_type::IPV4,
        (true, 2) => ether_type::IPV6,
        (true, _) => return None,
    };
    if flags & 0x08 == 0 {
        return None;
    }
    let mut inner = Inner::behind_ether_type(bytes, offset + 8, announced, limits)?;
    inner.fields.vni = u24_at(bytes, offset + 4);
    Some(inner)
}

/// RFC 8926, section 3.4: version 0, options in words, protocol type, VNI.
fn geneve(bytes: &[u8], offset: usize, limits: LinkLimits) -> Option<Inner> {
    let first = u8_at(bytes, offset)?;
    if first >> 6 != 0 {
        return None;
    }
    let behind = offset + 8 + usize::from(first & 0x3f) * 4;
    let mut inner = match u16_at(bytes, offset + 2)? {
        ether_type::TRANSPARENT_ETHERNET => Inner::behind_ethernet(bytes, behind, limits)?,
        ..ether_type::MIN_TYPE => return None,
        announced => Inner::behind_ether_type(bytes, behind, announced, limits)?,
    };
    inner.fields.vni = u24_at(bytes, offset + 4);
    Some(inner)
}

/// 3GPP TS 29.281, section 5.1: version 1, protocol type 1, message type 255 (G-PDU).
fn gtp_u(bytes: &[u8], offset: usize) -> Option<Inner> {
    let [flags, message]: [u8; 2] = array_at(bytes, offset)?;
    if flags >> 4 != 0b0011 || message != 255 {
        return None;
    }
    let mut behind = offset + 8;
    if flags & 0b111 != 0 {
        let mut next = u8_at(bytes, offset + 11)?;
        behind += 4;
        if flags & 0b100 == 0 {
            next = 0;
        }
        for _ in 0..MAX_GTP_EXTENSIONS {
            if next == 0 {
                break;
            }
            let words = usize::from(u8_at(bytes, behind)?);
            if words == 0 {
                return None;
            }
            behind += words * 4;
            next = u8_at(bytes, behind - 1)?;
        }
        if next != 0 {
            return None;
        }
    }
    let mut inner = Inner::new(by_nibble(bytes, behind, Rejected::RawNotIp).ok()?);
    inner.fields.teid = u32_at(bytes, offset + 4);
    Some(inner)
}

/// RFC 4380, section 5.1.1: an authentication header and an origin indication may precede IPv6.
fn teredo(bytes: &[u8], mut offset: usize) -> Option<Inner> {
    if let Some([0, 1, id_bytes, value_bytes]) = array_at(bytes, offset) {
        // Client id, authentication value, nonce (8), confirmation (1).
        offset += 4 + usize::from(id_bytes) + usize::from(value_bytes) + 9;
    }
    if array_at(bytes, offset) == Some([0, 0]) {
        offset += 8;
    }
    let version = Version::V6;
    (u8_at(bytes, offset)? >> 4 == 6).then(|| Inner::new(Network { offset, version }))
}

/// RFC 2661, section 3.1: a data message of version 2 carries PPP.
fn l2tp(bytes: &[u8], offset: usize, limits: LinkLimits) -> Option<Inner> {
    const CONTROL: u16 = 0x8000;
    const LENGTH: u16 = 0x4000;
    const SEQUENCE: u16 = 0x0800;
    const OFFSET: u16 = 0x0200;
    let flags = u16_at(bytes, offset)?;
    if flags & CONTROL != 0 || flags & 0xf != 2 {
        return None;
    }
    // Flags, tunnel id, session id.
    let mut behind = offset + 6;
    if flags & LENGTH != 0 {
        behind += 2;
    }
    if flags & SEQUENCE != 0 {
        behind += 4;
    }
    if flags & OFFSET != 0 {
        behind += 2 + usize::from(u16_at(bytes, behind)?);
    }
    Inner::behind_ppp(bytes, behind, limits)
}
