// SPDX-License-Identifier: Apache-2.0
//! The parser: configuration, the two entrances, and the fragments that wait.

use turboflow_record::{Input, InputSet, InputValues, Packet};

use crate::fragments::{self, DatagramKey, FragmentCache, FragmentCounters, ReassemblyConfig};
use crate::ip::IpHeader;
use crate::walk::Walk;
use crate::{Frame, Rejected, TunnelSet, fast, inputs};

/// What is read beyond the first IP header's 5-tuple. By default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParserConfig {
    /// Tunnels to enter: the flow is then that of the inner header.
    pub decapsulate: TunnelSet,
    /// ICMP's type · 256 + code as destination port, as in NetFlow.
    pub icmp_ports: bool,
    /// Later fragments take the ports of their first fragment; `None` leaves them at 0/0.
    pub reassemble_flows: Option<ReassemblyConfig>,
    /// Inputs that [`Parser::parse_with_inputs`] fills in.
    pub needs: InputSet,
}

/// Reads frames, as `docs/semantics.md` says.
///
/// It allocates when it is made and never again.
pub struct Parser {
    config: ParserConfig,
    /// Whether UDP between some ports may be a tunnel to enter.
    udp_tunnels: bool,
    wanted: Vec<Input>,
    fragments: Option<Box<FragmentCache>>,
}

impl Parser {
    /// A parser that has seen nothing yet.
    #[must_use]
    pub fn new(config: ParserConfig) -> Self {
        Self {
            config,
            udp_tunnels: config.decapsulate.intersects(TunnelSet::IN_UDP),
            wanted: config.needs.iter().collect(),
            fragments: config
                .reassemble_flows
                .map(|config| Box::new(FragmentCache::new(config))),
        }
    }

    /// The packet of a frame.
    ///
    /// # Errors
    /// The reason why the frame is in no flow; [`Rejected::Held`] where it will be, see
    /// [`Parser::release`].
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

    /// The packet of a plain IPv4 frame (Ethernet, at most one tag, TCP or UDP behind an IP header
    /// without options), as [`Parser::parse`] would give it; `None` where that has to look.
    ///
    /// A caller's hot loop asks this first and keeps the rest out of line.
    #[inline(always)]
    #[must_use]
    pub fn parse_plain_v4(&self, frame: &Frame<'_>) -> Option<Packet> {
        fast::parse_v4(frame, self.udp_tunnels)
    }

    /// The packet of a frame, and the configured inputs; `values` mean nothing after an error.
    ///
    /// # Errors
    /// As [`Parser::parse`].
    #[inline]
    pub fn parse_with_inputs(
        &mut self,
        frame: &Frame<'_>,
        values: &mut InputValues,
    ) -> Result<Packet, Rejected> {
        match fast::parse(frame, self.udp_tunnels) {
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

    /// Hands out the held fragments whose first fragment has come (with its ports) or whose time is
    /// up at `now_ns` (with ports 0/0). Each keeps its own, older, timestamp.
    ///
    /// Call it after every batch: as long as nobody does, what is ready takes the place of what
    /// could be held.
    pub fn release(&mut self, now_ns: u64, out: &mut Vec<(Packet, InputValues)>) {
        if let Some(cache) = &mut self.fragments {
            cache.release(now_ns, out);
        }
    }

    /// Hands out the held fragments whose time is up at `now_ns`, and no others.
    pub fn expire(&mut self, now_ns: u64, out: &mut Vec<(Packet, InputValues)>) {
        if let Some(cache) = &mut self.fragments {
            cache.expire(now_ns, out);
        }
    }

    /// The clock was set back to `now_ns`: hands out the fragments that were held before, and forgets the datagrams of that time.
    pub fn set_back(&mut self, now_ns: u64, out: &mut Vec<(Packet, InputValues)>) {
        if let Some(cache) = &mut self.fragments {
            cache.set_back(now_ns, out);
        }
    }

    /// Hands out every held fragment: the input has ended.
    pub fn release_all(&mut self, out: &mut Vec<(Packet, InputValues)>) {
        if let Some(cache) = &mut self.fragments {
            cache.release_all(out);
        }
    }

    /// What became of fragments; all zero without `reassemble_flows`.
    #[must_use]
    pub fn fragment_counters(&self) -> FragmentCounters {
        self.fragments
            .as_ref()
            .map(|cache| cache.counters)
            .unwrap_or_default()
    }

    #[inline(never)]
    fn parse_any(&mut self, frame: &Frame<'_>) -> Result<Packet, Rejected> {
        let walk = Walk::new(frame, self.config.decapsulate)?;
        let packet = walk.packet(frame, self.config.icmp_ports);
        self.attribute(frame, &walk, packet, None)
    }

    #[inline(never)]
    fn parse_any_with_inputs(
        &mut self,
        frame: &Frame<'_>,
        values: &mut InputValues,
    ) -> Result<Packet, Rejected> {
        let walk = Walk::new(frame, self.config.decapsulate)?;
        let packet = walk.packet(frame, self.config.icmp_ports);
        inputs::fill(values, &self.wanted, frame, &walk, &packet);
        self.attribute(frame, &walk, packet, Some(values))
    }

    /// Where fragments are joined, gives a later one its flow.
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
        // Their later fragments cannot be entered: they stay with the flow around the tunnel.
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

/// Marks the branch it is called in, and only that: the general parser itself is optimised fully, for
/// on some links (MPLS, PPPoE) every packet takes it.
#[cold]
fn unlikely() {}

/// IPv6 fragments may name an extension header where the first one's chain goes on, so the protocol
/// is in the key of IPv4 alone.
fn datagram_key(frame: &Frame<'_>, walk: &Walk, identification: u32) -> DatagramKey {
    let protocol = match walk.ip.family {
        turboflow_record::Family::V4 => walk.ip.protocol,
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
    // Tunnel numbers are those of the header itself only where it is inside the tunnel.
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
