// SPDX-License-Identifier: Apache-2.0
//! A small leaf-spine fabric: what each of six switches sees of the same packets.
//!
//! Each hop decrements the TTL and takes 20 µs, and some packets are lost between hops. A tenth of
//! the flows is sprayed: each of their packets takes either spine, so that each spine sees only a
//! part.

use std::collections::HashMap;

use crate::support::Folder;

/// The vantage points: four leaves and two spines.
pub(crate) const SWITCHES: [&str; 6] = ["leaf1", "leaf2", "leaf3", "leaf4", "spine1", "spine2"];

const FLOWS: u64 = 1_200;
const SECOND_NS: u64 = 1_000_000_000;
const MINUTE_NS: u64 = 60 * SECOND_NS;
/// Time from the first packet to the last. Flows exceed the active timeout, and are cut at minutes.
const LENGTH_NS: u64 = 4 * MINUTE_NS;
const HOP_NS: u64 = 20_000;
/// Each link loses one in this many packets.
const LOSS: u64 = 1_000;
const SNAP_BYTES: usize = 64;

/// The contents of the captures.
pub(crate) struct Fabric {
    /// Packets at their first hops.
    pub(crate) packets: u64,
    /// Packets at all vantage points.
    pub(crate) sightings: u64,
    /// Packets lost on the way.
    pub(crate) lost: u64,
    /// The lost packets that show as a difference between the first and the last hop of a flow. If
    /// a flow loses its only packet, its path ends early instead.
    pub(crate) countable: u64,
}

/// The pseudorandom generator SplitMix64.
fn mixed(seed: u64) -> u64 {
    let mut value = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// A capture under construction, with timestamps in nanoseconds.
#[derive(Default)]
struct Capture(Vec<(u64, Vec<u8>, u32)>);

impl Capture {
    fn write(mut self, folder: &Folder, name: &str) {
        self.0.sort_by_key(|(time_ns, ..)| *time_ns);
        let mut bytes = Vec::new();
        for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1] {
            bytes.extend(word.to_le_bytes());
        }
        for (time_ns, frame, wire_bytes) in self.0 {
            let seconds = (time_ns / SECOND_NS) as u32;
            let nanoseconds = (time_ns % SECOND_NS) as u32;
            for word in [seconds, nanoseconds, frame.len() as u32, wire_bytes] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(frame);
        }
        folder.write(name, bytes);
    }
}

/// The first bytes of a packet of this flow, and its length on the wire.
fn frame(flow: u64, length: u16, ttl: u8) -> (Vec<u8>, u32) {
    let [source, destination] = ends(flow);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    let protocol = if flow.is_multiple_of(3) { 17 } else { 6 };
    if flow.is_multiple_of(10) {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((length - 40).to_be_bytes());
        frame.extend([protocol, ttl]);
        for host in [source, destination] {
            frame.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
            frame.extend((host as u32).to_be_bytes());
        }
    } else {
        frame.extend([0x08, 0, 0x45, 0]);
        frame.extend(length.to_be_bytes());
        frame.extend([0, 0, 0, 0, ttl, protocol, 0, 0]);
        for host in [source, destination] {
            frame.extend((0x0a00_0000 | host as u32).to_be_bytes());
        }
    }
    frame.extend((1_024 + (flow % 50_000) as u16).to_be_bytes());
    frame.extend([1, 0xbb]);
    // TCP without flags other than ACK, so that only timeouts and windows cut records.
    frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    frame.truncate(SNAP_BYTES.max(14 + 40 + 20));
    (frame, u32::from(length) + 14)
}

/// The two hosts of a flow.
fn ends(flow: u64) -> [u64; 2] {
    [mixed(flow) % 400, 400 + mixed(flow ^ 0xface) % 40]
}

/// Times and lengths of a flow's packets, from the start of the capture.
fn packets(flow: u64) -> impl Iterator<Item = (u64, u16)> {
    // Many short flows, and some that last for minutes.
    let count = 2 + 2_000 / (1 + mixed(flow ^ 1) % 200);
    let start_ns = mixed(flow ^ 2) % (LENGTH_NS / 2);
    let gap_ns = (LENGTH_NS / 2 - SECOND_NS) / count;
    (0..count).map(move |index| {
        let random = mixed(flow << 20 | index);
        let mut time_ns = start_ns + index * gap_ns + random % gap_ns;
        if random.is_multiple_of(97) {
            // The minute ends while this packet is between two hops.
            time_ns = time_ns / MINUTE_NS * MINUTE_NS + MINUTE_NS - HOP_NS / 2;
        }
        (time_ns, 60 + (random >> 32) as u16 % 1_400)
    })
}

/// The switches that a packet passes.
fn path(flow: u64, packet: u64) -> Vec<usize> {
    let [source, destination] = ends(flow).map(|host| host as usize % 4);
    if source == destination {
        return vec![source];
    }
    let spine = match flow % 10 {
        0 => mixed(flow << 20 | packet) >> 7,
        _ => mixed(flow),
    };
    vec![source, 4 + (spine & 1) as usize, destination]
}

/// Writes a capture for each switch, and `all.pcap` with what the first hops see.
pub(crate) fn write(folder: &Folder, begin_ns: u64) -> Fabric {
    let mut captures: [Capture; 6] = Default::default();
    let mut all = Capture::default();
    let (mut sightings, mut lost, mut countable) = (0, 0, 0);
    for flow in 0..FLOWS {
        let mut of_hops: HashMap<usize, u64> = HashMap::new();
        for (index, (time_ns, length)) in packets(flow).enumerate() {
            let time_ns = begin_ns + time_ns;
            let (bytes, wire_bytes) = frame(flow, length, 64);
            all.0.push((time_ns, bytes, wire_bytes));
            for (hop, switch) in path(flow, index as u64).into_iter().enumerate() {
                let luck = mixed(flow << 32 | (index as u64) << 2 | hop as u64);
                if hop > 0 && luck.is_multiple_of(LOSS) {
                    lost += 1;
                    break;
                }
                let (bytes, wire_bytes) = frame(flow, length, 64 - hop as u8);
                let seen_ns = time_ns + hop as u64 * HOP_NS;
                captures[switch].0.push((seen_ns, bytes, wire_bytes));
                *of_hops.entry(hop).or_default() += 1;
                sightings += 1;
            }
        }
        let last = of_hops.keys().max().map_or(0, |hop| of_hops[hop]);
        countable += of_hops[&0] - last;
    }
    let packets = all.0.len() as u64;
    all.write(folder, "all.pcap");
    for (capture, name) in captures.into_iter().zip(SWITCHES) {
        capture.write(folder, &format!("{name}.pcap"));
    }
    Fabric {
        packets,
        sightings,
        lost,
        countable,
    }
}
