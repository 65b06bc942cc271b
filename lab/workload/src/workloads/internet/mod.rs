// SPDX-License-Identifier: Apache-2.0
//! A link between core routers of the Internet (TurboFlow, section 6.2 and Table 6; the slides).
//!
//! Flows are born as a Poisson process, have heavy-tailed sizes, send trains of packets, and end.
//! The rates are the paper's; [`flow`] has the timing within a flow. The link starts in its steady
//! state, with its active flows.

mod flow;
mod law;
mod turn;
mod wheels;

use turboflow_merge::prefetch;
use turboflow_record::Family;

use super::arrival::{Arrival, Source};
use super::config::WorkloadError;
use super::statistics::FlowCounts;
use crate::random::Random;
use crate::traffic::{Endpoints, TCP, UDP};
use flow::{Flow, Pace};
use law::SizeLaw;
use turn::{Read, TICKS_SHIFT, Turn};
use wheels::{Due, Wheels};

/// The largest flow, in packets.
pub const FLOW_PACKETS_MAX: u32 = 100_000;

/// Configuration of Internet traffic.
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
    /// One of the paper's 10 Gb/s links. Its 450 K packets per second are between the slides' trace
    /// (328 K) and their average (500 K). Its 9.1 K flows per second give Table 10's 1.75 Mb/s of
    /// flow records of 24 bytes.
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
        // Timestamps have a resolution of one nanosecond.
        if !(packets > 0.0 && packets <= 1e9) {
            return Err(WorkloadError::PacketRate { value: packets });
        }
        if !(flows.is_finite() && flows > 0.0) {
            return Err(WorkloadError::FlowRate { value: flows });
        }
        if flows > packets {
            return Err(WorkloadError::MoreFlowsThanPackets { flows, packets });
        }
        let mean = packets / flows;
        let law = SizeLaw::of_mean(mean).ok_or(WorkloadError::FlowSize { mean })?;
        let active = under_way(law).map(|(.., seconds)| flows * seconds).sum();
        if active > ACTIVE_FLOWS_MAX {
            return Err(WorkloadError::ActiveFlows { active });
        }
        if !(0.0..=1.0).contains(&self.ipv6_share) {
            return Err(WorkloadError::Share {
                value: self.ipv6_share,
            });
        }
        Ok(())
    }
}

/// Bytes of headers without options.
const IPV6_BYTES: u16 = 40;
const TCP_BYTES: u16 = 20;
const UDP_BYTES: u16 = 8;

/// Maximum number of active flows, which take 8 GB of memory.
const ACTIVE_FLOWS_MAX: f64 = 100e6;

/// The longest tick, for very low packet rates: 18 minutes.
const TICK_SHIFT_MAX: u32 = 40;

/// Distance, in entries, at which flows are prefetched.
const AHEAD: usize = 8;

/// Generates the packets of an Internet link.
#[derive(Clone, Debug)]
pub(super) struct Internet {
    mean_birth_gap_ns: f64,
    ipv6_below: u64,
    law: SizeLaw,
    /// The flows, by the time of their next packet.
    wheels: Wheels,
    /// A turn has 2^`turn_shift` nanoseconds.
    turn_shift: u32,
    /// The packets of the current turn.
    turn: Turn,
    next_birth_ns: u64,
    /// Rounding error of the birth times so far.
    birth_rest_ns: f64,
    /// Active flows, by their entry in the wheels.
    flows: Vec<Flow>,
    /// Entries with packets in the current turn.
    due: Vec<Due>,
    /// Entries of ended flows, for reuse.
    free: Vec<u32>,
    random: Random,
    flow_numbers: u64,
    counts: FlowCounts,
}

/// Ranges of flow sizes, each with the number of its active flows per birth per second. Flows of
/// one packet have no duration.
fn under_way(law: SizeLaw) -> impl Iterator<Item = (f64, f64, f64)> {
    let longer = law.cells().filter(|(from, ..)| *from > 1.0);
    longer.map(|(from, to, share)| {
        let pace = Pace::of((from + to - 1.0) / 2.0);
        (from, to, share * pace.mean_duration_ns() / 1e9)
    })
}

impl Internet {
    /// A link at its first packet.
    ///
    /// The configuration must have been checked.
    pub(super) fn new(config: InternetConfig, start_ns: u64, seed: u64) -> Self {
        let mean = config.packets_per_second / config.flows_per_second;
        let law = SizeLaw::of_mean(mean).expect("the configuration was checked");
        // A tick holds half a packet on average.
        let tick_ns = (0.5e9 / config.packets_per_second) as u64;
        let tick_shift = tick_ns.max(1).ilog2().min(TICK_SHIFT_MAX);
        let turn_shift = tick_shift + TICKS_SHIFT;
        let mut internet = Self {
            mean_birth_gap_ns: 1e9 / config.flows_per_second,
            ipv6_below: (config.ipv6_share * u64::MAX as f64) as u64,
            law,
            wheels: Wheels::new(start_ns, turn_shift),
            turn_shift,
            turn: Turn::new(tick_shift),
            next_birth_ns: start_ns,
            birth_rest_ns: 0.0,
            flows: Vec::new(),
            due: Vec::new(),
            free: Vec::new(),
            random: Random::new(seed),
            flow_numbers: 0,
            counts: FlowCounts::default(),
        };
        internet.put_under_way(start_ns, config.flows_per_second);
        internet
    }

    /// Adds the active flows of the steady state. By Little's law, their number is the birth rate
    /// times the mean duration, so longer flows are more frequent among them.
    fn put_under_way(&mut self, start_ns: u64, flows_per_second: f64) {
        let mut expected = 0.0;
        for (from, to, seconds) in under_way(self.law) {
            expected += flows_per_second * seconds;
            // The fraction of a flow is carried over to the next range, so that rare sizes are not
            // lost.
            while expected >= 1.0 {
                expected -= 1.0;
                let size = from + (to - from) * self.random.fraction();
                self.flow_numbers += 1;
                let (flow, wait_ns) =
                    Flow::in_progress(self.flow_numbers, size as u32, &mut self.random);
                let entry = self.enter(flow);
                let at_ns = start_ns + wait_ns;
                self.wheels.insert(Due { at_ns, entry });
            }
        }
        self.counts.active = self.flows.len() as u64;
    }

    /// Allocates an entry in the wheels for a flow.
    fn enter(&mut self, flow: Flow) -> u32 {
        if let Some(entry) = self.free.pop() {
            self.flows[entry as usize] = flow;
            return entry;
        }
        self.flows.push(flow);
        u32::try_from(self.flows.len() - 1).expect("fewer than 2^32 flows are under way")
    }

    /// Generates the next turn flow by flow, so that each flow is loaded once, and then sorts its
    /// packets by time.
    #[inline(never)]
    fn begin_turn(&mut self) {
        let mut due = std::mem::take(&mut self.due);
        let turn = self.wheels.turn(&mut due);
        for place in 0..due.len() {
            if let Some(later) = due.get(place + AHEAD) {
                prefetch(&raw const self.flows[later.entry as usize]);
            }
            self.send(due[place], turn);
        }
        self.due = due;
        // The last turn of the clock has no births.
        while self.next_birth_ns >> self.turn_shift == turn && self.next_birth_ns < u64::MAX {
            self.give_birth(turn);
        }
        self.turn.order();
    }

    /// Sends the flow's packets of this turn.
    #[inline(always)]
    fn send(&mut self, due: Due, turn: u64) {
        let Due { mut at_ns, entry } = due;
        let place = &mut self.flows[entry as usize];
        let mut flow = *place;
        loop {
            let (sent, next_ns) = flow.send(at_ns, &mut self.random);
            self.turn.write(sent);
            let Some(next_ns) = next_ns else {
                self.free.push(entry);
                return;
            };
            at_ns = next_ns;
            if at_ns >> self.turn_shift != turn {
                break;
            }
        }
        *place = flow;
        self.wheels.insert(Due { at_ns, entry });
    }

    fn give_birth(&mut self, turn: u64) {
        let at_ns = self.next_birth_ns;
        let gap_ns = self.random.exponential() * self.mean_birth_gap_ns + self.birth_rest_ns;
        self.birth_rest_ns = gap_ns.fract();
        self.next_birth_ns = at_ns.saturating_add(gap_ns as u64);
        let size = self.law.draw(&mut self.random);
        self.flow_numbers += 1;
        let flow = Flow::new(self.flow_numbers, size, &mut self.random);
        let entry = self.enter(flow);
        self.send(Due { at_ns, entry }, turn);
    }
}

impl Source for Internet {
    #[inline(always)]
    fn next_arrival(&mut self, end_ns: u64) -> Option<Arrival> {
        let sent = loop {
            match self.turn.read(end_ns) {
                Read::Sent(sent) => break sent,
                Read::Later => return None,
                Read::All if self.wheels.next_ns() >= end_ns => return None,
                Read::All => self.begin_turn(),
            }
        };
        // Counted on output, because packets are generated up to a turn ahead.
        let (birth, last) = (u64::from(sent.is_birth), u64::from(sent.is_last));
        self.counts.seen += u64::from(sent.is_first);
        self.counts.births += birth;
        self.counts.deaths += last;
        self.counts.active = self.counts.active + birth - last;
        let is_ipv6 = crate::random::mix(sent.flow) < self.ipv6_below;
        // Lengths are drawn for IPv4. IPv6 headers alone may be longer.
        let (family, least_bytes) = match (is_ipv6, sent.is_udp) {
            (true, true) => (Family::V6, IPV6_BYTES + UDP_BYTES),
            (true, false) => (Family::V6, IPV6_BYTES + TCP_BYTES),
            (false, _) => (Family::V4, 0),
        };
        Some(Arrival {
            timestamp_ns: sent.at_ns,
            flow: sent.flow,
            ends: Endpoints::of(sent.flow),
            family,
            protocol: if sent.is_udp { UDP } else { TCP },
            ip_length_bytes: sent.ip_length_bytes.max(least_bytes),
            tcp_flags: sent.tcp_flags,
            hops: 0,
        })
    }

    fn flow_counts(&self) -> FlowCounts {
        self.counts
    }
}
