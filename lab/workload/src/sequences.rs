// SPDX-License-Identifier: Apache-2.0
//! Random packet sequences for property tests, with few keys and with times at the edge cases of
//! the rules: timeouts plus or minus a nanosecond, cell boundaries, equal and reordered timestamps,
//! and a clock that is set back.
//!
//! A sequence depends only on its seed and shape. With fewer packets and all else equal it is a
//! prefix of the longer sequence, so that a property test can shrink the number of packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use turboflow_record::{
    FiveTuple, Input, InputSet, InputValues, Packet, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN,
};

use crate::random::{Random, mix};
use crate::reference::MeterOptions;

const TCP: u8 = 6;
const TCP_PSH: u16 = 0x08;

/// The shape of a random sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct SequenceShape {
    /// Number of packets.
    pub packets: usize,
    /// Maximum number of flow keys (each may be seen from both directions).
    pub keys: usize,
    /// The options whose timeouts and cells determine the edge cases.
    pub options: MeterOptions,
    /// Percentage of packets at which the clock is set back by more than the idle timeout.
    pub clock_steps_percent: u64,
    /// Percentage of packets that are older than a previous one, by at most the idle timeout.
    pub disorder_percent: u64,
    /// Time of the first packet, in ns since 1970.
    pub start_ns: u64,
}

impl Default for SequenceShape {
    fn default() -> Self {
        Self {
            packets: 300,
            keys: 5,
            options: MeterOptions::default(),
            clock_steps_percent: 1,
            disorder_percent: 10,
            start_ns: 1_700_000_000_123_456_789,
        }
    }
}

impl SequenceShape {
    /// A shape drawn from `seed`: small and large numbers of keys, every combination of timeouts
    /// (disabled, short, equal to each other, long; linger also 0), with and without biflows, and
    /// times near 1970.
    #[must_use]
    pub fn random(seed: u64, packets: usize) -> Self {
        let mut random = Random::new(seed ^ 0x5ba9e);
        let timeouts = [
            None,
            Some(1),
            Some(700),
            Some(1_000),
            Some(5_000),
            Some(30_000),
        ];
        let options = MeterOptions {
            idle_timeout_ns: random.pick(&timeouts),
            active_timeout_ns: random.pick(&timeouts),
            linger_ns: random.pick(&[None, Some(0), Some(1), Some(300), Some(2_000), Some(9_000)]),
            max_age_ns: random.pick(&[1, 100, 1_000, 1_000, 10_000]),
            biflow: random.percent(40),
            align_ns: None,
        };
        let options = MeterOptions {
            align_ns: random.pick(&[
                None,
                None,
                None,
                Some(1),
                Some(900),
                Some(6_000),
                Some(77_777),
            ]),
            ..options
        };
        Self {
            packets,
            keys: random.pick(&[1, 2, 3, 5, 20]),
            options,
            clock_steps_percent: random.pick(&[0, 0, 1, 3]),
            disorder_percent: random.pick(&[0, 5, 10, 40]),
            start_ns: random.pick(&[0, 12_345, 1_700_000_000_123_456_789]),
        }
    }
}

/// The packets of a shape, in order of arrival.
#[must_use]
pub fn random_packets(seed: u64, shape: &SequenceShape) -> Vec<(Packet, InputValues)> {
    let mut times = Times::new(shape);
    let one = |number: usize| {
        // Every packet has its own random numbers, so dropping the last ones changes nothing else.
        let mut random = Random::new(mix(seed) ^ number as u64);
        let key = random.below(shape.keys.max(1) as u64) as usize;
        let timestamp_ns = times.next(key, &mut random);
        let tuple = tuple(key as u64);
        let tuple = if random.percent(35) {
            tuple.reversed()
        } else {
            tuple
        };
        let packet = packet(tuple, timestamp_ns, &mut random);
        let values = input_values(&packet, &mut random);
        (packet, values)
    };
    (0..shape.packets).map(one).collect()
}

/// Draws the next timestamp.
struct Times<'a> {
    shape: &'a SequenceShape,
    now_ns: u64,
    /// Previous time of each key.
    last_ns: Vec<u64>,
    /// The time of an earlier packet of each key.
    first_ns: Vec<u64>,
}

impl<'a> Times<'a> {
    fn new(shape: &'a SequenceShape) -> Self {
        let starts = vec![shape.start_ns; shape.keys.max(1)];
        Self {
            shape,
            now_ns: shape.start_ns,
            last_ns: starts.clone(),
            first_ns: starts,
        }
    }

    fn next(&mut self, key: usize, random: &mut Random) -> u64 {
        let time_ns = if random.percent(self.shape.clock_steps_percent) {
            self.now_ns = self.behind_idle(random);
            self.now_ns
        } else if random.percent(self.shape.disorder_percent) {
            self.disordered(random)
        } else {
            self.forward(key, random)
        };
        self.now_ns = self.now_ns.max(time_ns);
        self.last_ns[key] = time_ns;
        if random.percent(15) {
            self.first_ns[key] = time_ns;
        }
        time_ns
    }

    /// A time just beyond or far beyond the limit at which the clock counts as set back.
    fn behind_idle(&self, random: &mut Random) -> u64 {
        let idle_ns = self.shape.options.idle_timeout_ns.unwrap_or(10_000);
        let beyond_ns = random.pick(&[1, 2, idle_ns, 50 * idle_ns]);
        self.now_ns.saturating_sub(idle_ns + beyond_ns)
    }

    /// A late time, by at most the idle timeout.
    fn disordered(&self, random: &mut Random) -> u64 {
        let cell_ns = self.shape.options.cell_ns();
        let idle_ns = self.shape.options.idle_timeout_ns.unwrap_or(10 * cell_ns);
        let late_ns = match random.below(4) {
            0 => random.below(3),
            1 => random.below(cell_ns + 1),
            2 => random.below(idle_ns + 1),
            _ => random.pick(&[cell_ns, idle_ns]),
        };
        self.now_ns.saturating_sub(late_ns.min(idle_ns))
    }

    /// The current time or a later one: bursts, steps inside a cell, and the edge cases of every
    /// rule.
    fn forward(&self, key: usize, random: &mut Random) -> u64 {
        let options = &self.shape.options;
        let cell_ns = options.cell_ns();
        let edge = random.below(3);
        let near = |time_ns: u64| (time_ns + edge).saturating_sub(1).max(self.now_ns);
        let set = |timeout_ns: Option<u64>| timeout_ns.unwrap_or(cell_ns);
        match random.below(20) {
            0..=4 => self.now_ns,
            5..=10 => self.now_ns + random.below(cell_ns / 8 + 2),
            11 | 12 => self.now_ns + random.below(2 * cell_ns),
            13 => near((self.now_ns / cell_ns + 1) * cell_ns),
            14 => near(self.last_ns[key] + set(options.idle_timeout_ns)),
            15 => near(self.last_ns[key] + set(options.linger_ns)),
            16 => near(self.first_ns[key] + set(options.active_timeout_ns)),
            17 => self.now_ns + random.below(set(options.active_timeout_ns) / 3 + 2),
            18 => self.now_ns + random.below(set(options.idle_timeout_ns) + 2),
            _ if random.percent(30) => self.now_ns + random.below(100 * cell_ns),
            _ => self.now_ns + 1,
        }
    }
}

/// The 5-tuple number `key`: both families, mostly TCP, hosts shared between keys, and one host
/// that sends to itself.
fn tuple(key: u64) -> FiveTuple {
    let host = |number: u64| -> IpAddr {
        if key % 3 == 1 {
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number as u16).into()
        } else {
            Ipv4Addr::new(10, 0, (number >> 8) as u8, number as u8).into()
        }
    };
    let protocol = [TCP, TCP, TCP, 17, TCP, 1][(key % 6) as usize];
    if key % 8 == 7 {
        return FiveTuple::new(host(key), host(key), 5_000, 5_000, protocol);
    }
    let (source, destination) = (host(200 + key / 2), host(100 + key % 5));
    if protocol == 1 {
        return FiveTuple::new(source, destination, 0, 0, protocol);
    }
    FiveTuple::new(
        source,
        destination,
        40_000 - key as u16 % 7,
        80 + key as u16 % 2,
        protocol,
    )
}

fn packet(tuple: FiveTuple, timestamp_ns: u64, random: &mut Random) -> Packet {
    let ip_length_bytes = match random.below(10) {
        0 => 20,
        1 => 65_535,
        2 => random.below(1 << 20) as u32,
        _ => 40 + random.below(1_461) as u32,
    };
    Packet {
        tuple,
        timestamp_ns,
        ip_length_bytes,
        frame_length_bytes: (ip_length_bytes + random.pick(&[14, 18, 22])).max(60),
        tcp_flags: if tuple.protocol() == TCP {
            tcp_flags(random)
        } else {
            0
        },
        ttl: random.pick(&[0, 1, 63, 64, 64, 64, 128, 255]),
        tos: random.pick(&[0, 0, 0, 0x10, 0xb8, 0xff]),
        is_echo_reply: false,
    }
}

/// Connections begin and end often, and unusual combinations of flags occur.
fn tcp_flags(random: &mut Random) -> u16 {
    match random.below(40) {
        0..=5 => TCP_SYN,
        6 | 7 => TCP_SYN | TCP_ACK,
        8..=10 => TCP_FIN | TCP_ACK,
        11 => TCP_FIN,
        12 | 13 => TCP_RST,
        14 => TCP_RST | TCP_ACK,
        15 => TCP_SYN | TCP_FIN,
        16 => TCP_SYN | TCP_RST,
        17 => 0,
        18 => random.below(1 << 12) as u16,
        19..=25 => TCP_PSH | TCP_ACK,
        _ => TCP_ACK,
    }
}

/// Values for every input that packets carry. Optional ones are absent in about a third of the
/// packets.
fn input_values(packet: &Packet, random: &mut Random) -> InputValues {
    let mut values = InputValues::default();
    values.set(Input::IpLength, packet.ip_length_bytes.into());
    values.set(Input::FrameLength, packet.frame_length_bytes.into());
    values.set(Input::Timestamp, packet.timestamp_ns);
    values.set(Input::Ttl, packet.ttl.into());
    values.set(Input::Tos, packet.tos.into());
    if packet.tuple.protocol() == TCP {
        values.set(Input::TcpFlags, packet.tcp_flags.into());
    }
    for (input, bits) in optional_inputs() {
        if random.percent(65) {
            // Few distinct values, so that keys made of them repeat. Occasionally any value is
            // possible.
            let few = random.below(3);
            let any = random.word() >> (64 - bits);
            let value = if random.percent(80) { few } else { any };
            values.set(input, value & (u64::MAX >> (64 - bits)));
        }
    }
    if random.percent(25) {
        values.outer_addresses = outer_addresses(random);
    }
    values
}

/// Inputs that a packet may lack, with their widths in bits. TCP flags are not among them.
fn optional_inputs() -> impl Iterator<Item = (Input, u8)> {
    let is_drawn = |input: &Input| {
        let is_derived = InputSet::DERIVED.contains(*input) || input.is_inspected();
        !input.is_always_present() && !is_derived && *input != Input::TcpFlags
    };
    let inputs = Input::ALL.into_iter().filter(is_drawn);
    inputs.map(|input| match input {
        // With 64 bits, sums of squares would exceed 128 bits.
        Input::HopLatency => (input, 50),
        _ => (input, input.bits()),
    })
}

fn outer_addresses(random: &mut Random) -> [[u8; 16]; 2] {
    let v6 = random.percent(50);
    std::array::from_fn(|_| {
        let mut address = [0; 16];
        if v6 {
            address[..2].copy_from_slice(&[0x20, 0x01]);
            address[15] = random.below(3) as u8;
        } else {
            address[..4].copy_from_slice(&[192, 0, 2, random.below(3) as u8]);
        }
        address
    })
}
