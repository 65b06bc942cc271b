// SPDX-License-Identifier: Apache-2.0
//! A link of a host: the flows waiting for it, and which of them sends next.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use turboflow_record::{TCP_ACK, TCP_FIN, TCP_SYN};

use super::{ACK_IP_BYTES, DATA_IP_BYTES, FLOW_PACKETS, FlowCounts, HOSTS, HOSTS_PER_RACK};
use crate::random::Random;

/// Distance of the receiver from the watched switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// One link: the receiver is in the switch's rack.
    Near,
    /// Two links, from an aggregation switch.
    Middle,
    /// Three links: the receiver is in another rack.
    Far,
}

/// The remaining packets of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) flow: u64,
    packets_left: u32,
    last_ip_bytes: u16,
    pub(super) source: u8,
    pub(super) destination: u8,
    pub(super) route: Route,
    has_begun: bool,
    /// Whether one of its packets crossed the watched switch.
    is_seen: bool,
}

impl Transfer {
    /// No flow.
    const NONE: Self = Self {
        flow: 0,
        packets_left: 0,
        last_ip_bytes: 0,
        source: 0,
        destination: 0,
        route: Route::Near,
        has_begun: false,
        is_seen: false,
    };
}

impl Ord for Transfer {
    /// The flow with the fewest packets left is the greatest; among equals, the oldest one.
    fn cmp(&self, other: &Self) -> Ordering {
        let left = other.packets_left.cmp(&self.packets_left);
        left.then(other.flow.cmp(&self.flow))
    }
}

impl PartialOrd for Transfer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The host and direction of a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostLink {
    pub(super) host: u8,
    /// From the host, or to it from other racks.
    pub(super) is_up: bool,
    /// Whether only flows that leave the rack count.
    pub(super) leaves_rack: bool,
}

/// Creates flows.
#[derive(Clone, Debug)]
pub(super) struct FlowSource {
    random: Random,
    flows: u64,
}

impl FlowSource {
    pub(super) const fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            flows: 0,
        }
    }

    /// Mean size of a flow, in full packets.
    pub(super) fn mean_packets() -> f64 {
        let first = FLOW_PACKETS[0].1;
        let rest = FLOW_PACKETS.windows(2).map(|pair| {
            let ((from, below), (to, up_to)) = (pair[0], pair[1]);
            (up_to - below) * (from + to) / 2.0
        });
        first + rest.sum::<f64>()
    }

    /// Size of a flow, in full packets. The fraction is the size of the last packet.
    fn size(&mut self) -> f64 {
        let share = self.random.fraction();
        let above = FLOW_PACKETS.partition_point(|(_, up_to)| *up_to < share);
        let (to, up_to) = FLOW_PACKETS[above];
        let Some((from, below)) = above.checked_sub(1).map(|index| FLOW_PACKETS[index]) else {
            return to;
        };
        from + (to - from) * (share - below) / (up_to - below)
    }

    fn transfer(&mut self, link: HostLink) -> Transfer {
        let size = self.size();
        let payload = f64::from(DATA_IP_BYTES - ACK_IP_BYTES);
        let packets = size.ceil();
        let last = (size - packets + 1.0) * payload;
        let own_rack = u64::from(link.host) / HOSTS_PER_RACK;
        let outside = || (own_rack + 1) * HOSTS_PER_RACK;
        let peer = if link.is_up && !link.leaves_rack {
            // Any other host.
            (u64::from(link.host) + 1 + self.random.below(HOSTS - 1)) % HOSTS
        } else {
            (outside() + self.random.below(HOSTS - HOSTS_PER_RACK)) % HOSTS
        };
        let (source, destination) = match link.is_up {
            true => (link.host, peer as u8),
            false => (peer as u8, link.host),
        };
        let route = match (link.leaves_rack, link.is_up && peer >= HOSTS_PER_RACK) {
            (true, _) => Route::Middle,
            (false, true) => Route::Far,
            (false, false) => Route::Near,
        };
        self.flows += 1;
        Transfer {
            flow: self.flows,
            packets_left: packets as u32,
            last_ip_bytes: ACK_IP_BYTES + (last as u16).max(1),
            source,
            destination,
            route,
            has_begun: false,
            is_seen: false,
        }
    }
}

/// A packet with its flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The flow's state before this packet.
    pub(super) transfer: Transfer,
    pub(super) ip_length_bytes: u16,
}

impl Sent {
    const fn is_last(&self) -> bool {
        self.transfer.packets_left == 1
    }

    pub(super) const fn tcp_flags(&self) -> u16 {
        data_flags(self.transfer.has_begun, self.is_last())
    }
}

/// A link that sends in slots.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    /// Offset of its slot in a round.
    pub(super) phase_ns: u64,
    /// Its birth rate, relative to that of a host.
    pub(super) share: f64,
    link: HostLink,
    /// The sending flow. It has no packets left if the link is idle.
    current: Transfer,
    waiting: BinaryHeap<Transfer>,
}

impl Sender {
    pub(super) fn new(link: HostLink, phase_ns: u64, share: f64) -> Self {
        Self {
            phase_ns,
            share,
            link,
            current: Transfer::NONE,
            waiting: BinaryHeap::new(),
        }
    }

    #[inline(always)]
    pub(super) const fn has_packet(&self) -> bool {
        self.current.packets_left > 0
    }

    /// Sends a packet when neither it nor its acknowledgement crosses the watched switch.
    #[inline(always)]
    pub(super) fn send_elsewhere(&mut self, counts: &mut FlowCounts) {
        self.current.has_begun = true;
        self.current.packets_left -= 1;
        if self.current.packets_left == 0 {
            counts.end(self.current.is_seen);
            self.take_next();
        }
    }

    /// Sends a packet when it or its acknowledgement crosses the watched switch.
    #[inline(always)]
    pub(super) fn send(&mut self, counts: &mut FlowCounts) -> Sent {
        let transfer = self.current;
        let is_birth = u64::from(!transfer.is_seen);
        counts.births += is_birth;
        counts.active += is_birth;
        self.current.is_seen = true;
        self.current.has_begun = true;
        self.current.packets_left -= 1;
        let mut ip_length_bytes = DATA_IP_BYTES;
        if self.current.packets_left == 0 {
            ip_length_bytes = transfer.last_ip_bytes;
            counts.end(true);
            self.take_next();
        }
        Sent {
            transfer,
            ip_length_bytes,
        }
    }

    #[cold]
    fn take_next(&mut self) {
        self.current = self.waiting.pop().unwrap_or(Transfer::NONE);
    }

    /// Adds a new flow.
    pub(super) fn admit(&mut self, flow_source: &mut FlowSource) {
        let newcomer = flow_source.transfer(self.link);
        if self.current.packets_left == 0 {
            self.current = newcomer;
        } else if newcomer > self.current {
            self.waiting
                .push(std::mem::replace(&mut self.current, newcomer));
        } else {
            self.waiting.push(newcomer);
        }
    }
}

/// TCP flags of a data packet.
const fn data_flags(has_begun: bool, is_last: bool) -> u16 {
    match (has_begun, is_last) {
        (_, true) => TCP_ACK | TCP_FIN,
        (true, false) => TCP_ACK,
        (false, false) => TCP_SYN,
    }
}
