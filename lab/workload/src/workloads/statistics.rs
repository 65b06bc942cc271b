// SPDX-License-Identifier: Apache-2.0
//! The stated rates of a workload, and the totals of the generated traffic.

use turboflow_record::Family;

use super::arrival::Arrival;
use crate::traffic::UDP;

/// Totals of flows since the first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// Flows with a packet, whenever they were born: the keys that a meter sees.
    pub seen: u64,
    /// Flows with their first packet.
    pub births: u64,
    /// Flows that ended, including those active at the first packet.
    pub deaths: u64,
    /// Active flows.
    pub active: u64,
}

impl FlowCounts {
    /// Counts the end of a flow. A flow without a packet does not count.
    pub(super) const fn end(&mut self, was_seen: bool) {
        self.deaths += was_seen as u64;
        self.active -= was_seen as u64;
    }
}

/// The stated rates: for the paper's workloads, the published ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// Packets per second.
    pub packets_per_second: f64,
    /// New flows per second; 0 if flows do not come and go.
    pub flows_per_second: f64,
    /// Mean length of the IP packets, in bytes.
    pub mean_packet_bytes: f64,
}

impl Asked {
    /// Bits of IP packets per second.
    #[must_use]
    pub const fn bits_per_second(&self) -> f64 {
        self.packets_per_second * self.mean_packet_bytes * 8.0
    }

    /// Mean size of a flow, in packets; infinite if flows do not come and go.
    #[must_use]
    pub const fn mean_flow_packets(&self) -> f64 {
        self.packets_per_second / self.flows_per_second
    }
}

/// Totals of the traffic generated so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets.
    pub packets: u64,
    /// Bytes of IP packets.
    pub ip_bytes: u64,
    /// Captured bytes; 0 unless frames are made.
    pub captured_bytes: u64,
    /// Packets of IPv6.
    pub ipv6_packets: u64,
    /// Packets of UDP; all others are TCP.
    pub udp_packets: u64,
    /// Flows.
    pub flows: FlowCounts,
    /// Start of the traffic, in ns since 1970.
    pub start_ns: u64,
    /// Time of the last packet, in ns since 1970.
    pub last_ns: u64,
}

impl Statistics {
    pub(super) fn starting_at(start_ns: u64) -> Self {
        Self {
            start_ns,
            last_ns: start_ns,
            ..Self::default()
        }
    }

    #[inline(always)]
    pub(super) fn add(&mut self, arrival: &Arrival) {
        self.packets += 1;
        self.ip_bytes += u64::from(arrival.ip_length_bytes);
        self.ipv6_packets += u64::from(arrival.family == Family::V6);
        self.udp_packets += u64::from(arrival.protocol == UDP);
        self.last_ns = arrival.timestamp_ns;
    }

    /// Duration of the packets so far, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        (self.last_ns - self.start_ns).max(1) as f64 / 1e9
    }

    /// Packets per second.
    #[must_use]
    pub fn packets_per_second(&self) -> f64 {
        self.packets as f64 / self.seconds()
    }

    /// Bits of IP packets per second.
    #[must_use]
    pub fn bits_per_second(&self) -> f64 {
        self.ip_bytes as f64 * 8.0 / self.seconds()
    }

    /// New flows per second.
    #[must_use]
    pub fn flows_per_second(&self) -> f64 {
        self.flows.births as f64 / self.seconds()
    }

    /// Packets per new flow; in the steady state, the mean size of a flow.
    #[must_use]
    pub fn mean_flow_packets(&self) -> f64 {
        self.packets as f64 / self.flows.births.max(1) as f64
    }

    /// Mean length of the IP packets, in bytes.
    #[must_use]
    pub fn mean_packet_bytes(&self) -> f64 {
        self.ip_bytes as f64 / self.packets.max(1) as f64
    }
}
