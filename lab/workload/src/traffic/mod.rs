// SPDX-License-Identifier: Apache-2.0
//! Traffic: frames of many flows with stated rates, sizes, skew, births and protocol mix, at tens
//! of millions of packets per second, reproducible by seed.
//!
//! A flow is a number. Its addresses, ports and kind are functions of the number, and the only
//! state is one bit: whether it has had a packet. So twenty million active flows take 2.5 MB.
//!
//! ```
//! use turboflow_workload::traffic::{FrameBuffer, Traffic, TrafficConfig};
//!
//! let config = TrafficConfig { packets: 10_000, flows: 500, ..TrafficConfig::default() };
//! let mut traffic = Traffic::new(config)?;
//! let mut buffer = FrameBuffer::with_capacity(1_024, 64);
//! while traffic.fill(&mut buffer, 1_024) > 0 {
//!     assert!(buffer.frames().all(|frame| frame.bytes.len() == 64));
//! }
//! assert_eq!(traffic.statistics().packets, 10_000);
//! # Ok::<(), turboflow_workload::traffic::ConfigError>(())
//! ```

mod config;
mod flows;
mod frame;
mod kinds;
mod schedule;
mod zipf;

use turboflow_record::{Family, FiveTuple, TCP_ACK, TCP_FIN, TCP_SYN};

pub use config::{
    ConfigError, EXPONENT_MAX, FLOWS_MAX, FRAME_BYTES_MAX, FRAME_BYTES_MIN, FrameSizes, SIZES_MAX,
    Skew, TrafficConfig,
};
pub(crate) use flows::Endpoints;
pub use flows::{CONCURRENT_TRAINS, FlowNumbers, five_tuple, keys};
pub use frame::FrameBuffer;
pub(crate) use frame::{Headers, Shape, TCP, UDP, checksum};

use crate::flow_set::FlowSet;
use crate::random::Random;
use flows::{Births, Flow};
use kinds::Kinds;
use schedule::{Event, Schedule, Sizes};

const TCP_PSH: u16 = 0x08;

/// Totals of the traffic generated so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets.
    pub packets: u64,
    /// Bytes on the wire.
    pub wire_bytes: u64,
    /// Captured bytes.
    pub captured_bytes: u64,
    /// Flows with a packet: births, and initial flows that have been drawn.
    pub flows: u64,
    /// Flows that replaced another.
    pub births: u64,
    /// Flows that ended with a FIN or, for UDP, with a last packet.
    pub deaths: u64,
    /// Packets of IPv6.
    pub ipv6_packets: u64,
    /// Packets with an 802.1Q tag.
    pub vlan_packets: u64,
    /// Packets of UDP; all others are TCP.
    pub udp_packets: u64,
    /// Packet trains begun; 0 without trains.
    pub trains: u64,
    /// Time of the last packet, in ns since 1970.
    pub last_ns: u64,
}

/// A generator of frames.
#[derive(Clone, Debug)]
pub struct Traffic {
    config: TrafficConfig,
    kinds: Kinds,
    ranks: FlowNumbers,
    births: Births,
    schedule: Schedule,
    sizes: Sizes,
    random: Random,
    /// The initial flows that have had a packet.
    seen: FlowSet,
    statistics: Statistics,
}

impl Traffic {
    /// A generator at its first packet.
    ///
    /// # Errors
    /// If the configuration is not valid.
    pub fn new(config: TrafficConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            kinds: Kinds::new(&config),
            ranks: keys(config.flows, config.skew, config.seed)?,
            births: Births::new(config.flows),
            schedule: Schedule::new(&config),
            sizes: Sizes::new(&config.frame_sizes),
            random: Random::new(!config.seed),
            seen: FlowSet::below(config.flows),
            statistics: Statistics::default(),
            config,
        })
    }

    /// Replaces the content of `buffer` by the next `frames` frames, or fewer at the end. Returns
    /// their number: 0 after the last packet.
    pub fn fill(&mut self, buffer: &mut FrameBuffer, frames: usize) -> usize {
        buffer.clear();
        let left = self.config.packets - self.statistics.packets;
        let frames = usize::try_from(left).unwrap_or(usize::MAX).min(frames);
        let snap_bytes = self.config.snap_length_bytes.unwrap_or(u32::MAX);
        // A local copy of the counters, which the compiler can keep in registers.
        let mut statistics = self.statistics;
        for _ in 0..frames {
            let (flow, tcp_flags) = self.next_packet();
            // Once all initial flows have had a packet, the lookups are skipped.
            if flow.number < self.config.flows && self.seen.count() < self.config.flows {
                self.seen.insert(flow.number);
            }
            let headers = self.kinds.headers(flow, tcp_flags);
            let number = statistics.packets;
            let timestamp_ns = self.schedule.timestamp_ns(number);
            let frame_bytes = self.sizes.draw(&mut self.random);
            let shape = Shape {
                frame_bytes,
                snap_bytes,
                timestamp_ns,
                number,
            };
            let lengths = buffer.push(&headers, &shape);
            statistics.add(&headers, timestamp_ns, lengths);
        }
        self.statistics = statistics;
        frames
    }

    /// Totals of the traffic generated so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics {
            flows: self.seen.count() + self.births.count(),
            births: self.births.count(),
            deaths: self.schedule.deaths(),
            trains: self.ranks.trains_begun(),
            ..self.statistics
        }
    }

    /// The configuration.
    #[must_use]
    pub const fn config(&self) -> &TrafficConfig {
        &self.config
    }

    /// The 5-tuple of a flow. The initial flows have numbers below the configured `flows`; each new
    /// flow has the number of the flow it replaces plus `flows`.
    #[must_use]
    pub fn five_tuple(&self, flow_number: u64) -> FiveTuple {
        let headers = self.headers(flow_number);
        five_tuple(flow_number, headers.family, headers.protocol)
    }

    /// The VLAN of a flow; `None` if its frames have no tag.
    #[must_use]
    pub fn vlan(&self, flow_number: u64) -> Option<u16> {
        self.headers(flow_number).vlan
    }

    fn headers(&self, flow_number: u64) -> Headers {
        let rank = flow_number % self.config.flows;
        self.kinds.headers(
            Flow {
                rank,
                number: flow_number,
            },
            0,
        )
    }

    /// Flow and TCP flags of the next packet.
    #[inline(always)]
    fn next_packet(&mut self) -> (Flow, u16) {
        match self.schedule.next() {
            Event::Ordinary => {
                let flow = self.births.flow(self.ranks.next_number());
                // About every other packet of a connection carries data.
                let psh = (self.random.word() >> 63) as u16 * TCP_PSH;
                (flow, TCP_ACK | psh)
            }
            Event::Death => (self.births.next_replaced(), TCP_FIN | TCP_ACK),
            Event::Birth => (self.births.give_birth(), TCP_SYN),
        }
    }
}

impl Statistics {
    #[inline(always)]
    fn add(&mut self, headers: &Headers, timestamp_ns: u64, (wire, captured): (u32, u32)) {
        self.packets += 1;
        self.wire_bytes += u64::from(wire);
        self.captured_bytes += u64::from(captured);
        self.ipv6_packets += u64::from(headers.family == Family::V6);
        self.vlan_packets += u64::from(headers.vlan.is_some());
        self.udp_packets += u64::from(headers.protocol == UDP);
        self.last_ns = timestamp_ns;
    }
}

#[cfg(test)]
mod tests;
