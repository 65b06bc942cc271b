// SPDX-License-Identifier: Apache-2.0
//! A company's day at two routers, with incidents to find: a port scan, an exfiltration, and a line
//! that loses packets.
//!
//! The headquarters' router sees all traffic. The branch's router sees the packets that its clients
//! send and receive, which cross the line between the two. Both see the same packets, so their
//! records can be compared. The rates are invented, not published: those of an office with 400
//! clients.
//!
//! Every conversation has its own random numbers, so that traffic that one router does not see has
//! no influence on what the other sees.

mod conversation;
pub mod incident;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use turboflow_record::Family;

use super::arrival::{Arrival, Source};
use super::config::WorkloadError;
use super::statistics::{Asked, FlowCounts};
use crate::random::{Random, mix};
use conversation::Conversation;

const SECOND_NS: u64 = 1_000_000_000;
/// Midnight UTC of 15 November 2023, when the day begins, in ns since 1970.
pub const SITE_START_NS: u64 = 1_700_006_400 * SECOND_NS;
/// One day, in ns.
pub const DAY_NS: u64 = 86_400 * SECOND_NS;
/// Maximum rate; beyond it, active conversations would take gigabytes.
const FLOWS_PER_SECOND_MAX: f64 = 1e4;

/// New flows in each hour of the day, relative to their mean.
const HOURS: [f64; 24] = [
    0.2, 0.2, 0.2, 0.2, 0.2, 0.3, 0.5, 1.0, 1.7, 2.1, 2.2, 2.1, 1.6, 1.9, 2.2, 2.1, 1.9, 1.4, 0.8,
    0.4, 0.3, 0.2, 0.2, 0.1,
];
const HOURS_MAX: f64 = 2.2;

/// The router at which packets are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenAt {
    /// Everything: clients, servers, the Internet, and the branch behind the line.
    Headquarters,
    /// Clients of the branch.
    Branch,
}

/// Configuration of a company's day.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteConfig {
    /// The router.
    pub seen_at: SeenAt,
    /// New flows per second of both places: the mean over a day.
    pub flows_per_second: f64,
}

impl SiteConfig {
    /// A day of 346,000 flows, two per conversation.
    #[must_use]
    pub const fn new(seen_at: SeenAt) -> Self {
        Self {
            seen_at,
            flows_per_second: 4.0,
        }
    }

    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        let flows = self.flows_per_second;
        if flows > 0.0 && flows <= FLOWS_PER_SECOND_MAX {
            Ok(())
        } else {
            Err(WorkloadError::FlowRate { value: flows })
        }
    }

    /// Means over a day, including the incidents.
    pub(super) fn asked(&self) -> Asked {
        let (packets, bytes) = conversation::means();
        let share = match self.seen_at {
            SeenAt::Headquarters => 1.0,
            SeenAt::Branch => conversation::branch_share(),
        };
        // A conversation has a flow in each direction.
        let conversations = self.flows_per_second / 2.0 * share;
        let (mut extra_flows, mut extra_packets, mut extra_bytes) = (0.0, 0.0, 0.0);
        if self.seen_at == SeenAt::Headquarters {
            (extra_flows, extra_packets, extra_bytes) = incident::of_a_second();
        }
        let per_second = conversations * packets + extra_packets;
        Asked {
            packets_per_second: per_second,
            flows_per_second: 2.0 * conversations + extra_flows,
            mean_packet_bytes: (conversations * bytes + extra_bytes) / per_second,
        }
    }
}

/// Generates the packets of a day.
#[derive(Clone, Debug)]
pub(super) struct Site {
    seen_at: SeenAt,
    start_ns: u64,
    seed: u64,
    /// Decides when conversations begin.
    births: Random,
    /// Mean time between conversations in the busiest hour, in ns.
    gap_ns: f64,
    next_birth_ns: u64,
    numbers: u64,
    /// Conversations of the incidents, the next one last.
    planned: Vec<(u64, Conversation)>,
    /// Active conversations, by the time of their next packet and their number.
    due: BinaryHeap<Reverse<(u64, u64, usize)>>,
    under_way: Vec<Conversation>,
    free: Vec<usize>,
    counts: FlowCounts,
}

impl Site {
    /// The configuration must have been checked.
    pub(super) fn new(config: SiteConfig, start_ns: u64, seed: u64) -> Self {
        let mut planned = match config.seen_at {
            SeenAt::Headquarters => incident::conversations(start_ns),
            SeenAt::Branch => Vec::new(),
        };
        planned.sort_by_key(|(at_ns, conversation)| Reverse((*at_ns, conversation.number())));
        let mut site = Self {
            seen_at: config.seen_at,
            start_ns,
            seed,
            births: Random::new(seed),
            gap_ns: SECOND_NS as f64 / (config.flows_per_second / 2.0 * HOURS_MAX),
            next_birth_ns: start_ns,
            numbers: 0,
            planned,
            due: BinaryHeap::new(),
            under_way: Vec::new(),
            free: Vec::new(),
            counts: FlowCounts::default(),
        };
        site.draw_birth();
        site
    }

    /// Draws the time of the next conversation: at the rate of the busiest hour, then keeping each
    /// with the probability of its hour.
    fn draw_birth(&mut self) {
        loop {
            let gap_ns = (self.births.exponential() * self.gap_ns) as u64;
            self.next_birth_ns = self.next_birth_ns.saturating_add(gap_ns.max(1));
            let hour = (self.next_birth_ns - self.start_ns) % DAY_NS / (3_600 * SECOND_NS);
            if self.births.fraction() * HOURS_MAX < HOURS[hour as usize] {
                return;
            }
        }
    }

    fn begin(&mut self, at_ns: u64, conversation: Conversation) {
        let number = conversation.number();
        let entry = if let Some(entry) = self.free.pop() {
            self.under_way[entry] = conversation;
            entry
        } else {
            self.under_way.push(conversation);
            self.under_way.len() - 1
        };
        self.due.push(Reverse((at_ns, number, entry)));
    }

    /// Begins the next conversation, unless an active one has an earlier packet or `end_ns` comes
    /// first.
    fn begin_next(&mut self, end_ns: u64) -> bool {
        let packet_ns = self
            .due
            .peek()
            .map_or(u64::MAX, |Reverse((at_ns, ..))| *at_ns);
        let planned_ns = self.planned.last().map_or(u64::MAX, |(at_ns, _)| *at_ns);
        let birth_ns = self.next_birth_ns.min(planned_ns);
        if birth_ns > packet_ns || birth_ns >= end_ns {
            return false;
        }
        if planned_ns <= self.next_birth_ns
            && let Some((at_ns, conversation)) = self.planned.pop()
        {
            self.begin(at_ns, conversation);
            return true;
        }
        self.numbers += 1;
        let conversation =
            Conversation::drawn(self.numbers, Random::new(self.seed ^ mix(self.numbers)));
        if self.seen_at == SeenAt::Headquarters || conversation.crosses_line() {
            self.begin(birth_ns, conversation);
        }
        self.draw_birth();
        true
    }

    /// The next packet of a conversation, unless the line loses it before this router. A flow is
    /// one direction of a conversation.
    fn send(&mut self, at_ns: u64, entry: usize) -> Option<Arrival> {
        let conversation = &mut self.under_way[entry];
        let number = conversation.number();
        let sent = conversation.send();
        let is_behind = sent.is_up == (self.seen_at == SeenAt::Headquarters);
        let comes_over_the_line = conversation.crosses_line() && is_behind;
        let offset_ns = at_ns - self.start_ns;
        let is_lost = comes_over_the_line && incident::loses(offset_ns, number, sent.step);
        let arrival = (!is_lost).then(|| Arrival {
            timestamp_ns: at_ns,
            flow: number << 1 | u64::from(sent.is_up),
            ends: conversation.ends(sent.is_up),
            family: Family::V4,
            protocol: conversation.protocol(),
            ip_length_bytes: sent.ip_length_bytes,
            tcp_flags: sent.tcp_flags,
            hops: u8::from(comes_over_the_line),
        });
        if arrival.is_some() && conversation.see(sent.is_up) {
            self.counts.seen += 1;
            self.counts.births += 1;
            self.counts.active += 1;
        }
        if let Some(gap_ns) = sent.gap_ns {
            self.due.push(Reverse((at_ns + gap_ns, number, entry)));
        } else {
            for was_seen in conversation.seen() {
                self.counts.end(was_seen);
            }
            self.free.push(entry);
        }
        arrival
    }
}

impl Source for Site {
    fn next_arrival(&mut self, end_ns: u64) -> Option<Arrival> {
        loop {
            while self.begin_next(end_ns) {}
            let Reverse((at_ns, ..)) = *self.due.peek()?;
            if at_ns >= end_ns {
                return None;
            }
            let Reverse((at_ns, _, entry)) = self.due.pop()?;
            if let Some(arrival) = self.send(at_ns, entry) {
                return Some(arrival);
            }
        }
    }

    fn flow_counts(&self) -> FlowCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests;
