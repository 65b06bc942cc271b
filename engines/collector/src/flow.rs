// SPDX-License-Identifier: Apache-2.0
//! A flow as given in a record, before its times are resolved.

use std::net::IpAddr;

use turboflow_record::{FiveTuple, Input, InputValues, Packet};

use crate::bytes::number;
use crate::slot::{Slot, TimeForm, Way};
use crate::times::{self, Stamp};

/// One direction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Side {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) tcp_flags: u16,
    pub(crate) tos: u8,
    /// Smallest and largest; 0 if the exporter does not report them.
    pub(crate) ttl: [u8; 2],
    pub(crate) length_bytes: [u32; 2],
    pub(crate) start: Stamp,
    pub(crate) end: Stamp,
}

/// What a record says about the sampling of its packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sampling {
    /// One packet out of this many; 0 if not given.
    pub(crate) interval: u64,
    pub(crate) at_a_time: u64,
    pub(crate) space: Option<u64>,
    pub(crate) size: u64,
    pub(crate) population: u64,
    pub(crate) sampler: Option<u64>,
}

impl Sampling {
    /// One packet out of this many was sampled; `None` if the record does not say.
    pub(crate) fn one_of(&self) -> Option<u32> {
        let one_of = match (self.interval, self.space) {
            (0, Some(space)) if self.at_a_time > 0 => {
                self.at_a_time.saturating_add(space) / self.at_a_time
            }
            (0, _) if self.size > 0 => self.population / self.size,
            (interval, _) => interval,
        };
        let one_of = u32::try_from(one_of).unwrap_or(u32::MAX);
        (one_of > 0).then_some(one_of)
    }
}

/// The values of a record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flow {
    /// 4, 6, or 0 without addresses.
    pub(crate) family: u8,
    source: [u8; 16],
    destination: [u8; 16],
    ports: [u8; 4],
    pub(crate) protocol: u8,
    icmp: Option<[u8; 2]>,
    pub(crate) sides: [Side; 2],
    pub(crate) duration_ns: Option<u64>,
    pub(crate) boot_ms: Option<u64>,
    pub(crate) sampling: Sampling,
    pub(crate) inputs: InputValues,
}

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

impl Flow {
    /// Clears the values of the previous record.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.family = 0;
        (self.source, self.destination) = ([0; 16], [0; 16]);
        self.ports = [0; 4];
        self.protocol = 0;
        self.icmp = None;
        self.sides = [Side::default(); 2];
        self.duration_ns = None;
        self.boot_ms = None;
        self.sampling = Sampling::default();
        self.inputs.clear();
    }

    /// Stores a value whose length fits its slot.
    #[inline(always)]
    pub(crate) fn take(&mut self, slot: Slot, octets: &[u8]) {
        match slot {
            Slot::Skip => {}
            Slot::SourceV4 => {
                if self.family != 6 {
                    self.family = 4;
                    self.source[..4].copy_from_slice(octets);
                }
            }
            Slot::DestinationV4 => {
                if self.family != 6 {
                    self.family = 4;
                    self.destination[..4].copy_from_slice(octets);
                }
            }
            Slot::SourceV6 if self.is_v6(octets) => self.source.copy_from_slice(octets),
            Slot::DestinationV6 if self.is_v6(octets) => self.destination.copy_from_slice(octets),
            Slot::SourceV6 | Slot::DestinationV6 => {}
            slot => self.take_number(slot, number(octets)),
        }
    }

    /// Fills in everything from a parsed packet. The port of an ICMP packet is its type and code.
    pub(crate) fn set_packet(&mut self, packet: &Packet, inputs: &InputValues) {
        let tuple = &packet.tuple;
        match (tuple.source(), tuple.destination()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                self.family = 4;
                self.source[..4].copy_from_slice(&source.octets());
                self.destination[..4].copy_from_slice(&destination.octets());
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                self.family = 6;
                (self.source, self.destination) = (source.octets(), destination.octets());
            }
            _ => return,
        }
        self.ports[..2].copy_from_slice(&tuple.source_port().to_be_bytes());
        self.ports[2..].copy_from_slice(&tuple.destination_port().to_be_bytes());
        self.protocol = tuple.protocol();
        self.inputs.clone_from(inputs);
        self.sides[0] = Side {
            packets: 1,
            bytes: u64::from(packet.ip_length_bytes),
            tcp_flags: packet.tcp_flags,
            tos: packet.tos,
            ttl: [packet.ttl; 2],
            length_bytes: [packet.ip_length_bytes; 2],
            ..Side::default()
        };
    }

    /// Whether an address is present: some templates have fields for both families, one of which is
    /// zero.
    #[inline(always)]
    fn is_v6(&mut self, octets: &[u8]) -> bool {
        let has_address = octets.iter().any(|octet| *octet != 0);
        if has_address {
            self.family = 6;
        }
        has_address
    }

    #[inline(always)]
    fn take_number(&mut self, slot: Slot, value: u64) {
        let port = (value as u16).to_be_bytes();
        match slot {
            Slot::SourcePort => self.ports[..2].copy_from_slice(&port),
            Slot::DestinationPort => self.ports[2..].copy_from_slice(&port),
            Slot::Protocol => self.protocol = value as u8,
            Slot::Packets(way) => self.side(way).packets = value,
            Slot::Bytes(way) => self.side(way).bytes = value,
            Slot::TcpFlags(way) => self.side(way).tcp_flags = value as u16 & 0xfff,
            Slot::Tos(way) => self.side(way).tos = value as u8,
            Slot::Dscp(way) => self.side(way).tos = (value as u8) << 2,
            Slot::Ttl(way) => self.side(way).ttl = [value as u8; 2],
            Slot::MinTtl(way) => self.side(way).ttl[0] = value as u8,
            Slot::MaxTtl(way) => self.side(way).ttl[1] = value as u8,
            Slot::MinLength(way) => self.side(way).length_bytes[0] = length(value),
            Slot::MaxLength(way) => self.side(way).length_bytes[1] = length(value),
            Slot::Start(way, form) => self.side(way).start = stamp(form, value),
            Slot::End(way, form) => self.side(way).end = stamp(form, value),
            slot => self.take_seldom(slot, value),
        }
    }

    fn take_seldom(&mut self, slot: Slot, value: u64) {
        match slot {
            Slot::Icmp => self.icmp = Some((value as u16).to_be_bytes()),
            Slot::IcmpType => self.icmp = Some([value as u8, self.icmp.unwrap_or_default()[1]]),
            Slot::IcmpCode => self.icmp = Some([self.icmp.unwrap_or_default()[0], value as u8]),
            Slot::DurationMs => self.duration_ns = Some(value.saturating_mul(1_000_000)),
            Slot::DurationUs => self.duration_ns = Some(value.saturating_mul(1_000)),
            Slot::Boot => self.boot_ms = Some(value),
            Slot::SamplingInterval => self.sampling.interval = value,
            Slot::SampledAtATime => self.sampling.at_a_time = value,
            Slot::SamplingSpace => self.sampling.space = Some(value),
            Slot::SamplingSize => self.sampling.size = value,
            Slot::SamplingPopulation => self.sampling.population = value,
            Slot::Sampler => self.sampling.sampler = Some(value),
            Slot::Input(input) => self.inputs.set(input, value & mask(input)),
            _ => {}
        }
    }

    const fn side(&mut self, way: Way) -> &mut Side {
        &mut self.sides[way as usize]
    }

    /// The 5-tuple in the forward direction; `None` without addresses. With `icmp_ports`, type and
    /// code of ICMP are the destination port, as routers send them; otherwise that port is 0.
    #[inline(always)]
    pub(crate) fn tuple(&self, icmp_ports: bool) -> Option<FiveTuple> {
        let mut ports = self.ports;
        if self.protocol == ICMP || self.protocol == ICMP_V6 {
            let [kind, code] = self.icmp.unwrap_or([ports[2], ports[3]]);
            ports = match icmp_ports {
                true => [0, 0, kind, code],
                false => [0; 4],
            };
        }
        match self.family {
            4 => {
                let (mut addresses, at) = ([0; 8], 4);
                addresses[..at].copy_from_slice(&self.source[..at]);
                addresses[at..].copy_from_slice(&self.destination[..at]);
                Some(FiveTuple::v4(addresses, ports, self.protocol))
            }
            6 => Some(FiveTuple::v6(
                self.source,
                self.destination,
                ports,
                self.protocol,
            )),
            _ => None,
        }
    }

    /// Sets the inputs that follow from other values.
    pub(crate) fn set_icmp(&self, inputs: &mut InputValues) {
        if self.protocol != ICMP && self.protocol != ICMP_V6 {
            return;
        }
        let [kind, code] = self.icmp.unwrap_or([self.ports[2], self.ports[3]]);
        inputs.set(Input::IcmpType, u64::from(kind));
        inputs.set(Input::IcmpCode, u64::from(code));
    }
}

fn length(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The mask of an input's bits.
fn mask(input: Input) -> u64 {
    u64::MAX >> (64 - u32::from(input.bits()).clamp(1, 64))
}

fn stamp(form: TimeForm, value: u64) -> Stamp {
    // Otherwise, a time of zero means that the exporter has none.
    match form {
        TimeForm::Uptime => Stamp::Uptime(value as u32),
        TimeForm::BeforeExport => Stamp::BeforeExport(value as u32),
        _ if value == 0 => Stamp::None,
        TimeForm::Seconds => times::of_seconds(value),
        TimeForm::Milliseconds => times::of_milliseconds(value),
        TimeForm::Microseconds => times::of_ntp(value, 1_000),
        TimeForm::Nanoseconds => times::of_ntp(value, 1),
    }
}
