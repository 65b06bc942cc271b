// SPDX-License-Identifier: Apache-2.0
//! Hand-made sequences, each of which tests one rule. Callers add random ones.

use turboflow_record::{FiveTuple, Input, InputValues, Packet, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};

use super::Arrival;

/// Frames in order of arrival.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// What it tests.
    pub name: String,
    /// The frames.
    pub arrivals: Vec<Arrival>,
}

impl Sequence {
    /// A sequence of packets, for engines that take packets instead of frames.
    #[must_use]
    pub fn of_packets(
        name: &str,
        packets: impl IntoIterator<Item = (Packet, InputValues)>,
    ) -> Self {
        let packets = packets.into_iter();
        Self {
            name: name.to_owned(),
            arrivals: packets
                .map(|(packet, values)| Arrival::of_packet(packet, values))
                .collect(),
        }
    }
}

/// Flow number, time from the start, and TCP flags of a packet.
type ShortPacket = (u16, u64, u16);

/// What a sequence tests, and its packets.
type NamedPackets = (&'static str, Vec<ShortPacket>);

/// One sequence per rule, for cells of `cell_ns`. Sequences whose clock goes backwards by more than
/// `idle_ns` are left out if that is a thousand cells or more.
#[must_use]
pub fn hand_made(cell_ns: u64, idle_ns: u64) -> Vec<Sequence> {
    let mut all = collisions();
    all.extend(cell_boundaries(cell_ns));
    all.push(("connections", connections()));
    if idle_ns < 1_000 * cell_ns {
        all.extend(backward_clocks(cell_ns, idle_ns));
    }
    all.iter()
        .map(|(name, packets)| sequence(name, cell_ns, packets))
        .collect()
}

/// Packets of one flow without SYN, FIN or RST.
fn one_flow(times: &[u64]) -> Vec<ShortPacket> {
    times.iter().map(|at| (1, *at, TCP_ACK)).collect()
}

/// Flows that take free slots, hit their own, and collide.
fn collisions() -> Vec<NamedPackets> {
    let trains = [1, 1, 2, 1, 1, 2, 2].into_iter().zip(0..);
    let families = (0..24).map(|at| ((at % 5) as u16, at));
    let many = (0..120).map(|at| ((at * 7 % 60) as u16, at / 40));
    let with_ack = |(flow, at)| (flow, at, TCP_ACK);
    vec![
        ("one packet", one_flow(&[0])),
        ("trains of two flows", trains.map(with_ack).collect()),
        ("both families", families.map(with_ack).collect()),
        ("more flows than slots", many.map(with_ack).collect()),
    ]
}

/// Packets around cell boundaries, after long silences, and late ones.
fn cell_boundaries(cell_ns: u64) -> Vec<NamedPackets> {
    let cell = |cells: u64| cells * cell_ns;
    let last = cell_ns - 1;
    let edges = [
        0,
        last,
        cell(1),
        cell(1),
        cell(2) - 1,
        cell(2),
        cell(9),
        cell(9) + last,
    ];
    let silences = (0..12).flat_map(|at| [(1, cell(3 * at), TCP_ACK), (2, cell(5 * at), TCP_ACK)]);
    let late = [10, 3, 12, 11, 13].map(|at| cell(4) + at.min(last));
    let of_ended = [
        cell(4),
        cell(3),
        cell(4),
        cell(2) + last,
        cell(3) + last,
        cell(4) + last,
    ];
    vec![
        ("edges of cells", one_flow(&edges)),
        ("silences", silences.collect()),
        ("late packets", one_flow(&late)),
        ("packets of cells that have ended", one_flow(&of_ended)),
    ]
}

/// Clocks that go backwards by just enough to be noticed, or by just too little.
fn backward_clocks(cell_ns: u64, idle_ns: u64) -> Vec<NamedPackets> {
    let behind = idle_ns + 1;
    let now = behind + 5 * cell_ns;
    let times = [
        now,
        now + 1,
        now - behind + 1,
        now - behind,
        now - behind + 1,
        now,
        now + 2,
    ];
    let flows = times.map(|at| ((at % 3) as u16, at, TCP_ACK)).to_vec();
    vec![
        ("a clock that is set back", one_flow(&times)),
        ("flows of a clock that is set back", flows),
    ]
}

/// Connections that start and end in every way, in one cell and over several.
fn connections() -> Vec<ShortPacket> {
    let flags = [
        TCP_ACK,
        TCP_SYN,
        TCP_SYN,
        TCP_ACK | TCP_FIN,
        TCP_ACK,
        TCP_SYN,
        TCP_SYN | TCP_ACK,
        TCP_RST,
        TCP_ACK,
        TCP_SYN | TCP_FIN,
        TCP_SYN,
        TCP_FIN,
        TCP_FIN | TCP_ACK,
        TCP_SYN,
        TCP_RST | TCP_ACK,
        TCP_SYN | TCP_RST,
        TCP_ACK,
    ];
    (0..)
        .zip(flags)
        .map(|(at, flags)| (1, at / 4, flags))
        .collect()
}

fn sequence(name: &str, cell_ns: u64, packets: &[ShortPacket]) -> Sequence {
    // The start of a cell, far from time 0.
    let start_ns = 1_700_000_000_000_000_000 / cell_ns * cell_ns;
    let packets = (0..).zip(packets).map(|(number, (flow, at, flags))| {
        let packet = packet(number, *flow, start_ns + at, *flags);
        (packet, values(number, &packet))
    });
    Sequence::of_packets(name, packets)
}

/// Every third flow is IPv6. Lengths and time to live differ from packet to packet.
fn packet(number: u32, flow: u16, timestamp_ns: u64, tcp_flags: u16) -> Packet {
    let [high, low] = flow.to_be_bytes();
    let ports = [high, low, 0, 80];
    let tuple = match flow % 3 {
        2 => FiveTuple::v6(
            [high, low, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            [2; 16],
            ports,
            6,
        ),
        _ => FiveTuple::v4([10, 0, high, low, 10, 1, 0, 1], ports, 6),
    };
    let ip_length_bytes = 60 + number * 37 % 1_400;
    Packet {
        tuple,
        timestamp_ns,
        ip_length_bytes,
        frame_length_bytes: ip_length_bytes + 14,
        tcp_flags,
        ttl: 40 + (number * 5 % 90) as u8,
        tos: (number % 4) as u8 * 8,
        is_echo_reply: false,
    }
}

fn values(number: u32, packet: &Packet) -> InputValues {
    let mut values = InputValues::default();
    values.set(Input::IpLength, packet.ip_length_bytes.into());
    values.set(Input::FrameLength, packet.frame_length_bytes.into());
    values.set(Input::Timestamp, packet.timestamp_ns);
    values.set(Input::Ttl, packet.ttl.into());
    values.set(Input::Tos, packet.tos.into());
    values.set(Input::TcpFlags, packet.tcp_flags.into());
    if number % 3 != 1 {
        values.set(Input::TcpWindow, u64::from(number * 977 % 60_000));
    }
    values
}
