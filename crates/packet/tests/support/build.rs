// SPDX-License-Identifier: Apache-2.0
//! Builds frames by hand, from the inside out.

use turboflow_packet::{Frame, LinkType};

pub(crate) const SOURCE: [u8; 4] = [192, 0, 2, 1];
pub(crate) const DESTINATION: [u8; 4] = [198, 51, 100, 2];

/// Concatenates byte strings.
pub(crate) fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// An Ethernet frame with `payload`.
pub(crate) fn ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    join(&[
        &[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8],
        &ether_type.to_be_bytes(),
        payload,
    ])
}

/// A VLAN tag after its EtherType: control field, then the EtherType of `payload`.
pub(crate) fn tag(control: u16, ether_type: u16, payload: &[u8]) -> Vec<u8> {
    join(&[&control.to_be_bytes(), &ether_type.to_be_bytes(), payload])
}

/// An IPv4 fragment without options. `flags` holds flags and fragment offset in units of 8 bytes.
pub(crate) fn ipv4_fragment(protocol: u8, id: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len()) as u16;
    with_checksum(join(&[
        &[0x45, 0xb8],
        &length.to_be_bytes(),
        &id.to_be_bytes(),
        &flags.to_be_bytes(),
        &[61, protocol, 0, 0],
        &SOURCE,
        &DESTINATION,
        payload,
    ]))
}

/// Fills in the header checksum of an IPv4 datagram (RFC 1071).
pub(crate) fn with_checksum(mut datagram: Vec<u8>) -> Vec<u8> {
    datagram[10..12].fill(0);
    let header_bytes = usize::from(datagram[0] & 0xf) * 4;
    let pairs = datagram[..header_bytes].chunks_exact(2);
    let mut sum: u32 = pairs
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    datagram[10..12].copy_from_slice(&(!sum as u16).to_be_bytes());
    datagram
}

/// An IPv4 datagram.
pub(crate) fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4_fragment(protocol, 0x1234, 0, payload)
}

/// An IPv4 datagram with options (whole words).
pub(crate) fn ipv4_with_options(protocol: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut datagram = ipv4(protocol, &join(&[options, payload]));
    datagram[0] = 0x45 + (options.len() / 4) as u8;
    with_checksum(datagram)
}

/// An IPv6 datagram between 2001:db8::1 and 2001:db8::2.
pub(crate) fn ipv6(next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0x6a, 0xbc, 0xde, 0xf0];
    datagram.extend((payload.len() as u16).to_be_bytes());
    datagram.extend([next_header, 62]);
    for last in [1, 2] {
        datagram.extend([
            0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last,
        ]);
    }
    datagram.extend(payload);
    datagram
}

/// A hop-by-hop, routing or destination options header of `8 * (1 + more)` bytes.
pub(crate) fn extension(next_header: u8, more: u8, payload: &[u8]) -> Vec<u8> {
    // One PadN option fills the header.
    let padding = 4 + usize::from(more) * 8;
    join(&[
        &[next_header, more, 1, padding as u8],
        &vec![0; padding],
        payload,
    ])
}

/// An IPv6 fragment header. `place` holds offset and M flag.
pub(crate) fn fragment(next_header: u8, place: u16, id: u32, payload: &[u8]) -> Vec<u8> {
    join(&[
        &[next_header, 0],
        &place.to_be_bytes(),
        &id.to_be_bytes(),
        payload,
    ])
}

/// A UDP datagram.
pub(crate) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    join(&[
        &source.to_be_bytes(),
        &destination.to_be_bytes(),
        &length.to_be_bytes(),
        &[0, 0],
        payload,
    ])
}

/// A TCP segment from port 1025 to 443 with sequence number 0x01020304, acknowledgement 0x05060708
/// and window 0x090a. Options are whole words.
pub(crate) fn tcp(flags: u16, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let words = 5 + (options.len() / 4) as u16;
    join(&[
        &[4, 1, 1, 187, 1, 2, 3, 4, 5, 6, 7, 8],
        &(words << 12 | flags).to_be_bytes(),
        &[9, 10, 0, 0, 0, 0],
        options,
        payload,
    ])
}

/// A completely captured frame at 1,000 ns on interface 3.
pub(crate) fn frame_of(bytes: &[u8], link_type: LinkType) -> Frame<'_> {
    Frame {
        bytes,
        wire_length_bytes: bytes.len() as u32,
        timestamp_ns: 1_000,
        interface: 3,
        link_type,
    }
}
