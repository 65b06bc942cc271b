// SPDX-License-Identifier: Apache-2.0
//! sFlow version 5 (sflow.org, July 2004): packets sampled by a switch, each as a record of one
//! packet.
//!
//! A datagram contains samples. A flow sample contains descriptions of one packet: its first bytes,
//! or the fields of its IP header. Counter samples are skipped. Samples are numbered for each data
//! source, such as a port, so that missing ones are detected.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use turboflow_packet::{Frame, LinkType, Parser, ParserConfig};
use turboflow_record::{Input, InputSet, InputValues};

use crate::bytes::{four, split};
use crate::counts::Counts;
use crate::decoder::{Directed, TakeFlow};
use crate::exporter_numbers::{Numbers, Place};
use crate::flow::Flow;
use crate::slot::{Slot, Way};

const VERSION: u32 = 5;
/// Maximum number of data sources of an agent whose numbers are tracked.
pub(crate) const MOST_SOURCES_OF_AGENT: usize = 4_096;
/// If a count of drops grows by more than this between two samples, it restarted or is wrong.
const MOST_DROPPED: u32 = 1 << 26;
/// The number of an interface that is unknown, or is the switch itself (section 5, `interface`).
const NO_INTERFACE: u32 = 0x3fff_ffff;

/// Formats of samples (section 5): enterprise 0.
mod sample {
    pub(super) const FLOW: u32 = 1;
    pub(super) const FLOW_EXPANDED: u32 = 3;
}

/// Formats of the descriptions of a packet (section 5): enterprise 0.
mod described {
    pub(super) const FRAME: u32 = 1;
    pub(super) const IPV4: u32 = 3;
    pub(super) const IPV6: u32 = 4;
    pub(super) const SWITCH: u32 = 1_001;
}

/// Splits off a 32-bit number.
fn word(rest: &mut &[u8]) -> Option<u32> {
    four(split(rest, 4)?, 0)
}

/// Splits off octets, with the padding to a multiple of four.
fn opaque<'a>(rest: &mut &'a [u8], length: u32) -> Option<&'a [u8]> {
    let length = usize::try_from(length).ok()?;
    let padded = length.checked_next_multiple_of(4)?;
    split(rest, padded)?.get(..length)
}

/// Whether a message is sFlow: NetFlow and IPFIX begin with a version of 16 bits.
pub(crate) fn is_datagram(message: &[u8]) -> bool {
    four(message, 0) == Some(VERSION)
}

/// A datagram without its header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram<'a> {
    /// Identifies the agent and its sub-agent, because one address may send for several.
    pub(crate) agent: u32,
    samples: u32,
    rest: &'a [u8],
}

impl<'a> Datagram<'a> {
    pub(crate) fn of(message: &'a [u8]) -> Option<Self> {
        let mut rest = message;
        if word(&mut rest)? != VERSION {
            return None;
        }
        let address = match word(&mut rest)? {
            1 => split(&mut rest, 4)?,
            2 => split(&mut rest, 16)?,
            _ => return None,
        };
        let part = word(&mut rest)?;
        let (_sequence, _uptime_ms) = (word(&mut rest)?, word(&mut rest)?);
        let mut hasher = DefaultHasher::new();
        (address, part).hash(&mut hasher);
        Some(Self {
            agent: hasher.finish() as u32,
            samples: word(&mut rest)?,
            rest,
        })
    }
}

/// The data sources of an agent.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    known: HashMap<u64, Source>,
    /// Maximum number of known sources.
    pub(crate) most: usize,
}

#[derive(Debug, Default)]
struct Source {
    numbers: Numbers,
    /// Packets that should have been sampled but were not, since the agent started.
    dropped: Option<u32>,
}

impl Sources {
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Counts losses by the number of a sample.
    fn place(&mut self, sample: &FlowSample<'_>, counts: &mut Counts) {
        if self.known.len() >= self.most && !self.known.contains_key(&sample.source) {
            counts.samples_unchecked += 1;
            return;
        }
        let source = self.known.entry(sample.source).or_default();
        match source.numbers.place(sample.sequence, 1) {
            Place::Next => {}
            Place::Gap(missing) => counts.records_lost += u64::from(missing),
            Place::Late(found) => {
                counts.records_lost = counts.records_lost.saturating_sub(u64::from(found));
                // The drops in a late sample are an old count.
                return;
            }
            Place::Restart => {
                counts.sequence_restarts += 1;
                source.dropped = None;
            }
        }
        let before = source.dropped.replace(sample.dropped);
        let dropped = before.map_or(0, |before| sample.dropped.wrapping_sub(before));
        if dropped <= MOST_DROPPED {
            counts.samples_dropped += u64::from(dropped);
        }
    }
}

/// A flow sample without its header.
#[derive(Debug)]
struct FlowSample<'a> {
    source: u64,
    sequence: u32,
    one_of: u32,
    dropped: u32,
    /// Input and output.
    interfaces: [Option<u32>; 2],
    descriptions: u32,
    rest: &'a [u8],
}

impl<'a> FlowSample<'a> {
    /// The format and the value of an interface share a word, or have a word each (`is_expanded`).
    fn of(mut rest: &'a [u8], is_expanded: bool) -> Option<Self> {
        let rest = &mut rest;
        let sequence = word(rest)?;
        let mut source = u64::from(word(rest)?);
        if is_expanded {
            source = source << 32 | u64::from(word(rest)?);
        }
        let one_of = word(rest)?;
        let (_pool, dropped) = (word(rest)?, word(rest)?);
        let mut interface = || {
            let first = word(rest)?;
            let (form, value) = match is_expanded {
                true => (first, word(rest)?),
                false => (first >> 30, first & NO_INTERFACE),
            };
            Some((form == 0 && value != NO_INTERFACE).then_some(value))
        };
        let interfaces = [interface()?, interface()?];
        Some(Self {
            source,
            sequence,
            one_of: one_of.max(1),
            dropped,
            interfaces,
            descriptions: word(rest)?,
            rest,
        })
    }
}

/// Reads sampled packets.
pub(crate) struct Sampled {
    parser: Parser,
    wanted: InputSet,
    values: InputValues,
}

impl Default for Sampled {
    fn default() -> Self {
        Self::new(InputSet::default())
    }
}

impl std::fmt::Debug for Sampled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sampled").finish_non_exhaustive()
    }
}

impl Sampled {
    pub(crate) fn new(wanted: InputSet) -> Self {
        // The destination port of ICMP is derived where that of other records is.
        Self {
            parser: Parser::new(ParserConfig {
                icmp_ports: true,
                needs: wanted,
                ..ParserConfig::default()
            }),
            wanted,
            values: InputValues::default(),
        }
    }

    /// Hands over the packets of a datagram that arrived at this time. False if the datagram ends
    /// early.
    pub(crate) fn read(
        &mut self,
        datagram: &Datagram<'_>,
        received_ns: u64,
        sources: &mut Sources,
        (flow, counts): (&mut Flow, &mut Counts),
        taker: &mut impl TakeFlow,
    ) -> bool {
        let mut rest = datagram.rest;
        for _ in 0..datagram.samples {
            let (Some(format), Some(length)) = (word(&mut rest), word(&mut rest)) else {
                return false;
            };
            let Some(body) = opaque(&mut rest, length) else {
                return false;
            };
            let is_expanded = match format {
                sample::FLOW => false,
                sample::FLOW_EXPANDED => true,
                _ => continue,
            };
            let Some(sample) = FlowSample::of(body, is_expanded) else {
                return false;
            };
            sources.place(&sample, counts);
            match self.packet(&sample, received_ns, flow) {
                Some(true) => taker.flow(
                    &Directed {
                        flow,
                        side: &flow.sides[0],
                        is_reverse: false,
                        first_ns: received_ns,
                        last_ns: received_ns,
                        one_of: sample.one_of,
                    },
                    counts,
                ),
                Some(false) => counts.records_not_flows += 1,
                None => return false,
            }
        }
        true
    }

    /// Fills the flow with the packet of a sample. False if the packet belongs to no flow, `None`
    /// if its description ends early.
    fn packet(&mut self, sample: &FlowSample<'_>, time_ns: u64, flow: &mut Flow) -> Option<bool> {
        flow.clear();
        let mut rest = sample.rest;
        let (mut frame, mut header, mut vlan) = (None, None, None);
        for _ in 0..sample.descriptions {
            let (format, length) = (word(&mut rest)?, word(&mut rest)?);
            let body = opaque(&mut rest, length)?;
            match format {
                described::FRAME => frame = Some(body),
                described::IPV4 => {
                    header = Some((body, [Slot::SourceV4, Slot::DestinationV4]));
                }
                described::IPV6 => {
                    header = Some((body, [Slot::SourceV6, Slot::DestinationV6]));
                }
                described::SWITCH => vlan = four(body, 0),
                _ => {}
            }
        }
        let mut is_packet = match frame {
            Some(mut body) => self.frame(&mut body, time_ns, flow)?,
            None => false,
        };
        if let (false, Some((mut body, addresses))) = (is_packet, header) {
            flow.clear();
            is_packet = fields(&mut body, flow, addresses)?;
        }
        let interfaces = [Input::IngressInterface, Input::EgressInterface];
        for (input, interface) in interfaces.into_iter().zip(sample.interfaces) {
            if let (true, Some(index)) = (self.wanted.contains(input), interface) {
                flow.inputs.set(input, u64::from(index));
            }
        }
        // A switch may remove the tag before it samples.
        let is_tag = |vlan: &u32| (1..4_095).contains(vlan);
        if let (true, Some(vlan)) = (
            self.wanted.contains(Input::Vlan) && flow.inputs.get(Input::Vlan).is_none(),
            vlan.filter(is_tag),
        ) {
            flow.inputs.set(Input::Vlan, u64::from(vlan));
        }
        Some(is_packet)
    }

    /// Reads the first bytes of a frame.
    fn frame(&mut self, body: &mut &[u8], timestamp_ns: u64, flow: &mut Flow) -> Option<bool> {
        let protocol = word(body)?;
        let (wire_length_bytes, _stripped, length) = (word(body)?, word(body)?, word(body)?);
        let bytes = opaque(body, length)?;
        let link_type = match protocol {
            1 => LinkType::Ethernet,
            11 => LinkType::RawIpv4,
            12 => LinkType::RawIpv6,
            _ => return Some(false),
        };
        let frame = Frame {
            bytes,
            wire_length_bytes,
            timestamp_ns,
            interface: 0,
            link_type,
        };
        let Ok(packet) = self.parser.parse_with_inputs(&frame, &mut self.values) else {
            return Some(false);
        };
        flow.set_packet(&packet, &self.values);
        Some(true)
    }
}

/// Reads the fields of an IP header (section 5, `sampled_ipv4` and `sampled_ipv6`).
fn fields(body: &mut &[u8], flow: &mut Flow, addresses: [Slot; 2]) -> Option<bool> {
    let address_bytes = match addresses[0] {
        Slot::SourceV4 => 4,
        _ => 16,
    };
    let (length_bytes, protocol) = (split(body, 4)?, split(body, 4)?);
    for slot in addresses {
        flow.take(slot, split(body, address_bytes)?);
    }
    let ports_and_more = [
        Slot::SourcePort,
        Slot::DestinationPort,
        Slot::TcpFlags(Way::Forward),
        Slot::Tos(Way::Forward),
    ];
    for slot in ports_and_more {
        flow.take(slot, split(body, 4)?);
    }
    flow.take(Slot::Protocol, protocol);
    flow.take(Slot::Bytes(Way::Forward), length_bytes);
    flow.take(Slot::MinLength(Way::Forward), length_bytes);
    flow.take(Slot::MaxLength(Way::Forward), length_bytes);
    flow.sides[0].packets = 1;
    Some(true)
}
