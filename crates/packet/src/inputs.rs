// SPDX-License-Identifier: Apache-2.0
//! The values of inputs beyond the 5-tuple.

use turboflow_record::{Family, Input, InputValues, Packet, TCP_ACK};

use crate::Frame;
use crate::bytes::{array_at, u8_at, u16_at, u32_at, u48_at};
use crate::ip::IpHeader;
use crate::transport::{self, protocol};
use crate::walk::Walk;

/// Fills in what `wanted` asks for and the packet carries.
pub(crate) fn fill(
    values: &mut InputValues,
    wanted: &[Input],
    frame: &Frame<'_>,
    walk: &Walk,
    packet: &Packet,
) {
    values.clear();
    let transport = walk.transport(frame);
    for &input in wanted {
        if let Some(value) = value(input, frame, walk, packet, transport) {
            values.set(input, value);
        }
    }
    if let Some(outer) = &walk.outer {
        values.outer_addresses = addresses(frame.bytes, outer);
    }
}

/// Source and destination address; an IPv4 address takes the first 4 bytes.
pub(crate) fn addresses(bytes: &[u8], ip: &IpHeader) -> [[u8; 16]; 2] {
    match ip.family {
        Family::V4 => [12, 16].map(|field| {
            let [a, b, c, d] = array_at(bytes, ip.offset + field).unwrap_or_default();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }),
        Family::V6 => [8, 24].map(|field| array_at(bytes, ip.offset + field).unwrap_or_default()),
    }
}

// Not inlined: the loop would compute beforehand whatever some input might need (470 instructions a
// packet for two inputs, against 310; callgrind).
#[inline(never)]
fn value(
    input: Input,
    frame: &Frame<'_>,
    walk: &Walk,
    packet: &Packet,
    transport: &[u8],
) -> Option<u64> {
    let (bytes, ip, link) = (frame.bytes, &walk.ip, &walk.link);
    let is_v6 = ip.family == Family::V6;
    let tcp = || Some(transport).filter(|_| ip.protocol == protocol::TCP);
    let icmp = || Some(transport).filter(|_| protocol::is_icmp(ip.protocol));
    match input {
        Input::IpLength => Some(packet.ip_length_bytes.into()),
        Input::FrameLength => Some(packet.frame_length_bytes.into()),
        Input::Timestamp => Some(packet.timestamp_ns),
        Input::TcpFlags => transport::tcp_flags(tcp()?).map(u64::from),
        Input::TcpWindow => u16_at(tcp()?, 14).map(u64::from),
        Input::TcpSequence => u32_at(tcp()?, 4).map(u64::from),
        Input::TcpAcknowledgement => {
            let acknowledges = transport::tcp_flags(tcp()?)? & TCP_ACK != 0;
            u32_at(transport, 8).filter(|_| acknowledges).map(u64::from)
        }
        Input::TcpOptions => transport::tcp_options(tcp()?),
        Input::Ttl => Some(ip.ttl.into()),
        Input::Tos => Some(ip.tos.into()),
        Input::FlowLabel if is_v6 => u32_at(bytes, ip.offset).map(|word| (word & 0xf_ffff).into()),
        Input::Identification if is_v6 => ip.fragment.map(|found| found.identification.into()),
        Input::Identification => u16_at(bytes, ip.offset + 4).map(u64::from),
        Input::FragmentOffset => ip.fragment.map(|found| found.offset_bytes.into()),
        Input::IpOptions if !is_v6 => Some(ip_options(bytes, ip)),
        Input::PayloadLength => payload_length(ip, transport),
        Input::IcmpType => u8_at(icmp()?, 0).map(u64::from),
        Input::IcmpCode => u8_at(icmp()?, 1).map(u64::from),
        Input::Vlan => link.tag(0).map(|control| u64::from(control & 0xfff)),
        Input::InnerVlan => link.tag(1).map(|control| u64::from(control & 0xfff)),
        Input::VlanPriority => link.tag(0).map(|control| u64::from(control >> 13)),
        Input::MplsLabel => link.mpls_label.map(u64::from),
        Input::SourceMac => u48_at(bytes, link.source_mac?),
        Input::DestinationMac => u48_at(bytes, link.destination_mac?),
        Input::EtherType => link.ether_type.map(u64::from),
        Input::Vni => walk.tunnel.vni.map(u64::from),
        Input::Teid => walk.tunnel.teid.map(u64::from),
        Input::GreKey => walk.tunnel.gre_key.map(u64::from),
        Input::IngressInterface => Some(frame.interface.into()),
        Input::FlowLabel | Input::IpOptions => None,
        // Switches see these; direction and gap are the engine's to know.
        Input::EgressInterface
        | Input::QueueDepth
        | Input::HopLatency
        | Input::Direction
        | Input::Gap => None,
    }
}

/// A later fragment has no transport header: all that follows its IP headers is payload.
fn payload_length(ip: &IpHeader, transport: &[u8]) -> Option<u64> {
    let declared = ip.declared_payload_bytes();
    if ip.is_later_fragment() {
        return Some(declared.into());
    }
    let header = transport::header_bytes(ip.protocol, transport)?;
    Some(declared.saturating_sub(header).into())
}

/// Bit (option number, low 5 bits) for each option of an IPv4 header; 0 for a header without.
fn ip_options(bytes: &[u8], ip: &IpHeader) -> u64 {
    let options = bytes.get(ip.offset + 20..ip.transport).unwrap_or(&[]);
    transport::option_bits(options, |kind| kind & 0x1f)
}
