// SPDX-License-Identifier: Apache-2.0
//! IPv4 and IPv6 headers, including extension headers.

use turboflow_record::{Family, FiveTuple};

use crate::Rejected;
use crate::bytes::{array_at, u8_at, u16_at, u32_at};
use crate::link::{Network, Version};

/// The most IPv6 extension headers that are followed in one packet. Each has at least 8 bytes.
/// Beyond the limit, the protocol is that of the last header reached, and ports are 0/0.
pub const MAX_EXTENSION_HEADERS: usize = 256;

/// Size of the IPv6 header without extensions, in bytes.
pub(crate) const IPV6_HEADER_BYTES: usize = 40;
/// Next-header value of a packet without payload (RFC 8200, section 4.7).
const NO_NEXT_HEADER: u8 = 59;

/// The fields of an IP header, and the offset of its transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpHeader {
    pub(crate) family: Family,
    /// Offset of the IP header in the frame.
    pub(crate) offset: usize,
    /// Offset of the transport header; past `end` if none of it was captured.
    pub(crate) transport: usize,
    /// End of the captured bytes of the datagram. Link-layer padding follows.
    pub(crate) end: usize,
    /// Length in bytes according to the header (see `docs/semantics.md`).
    pub(crate) length_bytes: u32,
    /// Whether the header declares more bytes than the frame on the wire, or the surrounding
    /// packet, has.
    pub(crate) is_longer_than_frame: bool,
    pub(crate) protocol: u8,
    pub(crate) ttl: u8,
    pub(crate) tos: u8,
    /// Present if the packet is a fragment, or has an IPv6 fragment header.
    pub(crate) fragment: Option<Fragment>,
}

/// The fragmentation fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) identification: u32,
    pub(crate) offset_bytes: u16,
    pub(crate) more: bool,
}

impl IpHeader {
    /// Parses the header that the link layer or a tunnel announced.
    ///
    /// `wire_end` is the end of the frame on the wire or, in a tunnel, of the outer packet. If the
    /// length in the header is 0, the packet extends to there.
    pub(crate) fn parse(bytes: &[u8], network: Network, wire_end: u32) -> Result<Self, Rejected> {
        match network.version {
            Version::V4 => parse_v4(bytes, network.offset, wire_end),
            Version::V6 => parse_v6(bytes, network.offset, wire_end),
        }
    }

    /// Whether this is a later fragment, which has no transport header.
    pub(crate) fn is_later_fragment(&self) -> bool {
        self.fragment
            .is_some_and(|fragment| fragment.offset_bytes != 0)
    }

    /// The captured bytes of the datagram from the transport header on. Empty in a later fragment.
    pub(crate) fn transport_bytes<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        if self.is_later_fragment() {
            return &[];
        }
        bytes.get(self.transport..self.end).unwrap_or(&[])
    }

    /// Length of the payload of the IP headers, according to the header.
    pub(crate) fn declared_payload_bytes(&self) -> u32 {
        let headers = self.transport.saturating_sub(self.offset);
        self.length_bytes
            .saturating_sub(u32::try_from(headers).unwrap_or(u32::MAX))
    }

    /// The 5-tuple with the given ports.
    pub(crate) fn tuple(&self, bytes: &[u8], ports: [u8; 4]) -> FiveTuple {
        match self.family {
            Family::V4 => {
                let addresses = array_at(bytes, self.offset + 12).unwrap_or_default();
                FiveTuple::v4(addresses, ports, self.protocol)
            }
            Family::V6 => {
                let source = array_at(bytes, self.offset + 8).unwrap_or_default();
                let destination = array_at(bytes, self.offset + 24).unwrap_or_default();
                FiveTuple::v6(source, destination, ports, self.protocol)
            }
        }
    }
}

fn version_of(bytes: &[u8], offset: usize, wanted: u8, cut: Rejected) -> Result<(), Rejected> {
    match u8_at(bytes, offset) {
        None => Err(cut),
        Some(first) if first >> 4 != wanted => Err(match wanted {
            6 => Rejected::NotIpv6,
            _ => Rejected::VersionMismatch,
        }),
        Some(_) => Ok(()),
    }
}

/// RFC 791, section 3.1.
fn parse_v4(bytes: &[u8], offset: usize, wire_end: u32) -> Result<IpHeader, Rejected> {
    const CUT: Rejected = Rejected::Ipv4HeaderNotCaptured;
    version_of(bytes, offset, 4, CUT)?;
    let header: [u8; 20] = array_at(bytes, offset).ok_or(CUT)?;
    let header_bytes = usize::from(header[0] & 0xf) * 4;
    if header_bytes < 20 {
        return Err(Rejected::HeaderLengthTooSmall);
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if total < header_bytes && total != 0 {
        return Err(Rejected::TotalLengthTooSmall);
    }
    let transport = offset + header_bytes;
    if bytes.len() < transport {
        return Err(CUT);
    }
    let room = room(wire_end, offset);
    let (length_bytes, end) = if total == 0 {
        (room.max(header_bytes as u32), bytes.len())
    } else {
        (total as u32, bytes.len().min(offset + total))
    };
    let flags = u16::from_be_bytes([header[6], header[7]]);
    let fragment = (flags & 0x3fff != 0).then(|| Fragment {
        identification: u32::from(u16::from_be_bytes([header[4], header[5]])),
        offset_bytes: (flags & 0x1fff) << 3,
        more: flags & 0x2000 != 0,
    });
    Ok(IpHeader {
        family: Family::V4,
        offset,
        transport,
        end,
        length_bytes,
        is_longer_than_frame: length_bytes > room,
        protocol: header[9],
        ttl: header[8],
        tos: header[1],
        fragment,
    })
}

/// The number of bytes on the wire from `offset` on.
fn room(wire_end: u32, offset: usize) -> u32 {
    wire_end.saturating_sub(u32::try_from(offset).unwrap_or(u32::MAX))
}

/// RFC 8200, section 3.
fn parse_v6(bytes: &[u8], offset: usize, wire_end: u32) -> Result<IpHeader, Rejected> {
    const CUT: Rejected = Rejected::Ipv6HeaderNotCaptured;
    version_of(bytes, offset, 6, CUT)?;
    let header: [u8; 8] = array_at(bytes, offset).ok_or(CUT)?;
    let behind = offset + IPV6_HEADER_BYTES;
    if bytes.len() < behind {
        return Err(CUT);
    }
    let next_header = header[6];
    let room = room(wire_end, behind);
    let declared = u32::from(u16::from_be_bytes([header[4], header[5]]));
    let declared = match next_header {
        extension::HOP_BY_HOP if declared == 0 => jumbo_length(bytes, behind).unwrap_or(0),
        _ => declared,
    };
    let payload = match declared {
        0 if next_header == NO_NEXT_HEADER => 0,
        // Segmentation offload leaves 0, even for packets that would need the jumbo option.
        0 => room,
        // A jumbo option can claim gigabytes in a short frame, because any sender can write it.
        JUMBO.. if declared > room => room,
        _ => declared,
    };
    let end = bytes.len().min(behind.saturating_add(payload as usize));
    let chain = Chain::walk(&bytes[..end], behind, next_header);
    Ok(IpHeader {
        family: Family::V6,
        offset,
        transport: chain.transport,
        end,
        length_bytes: payload.saturating_add(IPV6_HEADER_BYTES as u32),
        is_longer_than_frame: declared > room,
        protocol: chain.protocol,
        ttl: header[7],
        tos: header[0] << 4 | header[1] >> 4,
        fragment: chain.fragment,
    })
}

/// The smallest payload that needs the jumbo option.
const JUMBO: u32 = 1 << 16;

/// The jumbo payload option of a hop-by-hop header (RFC 2675, section 2).
fn jumbo_length(bytes: &[u8], offset: usize) -> Option<u32> {
    let end = offset + 8 + usize::from(u8_at(bytes, offset + 1)?) * 8;
    let mut option = offset + 2;
    // At most 2,046 bytes of options, of at least one byte each.
    while option < end {
        match u8_at(bytes, option)? {
            0 => option += 1,
            0xc2 => {
                return u8_at(bytes, option + 1)
                    .filter(|&length| length == 4)
                    .and(u32_at(bytes, option + 2));
            }
            _ => option += 2 + usize::from(u8_at(bytes, option + 1)?),
        }
    }
    None
}

/// Next-header values of the extension headers that are followed (RFC 8200, section 4; RFC 4302 for
/// AH).
pub(crate) mod extension {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const AUTHENTICATION: u8 = 51;
    pub(crate) const DESTINATION: u8 = 60;

    /// Whether `next_header` is an extension header.
    pub(crate) fn is(next_header: u8) -> bool {
        matches!(
            next_header,
            HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION
        )
    }
}

/// The end of the chain of extension headers.
struct Chain {
    protocol: u8,
    transport: usize,
    fragment: Option<Fragment>,
}

impl Chain {
    /// Follows the chain up to a value that is not an extension header, a later fragment, the end
    /// of the captured bytes, or [`MAX_EXTENSION_HEADERS`]. The protocol is then the last value
    /// that was read.
    fn walk(bytes: &[u8], mut transport: usize, mut protocol: u8) -> Self {
        let mut fragment: Option<Fragment> = None;
        for _ in 0..MAX_EXTENSION_HEADERS {
            if protocol == extension::FRAGMENT {
                let Some(found) = fragment_header(bytes, transport) else {
                    break;
                };
                (protocol, fragment) = (found.0, Some(found.1));
                transport += 8;
                if found.1.offset_bytes != 0 {
                    break;
                }
            } else if extension::is(protocol) {
                let Some([next, length]) = array_at(bytes, transport) else {
                    break;
                };
                transport += match protocol {
                    extension::AUTHENTICATION => (usize::from(length) + 2) * 4,
                    _ => (usize::from(length) + 1) * 8,
                };
                protocol = next;
            } else {
                break;
            }
        }
        Self {
            protocol,
            transport,
            fragment,
        }
    }
}

/// RFC 8200, section 4.5.
fn fragment_header(bytes: &[u8], offset: usize) -> Option<(u8, Fragment)> {
    let identification = u32_at(bytes, offset + 4)?;
    let place = u16_at(bytes, offset + 2)?;
    let fragment = Fragment {
        identification,
        offset_bytes: place & 0xfff8,
        more: place & 1 == 1,
    };
    Some((u8_at(bytes, offset)?, fragment))
}
