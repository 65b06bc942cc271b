// SPDX-License-Identifier: Apache-2.0
//! The fast parser, for the common packets, with few branches.
//!
//! It accepts Ethernet with at most one 802.1Q tag. The packet is IPv4 without options or
//! fragmentation, or IPv6 without extension headers. It carries TCP or UDP. The bytes that are
//! parsed must be captured and within the IP length, and the frame on the wire must have room for
//! that length. All other frames are left to [`Walk`](crate::walk::Walk). Both parsers must give
//! the same result for every frame that this one accepts, which a property test checks.

use turboflow_record::{FiveTuple, Packet};

use crate::transport::protocol;
use crate::tunnel::may_be_udp_tunnel;
use crate::{Frame, LinkType};

/// How many bytes are read of a TCP header (up to its flags) and of a UDP header (its ports).
const TCP_BYTES: u32 = 14;
const UDP_BYTES: u32 = 4;

/// A packet and the offset of its IP header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fast {
    pub(crate) packet: Packet,
    pub(crate) ip_offset: usize,
}

/// The packet of a plain frame; `None` if the general parser has to parse it.
///
/// With `udp_tunnels`, UDP on tunnel ports is left to the general parser too.
#[inline(always)]
pub(crate) fn parse(frame: &Frame<'_>, udp_tunnels: bool) -> Option<Fast> {
    if frame.link_type != LinkType::Ethernet {
        return None;
    }
    // Up to the flags of IPv4 and TCP in an untagged frame: 14 + 20 + 14.
    let head = frame.bytes.first_chunk::<48>()?;
    match u16::from_le_bytes([head[12], head[13]]) {
        IPV4_LE => v4(frame, head.last_chunk()?, 14, udp_tunnels),
        IPV6_LE => v6(
            frame,
            frame.bytes.get(14..)?.first_chunk()?,
            14,
            udp_tunnels,
        ),
        VLAN_LE => match u16::from_le_bytes([head[16], head[17]]) {
            IPV4_LE => v4(
                frame,
                frame.bytes.get(18..)?.first_chunk()?,
                18,
                udp_tunnels,
            ),
            IPV6_LE => v6(
                frame,
                frame.bytes.get(18..)?.first_chunk()?,
                18,
                udp_tunnels,
            ),
            _ => None,
        },
        _ => None,
    }
}

/// The packet of a plain IPv4 frame with at most one tag; `None` for any other frame.
#[inline(always)]
pub(crate) fn parse_v4(frame: &Frame<'_>, udp_tunnels: bool) -> Option<Packet> {
    if frame.link_type != LinkType::Ethernet {
        return None;
    }
    let head = frame.bytes.first_chunk::<48>()?;
    let ether_type = u16::from_le_bytes([head[12], head[13]]);
    let (ip, ip_offset) = if ether_type == IPV4_LE {
        (head.last_chunk()?, 14)
    } else {
        let tagged = ether_type == VLAN_LE && u16::from_le_bytes([head[16], head[17]]) == IPV4_LE;
        if !tagged {
            return None;
        }
        (frame.bytes.get(18..)?.first_chunk()?, 18)
    };
    Some(v4(frame, ip, ip_offset, udp_tunnels)?.packet)
}

const IPV4_LE: u16 = 0x0800_u16.swap_bytes();
const IPV6_LE: u16 = 0x86dd_u16.swap_bytes();
const VLAN_LE: u16 = 0x8100_u16.swap_bytes();

#[inline(always)]
fn v4(frame: &Frame<'_>, ip: &[u8; 34], ip_offset: usize, udp_tunnels: bool) -> Option<Fast> {
    let protocol = ip[9];
    let is_tcp = protocol == protocol::TCP;
    let length = u32::from(u16::from_be_bytes([ip[2], ip[3]]));
    let plain = ip[0] == 0x45
        && u16::from_le_bytes([ip[6], ip[7]]) & 0x3fff_u16.swap_bytes() == 0
        && (is_tcp || protocol == protocol::UDP)
        && length >= 20 + if is_tcp { TCP_BYTES } else { UDP_BYTES }
        && has_room(frame, ip_offset, length);
    // Source and destination port, if the packet is plain, which is checked next.
    let ports = *ip[20..].first_chunk()?;
    if !plain || udp_tunnels && !is_tcp && may_be_udp_tunnel(ports) {
        return None;
    }
    let addresses = *ip[12..].first_chunk()?;
    let packet = Packet {
        tuple: FiveTuple::v4(addresses, ports, protocol),
        timestamp_ns: frame.timestamp_ns,
        ip_length_bytes: length,
        frame_length_bytes: frame.wire_length_bytes,
        tcp_flags: tcp_flags(*ip[32..].first_chunk()?, is_tcp),
        ttl: ip[8],
        tos: ip[1],
        is_echo_reply: false,
    };
    Some(Fast { packet, ip_offset })
}

#[inline(always)]
fn v6(frame: &Frame<'_>, ip: &[u8; 54], ip_offset: usize, udp_tunnels: bool) -> Option<Fast> {
    let protocol = ip[6];
    let is_tcp = protocol == protocol::TCP;
    let payload = u32::from(u16::from_be_bytes([ip[4], ip[5]]));
    let plain = ip[0] >> 4 == 6
        && (is_tcp || protocol == protocol::UDP)
        && payload >= if is_tcp { TCP_BYTES } else { UDP_BYTES }
        && has_room(frame, ip_offset, payload + 40);
    // Source and destination port, if the packet is plain, which is checked next.
    let ports = *ip[40..].first_chunk()?;
    if !plain || udp_tunnels && !is_tcp && may_be_udp_tunnel(ports) {
        return None;
    }
    let source = *ip[8..].first_chunk()?;
    let destination = *ip[24..].first_chunk()?;
    let packet = Packet {
        tuple: FiveTuple::v6(source, destination, ports, protocol),
        timestamp_ns: frame.timestamp_ns,
        ip_length_bytes: 40 + payload,
        frame_length_bytes: frame.wire_length_bytes,
        tcp_flags: tcp_flags(*ip[52..].first_chunk()?, is_tcp),
        ttl: ip[7],
        tos: ip[0] << 4 | ip[1] >> 4,
        is_echo_reply: false,
    };
    Some(Fast { packet, ip_offset })
}

/// Whether the frame on the wire has room for the packet. Longer packets are left to the general
/// parser, which counts them.
#[inline(always)]
const fn has_room(frame: &Frame<'_>, ip_offset: usize, packet_bytes: u32) -> bool {
    // The sum cannot overflow: a packet has at most 65,575 bytes.
    ip_offset as u32 + packet_bytes <= frame.wire_length_bytes
}

/// The 12 flag bits; 0 without TCP. A mask, not a branch: TCP and UDP alternate unpredictably.
#[inline(always)]
fn tcp_flags(word: [u8; 2], is_tcp: bool) -> u16 {
    // Masking before the byte swap serves both purposes: one load, one mask.
    (u16::from_le_bytes(word) & 0xff0f & u16::from(is_tcp).wrapping_neg()).swap_bytes()
}
