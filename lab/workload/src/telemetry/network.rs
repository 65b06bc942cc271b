// SPDX-License-Identifier: Apache-2.0
//! A network whose nodes write telemetry into packets, as a capture would show it.

use std::collections::BTreeMap;

use turboflow_record::FiveTuple;

use super::packet::{Carrier, Measured};
use super::troubles::{START_NS, incast, loop_of_two_nodes};
use crate::random::Random;
use crate::traffic::{FrameBuffer, UDP};
use crate::workloads::{WorkloadError, check_amount};

/// How much of the network is captured, and how its telemetry is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkConfig {
    /// The carrier of all telemetry. With `None`, carriers differ by flow.
    pub carrier: Option<Carrier>,
    /// Maximum number of packets.
    pub packets: Option<u64>,
    /// Maximum duration, in ns.
    pub duration_ns: Option<u64>,
    /// Captured bytes per frame, at least 64; `None` captures all.
    pub snap_length_bytes: Option<u32>,
    /// Seed of everything random.
    pub seed: u64,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            carrier: None,
            packets: None,
            duration_ns: None,
            snap_length_bytes: None,
            seed: 1,
        }
    }
}

/// The packets, ordered by time, of a network with an incast in IPv4 and a loop in IPv6.
///
/// If carriers differ by flow, senders of the incast have INT-MD after the TCP header; other IPv4
/// flows have it in UDP, marked by DSCP or by port, or in reports; and IPv6 flows have IOAM.
#[derive(Clone, Debug)]
pub struct Network {
    packets: Vec<(Measured, Carrier)>,
    snap_bytes: usize,
    next: usize,
    wire_bytes: u64,
    captured_bytes: u64,
}

impl Network {
    /// The network before its first packet.
    ///
    /// # Errors
    /// If the amount is zero, or the snap length is shorter than headers.
    pub fn new(config: &NetworkConfig) -> Result<Self, WorkloadError> {
        let NetworkConfig {
            packets: most,
            duration_ns,
            snap_length_bytes,
            ..
        } = *config;
        check_amount(most, duration_ns, snap_length_bytes)?;
        let mut random = Random::new(config.seed);
        let in_v4 = |packet: Measured| match config.carrier {
            Some(Carrier::Ioam) => (packet.over_ipv6(), Carrier::Ioam),
            Some(carrier) => (packet, carrier),
            None => {
                let carrier = in_turn(&packet.tuple);
                (packet, carrier)
            }
        };
        let in_v6 =
            |packet: Measured| (packet.over_ipv6(), config.carrier.unwrap_or(Carrier::Ioam));
        let incast = incast(&mut random).into_iter().map(in_v4);
        let looped = loop_of_two_nodes(&mut random).into_iter().map(in_v6);
        let mut packets: Vec<_> = incast.chain(looped).collect();
        packets.sort_by_key(|(packet, _)| packet.timestamp_ns);
        let end_ns = START_NS.saturating_add(duration_ns.unwrap_or(u64::MAX));
        packets.truncate(packets.partition_point(|(packet, _)| packet.timestamp_ns < end_ns));
        packets.truncate(most.map_or(usize::MAX, |most| most as usize));
        Ok(Self {
            packets,
            snap_bytes: snap_length_bytes.map_or(usize::MAX, |bytes| bytes as usize),
            next: 0,
            wire_bytes: 0,
            captured_bytes: 0,
        })
    }

    /// All packets, each with the carrier of its telemetry.
    #[must_use]
    pub fn packets(&self) -> &[(Measured, Carrier)] {
        &self.packets
    }

    /// Replaces the content of `buffer` by the next `frames` frames, or fewer at the end. Returns
    /// their number: 0 after the last packet.
    pub fn fill(&mut self, buffer: &mut FrameBuffer, frames: usize) -> usize {
        buffer.clear();
        let left = &self.packets[self.next..];
        for (packet, carrier) in &left[..frames.min(left.len())] {
            let frame = packet.frame(*carrier);
            let captured = &frame[..frame.len().min(self.snap_bytes)];
            self.wire_bytes += frame.len() as u64;
            self.captured_bytes += captured.len() as u64;
            buffer.push_with(packet.timestamp_ns, frame.len() as u32, |bytes| {
                bytes.extend_from_slice(captured);
            });
        }
        self.next += buffer.len();
        buffer.len()
    }

    /// Bytes of the frames so far: on the wire, and captured.
    #[must_use]
    pub const fn bytes(&self) -> (u64, u64) {
        (self.wire_bytes, self.captured_bytes)
    }

    /// What the nodes wrote for each flow, which is what records of the capture must show.
    #[must_use]
    pub fn flows(&self) -> Vec<MeasuredFlow> {
        let mut flows: BTreeMap<FiveTuple, Vec<&Measured>> = BTreeMap::new();
        for (packet, _) in &self.packets {
            flows.entry(packet.tuple).or_default().push(packet);
        }
        flows
            .values()
            .map(|packets| MeasuredFlow::of(packets))
            .collect()
    }
}

/// One of the carriers for IPv4, chosen by the flow.
fn in_turn(tuple: &FiveTuple) -> Carrier {
    const OF_UDP: [Carrier; 3] = [Carrier::IntByDscp, Carrier::IntByPort, Carrier::Report];
    match tuple.protocol() {
        UDP => OF_UDP[usize::from(tuple.source_port()) % OF_UDP.len()],
        _ => Carrier::IntByDscp,
    }
}

/// What nodes wrote into the packets of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFlow {
    /// The flow.
    pub tuple: FiveTuple,
    /// Number of packets.
    pub packets: u64,
    /// The maximum queue depth that its packets met.
    pub max_queue_depth: u32,
    /// The mean end-to-end latency without the links, in ns.
    pub mean_latency_ns: f64,
    /// The interface through which the last packet left its last node.
    pub egress_interface: u16,
    /// The nodes of the first packet.
    pub first_path: Vec<u32>,
    /// The nodes of the last packet.
    pub last_path: Vec<u32>,
    /// The maximum number of hops of a packet.
    pub max_hop_count: u64,
    /// The minimum time to live.
    pub min_ttl: u8,
}

impl MeasuredFlow {
    /// Summarises packets that all belong to one flow; there must be at least one.
    fn of(packets: &[&Measured]) -> Self {
        let (first, last) = (packets[0], packets[packets.len() - 1]);
        let hops = || packets.iter().flat_map(|packet| &packet.hops);
        let nodes = |packet: &Measured| packet.hops.iter().map(|hop| hop.node).collect();
        let latency_ns: u64 = hops().map(|hop| u64::from(hop.latency_ns)).sum();
        let count = |packet: &&Measured| packet.hops.len() as u64;
        Self {
            tuple: first.tuple,
            packets: packets.len() as u64,
            max_queue_depth: hops().map(|hop| hop.queue_depth).max().unwrap_or(0),
            mean_latency_ns: latency_ns as f64 / packets.len() as f64,
            egress_interface: last.hops.last().map_or(0, |hop| hop.egress_interface),
            first_path: nodes(first),
            last_path: nodes(last),
            max_hop_count: packets.iter().map(count).max().unwrap_or(0),
            min_ttl: packets.iter().map(|packet| packet.ttl).min().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn network(config: NetworkConfig) -> Network {
        Network::new(&config).unwrap()
    }

    #[test]
    fn a_network_has_an_incast_and_a_loop_for_any_seed() {
        for seed in [1, 2, 3] {
            let flows = network(NetworkConfig {
                seed,
                ..NetworkConfig::default()
            })
            .flows();
            assert_eq!(flows.len(), 44);
            let deep = |flow: &&MeasuredFlow| flow.max_queue_depth > 100;
            let deep: Vec<_> = flows.iter().filter(deep).collect();
            assert_eq!(deep.len(), 16);
            assert!(deep.iter().all(|flow| flow.last_path == [1, 2, 3]));
            let heavy = deep.iter().max_by_key(|flow| flow.packets).unwrap();
            assert_eq!((heavy.tuple.source_port(), heavy.packets), (5_007, 100));
            let long = |flow: &&MeasuredFlow| flow.max_hop_count > 4;
            let long: Vec<_> = flows.iter().filter(long).collect();
            assert_eq!((long.len(), long[0].tuple.source_port()), (1, 7_013));
            assert_eq!(long[0].last_path, [1, 2, 4, 2, 4, 2, 3]);
        }
    }

    #[test]
    fn each_way_has_flows_and_equal_seeds_give_equal_frames() {
        let frames = |seed| {
            let mut network = network(NetworkConfig {
                seed,
                ..NetworkConfig::default()
            });
            let (mut buffer, mut bytes) = (FrameBuffer::default(), Vec::new());
            while network.fill(&mut buffer, 100) > 0 {
                bytes.extend_from_slice(buffer.bytes());
            }
            assert_eq!(network.bytes(), (bytes.len() as u64, bytes.len() as u64));
            bytes
        };
        assert_eq!(frames(1), frames(1));
        assert_ne!(frames(1), frames(2));
        let of_default = network(NetworkConfig::default());
        let kinds = of_default.packets().iter();
        let kinds: BTreeSet<String> = kinds
            .map(|(packet, carrier)| format!("{carrier:?} {}", packet.tuple.protocol()))
            .collect();
        let expected = [
            "IntByDscp 17",
            "IntByDscp 6",
            "IntByPort 17",
            "Ioam 17",
            "Report 17",
        ];
        assert!(kinds.iter().eq(expected), "{kinds:?}");
    }

    #[test]
    fn a_part_of_the_network_is_captured() {
        let some = network(NetworkConfig {
            packets: Some(7),
            snap_length_bytes: Some(64),
            ..NetworkConfig::default()
        });
        assert_eq!(some.packets().len(), 7);
        let mut some = some;
        let mut buffer = FrameBuffer::default();
        assert_eq!(some.fill(&mut buffer, 100), 7);
        assert_eq!(some.bytes().1, 7 * 64);
        let short = network(NetworkConfig {
            duration_ns: Some(1_000_000),
            ..NetworkConfig::default()
        });
        assert_eq!(short.packets().len(), 28);
        let nothing = NetworkConfig {
            packets: Some(0),
            ..NetworkConfig::default()
        };
        assert_eq!(Network::new(&nothing).unwrap_err(), WorkloadError::Nothing);
    }
}
