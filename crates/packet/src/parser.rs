// SPDX-License-Identifier: Apache-2.0
//! The parser: configuration, entry points, and held fragments.

use turboflow_record::{Input, InputSet, InputValues, Packet};

use crate::bytes::u8_at;
use crate::fast::Fast;
use crate::fragments::{self, DatagramKey, FragmentCache, FragmentCounters, ReassemblyConfig};
use crate::ip::IpHeader;
use crate::link::LinkFields;
use crate::telemetry::{TELEMETRY_INPUTS, Telemetry, TelemetryConfig, TelemetryCounters};
use crate::unread::UnreadEtherTypes;
use crate::walk::Walk;
use crate::{Frame, Rejected, TunnelSet, fast, inputs};

/// What is parsed in addition to the 5-tuple of the first IP header. Nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParserConfig {
    /// The tunnels to decapsulate. The flow is then that of the inner header.
    pub decapsulate: TunnelSet,
    /// Whether the destination port of ICMP is type · 256 + code, as in NetFlow.
    pub icmp_ports: bool,
    /// Gives later fragments the ports of their first fragment. `None` leaves them at 0/0.
    pub reassemble_flows: Option<ReassemblyConfig>,
    /// Where in-band telemetry is looked for, if `needs` has an input that depends on it. `None`
    /// means nowhere.
    pub telemetry: Option<TelemetryConfig>,
    /// The inputs that [`Parser::parse_with_inputs`] extracts.
    pub needs: InputSet,
}

/// Parses frames as `docs/semantics.md` specifies.
///
/// It allocates only when it is created.
pub struct Parser {
    config: ParserConfig,
    /// Whether UDP with certain ports may be a tunnel to decapsulate.
    udp_tunnels: bool,
    /// The wanted inputs, without those of telemetry.
    wanted: Vec<Input>,
    telemetry: Option<Telemetry>,
    fragments: Option<Box<FragmentCache>>,
    packets_longer_than_frame: u64,
    unread: UnreadEtherTypes,
}

impl Parser {
    /// A parser that holds no fragments.
    #[must_use]
    pub fn new(config: ParserConfig) -> Self {
        Self {
            config,
            udp_tunnels: config.decapsulate.intersects(TunnelSet::IN_UDP),
            wanted: config.needs.without(TELEMETRY_INPUTS).iter().collect(),
            telemetry: Telemetry::new(config.telemetry, config.needs),
            fragments: config
                .reassemble_flows
                .map(|config| Box::new(FragmentCache::new(config))),
            packets_longer_than_frame: 0,
            unread: UnreadEtherTypes::default(),
        }
    }

    /// Parses a frame.
    ///
    /// # Errors
    /// The reason why the frame is in no flow. [`Rejected::Held`] means that [`Parser::release`]
    /// returns its packet later.
    #[inline]
    pub fn parse(&mut self, frame: &Frame<'_>) -> Result<Packet, Rejected> {
        match fast::parse(frame, self.udp_tunnels) {
            Some(fast) => Ok(fast.packet),
            None => {
                unlikely();
                self.parse_any(frame)
            }
        }
    }

    /// Parses a plain IPv4 frame (Ethernet, at most one tag, IPv4 without options, TCP or UDP),
    /// with the same result as [`Parser::parse`]. `None` for any other frame.
    ///
    /// A hot loop calls this first and keeps [`Parser::parse`] out of line.
    #[inline(always)]
    #[must_use]
    pub fn parse_plain_v4(&self, frame: &Frame<'_>) -> Option<Packet> {
        fast::parse_v4(frame, self.udp_tunnels)
    }

    /// Parses a frame and extracts the configured inputs. After an error, `values` are undefined.
    ///
    /// # Errors
    /// Those of [`Parser::parse`].
    #[inline]
    pub fn parse_with_inputs(
        &mut self,
        frame: &Frame<'_>,
        values: &mut InputValues,
    ) -> Result<Packet, Rejected> {
        match fast::parse(frame, self.udp_tunnels) {
            Some(fast) if self.is_marked(&fast.packet) => {
                unlikely();
                self.parse_marked(frame, &fast, values)
            }
            Some(fast) => {
                inputs::fill_plain(values, &self.wanted, frame, &fast);
                Ok(fast.packet)
            }
            None => {
                unlikely();
                self.parse_any_with_inputs(frame, values)
            }
        }
    }

    /// Releases held fragments whose first fragment has arrived (with its ports), or which have
    /// timed out at `now_ns` (with ports 0/0). Each keeps its own, older timestamp.
    ///
    /// Must be called after every batch. Until then, ready fragments take up room that others need.
    pub fn release(&mut self, now_ns: u64, out: &mut Vec<(Packet, InputValues)>) {
        if let Some(cache) = &mut self.fragments {
            cache.release(now_ns, out);
        }
    }

    /// Releases only held fragments that have timed out at `now_ns`.
    pub fn expire(&mut self, now_ns: u64, out: &mut Vec<(Packet, InputValues)>) {
        if let Some(cache) = &mut self.fragments {
            cache.expire(now_ns, out);
        }
    }

    /// Handles a clock that went back to `now_ns`: removes the datagrams from after that time and
    /// releases their held fragments.
    pub fn set_back(&mut self, now_ns: u64, out: &mut Vec<(Packet, InputValues)>) {
        if let Some(cache) = &mut self.fragments {
            cache.set_back(now_ns, out);
        }
    }

    /// Releases all held fragments at the end of the input.
    pub fn release_all(&mut self, out: &mut Vec<(Packet, InputValues)>) {
        if let Some(cache) = &mut self.fragments {
            cache.release_all(out);
        }
    }

    /// The fragment counters. All zero without `reassemble_flows`.
    #[must_use]
    pub fn fragment_counters(&self) -> FragmentCounters {
        self.fragments
            .as_ref()
            .map(|cache| cache.counters)
            .unwrap_or_default()
    }

    /// Packets that declare more bytes than the frame on the wire, or the surrounding packet, has.
    /// Their declared length is counted.
    #[must_use]
    pub const fn packets_longer_than_frame(&self) -> u64 {
        self.packets_longer_than_frame
    }

    /// The EtherTypes of frames that were rejected as [`Rejected::OtherEtherType`].
    #[must_use]
    pub const fn unread_ether_types(&self) -> &UnreadEtherTypes {
        &self.unread
    }

    /// The counters of telemetry. `None` if no telemetry is read.
    #[must_use]
    pub fn telemetry_counters(&self) -> Option<TelemetryCounters> {
        self.telemetry.as_ref().map(|telemetry| telemetry.counters)
    }

    pub(crate) const fn has_udp_tunnels(&self) -> bool {
        self.udp_tunnels
    }

    pub(crate) const fn decapsulated(&self) -> TunnelSet {
        self.config.decapsulate
    }

    fn walk(&mut self, frame: &Frame<'_>) -> Result<Walk, Rejected> {
        let mut link = LinkFields::default();
        let walk = Walk::new(frame, self.config.decapsulate, &mut link);
        match &walk {
            Ok(walk) => self.packets_longer_than_frame += u64::from(walk.is_longer_than_frame),
            Err(Rejected::OtherEtherType) => self.unread.count(link.ether_type.unwrap_or(0)),
            Err(_) => {}
        }
        walk
    }

    #[inline(never)]
    fn parse_any(&mut self, frame: &Frame<'_>) -> Result<Packet, Rejected> {
        let walk = self.walk(frame)?;
        let packet = walk.packet(frame, self.config.icmp_ports);
        self.attribute(frame, &walk, packet, None)
    }

    #[inline(never)]
    pub(crate) fn parse_any_with_inputs(
        &mut self,
        frame: &Frame<'_>,
        values: &mut InputValues,
    ) -> Result<Packet, Rejected> {
        let mut walk = self.walk(frame)?;
        let packet = self.fill(frame, &mut walk, values);
        self.attribute(frame, &walk, packet, Some(values))
    }

    /// Parses a plain packet that is marked as one with telemetry. A report may be about a
    /// fragment.
    #[inline(never)]
    fn parse_marked(
        &mut self,
        frame: &Frame<'_>,
        fast: &Fast,
        values: &mut InputValues,
    ) -> Result<Packet, Rejected> {
        let mut walk = Walk::from_fast(frame, fast);
        let packet = self.fill(frame, &mut walk, values);
        self.attribute(frame, &walk, packet, Some(values))
    }

    #[inline(always)]
    fn is_marked(&self, packet: &Packet) -> bool {
        let telemetry = self.telemetry.as_ref();
        telemetry.is_some_and(|telemetry| telemetry.is_marked(packet))
    }

    /// The packet of a walk, and its inputs.
    fn fill(&mut self, frame: &Frame<'_>, walk: &mut Walk, values: &mut InputValues) -> Packet {
        let (wanted, icmp_ports) = (&self.wanted, self.config.icmp_ports);
        let fill = |values: &mut InputValues, walk: &Walk, packet: &Packet| {
            inputs::fill(values, wanted, frame, walk, packet);
        };
        match &mut self.telemetry {
            Some(telemetry) => telemetry.read(frame, walk, icmp_ports, values, fill),
            None => {
                let packet = walk.packet(frame, icmp_ports);
                fill(values, walk, &packet);
                packet
            }
        }
    }

    /// Assigns a later fragment to its flow, if this is configured.
    fn attribute(
        &mut self,
        frame: &Frame<'_>,
        walk: &Walk,
        mut packet: Packet,
        values: Option<&InputValues>,
    ) -> Result<Packet, Rejected> {
        let Some(cache) = &mut self.fragments else {
            return Ok(packet);
        };
        let icmp_ports = self.config.icmp_ports;
        // Later fragments of an outer datagram cannot be decapsulated; they stay in the outer flow.
        walk.first_fragments_around(frame, self.config.decapsulate, |around, fragment| {
            let key = datagram_key(frame, around, fragment.identification);
            let tuple = around.packet(frame, icmp_ports).tuple;
            cache.first(&key, &tuple, frame.timestamp_ns);
        });
        let Some(fragment) = &walk.ip.fragment else {
            return Ok(packet);
        };
        let key = datagram_key(frame, walk, fragment.identification);
        if fragments::is_first(fragment) {
            cache.first(&key, &packet.tuple, frame.timestamp_ns);
        } else if walk.ip.is_later_fragment() && fragments::needs_first(&walk.ip, icmp_ports) {
            cache.later(&key, &mut packet, values)?;
        }
        Ok(packet)
    }
}

/// Marks the calling branch as unlikely. The general parser itself is not marked cold, because on
/// some links (MPLS, PPPoE) every packet takes it.
#[cold]
fn unlikely() {}

/// The key of a fragment's datagram. It includes the protocol in IPv4 only, because fragments of
/// one IPv6 datagram may name different next headers: an extension header or the protocol.
fn datagram_key(frame: &Frame<'_>, walk: &Walk, identification: u32) -> DatagramKey {
    let protocol = match walk.ip.family {
        // The protocol on the wire: with INT, that of the packet's flow may differ.
        turboflow_record::Family::V4 => u8_at(frame.bytes, walk.ip.offset + 9).unwrap_or(0),
        turboflow_record::Family::V6 => 0,
    };
    let addresses = IpHeader {
        protocol,
        ..walk.ip
    }
    .tuple(frame.bytes, [0; 4]);
    let outer = walk
        .outer
        .as_ref()
        .map(|outer| inputs::addresses(frame.bytes, outer));
    let [first, second] = walk
        .link
        .tag_control
        .map(|control| u32::from(control & 0xfff));
    // Tunnel ids belong to the key only if the fragment itself is inside the tunnel.
    let tunnel = if walk.outer.is_some() {
        walk.tunnel
    } else {
        Default::default()
    };
    DatagramKey {
        addresses,
        identification,
        outer_addresses: outer.unwrap_or_default(),
        context: [
            first | second << 16,
            tunnel.vni.unwrap_or(0),
            tunnel.teid.unwrap_or(0),
            tunnel.gre_key.unwrap_or(0),
        ],
        interface: frame.interface,
    }
}
