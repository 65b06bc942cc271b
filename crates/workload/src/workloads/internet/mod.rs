// SPDX-License-Identifier: Apache-2.0
//! A link between core routers of the Internet (TurboFlow, section 6.2 and Table 6; the slides).
//!
//! Flows are born as a Poisson process, have sizes of a heavy tail, send trains of packets, and
//! end. The rates are the paper's; how a flow spends its time is in [`flow`]. The link begins in
//! its steady state, with the flows that are under way at any time.

mod flow;
mod law;
mod wheel;

use turboflow_record::{Family, prefetch};

use super::{Arrival, FlowCounts, Source, WorkloadError};
use crate::random::Random;
use crate::traffic::{Endpoints, TCP, UDP};
use flow::{Flow, Pace};
use law::SizeLaw;
use wheel::Wheel;

/// The largest flow, in packets.
pub const FLOW_PACKETS_MAX: u32 = 100_000;

/// What Internet traffic is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InternetConfig {
    /// Packets per second; 250 K to 600 K in Table 6.
    pub packets_per_second: f64,
    /// New flows per second; 5 K to 40 K in Table 6.
    pub flows_per_second: f64,
    /// Share of the flows that are IPv6, 0 to 1.
    pub ipv6_share: f64,
}

impl Default for InternetConfig {
    /// A 10 Gb/s link of the paper's: 450 K packets a second, between the slides' trace of 328 K
    /// and their average of 500 K; 9.1 K flows a second, which are Table 10's 1.75 Mb/s of flow
    /// records of 24 bytes.
    fn default() -> Self {
        Self {
            packets_per_second: 450e3,
            flows_per_second: 9.1e3,
            ipv6_share: 0.0,
        }
    }
}

impl InternetConfig {
    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        let (packets, flows) = (self.packets_per_second, self.flows_per_second);
        if !(packets.is_finite() && packets > 0.0) {
            return Err(WorkloadError::PacketRate { value: packets });
        }
        if !(flows.is_finite() && flows > 0.0) {
            return Err(WorkloadError::FlowRate { value: flows });
        }
        if flows > packets {
            return Err(WorkloadError::MoreFlowsThanPackets { flows, packets });
        }
        if SizeLaw::of_mean(packets / flows).is_none() {
            return Err(WorkloadError::FlowSize {
                mean: packets / flows,
            });
        }
        if !(0.0..=1.0).contains(&self.ipv6_share) {
            return Err(WorkloadError::Share {
                value: self.ipv6_share,
            });
        }
        Ok(())
    }
}

/// The entry of the wheel that is no flow, but the next birth.
const BIRTH: u32 = 0;

/// The packets of an Internet link.
#[derive(Clone, Debug)]
pub(super) struct Internet {
    mean_birth_gap_ns: f64,
    ipv6_below: u64,
    law: SizeLaw,
    wheel: Wheel,
    /// Flows under way, by their entry in the wheel less 1.
    flows: Vec<Flow>,
    /// Entries whose flows have ended.
    free: Vec<u32>,
    random: Random,
    flow_numbers: u64,
    counts: FlowCounts,
}

impl Internet {
    /// A link at its first packet.
    ///
    /// The configuration must have been checked.
    pub(super) fn new(config: InternetConfig, start_ns: u64, seed: u64) -> Self {
        let mean = config.packets_per_second / config.flows_per_second;
        let law = SizeLaw::of_mean(mean).expect("the configuration was checked");
        // A tick holds half a packet.
        let tick_ns = (0.5e9 / config.packets_per_second) as u64;
        let mut internet = Self {
            mean_birth_gap_ns: 1e9 / config.flows_per_second,
            ipv6_below: (config.ipv6_share * u64::MAX as f64) as u64,
            law,
            wheel: Wheel::new(start_ns, tick_ns),
            flows: Vec::new(),
            free: Vec::new(),
            random: Random::new(seed),
            flow_numbers: 0,
            counts: FlowCounts::default(),
        };
        internet.wheel.insert(BIRTH, start_ns);
        internet.put_under_way(start_ns, config.flows_per_second);
        internet
    }

    /// Begins the flows that are under way in the steady state: by Little's law their number is
    /// the rate of births times the mean duration, and a size is met as often as its flows last.
    fn put_under_way(&mut self, start_ns: u64, flows_per_second: f64) {
        let mut expected = 0.0;
        // Flows of one packet take no time.
        for (from, to, share) in self.law.cells().filter(|(from, ..)| *from > 1.0) {
            let pace = Pace::of((from + to - 1.0) / 2.0);
            expected += flows_per_second * share * pace.mean_duration_ns() / 1e9;
            // What is left of a flow is carried over, so the sum is right for rare sizes too.
            while expected >= 1.0 {
                expected -= 1.0;
                let size = from + (to - from) * self.random.fraction();
                self.flow_numbers += 1;
                let (flow, wait_ns) = Flow::met(self.flow_numbers, size as u32, &mut self.random);
                let entry = self.enter(flow);
                self.wheel.insert(entry, start_ns + wait_ns);
            }
        }
        self.counts.active = self.flows.len() as u64;
    }

    /// Gives a flow an entry in the wheel.
    fn enter(&mut self, flow: Flow) -> u32 {
        if let Some(entry) = self.free.pop() {
            self.flows[entry as usize - 1] = flow;
            return entry;
        }
        self.flows.push(flow);
        u32::try_from(self.flows.len()).expect("fewer than 2^32 flows are under way")
    }

    #[cold]
    fn give_birth(&mut self, now_ns: u64) -> u32 {
        let gap_ns = self.random.exponential() * self.mean_birth_gap_ns;
        self.wheel.insert(BIRTH, now_ns + gap_ns as u64);
        let size = self.law.draw(&mut self.random);
        self.flow_numbers += 1;
        let flow = Flow::new(self.flow_numbers, size, &mut self.random);
        self.counts.births += 1;
        self.counts.active += 1;
        self.enter(flow)
    }
}

impl Source for Internet {
    #[inline(always)]
    fn next_arrival(&mut self) -> Arrival {
        let flows = self.flows.as_ptr();
        let (mut entry, now_ns) = self.wheel.pop(|entry| {
            // Flows are looked up all over memory, so they are asked for in time.
            prefetch(flows.wrapping_add(entry.wrapping_sub(1) as usize));
        });
        if entry == BIRTH {
            entry = self.give_birth(now_ns);
        }
        let flow = &mut self.flows[entry as usize - 1];
        let sent = flow.send(&mut self.random);
        let (number, is_udp) = (flow.number, flow.is_udp());
        match sent.next_in_ns {
            Some(wait_ns) => self.wheel.insert(entry, now_ns + wait_ns),
            None => {
                self.free.push(entry);
                self.counts.deaths += 1;
                self.counts.active -= 1;
            }
        }
        let is_ipv6 = crate::random::mix(number) < self.ipv6_below;
        Arrival {
            timestamp_ns: now_ns,
            flow: number,
            ends: Endpoints::of(number),
            family: if is_ipv6 { Family::V6 } else { Family::V4 },
            protocol: if is_udp { UDP } else { TCP },
            ip_length_bytes: sent.ip_length_bytes,
            tcp_flags: sent.tcp_flags,
        }
    }

    fn flow_counts(&self) -> FlowCounts {
        self.counts
    }
}
