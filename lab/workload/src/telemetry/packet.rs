// SPDX-License-Identifier: Apache-2.0
//! Packets with in-band telemetry, whose values are known: INT-MD, reports and IOAM on the wire,
//! and networks in which something is wrong.

use std::net::IpAddr;

use turboflow_record::{Family, FiveTuple};

/// What a node writes into a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The node, from 1 to 2^24 - 2.
    pub node: u32,
    /// The interface that the packet leaves it by.
    pub egress_interface: u16,
    /// The time that the packet took through it, in ns, below 2^31.
    pub latency_ns: u32,
    /// The queue that the packet met, below 2^24.
    pub queue_depth: u32,
}

/// How telemetry travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// INT-MD behind the transport header, marked by a DSCP.
    IntByDscp(u8),
    /// INT-MD in UDP to this port. UDP keeps its header; TCP gets one of UDP in front.
    IntByPort(u16),
    /// A report to this UDP port that has the packet with INT-MD of all nodes but the last, which
    /// reports for itself. The packet in it has this DSCP.
    Report {
        /// The port.
        port: u16,
        /// The DSCP.
        dscp: u8,
    },
    /// A pre-allocated IOAM trace; IPv6 only.
    Ioam,
}

/// A packet of a network with telemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Its flow: TCP or UDP.
    pub tuple: FiveTuple,
    /// Time to live where it is captured.
    pub ttl: u8,
    /// Bytes of payload.
    pub payload_bytes: u16,
    /// The nodes that it passed, first to last.
    pub hops: Vec<Hop>,
}

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Instruction bits 0 to 3 of INT, and words of a hop.
const INT_BITS: u8 = 0xf0;
const HOP_WORDS: usize = 4;

impl Measured {
    /// Its Ethernet frame. Checksums of the transport layer are 0.
    ///
    /// # Panics
    /// When more hops are asked for than the carrier has room for, or IOAM in IPv4.
    #[must_use]
    pub fn frame(&self, carrier: Carrier) -> Vec<u8> {
        let datagram = match carrier {
            Carrier::IntByDscp(dscp) => self.marked(dscp, &self.hops),
            Carrier::IntByPort(port) => self.in_udp(port),
            Carrier::Report { port, dscp } => self.reported(port, dscp),
            Carrier::Ioam => {
                assert!(self.tuple.family() == Family::V6, "IOAM is in IPv6");
                let protocol = self.tuple.protocol();
                let segment = self.segment(&[]);
                let trace = ioam(protocol, &self.hops);
                self.datagram(0, 0, &[trace, segment].concat())
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

    fn marked(&self, dscp: u8, hops: &[Hop]) -> Vec<u8> {
        let segment = self.segment(&int(0, 0, hops));
        self.datagram(dscp, self.tuple.protocol(), &segment)
    }

    fn in_udp(&self, port: u16) -> Vec<u8> {
        let ports = [self.tuple.source_port(), port];
        let behind = match self.tuple.protocol() {
            UDP => {
                let payload = vec![0; self.payload_bytes.into()];
                [int(1, self.tuple.destination_port(), &self.hops), payload].concat()
            }
            other => [int(2, other.into(), &self.hops), self.segment(&[])].concat(),
        };
        self.datagram(0, UDP, &udp(ports, &behind))
    }

    fn reported(&self, port: u16, dscp: u8) -> Vec<u8> {
        let (last, before) = self.hops.split_last().expect("a node that reports");
        let mut inner = self.marked(dscp, before);
        let in_type: u8 = match self.tuple.family() {
            Family::V4 => 4,
            Family::V6 => 5,
        };
        // Reports have parts of packets, in words.
        inner.truncate(200);
        inner.resize(inner.len().next_multiple_of(4), 0);
        let mut report = vec![0x20, 0, 0, 1];
        report.extend(last.node.to_be_bytes());
        report.extend([0x10 | in_type, (5 + inner.len() / 4) as u8, 3, 0x20]);
        report.extend([INT_BITS & 0x7f, 0, 0, 0, 0, 0, 0, 0]);
        report.extend(&words(last)[4..]);
        report.extend(inner);
        self.datagram(0, UDP, &udp([9, port], &report))
    }

    /// The transport header, `between`, and the payload.
    fn segment(&self, between: &[u8]) -> Vec<u8> {
        let ports = [self.tuple.source_port(), self.tuple.destination_port()];
        let behind = [between, &vec![0; self.payload_bytes.into()]].concat();
        if self.tuple.protocol() == UDP {
            return udp(ports, &behind);
        }
        assert!(self.tuple.protocol() == TCP, "telemetry is in TCP and UDP");
        let ports = ports.map(u16::to_be_bytes).concat();
        let rest = [0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0];
        [&ports, &rest[..], &behind].concat()
    }

    fn datagram(&self, dscp: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let octets = |address: IpAddr| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        match self.tuple.family() {
            Family::V4 => {
                bytes.extend([0x45, dscp << 2]);
                bytes.extend((20 + payload.len() as u16).to_be_bytes());
                bytes.extend([0, 0, 0x40, 0, self.ttl, protocol, 0, 0]);
            }
            Family::V6 => {
                bytes.extend([0x60 | dscp >> 2, dscp << 6, 0, 0]);
                bytes.extend((payload.len() as u16).to_be_bytes());
                bytes.extend([protocol, self.ttl]);
            }
        }
        bytes.extend(octets(self.tuple.source()));
        bytes.extend(octets(self.tuple.destination()));
        bytes.extend(payload);
        bytes
    }
}

fn udp(ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let header = [ports[0], ports[1], length, 0].map(u16::to_be_bytes);
    [&header.concat(), payload].concat()
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

/// Shim, header and stack of INT-MD.
fn int(next: u8, original: u16, hops: &[Hop]) -> Vec<u8> {
    let length = u8::try_from(3 + hops.len() * HOP_WORDS).expect("at most 63 hops");
    let [high, low] = original.to_be_bytes();
    let mut bytes = vec![0x10 | next << 2, length, high, low];
    bytes.extend([0x20, 0, HOP_WORDS as u8, 64 - hops.len() as u8]);
    bytes.extend([INT_BITS, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(hops.iter().rev().flat_map(words));
    bytes
}

/// A hop-by-hop header with the trace of these nodes, and room for one more.
fn ioam(next_header: u8, hops: &[Hop]) -> Vec<u8> {
    let length = u8::try_from(10 + 16 * (hops.len() + 1)).expect("at most 14 hops");
    let mut bytes = vec![next_header, (hops.len() as u8 + 1) * 2 + 1, 1, 0];
    bytes.extend([0x31, length, 0, 0, 0, 1, (HOP_WORDS as u8) << 3, 4]);
    bytes.extend([0b1100_1010, 0, 0, 0]);
    bytes.extend([0; 16]);
    bytes.extend(hops.iter().rev().flat_map(words));
    bytes
}

/// Sixteen hosts answer 10.0.9.9 at once through the third port of node 3, while eight other flows
/// pass nodes 1, 2 and 4. The flow from port 5,007 sends ten times as much as the others.
#[must_use]
pub fn incast() -> Vec<Measured> {
    let mut packets = Vec::new();
    for round in 0..50_u64 {
        for quiet in 0..8_u8 {
            let tuple = v4([10, 0, 1, quiet], [10, 0, 2, quiet], 4_000, UDP);
            let at = round * 1_000_000 + u64::from(quiet) * 1_000;
            packets.push(measured(
                at,
                tuple,
                &[(1, 2, 800, 1), (2, 2, 900, 2), (4, 1, 700, 0)],
            ));
        }
    }
    for sender in 0..16_u16 {
        let tuple = v4([10, 0, 8, sender as u8], [10, 0, 9, 9], 5_000 + sender, TCP);
        let count = if sender == 7 { 100 } else { 10 };
        for number in 0..count {
            let depth = 40 + 20 * number.min(9);
            let at = 20_000_000 + u64::from(number) * 50_000 + u64::from(sender);
            let hops = [(1, 3, 800, 2), (2, 3, 900, 1), (3, 3, 1_200 * depth, depth)];
            packets.push(measured(at, tuple, &hops));
        }
    }
    packets.sort_by_key(|packet| packet.timestamp_ns);
    packets
}

/// Twenty flows pass nodes 1, 2 and 3. From the middle on, packets of the flow from port 7,013 go
/// back and forth between nodes 2 and 4 twice before they go on.
#[must_use]
pub fn loop_of_two_nodes() -> Vec<Measured> {
    let straight = [(1, 1, 500, 0), (2, 1, 600, 1), (3, 1, 500, 0)];
    let (back, forth) = ((2, 9, 600, 1), (4, 1, 700, 2));
    let looped = [
        straight[0],
        back,
        forth,
        back,
        forth,
        straight[1],
        straight[2],
    ];
    let mut packets = Vec::new();
    for number in 0..40_u64 {
        for flow in 0..20_u16 {
            let tuple = v4([10, 1, 0, flow as u8], [10, 2, 0, 1], 7_000 + flow, UDP);
            let at = number * 1_000_000 + u64::from(flow) * 10_000;
            let is_looping = flow == 13 && number >= 20;
            let hops = if is_looping { &looped[..] } else { &straight };
            packets.push(measured(at, tuple, hops));
        }
    }
    packets
}

fn v4(source: [u8; 4], destination: [u8; 4], source_port: u16, protocol: u8) -> FiveTuple {
    FiveTuple::new(source.into(), destination.into(), source_port, 80, protocol)
}

/// A packet that passed nodes: number, egress interface, latency, depth of the queue.
fn measured(after_ns: u64, tuple: FiveTuple, hops: &[(u32, u16, u32, u32)]) -> Measured {
    let hops = hops
        .iter()
        .map(|&(node, egress_interface, latency_ns, queue_depth)| Hop {
            node,
            egress_interface,
            latency_ns,
            queue_depth,
        });
    let hops: Vec<Hop> = hops.collect();
    Measured {
        timestamp_ns: 1_700_000_000_000_000_000 + after_ns,
        tuple,
        ttl: 64 - hops.len() as u8,
        payload_bytes: 100,
        hops,
    }
}
