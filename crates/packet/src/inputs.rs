// SPDX-License-Identifier: Apache-2.0
//! Extracts the inputs beyond the 5-tuple. A new input is listed in `PARSED_INPUTS` and read in
//! `value`; if it is common, in `PlainHeaders::value` as well.

use turboflow_record::{Family, Input, InputSet, InputValues, Packet, TCP_ACK};

use crate::Frame;
use crate::bytes::{array_at, u8_at, u16_at, u32_at, u48_at};
use crate::fast::Fast;
use crate::ip::IpHeader;
use crate::transport::{self, protocol};
use crate::walk::Walk;

/// The inputs that frames provide: those that
/// [`Parser::parse_with_inputs`](crate::Parser::parse_with_inputs) extracts, and those derived from
/// a record's packets.
pub const PARSED_INPUTS: InputSet = InputSet::of(&[
    Input::IpLength,
    Input::FrameLength,
    Input::Timestamp,
    Input::TcpFlags,
    Input::TcpWindow,
    Input::TcpSequence,
    Input::TcpAcknowledgement,
    Input::TcpOptions,
    Input::Ttl,
    Input::Tos,
    Input::FlowLabel,
    Input::Identification,
    Input::FragmentOffset,
    Input::IpOptions,
    Input::PayloadLength,
    Input::IcmpType,
    Input::IcmpCode,
    Input::Vlan,
    Input::InnerVlan,
    Input::VlanPriority,
    Input::MplsLabel,
    Input::SourceMac,
    Input::DestinationMac,
    Input::EtherType,
    Input::Vni,
    Input::Teid,
    Input::GreKey,
    Input::IngressInterface,
])
.union(InputSet::DERIVED);

/// Extracts the `wanted` inputs that the packet carries.
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

/// Extracts the `wanted` inputs of a plain packet, whose headers are at fixed offsets.
///
/// Common inputs are read at these offsets. The others need the general parser. Both give the same
/// values, which a property test checks.
#[inline(always)]
pub(crate) fn fill_plain(
    values: &mut InputValues,
    wanted: &[Input],
    frame: &Frame<'_>,
    fast: &Fast,
) {
    values.clear();
    let place = PlainHeaders::of(frame, fast);
    for &input in wanted {
        match place.value(input, frame, &fast.packet) {
            Plain::Value(value) => values.set(input, value),
            Plain::Absent => {}
            Plain::NeedsWalk => return fill_from_walk(values, wanted, frame, fast),
        }
    }
}

#[inline(never)]
fn fill_from_walk(values: &mut InputValues, wanted: &[Input], frame: &Frame<'_>, fast: &Fast) {
    let walk = Walk::from_fast(frame, fast);
    fill(values, wanted, frame, &walk, &fast.packet);
}

/// The value of an input in a plain packet.
enum Plain {
    Value(u64),
    Absent,
    /// Only the general parser can determine the value.
    NeedsWalk,
}

impl<T: Into<u64>> From<Option<T>> for Plain {
    #[inline(always)]
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, |value| Self::Value(value.into()))
    }
}

/// The offsets of the headers of a plain packet.
struct PlainHeaders<'a> {
    /// The captured bytes, up to the end of the IP packet.
    bytes: &'a [u8],
    ip: usize,
    transport: usize,
    is_v6: bool,
    is_tcp: bool,
}

impl<'a> PlainHeaders<'a> {
    #[inline(always)]
    fn of(frame: &Frame<'a>, fast: &Fast) -> Self {
        let is_v6 = fast.packet.tuple.family() == Family::V6;
        let end = fast.ip_offset + fast.packet.ip_length_bytes as usize;
        Self {
            bytes: frame.bytes.get(..end).unwrap_or(frame.bytes),
            ip: fast.ip_offset,
            transport: fast.ip_offset + if is_v6 { 40 } else { 20 },
            is_v6,
            is_tcp: fast.packet.tuple.protocol() == protocol::TCP,
        }
    }

    #[inline(always)]
    fn value(&self, input: Input, frame: &Frame<'_>, packet: &Packet) -> Plain {
        let bytes = self.bytes;
        match input {
            Input::FrameLength => Plain::Value(packet.frame_length_bytes.into()),
            Input::IpLength => Plain::Value(packet.ip_length_bytes.into()),
            Input::Timestamp => Plain::Value(packet.timestamp_ns),
            Input::Ttl => Plain::Value(packet.ttl.into()),
            Input::Tos => Plain::Value(packet.tos.into()),
            Input::IngressInterface => Plain::Value(frame.interface.into()),
            Input::TcpWindow if self.is_tcp => u16_at(bytes, self.transport + 14).into(),
            Input::TcpSequence if self.is_tcp => u32_at(bytes, self.transport + 4).into(),
            Input::TcpFlags if self.is_tcp => Plain::Value(packet.tcp_flags.into()),
            Input::TcpWindow | Input::TcpSequence | Input::TcpFlags => Plain::Absent,
            Input::PayloadLength => self.payload_length(packet),
            Input::Identification if !self.is_v6 => u16_at(bytes, self.ip + 4).into(),
            Input::SourceMac => u48_at(bytes, 6).into(),
            Input::DestinationMac => u48_at(bytes, 0).into(),
            Input::Vlan if self.ip == 18 => u16_at(bytes, 14).map(|tag| tag & 0xfff).into(),
            Input::Vlan | Input::InnerVlan | Input::MplsLabel => Plain::Absent,
            _ => Plain::NeedsWalk,
        }
    }

    #[inline(always)]
    fn payload_length(&self, packet: &Packet) -> Plain {
        let declared = packet.ip_length_bytes - (self.transport - self.ip) as u32;
        let header = match self.is_tcp {
            true => match u8_at(self.bytes, self.transport + 12) {
                Some(byte) if byte >= 0x50 => u32::from(byte >> 4) * 4,
                _ => return Plain::Absent,
            },
            false => 8,
        };
        Plain::Value(declared.saturating_sub(header).into())
    }
}

/// Source and destination address. An IPv4 address uses the first 4 bytes.
pub(crate) fn addresses(bytes: &[u8], ip: &IpHeader) -> [[u8; 16]; 2] {
    match ip.family {
        Family::V4 => [12, 16].map(|field| {
            let [a, b, c, d] = array_at(bytes, ip.offset + field).unwrap_or_default();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }),
        Family::V6 => [8, 24].map(|field| array_at(bytes, ip.offset + field).unwrap_or_default()),
    }
}

// Not inlined: the compiler would hoist the work of every input out of the loop (470 instructions
// per packet for two inputs, against 310; callgrind).
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
        // An input of the other IP version, or one not in `PARSED_INPUTS`.
        _ => None,
    }
}

/// A later fragment has no transport header: everything after its IP headers is payload.
fn payload_length(ip: &IpHeader, transport: &[u8]) -> Option<u64> {
    let declared = ip.declared_payload_bytes();
    if ip.is_later_fragment() {
        return Some(declared.into());
    }
    let header = transport::header_bytes(ip.protocol, transport)?;
    Some(declared.saturating_sub(header).into())
}

/// A set with the bit of each IPv4 option's number (the low 5 bits of its type); 0 without options.
fn ip_options(bytes: &[u8], ip: &IpHeader) -> u64 {
    // Does not end at the transport header, because INT may precede that.
    let words = u8_at(bytes, ip.offset).map_or(5, |byte| usize::from(byte & 0xf));
    let options = bytes.get(ip.offset + 20..ip.offset + words * 4);
    let options = options.unwrap_or(&[]);
    transport::option_bits(options, |kind| kind & 0x1f)
}
