// SPDX-License-Identifier: Apache-2.0
//! A packet of a workload, and the trait of its sources.

use turboflow_record::{Family, FiveTuple, Packet};

use super::statistics::FlowCounts;
use crate::traffic::{Endpoints, Headers};

/// Length of the Ethernet header, in bytes.
pub(super) const ETHERNET_BYTES: u32 = 14;

/// A packet as it arrives, without a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time in ns since 1970, never before the preceding packet's.
    pub timestamp_ns: u64,
    /// Number of the flow, unique within a workload.
    pub flow: u64,
    /// IP version.
    pub family: Family,
    /// 6 for TCP, 17 for UDP.
    pub protocol: u8,
    /// Length of the IP packet, headers included.
    pub ip_length_bytes: u16,
    /// TCP flags; 0 for UDP.
    pub tcp_flags: u16,
    /// Number of routers between this place and the first place that could see the packet.
    pub hops: u8,
    pub(crate) ends: Endpoints,
}

impl Arrival {
    /// Addresses, ports and protocol.
    #[inline(always)]
    #[must_use]
    pub fn five_tuple(&self) -> FiveTuple {
        self.ends.five_tuple(self.family, self.protocol)
    }

    /// The packet as a parser would return it.
    #[inline(always)]
    #[must_use]
    pub fn packet(&self) -> Packet {
        Packet {
            tuple: self.five_tuple(),
            timestamp_ns: self.timestamp_ns,
            ip_length_bytes: u32::from(self.ip_length_bytes),
            frame_length_bytes: u32::from(self.ip_length_bytes) + ETHERNET_BYTES,
            tcp_flags: self.tcp_flags,
            ttl: self.ttl(),
            tos: 0,
            is_echo_reply: false,
        }
    }

    const fn ttl(&self) -> u8 {
        64 - ((self.ends.source >> 3) & 15) as u8 - self.hops
    }

    #[inline(always)]
    pub(super) fn headers(&self) -> Headers {
        Headers {
            ends: self.ends,
            family: self.family,
            protocol: self.protocol,
            vlan: None,
            ttl: self.ttl(),
            tcp_flags: self.tcp_flags,
        }
    }
}

/// An endless source of packets.
pub(super) trait Source {
    /// The next packet; `None` if it would come at `end_ns` or later.
    fn next_arrival(&mut self, end_ns: u64) -> Option<Arrival>;
    /// Totals of flows since the first packet.
    fn flow_counts(&self) -> FlowCounts;
}
