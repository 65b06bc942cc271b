// SPDX-License-Identifier: Apache-2.0
//! The faults of the network: an incast and a loop.
//!
//! The faults are the same for every seed. Times, payloads and the latency of nodes vary with it.

use turboflow_record::FiveTuple;

use super::packet::{Hop, Measured};
use crate::random::Random;
use crate::traffic::{TCP, UDP};

/// The time of the first packet, in ns since 1970.
pub(super) const START_NS: u64 = 1_700_000_000_000_000_000;

/// Sixteen hosts answer 10.0.9.9 at once, through the third port of node 3, while eight other flows
/// pass nodes 1, 2 and 4. The flow from port 5,007 sends ten times as many packets as the others.
pub(super) fn incast(random: &mut Random) -> Vec<Measured> {
    let mut packets = Vec::new();
    for round in 0..50_u64 {
        for quiet in 0..8_u8 {
            let ends = ([10, 0, 1, quiet], [10, 0, 2, quiet]);
            let tuple = v4(ends, 4_000 + u16::from(quiet), UDP);
            let at = round * 1_000_000 + u64::from(quiet) * 1_000;
            let hops = [(1, 2, 800, 1), (2, 2, 900, 2), (4, 1, 700, 0)];
            packets.push(measured(random, at, tuple, &hops));
        }
    }
    for sender in 0..16_u16 {
        let ends = ([10, 0, 8, sender as u8], [10, 0, 9, 9]);
        let tuple = v4(ends, 5_000 + sender, TCP);
        let count = if sender == 7 { 100 } else { 10 };
        for number in 0..count {
            let depth = 40 + 20 * number.min(9);
            let at = 20_000_000 + u64::from(number) * 50_000 + u64::from(sender) * 1_000;
            let hops = [(1, 3, 800, 2), (2, 3, 900, 1), (3, 3, 1_200 * depth, depth)];
            packets.push(measured(random, at, tuple, &hops));
        }
    }
    packets
}

/// Twenty flows pass nodes 1, 2 and 3. From the middle on, packets of the flow from port 7,013 go
/// back and forth between nodes 2 and 4 twice before they continue.
pub(super) fn loop_of_two_nodes(random: &mut Random) -> Vec<Measured> {
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
            let ends = ([10, 1, 0, flow as u8], [10, 2, 0, 1]);
            let tuple = v4(ends, 7_000 + flow, UDP);
            let at = number * 1_000_000 + u64::from(flow) * 10_000;
            let is_looping = flow == 13 && number >= 20;
            let hops = if is_looping { &looped[..] } else { &straight };
            packets.push(measured(random, at, tuple, hops));
        }
    }
    packets
}

fn v4(ends: ([u8; 4], [u8; 4]), source_port: u16, protocol: u8) -> FiveTuple {
    FiveTuple::new(ends.0.into(), ends.1.into(), source_port, 80, protocol)
}

/// A packet and the nodes that it passed: number, egress interface, minimum latency in ns, queue
/// depth.
fn measured(
    random: &mut Random,
    after_ns: u64,
    tuple: FiveTuple,
    hops: &[(u32, u16, u32, u32)],
) -> Measured {
    let after_ns = after_ns + random.below(1_000);
    let payload_bytes = 100 + random.below(900) as u16;
    let mut hop = |&(node, egress_interface, latency_ns, queue_depth)| Hop {
        node,
        egress_interface,
        latency_ns: latency_ns + random.below(100) as u32,
        queue_depth,
    };
    let hops: Vec<Hop> = hops.iter().map(&mut hop).collect();
    Measured {
        timestamp_ns: START_NS + after_ns,
        tuple,
        ttl: 64 - hops.len() as u8,
        payload_bytes,
        hops,
    }
}
