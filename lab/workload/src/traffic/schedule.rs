// SPDX-License-Identifier: Apache-2.0
//! Packet times, births of flows and frame sizes, in fixed point without drift.

use super::config::{FRAME_BYTES_MIN, FrameSizes, TrafficConfig};
use crate::random::Random;

const TWO_POW_64: f64 = u64::MAX as f64;

/// The role of the next packet in its flow.
#[derive(Clone, Copy)]
pub(super) enum Event {
    /// A packet of an active flow.
    Ordinary,
    /// The last packet of a flow.
    Death,
    /// The first packet of a flow.
    Birth,
}

/// Evenly spaced packets and births, in fixed point without drift.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    start_ns: u64,
    /// Time between packets, in 2^-64 ns.
    step: u128,
    /// Births per packet, as a 64-bit fraction.
    births_per_packet: u64,
    /// The fraction of the next birth that is due.
    due: u64,
    /// Whether flows end with a last packet. Only if births leave room for these packets.
    ends_with_packet: bool,
    birth_is_next: bool,
    deaths: u64,
}

impl Schedule {
    pub(super) fn new(config: &TrafficConfig) -> Self {
        let ratio = config.births_per_second / config.packets_per_second;
        Self {
            start_ns: config.start_ns,
            step: (1e9 / config.packets_per_second * TWO_POW_64) as u128,
            births_per_packet: (ratio * TWO_POW_64) as u64,
            // Starting with half a birth rounds the number of births instead of truncating it.
            due: 1 << 63,
            ends_with_packet: ratio <= 0.5,
            birth_is_next: false,
            deaths: 0,
        }
    }

    #[inline(always)]
    pub(super) fn timestamp_ns(&self, packet: u64) -> u64 {
        // The configuration was checked, so the last packet's time does not overflow.
        let whole = (self.step >> 64) as u64 * packet;
        let fraction = ((u128::from(self.step as u64) * u128::from(packet)) >> 64) as u64;
        self.start_ns + whole + fraction
    }

    /// Flows that have ended.
    pub(super) const fn deaths(&self) -> u64 {
        self.deaths
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> Event {
        let (due, birth_is_due) = self.due.overflowing_add(self.births_per_packet);
        self.due = due;
        if self.birth_is_next {
            self.birth_is_next = false;
            return Event::Birth;
        }
        if !birth_is_due {
            return Event::Ordinary;
        }
        if self.ends_with_packet {
            self.birth_is_next = true;
            self.deaths += 1;
            return Event::Death;
        }
        Event::Birth
    }
}

/// Frame sizes with the cumulative weights at which they begin, as 64-bit fractions.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    /// Descending, from the last size's begin to the first one's, which is 0.
    begins: Vec<(u64, u32)>,
}

impl Sizes {
    pub(super) fn new(sizes: &FrameSizes) -> Self {
        let weighted: Vec<_> = sizes
            .weighted()
            .into_iter()
            .filter(|(_, weight)| *weight > 0.0)
            .collect();
        let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let mut begins: Vec<_> = weighted
            .iter()
            .map(|(bytes, weight)| {
                let begin = (sum / total * TWO_POW_64) as u64;
                sum += weight;
                (begin, *bytes)
            })
            .collect();
        begins.reverse();
        Self { begins }
    }

    #[inline(always)]
    pub(super) fn draw(&self, random: &mut Random) -> u32 {
        if let [(_, bytes)] = self.begins[..] {
            return bytes;
        }
        let word = random.word();
        let at_or_below = |entry: &&(u64, u32)| word >= entry.0;
        self.begins
            .iter()
            .find(at_or_below)
            .map_or(FRAME_BYTES_MIN, |(_, bytes)| *bytes)
    }
}
