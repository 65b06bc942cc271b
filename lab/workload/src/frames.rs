// SPDX-License-Identifier: Apache-2.0
//! Makes frames of given packets, for engines that read frames.

use std::net::IpAddr;

use turboflow_record::{Family, Input, InputValues, Packet};

/// An Ethernet frame for a packet, with as many of its fields as a frame can have. The length is
/// limited to 1,400 bytes, and raised to the length of the headers.
#[must_use]
pub fn frame_of(packet: &Packet, values: &InputValues) -> Vec<u8> {
    let transport = transport_of(packet, values);
    let v4 = packet.tuple.family() == Family::V4;
    let header_bytes = if v4 { 20 } else { 40 };
    let longest = 1_400.max(header_bytes + transport.len());
    let shortest = header_bytes + transport.len();
    let ip_bytes = (packet.ip_length_bytes as usize).clamp(shortest, longest);
    let mut bytes = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    if let Some(vlan) = values.get(Input::Vlan) {
        bytes.extend([0x81, 0]);
        bytes.extend((vlan as u16 & 0xfff).to_be_bytes());
    }
    let [source, destination] = [packet.tuple.source(), packet.tuple.destination()];
    let address = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    if v4 {
        bytes.extend([0x08, 0, 0x45, packet.tos]);
        bytes.extend((ip_bytes as u16).to_be_bytes());
        bytes.extend([0, 0, 0x40, 0, packet.ttl, packet.tuple.protocol(), 0, 0]);
    } else {
        bytes.extend([0x86, 0xdd, 0x60 | packet.tos >> 4, packet.tos << 4, 0, 0]);
        bytes.extend((ip_bytes as u16 - 40).to_be_bytes());
        bytes.extend([packet.tuple.protocol(), packet.ttl]);
    }
    bytes.extend(address(source));
    bytes.extend(address(destination));
    bytes.extend(&transport);
    bytes.resize(bytes.len() + ip_bytes - shortest, 0);
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

/// The header after the IP header.
fn transport_of(packet: &Packet, values: &InputValues) -> Vec<u8> {
    let ports = [packet.tuple.source_port(), packet.tuple.destination_port()];
    let mut bytes = ports.map(u16::to_be_bytes).concat();
    if packet.tuple.protocol() != 6 {
        bytes.extend([0; 4]);
        return bytes;
    }
    let flags = packet.tcp_flags;
    let window = values.get(Input::TcpWindow).unwrap_or(0) as u16;
    bytes.extend([0; 8]);
    bytes.extend([0x50 | (flags >> 8) as u8 & 0xf, flags as u8]);
    bytes.extend(window.to_be_bytes());
    bytes.extend([0; 4]);
    bytes
}
