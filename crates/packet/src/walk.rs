// SPDX-License-Identifier: Apache-2.0
//! The general parser, for every link type, tag, extension header, fragment and tunnel.

use turboflow_record::{Family, Packet};

use crate::bytes::u16_at;
use crate::fast::Fast;
use crate::fragments;
use crate::ip::{Fragment, IpHeader};
use crate::link::{LinkFields, LinkLimits, ether_type};
use crate::transport::{self, protocol};
use crate::tunnel::{self, MAX_TUNNEL_DEPTH, Tunnel, TunnelFields, TunnelSet};
use crate::{Frame, Rejected};

/// A parsed frame: the offset of each header, and the fields that a packet needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    /// The link layer of the outer frame.
    pub(crate) link: LinkFields,
    /// The IP header whose flow the packet belongs to.
    pub(crate) ip: IpHeader,
    /// The first IP header, if a tunnel was decapsulated.
    pub(crate) outer: Option<IpHeader>,
    /// Whether one of the headers around `ip` belongs to a first fragment.
    pub(crate) in_fragment: bool,
    /// Whether one of the headers up to `ip` declares more bytes than what surrounds it has.
    pub(crate) is_longer_than_frame: bool,
    pub(crate) tunnel: TunnelFields,
}

impl Walk {
    /// Parses a frame. After an error, `link` has what was read up to that point.
    #[inline(always)]
    pub(crate) fn new(
        frame: &Frame<'_>,
        entered: TunnelSet,
        link: &mut LinkFields,
    ) -> Result<Self, Rejected> {
        let limits = link_limits(frame.wire_length_bytes, entered);
        let network = link.walk(frame.bytes, frame.link_type, limits)?;
        let ip = IpHeader::parse(frame.bytes, network, frame.wire_length_bytes)?;
        let mut walk = Self {
            link: *link,
            ip,
            outer: None,
            in_fragment: false,
            is_longer_than_frame: ip.is_longer_than_frame,
            tunnel: TunnelFields::default(),
        };
        if !entered.is_empty() {
            walk.decapsulate(frame, entered);
        }
        Ok(walk)
    }

    /// The parsed frame of a packet that the fast parser accepted.
    pub(crate) fn from_fast(frame: &Frame<'_>, fast: &Fast) -> Self {
        let packet = &fast.packet;
        let offset = fast.ip_offset;
        let tagged = offset == 18;
        let (header_bytes, announced) = match packet.tuple.family() {
            Family::V4 => (20, ether_type::IPV4),
            Family::V6 => (40, ether_type::IPV6),
        };
        let control = if tagged {
            u16_at(frame.bytes, 14).unwrap_or(0)
        } else {
            0
        };
        let link = LinkFields {
            destination_mac: Some(0),
            source_mac: Some(6),
            ether_type: Some(announced),
            tags: tagged.into(),
            tag_control: [control, 0],
            mpls_label: None,
        };
        let ip = IpHeader {
            family: packet.tuple.family(),
            offset,
            transport: offset + header_bytes,
            end: frame
                .bytes
                .len()
                .min(offset + packet.ip_length_bytes as usize),
            length_bytes: packet.ip_length_bytes,
            is_longer_than_frame: false,
            protocol: packet.tuple.protocol(),
            ttl: packet.ttl,
            tos: packet.tos,
            fragment: None,
        };
        Self {
            link,
            ip,
            outer: None,
            in_fragment: false,
            is_longer_than_frame: false,
            tunnel: TunnelFields::default(),
        }
    }

    /// Decapsulates nested tunnels, for as many levels as can be parsed.
    fn decapsulate(&mut self, frame: &Frame<'_>, entered: TunnelSet) {
        for _ in 0..MAX_TUNNEL_DEPTH {
            if self.enter(frame, entered).is_none() {
                break;
            }
        }
    }

    /// Decapsulates one tunnel, if it can be parsed.
    #[inline(always)]
    fn enter(&mut self, frame: &Frame<'_>, entered: TunnelSet) -> Option<()> {
        let bytes = &frame.bytes[..self.ip.end];
        // The inner packet ends where the outer one ends.
        let outer_end = (self.ip.offset as u32).saturating_add(self.ip.length_bytes);
        let wire_end = frame.wire_length_bytes.min(outer_end);
        let inner = tunnel::enter(bytes, &self.ip, entered, link_limits(wire_end, entered))?;
        let ip = IpHeader::parse(bytes, inner.network, wire_end).ok()?;
        self.enter_inner(ip, inner.ether_type);
        // A packet that begins in a first fragment continues in later fragments.
        self.is_longer_than_frame |= ip.is_longer_than_frame && !self.in_fragment;
        self.tunnel.vni = inner.fields.vni.or(self.tunnel.vni);
        self.tunnel.teid = inner.fields.teid.or(self.tunnel.teid);
        self.tunnel.gre_key = inner.fields.gre_key.or(self.tunnel.gre_key);
        Some(())
    }

    /// Continues at a header inside the current one.
    #[inline(always)]
    pub(crate) fn enter_inner(&mut self, ip: IpHeader, ether_type: Option<u16>) {
        self.in_fragment |= self.ip.fragment.as_ref().is_some_and(fragments::is_first);
        self.outer.get_or_insert(self.ip);
        self.ip = ip;
        self.link.ether_type = ether_type;
    }

    /// Decapsulates again from the first IP header to `ip`, and calls `show` at every outer header
    /// that belongs to a first fragment.
    pub(crate) fn first_fragments_around(
        &self,
        frame: &Frame<'_>,
        entered: TunnelSet,
        mut show: impl FnMut(&Self, &Fragment),
    ) {
        let Some(outer) = self.outer.filter(|_| self.in_fragment) else {
            return;
        };
        let mut stage = Self {
            ip: outer,
            outer: None,
            tunnel: TunnelFields::default(),
            ..*self
        };
        while stage.ip.offset != self.ip.offset {
            if let Some(fragment) = stage.ip.fragment.filter(fragments::is_first) {
                show(&stage, &fragment);
            }
            if stage.enter(frame, entered).is_none() {
                break;
            }
        }
    }

    /// The captured bytes from the transport header on.
    pub(crate) fn transport<'a>(&self, frame: &Frame<'a>) -> &'a [u8] {
        self.ip.transport_bytes(frame.bytes)
    }

    /// The packet that the frame contains.
    pub(crate) fn packet(&self, frame: &Frame<'_>, icmp_ports: bool) -> Packet {
        let transport = self.transport(frame);
        let ports = transport::ports(self.ip.protocol, transport, icmp_ports);
        let is_tcp = self.ip.protocol == protocol::TCP;
        Packet {
            tuple: self.ip.tuple(frame.bytes, ports),
            timestamp_ns: frame.timestamp_ns,
            ip_length_bytes: self.ip.length_bytes,
            frame_length_bytes: frame.wire_length_bytes,
            tcp_flags: if is_tcp {
                transport::tcp_flags(transport).unwrap_or(0)
            } else {
                0
            },
            ttl: self.ip.ttl,
            tos: self.ip.tos,
            is_echo_reply: transport::is_echo_reply(self.ip.protocol, transport),
        }
    }
}

/// The most nested pseudowires that are entered. Each may be tried twice.
const MAX_PSEUDOWIRES: usize = 2;

fn link_limits(wire_end: u32, entered: TunnelSet) -> LinkLimits {
    let enters = entered.contains(Tunnel::Pseudowire);
    LinkLimits {
        wire_end,
        pseudowires: if enters { MAX_PSEUDOWIRES } else { 0 },
    }
}
