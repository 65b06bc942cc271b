// SPDX-License-Identifier: Apache-2.0
//! A switch of the simulated data centre that the paper measured (TurboFlow, section 6.2).
//!
//! The paper's traces come from YAPS, a simulator with two tiers of switches and the flow sizes
//! measured by Benson, Akella and Maltz (IMC 2010). Nothing here is fitted to Table 6 or Figure 11.
//! They follow from the simulator's published parameters:
//!
//! - 144 hosts in 9 racks at 40 Gb/s, 4 aggregation switches (the paper, section 6.2);
//! - YAPS's defaults: a load of 0.6, a Poisson process of flows between any two hosts, sizes by
//!   [`FLOW_PACKETS`], 1,460 bytes of payload per packet, an ACK of 40 bytes for each, packets and
//!   ACKs sprayed over the aggregation switches one by one, links of 200 ns;
//! - on every link, the flow with the fewest packets left goes first, at full rate (pFabric,
//!   SIGCOMM 2013).
//!
//! A link sends in slots of 300 ns, a packet's time at 40 Gb/s. Each link has its own phase, so
//! ordering packets by time needs no sorting.
//!
//! Deviation: queues in switches, losses and retransmissions are left out. An acknowledgement has
//! the key of its flow, not the reversed one, because only that reproduces the flow counts of Table
//! 6.

mod links;
mod sender;
mod spray;

use std::collections::VecDeque;

use turboflow_record::{Family, TCP_ACK};

use super::arrival::{Arrival, Source};
use super::config::WorkloadError;
use super::statistics::FlowCounts;
use crate::flow_set::FlowSet;
use crate::traffic::{Endpoints, TCP};
use links::Links;
use sender::{Route, Transfer};
use spray::Spray;

/// Number of hosts.
pub const HOSTS: u64 = 144;
/// Number of racks, each with a top-of-rack switch.
pub const RACKS: u64 = 9;
/// Number of aggregation switches.
pub const AGGREGATION_SWITCHES: u64 = 4;
/// Rate of a host's link, in bits per second.
pub const HOST_BITS_PER_SECOND: f64 = 40e9;
/// IP bytes of a full packet: 1,460 of payload and 40 of headers.
pub const DATA_IP_BYTES: u16 = 1_500;
/// IP bytes of an acknowledgement.
pub const ACK_IP_BYTES: u16 = 40;

const HOSTS_PER_RACK: u64 = HOSTS / RACKS;
/// Transmission time of a full packet on a host's link.
const SLOT_NS: u64 = 300;
/// Propagation delay of each link.
const PROPAGATION_NS: u64 = 200;
/// Transmission time of an acknowledgement on a host's link.
const ACK_NS: u64 = 8;
/// Simulated time before the first packet, so that links do not start empty: thirty times the
/// duration of the largest flow.
const WARM_UP_NS: u64 = 20_000_000;

/// Cumulative share of flows by size in packets, with linear interpolation: the sizes that YAPS
/// uses for this measurement ("IMC10": Benson and others, 2010). Half of the flows have one packet,
/// and 15 % of the flows carry 96 % of the packets.
pub const FLOW_PACKETS: [(f64, f64); 11] = [
    (1.0, 0.5),
    (2.0, 0.6),
    (3.0, 0.7),
    (5.0, 0.75),
    (7.0, 0.8),
    (40.0, 0.8125),
    (72.0, 0.825),
    (137.0, 0.85),
    (267.0, 0.9),
    (1_187.0, 0.95),
    (2_107.0, 1.0),
];

/// The watched switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// Between the racks: 1,440 Gb/s, 1,291 K flows and 134.0 M packets per second (Table 6).
    Aggregation,
    /// Of a rack of 16 hosts: 1,280 Gb/s, 478 K flows and 124.0 M packets per second (Table 6).
    TopOfRack,
}

impl Switch {
    /// Packets and flows per second in Table 6.
    #[must_use]
    pub const fn published(self) -> (f64, f64) {
        match self {
            Self::Aggregation => (134.0e6, 1_291e3),
            Self::TopOfRack => (124.0e6, 478e3),
        }
    }
}

/// Configuration of data-centre traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataCenterConfig {
    /// The watched switch.
    pub switch: Switch,
    /// Share of each host's link that data packets use, [`LOAD_MIN`] to [`LOAD_MAX`].
    pub load: f64,
}

/// The load of the paper's simulator.
pub const LOAD: f64 = 0.6;
/// The minimum load.
pub const LOAD_MIN: f64 = 0.01;
/// The maximum load. Beyond it, queues would grow without end.
pub const LOAD_MAX: f64 = 0.95;

impl DataCenterConfig {
    /// A switch at the load of the paper's simulator.
    #[must_use]
    pub const fn new(switch: Switch) -> Self {
        Self { switch, load: LOAD }
    }

    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        if (LOAD_MIN..=LOAD_MAX).contains(&self.load) {
            Ok(())
        } else {
            Err(WorkloadError::Load { value: self.load })
        }
    }
}

/// A packet at the watched switch.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    timestamp_ns: u64,
    flow: u64,
    source: u8,
    destination: u8,
    ip_length_bytes: u16,
    tcp_flags: u16,
}

/// All packets that cross the watched switch.
#[derive(Clone, Debug)]
pub(super) struct DataCenter {
    switch: Switch,
    links: Links,
    /// The next data packet.
    data: Crossing,
    /// Acknowledgements in flight, by the distance to the receiver; each queue is in order of time.
    near: VecDeque<Crossing>,
    far: VecDeque<Crossing>,
    spray: Spray,
    /// The flows that have had a packet. For some flows, only acknowledgements cross the switch,
    /// and these may come after the end of the flow.
    seen: FlowSet,
    counts: FlowCounts,
}

impl DataCenter {
    pub(super) fn new(config: DataCenterConfig, start_ns: u64, seed: u64) -> Self {
        let begin_ns = start_ns.saturating_sub(WARM_UP_NS);
        let nothing = Crossing {
            timestamp_ns: 0,
            flow: 0,
            source: 0,
            destination: 0,
            ip_length_bytes: 0,
            tcp_flags: 0,
        };
        let mut data_center = Self {
            switch: config.switch,
            links: Links::new(config, begin_ns, seed),
            data: nothing,
            near: VecDeque::new(),
            far: VecDeque::new(),
            spray: Spray::new(seed),
            seen: FlowSet::default(),
            counts: FlowCounts::default(),
        };
        data_center.data = data_center.next_data();
        while data_center.next_ns() < start_ns {
            data_center.next_crossing();
        }
        let active = data_center.counts.active;
        data_center.counts = FlowCounts {
            active,
            ..FlowCounts::default()
        };
        data_center
    }

    fn next_ns(&self) -> u64 {
        let near_ns = self.near.front().map_or(u64::MAX, |ack| ack.timestamp_ns);
        let far_ns = self.far.front().map_or(u64::MAX, |ack| ack.timestamp_ns);
        self.data.timestamp_ns.min(near_ns).min(far_ns)
    }

    #[inline(always)]
    fn next_crossing(&mut self) -> Crossing {
        let next_ns = self.next_ns();
        if self.data.timestamp_ns == next_ns {
            let data = self.data;
            self.data = self.next_data();
            return data;
        }
        let is_next = |ack: &&Crossing| ack.timestamp_ns == next_ns;
        let queue = match self.near.front().filter(is_next) {
            Some(_) => &mut self.near,
            None => &mut self.far,
        };
        queue.pop_front().expect("the earliest time is a queue's")
    }

    /// Advances until a data packet crosses the switch. Acknowledgements of the packets skipped on
    /// the way are queued.
    #[inline(always)]
    fn next_data(&mut self) -> Crossing {
        loop {
            let (sender, now_ns) = self.links.next_slot();
            let (data_crosses, ack_crosses) = match self.switch {
                Switch::TopOfRack => (true, true),
                Switch::Aggregation => self.spray.both(),
            };
            if !(data_crosses | ack_crosses) {
                sender.send_elsewhere(&mut self.counts);
                continue;
            }
            let sent = sender.send(&mut self.counts);
            let transfer = sent.transfer;
            let data = Crossing {
                timestamp_ns: now_ns,
                flow: transfer.flow,
                source: transfer.source,
                destination: transfer.destination,
                ip_length_bytes: sent.ip_length_bytes,
                tcp_flags: sent.tcp_flags(),
            };
            if ack_crosses {
                self.acknowledge(&data, transfer);
            }
            if data_crosses {
                return data;
            }
        }
    }

    fn acknowledge(&mut self, data: &Crossing, transfer: Transfer) {
        let (queue, delay_ns) = match transfer.route {
            Route::Near => (&mut self.near, ack_delay_ns(1)),
            Route::Middle => (&mut self.near, ack_delay_ns(2)),
            Route::Far => (&mut self.far, ack_delay_ns(3)),
        };
        queue.push_back(Crossing {
            timestamp_ns: data.timestamp_ns + delay_ns,
            ip_length_bytes: ACK_IP_BYTES,
            tcp_flags: TCP_ACK,
            ..*data
        });
    }
}

/// Time from the watched switch over `links` links to the receiver and back. Switches forward
/// cut-through, so the serialisation delay counts once.
const fn ack_delay_ns(links: u64) -> u64 {
    2 * links * PROPAGATION_NS + SLOT_NS + ACK_NS
}

impl Source for DataCenter {
    #[inline(always)]
    fn next_arrival(&mut self, end_ns: u64) -> Option<Arrival> {
        if self.next_ns() >= end_ns {
            return None;
        }
        let crossing = self.next_crossing();
        self.seen.insert(crossing.flow);
        Some(Arrival {
            timestamp_ns: crossing.timestamp_ns,
            flow: crossing.flow,
            ends: ends(&crossing),
            family: Family::V4,
            protocol: TCP,
            ip_length_bytes: crossing.ip_length_bytes,
            tcp_flags: crossing.tcp_flags,
            hops: 0,
        })
    }

    fn flow_counts(&self) -> FlowCounts {
        FlowCounts {
            seen: self.seen.count(),
            ..self.counts
        }
    }
}

/// Hosts are 10.rack.0.host. The ports are the flow's number, so they are unique.
#[inline(always)]
const fn ends(crossing: &Crossing) -> Endpoints {
    const fn address(host: u8) -> u32 {
        let (rack, place) = (host as u64 / HOSTS_PER_RACK, host as u64 % HOSTS_PER_RACK);
        10 << 24 | (rack as u32) << 16 | (place as u32 + 1)
    }
    Endpoints {
        source: address(crossing.source),
        destination: address(crossing.destination),
        source_port: crossing.flow as u16,
        destination_port: (crossing.flow >> 16) as u16 ^ 5_001,
    }
}
