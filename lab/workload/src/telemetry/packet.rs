// SPDX-License-Identifier: Apache-2.0
//! Packets with in-band telemetry on the wire: INT-MD, reports and IOAM.

use std::net::IpAddr;

use turboflow_record::{Family, FiveTuple};

use crate::traffic::{TCP, UDP, checksum};

/// The DSCP value that marks INT-MD, which is the meter's default.
pub const INT_DSCP: u8 = 23;
/// The UDP port that marks INT-MD.
pub const INT_PORT: u16 = 5_000;
/// The UDP port for reports.
pub const REPORT_PORT: u16 = 5_001;

/// What a node writes into a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The node, from 1 to 2^24 - 2.
    pub node: u32,
    /// The interface through which the packet leaves the node.
    pub egress_interface: u16,
    /// The time that the packet spent in the node, in ns, below 2^31.
    pub latency_ns: u32,
    /// The depth of the queue that the packet met, below 2^24.
    pub queue_depth: u32,
}

/// How telemetry is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// INT-MD after the transport header, marked by [`INT_DSCP`].
    IntByDscp,
    /// INT-MD in UDP to [`INT_PORT`]. UDP keeps its header; TCP gets an additional UDP header in
    /// front.
    IntByPort,
    /// A report to a collector's [`REPORT_PORT`]. It contains the packet and the INT-MD of all
    /// nodes except the last one, which adds its own values to the report.
    Report,
    /// A pre-allocated IOAM trace; IPv6 only.
    Ioam,
}

impl Carrier {
    /// All carriers.
    pub const ALL: [Self; 4] = [Self::IntByDscp, Self::IntByPort, Self::Report, Self::Ioam];
}

/// A packet of a network with telemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Its flow: TCP or UDP.
    pub tuple: FiveTuple,
    /// Time to live at the point of capture.
    pub ttl: u8,
    /// Bytes of payload.
    pub payload_bytes: u16,
    /// The nodes that it passed, in order.
    pub hops: Vec<Hop>,
}

/// Instruction bits 0 to 3 of INT; and the number of words per hop.
const INT_BITS: u8 = 0xf0;
const HOP_WORDS: usize = 4;

impl Measured {
    /// The packet's Ethernet frame.
    ///
    /// # Panics
    /// If there are more hops than the carrier has room for, or for IOAM in IPv4.
    #[must_use]
    pub fn frame(&self, carrier: Carrier) -> Vec<u8> {
        let datagram = match carrier {
            Carrier::IntByDscp => self.marked(&self.hops),
            Carrier::IntByPort => self.in_udp(),
            Carrier::Report => self.reported(),
            Carrier::Ioam => {
                assert!(self.tuple.family() == Family::V6, "IOAM is in IPv6");
                let trace = ioam(self.tuple.protocol(), &self.hops);
                let payload = [trace, self.segment(&[])].concat();
                datagram(&self.tuple, self.ttl, 0, 0, &payload)
            }
        };
        let ether_type = match self.tuple.family() {
            Family::V4 => [0x08, 0],
            Family::V6 => [0x86, 0xdd],
        };
        [
            &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2],
            &ether_type[..],
            &datagram,
        ]
        .concat()
    }

    /// The packet over IPv6: its IPv4 addresses become the last 32 bits of IPv6 addresses.
    #[must_use]
    pub fn over_ipv6(self) -> Self {
        let (source, destination) = (self.tuple.source(), self.tuple.destination());
        let tuple = FiveTuple::new(
            wide(source),
            wide(destination),
            self.tuple.source_port(),
            self.tuple.destination_port(),
            self.tuple.protocol(),
        );
        Self { tuple, ..self }
    }

    fn marked(&self, hops: &[Hop]) -> Vec<u8> {
        let segment = self.segment(&int(0, 0, hops));
        let protocol = self.tuple.protocol();
        datagram(&self.tuple, self.ttl, INT_DSCP, protocol, &segment)
    }

    fn in_udp(&self) -> Vec<u8> {
        let ports = [self.tuple.source_port(), INT_PORT];
        let behind = match self.tuple.protocol() {
            UDP => {
                let payload = vec![0; self.payload_bytes.into()];
                [int(1, self.tuple.destination_port(), &self.hops), payload].concat()
            }
            other => [int(2, other.into(), &self.hops), self.segment(&[])].concat(),
        };
        let udp = udp(&self.tuple, ports, &behind);
        datagram(&self.tuple, self.ttl, 0, UDP, &udp)
    }

    /// The report, which the last node sends from its own address.
    fn reported(&self) -> Vec<u8> {
        let (last, before) = self.hops.split_last().expect("a node that reports");
        let mut inner = self.marked(before);
        let mut node = IpAddr::from([192, 0, 2, last.node as u8]);
        let mut collector = IpAddr::from([192, 0, 2, 254]);
        let mut in_type: u8 = 4;
        if self.tuple.family() == Family::V6 {
            (node, collector, in_type) = (wide(node), wide(collector), 5);
        }
        // Reports contain only the first bytes of a packet, in whole words.
        inner.truncate(200);
        inner.resize(inner.len().next_multiple_of(4), 0);
        let mut report = vec![0x20, 0, 0, 1];
        report.extend(last.node.to_be_bytes());
        report.extend([0x10 | in_type, (5 + inner.len() / 4) as u8, 3, 0x20]);
        report.extend([INT_BITS & 0x7f, 0, 0, 0, 0, 0, 0, 0]);
        report.extend(&words(last)[4..]);
        report.extend(inner);
        let ports = [50_000, REPORT_PORT];
        let outer = FiveTuple::new(node, collector, ports[0], ports[1], UDP);
        datagram(&outer, 64, 0, UDP, &udp(&outer, ports, &report))
    }

    /// The transport header, `between`, and the payload.
    fn segment(&self, between: &[u8]) -> Vec<u8> {
        let ports = [self.tuple.source_port(), self.tuple.destination_port()];
        let behind = [between, &vec![0; self.payload_bytes.into()]].concat();
        if self.tuple.protocol() == UDP {
            return udp(&self.tuple, ports, &behind);
        }
        assert!(self.tuple.protocol() == TCP, "telemetry is in TCP and UDP");
        let ports = ports.map(u16::to_be_bytes).concat();
        let rest = [0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0];
        let mut segment = [&ports, &rest[..], &behind].concat();
        let sum = pseudo_sum(&self.tuple, TCP, segment.len()) + sum_of(&segment);
        segment[16..18].copy_from_slice(&checksum(sum).to_be_bytes());
        segment
    }
}

/// An IPv6 address whose last 32 bits are this IPv4 address. IPv6 addresses are returned unchanged.
fn wide(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
            octets[12..].copy_from_slice(&address.octets());
            octets.into()
        }
        address => address,
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A datagram between the addresses of a flow.
fn datagram(tuple: &FiveTuple, ttl: u8, dscp: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let addresses = [octets(tuple.source()), octets(tuple.destination())].concat();
    let mut bytes = Vec::new();
    match tuple.family() {
        Family::V4 => {
            bytes.extend([0x45, dscp << 2]);
            bytes.extend((20 + payload.len() as u16).to_be_bytes());
            bytes.extend([0, 0, 0x40, 0, ttl, protocol]);
            let sum = sum_of(&bytes) + sum_of(&addresses);
            bytes.extend(checksum(sum).to_be_bytes());
        }
        Family::V6 => {
            bytes.extend([0x60 | dscp >> 2, dscp << 6, 0, 0]);
            bytes.extend((payload.len() as u16).to_be_bytes());
            bytes.extend([protocol, ttl]);
        }
    }
    [&bytes, &addresses, payload].concat()
}

/// UDP between the addresses of a flow.
fn udp(tuple: &FiveTuple, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let header = [ports[0], ports[1], length, 0].map(u16::to_be_bytes);
    let mut datagram = [&header.concat(), payload].concat();
    let sum = pseudo_sum(tuple, UDP, datagram.len()) + sum_of(&datagram);
    // 0 would mean that there is no checksum (RFC 768).
    let checksum = match checksum(sum) {
        0 => 0xffff,
        sum => sum,
    };
    datagram[6..8].copy_from_slice(&checksum.to_be_bytes());
    datagram
}

/// The sum of the pseudo-header that a transport checksum covers.
fn pseudo_sum(tuple: &FiveTuple, protocol: u8, length: usize) -> u64 {
    let addresses = [octets(tuple.source()), octets(tuple.destination())].concat();
    sum_of(&addresses) + u64::from(protocol) + length as u64
}

/// The sum of 16-bit words; an odd last byte is padded with 0.
fn sum_of(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(2);
    let word = |pair: &[u8]| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0));
    words.map(word).sum()
}

/// The words of a hop: node, interfaces, latency, queue.
fn words(hop: &Hop) -> Vec<u8> {
    [
        hop.node,
        hop.egress_interface.into(),
        hop.latency_ns,
        hop.queue_depth,
    ]
    .into_iter()
    .flat_map(u32::to_be_bytes)
    .collect()
}

/// Shim, header and hop stack of INT-MD.
fn int(next: u8, original: u16, hops: &[Hop]) -> Vec<u8> {
    let length = u8::try_from(3 + hops.len() * HOP_WORDS).expect("at most 63 hops");
    let [high, low] = original.to_be_bytes();
    let mut bytes = vec![0x10 | next << 2, length, high, low];
    bytes.extend([0x20, 0, HOP_WORDS as u8, 64 - hops.len() as u8]);
    bytes.extend([INT_BITS, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(hops.iter().rev().flat_map(words));
    bytes
}

/// A hop-by-hop header with the trace of these nodes, and room for another one.
fn ioam(next_header: u8, hops: &[Hop]) -> Vec<u8> {
    let length = u8::try_from(10 + 16 * (hops.len() + 1)).expect("at most 14 hops");
    let mut bytes = vec![next_header, (hops.len() as u8 + 1) * 2 + 1, 1, 0];
    bytes.extend([0x31, length, 0, 0, 0, 1, (HOP_WORDS as u8) << 3, 4]);
    bytes.extend([0b1100_1010, 0, 0, 0]);
    bytes.extend([0; 16]);
    bytes.extend(hops.iter().rev().flat_map(words));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(protocol: u8) -> Measured {
        let hop = |node| Hop {
            node,
            egress_interface: 3,
            latency_ns: 500,
            queue_depth: 7,
        };
        Measured {
            timestamp_ns: 1,
            tuple: FiveTuple::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 9, 80, protocol),
            ttl: 61,
            payload_bytes: 101,
            hops: vec![hop(1), hop(2)],
        }
    }

    #[test]
    fn checksums_are_those_of_the_packet_on_the_wire() {
        for packet in [TCP, UDP].map(packet) {
            for carrier in [Carrier::IntByDscp, Carrier::IntByPort, Carrier::Report] {
                let frame = packet.frame(carrier);
                let (header, segment) = frame[14..].split_at(20);
                assert_eq!(checksum(sum_of(header)), 0, "{carrier:?}");
                let pseudo = sum_of(&header[12..]) + u64::from(header[9]) + segment.len() as u64;
                assert_eq!(checksum(pseudo + sum_of(segment)), 0, "{carrier:?}");
            }
            let packet = packet.over_ipv6();
            for carrier in Carrier::ALL {
                let frame = packet.frame(carrier);
                let (header, mut segment) = frame[14..].split_at(40);
                let mut protocol = header[6];
                if carrier == Carrier::Ioam {
                    (protocol, segment) = (segment[0], &segment[8 + 8 * usize::from(segment[1])..]);
                }
                let pseudo = sum_of(&header[8..]) + u64::from(protocol) + segment.len() as u64;
                assert_eq!(
                    checksum(pseudo + sum_of(segment)),
                    0,
                    "{carrier:?} over IPv6"
                );
            }
        }
    }
}
