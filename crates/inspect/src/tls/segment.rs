// SPDX-License-Identifier: Apache-2.0
//! Finds the payload of a TCP segment in an IP packet.

/// Maximum IPv6 extension headers before TCP; more than any sender needs.
const MAX_EXTENSION_HEADERS: usize = 8;
const TCP: u8 = 6;

/// Sequence number and payload of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    pub(super) sequence: u32,
    pub(super) payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// `None` if the packet is not TCP, is a fragment, or its headers are incomplete.
    pub(super) fn of(datagram: &'a [u8]) -> Option<Self> {
        let tcp = match datagram.first()? >> 4 {
            4 => v4(datagram)?,
            6 => v6(datagram)?,
            _ => return None,
        };
        let sequence = tcp.get(4..8)?.try_into().ok()?;
        let header_bytes = usize::from(tcp.get(12)? >> 4) * 4;
        Some(Self {
            sequence: u32::from_be_bytes(sequence),
            payload: tcp.get(header_bytes.max(20)..)?,
        })
    }
}

fn v4(datagram: &[u8]) -> Option<&[u8]> {
    let header = datagram.first_chunk::<20>()?;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    if header[9] != TCP || is_fragment {
        return None;
    }
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    // The length is 0 in packets that the network card was to segment.
    let end = if total == 0 { datagram.len() } else { total };
    let header_bytes = usize::from(header[0] & 0xf) * 4;
    datagram.get(header_bytes..end.min(datagram.len()))
}

fn v6(datagram: &[u8]) -> Option<&[u8]> {
    let header = datagram.first_chunk::<40>()?;
    let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let end = if payload == 0 {
        datagram.len()
    } else {
        datagram.len().min(40 + payload)
    };
    let (mut next, mut offset) = (header[6], 40);
    for _ in 0..MAX_EXTENSION_HEADERS {
        match next {
            TCP => return datagram.get(offset..end),
            // Hop-by-hop options, routing, destination options.
            0 | 43 | 60 => {
                let extension = datagram.get(offset..offset + 2)?;
                next = extension[0];
                offset += (usize::from(extension[1]) + 1) * 8;
            }
            _ => return None,
        }
    }
    None
}
