// SPDX-License-Identifier: Apache-2.0
//! When packets come, when flows are born, and how long frames are: in fixed point, without drift.

use super::config::{FRAME_BYTES_MIN, FrameSizes, TrafficConfig};
use crate::random::Random;

const TWO_POW_64: f64 = u64::MAX as f64;

/// What the next packet is.
#[derive(Clone, Copy)]
pub(super) enum Event {
    /// One of a flow under way.
    Ordinary,
    /// The last one of a flow.
    Death,
    /// The first one of a flow.
    Birth,
}

/// When packets come and flows are born, in fixed point: evenly spaced, without drift.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    start_ns: u64,
    /// Time between packets, in 2^-64 ns.
    step: u128,
    /// Births per packet, as a 64-bit fraction.
    births_per_packet: u64,
    /// The part of a birth that is due.
    due: u64,
    /// Whether flows leave with a packet of their own; only where births leave room for it.
    says_farewell: bool,
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
            // Half a birth: their number is then rounded, not cut off.
            due: 1 << 63,
            says_farewell: ratio <= 0.5,
            birth_is_next: false,
            deaths: 0,
        }
    }

    #[inline(always)]
    pub(super) fn timestamp_ns(&self, packet: u64) -> u64 {
        // The configuration was checked: the last packet's time fits.
        let whole = (self.step >> 64) as u64 * packet;
        let fraction = ((u128::from(self.step as u64) * u128::from(packet)) >> 64) as u64;
        self.start_ns + whole + fraction
    }

    /// Flows that left so far.
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
        if self.says_farewell {
            self.birth_is_next = true;
            self.deaths += 1;
            return Event::Death;
        }
        Event::Birth
    }
}

/// Frame sizes with the cumulated weights at which each begins, as 64-bit fractions.
#[derive(Clone, Debug)]
pub(super) struct Sizes {
    /// Falls from the last size's beginning to the first one's, which is 0.
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
