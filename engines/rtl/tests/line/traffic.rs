// SPDX-License-Identifier: Apache-2.0
//! Packets that are difficult for a line: trains of one flow, flows that alternate in one bucket,
//! late packets, connections that start and end, and lengths for which no record has room.

use turboflow_engine_rtl::{Arrival, Key};
use turboflow_record::{TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// Which flow the next packet belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mix {
    /// Any flow.
    Uniform,
    /// Flow `k` with a weight of `1 / k`.
    Zipf,
    /// Half of the packets belong to the flow of the packet before.
    Trains,
    /// A few flows in turn, and occasionally others.
    Alternating,
}

/// The kind of packets to generate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) mix: Mix,
    pub(crate) flows: u64,
    /// The bits of keys: 104 or 296.
    pub(crate) key_bits: u32,
    /// The length of a cell, in nanoseconds. Packets are 50 ns apart on average.
    pub(crate) cell_ns: u64,
    /// Whether some packets come before their cell, are earlier than the previous packet, or are
    /// too long.
    pub(crate) strange: bool,
}

pub(crate) struct Traffic {
    shape: Shape,
    random: Random,
    now_ns: u64,
    flow: u64,
    /// For each flow, the sum of the weights up to it.
    weights: Vec<f64>,
    /// The keys of the flows, if they were chosen.
    chosen: Vec<Key>,
}

impl Traffic {
    pub(crate) fn new(shape: Shape, seed: u64) -> Self {
        let weights = (1..=shape.flows).scan(0.0, |sum, flow| {
            *sum += 1.0 / flow as f64;
            Some(*sum)
        });
        Self {
            shape,
            random: Random(seed),
            now_ns: 1_700_000_000_000_000_000 / shape.cell_ns * shape.cell_ns,
            flow: 0,
            weights: match shape.mix {
                Mix::Zipf | Mix::Trains => weights.collect(),
                _ => Vec::new(),
            },
            chosen: Vec::new(),
        }
    }

    /// Gives all flows keys of this kind.
    #[cfg(feature = "rtl")]
    pub(crate) fn flows_with(&mut self, is_wanted: impl Fn(&Key) -> bool) {
        let keys = (0..).map(|flow| key(flow, self.shape.key_bits));
        let wanted = keys.filter(is_wanted).take(self.shape.flows as usize);
        self.chosen = wanted.collect();
    }

    /// The start of the last packet's cell.
    pub(crate) fn cell_ns(&self) -> u64 {
        self.now_ns / self.shape.cell_ns * self.shape.cell_ns
    }

    fn next_flow(&mut self) -> u64 {
        let of_weights = |traffic: &mut Self| {
            let total = traffic.weights.last().copied().unwrap_or(1.0);
            let at = traffic.random.next() as f64 / u64::MAX as f64 * total;
            traffic.weights.partition_point(|sum| *sum < at) as u64
        };
        match self.shape.mix {
            Mix::Uniform => self.random.below(self.shape.flows),
            Mix::Zipf => of_weights(self),
            Mix::Trains if self.random.one_in(2) => self.flow,
            Mix::Trains => of_weights(self),
            Mix::Alternating if self.random.one_in(8) => self.random.below(self.shape.flows),
            Mix::Alternating => (self.flow + 1) % 3,
        }
    }

    /// The next packet, in the order of arrival.
    pub(crate) fn packet(&mut self) -> Arrival {
        self.flow = self.next_flow();
        let random = &mut self.random;
        self.now_ns += random.below(100);
        let mut time_ns = self.now_ns;
        let mut length_bytes = 40 + random.below(1_460) as u32;
        if self.shape.strange {
            match random.below(400) {
                0 => time_ns -= random.below(2 * self.shape.cell_ns),
                1..=20 => time_ns -= random.below(300),
                21 => length_bytes += 65_536,
                _ => {}
            }
        }
        let tcp_flags = match random.below(60) {
            0 | 1 => TCP_SYN,
            2 => TCP_FIN | TCP_ACK,
            3 => TCP_RST,
            4 => TCP_SYN | TCP_ACK,
            5 => 0x800 | TCP_ACK,
            _ => TCP_ACK,
        };
        let chosen = self.chosen.get(self.flow as usize);
        Arrival {
            key: chosen.map_or_else(|| key(self.flow, self.shape.key_bits), |key| *key),
            time_ns,
            length_bytes,
            tcp_flags,
            ttl: 64 - random.below(3) as u8,
            tos: random.below(3) as u8 * 8,
        }
    }
}

/// The key of a flow. Neighbours differ in few bits.
pub(crate) fn key(flow: u64, bits: u32) -> Key {
    let mut key = [0; 5];
    key[0] = 0x0a00_0001_0a00_0000 ^ flow.rotate_left(29);
    match bits {
        104 => key[1] = 0x06_0050_0000 ^ (flow & 0xffff),
        _ => {
            key[1] = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            key[3] = 2;
            key[4] = 0x11_0035_0000 ^ (flow & 0xffff);
        }
    }
    key
}
