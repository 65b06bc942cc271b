// SPDX-License-Identifier: Apache-2.0
//! Infers the traffic from its flow records.
//!
//! Consecutive records of one flow, such as those that an active timeout has cut, count as one flow
//! if the gaps between them do not exceed the idle timeout. A record gives the times of only its
//! first and last packet. The other packets are assumed to be spread evenly in between, and the
//! flow is assumed to be active throughout.

use crate::{Impossible, Traffic};

/// The part of a flow record that the model needs; for a biflow, of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedFlow {
    /// A hash of the flow key.
    pub hash: u64,
    /// Time of the first packet, in nanoseconds since 1970.
    pub first_ns: u64,
    /// Time of the last packet, in nanoseconds since 1970.
    pub last_ns: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes; 0 if they are unknown.
    pub bytes: u64,
    /// Whether its flow has IPv6 addresses.
    pub is_ipv6: bool,
}

/// There are more records than the limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// Collects flow records, in any order, for a range of time.
#[derive(Debug)]
pub struct Recording {
    from_ns: u64,
    to_ns: u64,
    idle_timeout_ns: u64,
    max_records: usize,
    kept: Vec<Kept>,
    packets: f64,
    bytes: f64,
    ipv6_packets: f64,
}

/// A record, without its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    hash: u64,
    first_ns: u64,
    last_ns: u64,
    is_ipv6: bool,
}

/// What flow records tell about a range of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Packets within the range. A fraction if a record lies only partly within it.
    pub packets: f64,
    /// Bytes within the range.
    pub bytes: f64,
    /// Time between the first and the last packet within the range, in nanoseconds, without gaps
    /// longer than the idle timeout.
    pub observed_ns: u64,
    /// Flows that begin within the range.
    pub flows_opened: u64,
    /// Peak number of flows with a packet within the idle timeout.
    pub peak_active_flows: u64,
    /// When that peak is first reached, in nanoseconds since 1970; `None` if no flow is active.
    pub peak_ns: Option<u64>,
    /// The share of IPv6 in packets or in flows begun, whichever is larger.
    pub ipv6_share: f64,
    idle_timeout_ns: u64,
    steps: Steps,
}

/// One step of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Maximum number of flows that are active at the same time within the step.
    pub active_flows: u64,
    /// Flows that begin within the step.
    pub flows_opened: u64,
}

/// The times when flows begin and when they stop being active, each sorted.
#[derive(Clone, Debug, Default, PartialEq)]
struct Steps {
    from_ns: u64,
    to_ns: u64,
    begins_ns: Vec<u64>,
    ends_ns: Vec<u64>,
}

/// Traffic for the model that is consistent with constant rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedTraffic {
    /// The traffic.
    pub traffic: Traffic,
    /// Whether packets per second were raised above their mean, because the peak of active flows
    /// requires it.
    pub is_rate_raised: bool,
    /// Whether active flows were raised above their peak, because more flows begin within an idle
    /// timeout.
    pub is_peak_raised: bool,
}

impl Recording {
    /// Keeps up to `max_records` records, of about 50 bytes each, for the time from `from_ns`
    /// (inclusive) to `to_ns` (exclusive). Records that end at most one idle timeout earlier are
    /// kept, too.
    #[must_use]
    pub const fn new(from_ns: u64, to_ns: u64, idle_timeout_ns: u64, max_records: usize) -> Self {
        Self {
            from_ns,
            to_ns,
            idle_timeout_ns,
            max_records,
            kept: Vec::new(),
            packets: 0.0,
            bytes: 0.0,
            ipv6_packets: 0.0,
        }
    }

    /// Adds a record. Records outside the range of time are ignored.
    ///
    /// # Errors
    /// [`TooMany`] if the limit is reached.
    pub fn add(&mut self, record: &RecordedFlow) -> Result<(), TooMany> {
        let RecordedFlow { hash, first_ns, .. } = *record;
        let last_ns = record.last_ns.max(first_ns);
        let ended_before = last_ns.saturating_add(self.idle_timeout_ns) < self.from_ns;
        if record.packets == 0 || ended_before || first_ns >= self.to_ns {
            return Ok(());
        }
        if self.kept.len() == self.max_records {
            return Err(TooMany);
        }
        self.kept.push(Kept {
            hash,
            first_ns,
            last_ns,
            is_ipv6: record.is_ipv6,
        });
        // Includes the last nanosecond, so that the length is never zero.
        let length = (last_ns - first_ns) as f64 + 1.0;
        let (from_ns, to_ns) = (first_ns.max(self.from_ns), last_ns.min(self.to_ns - 1));
        let share = match to_ns.checked_sub(from_ns) {
            Some(within) if within == last_ns - first_ns => 1.0,
            Some(within) => (within as f64 + 1.0) / length,
            None => 0.0,
        };
        let packets = record.packets as f64 * share;
        self.packets += packets;
        self.bytes += record.bytes as f64 * share;
        if record.is_ipv6 {
            self.ipv6_packets += packets;
        }
        Ok(())
    }

    /// The results.
    #[must_use]
    pub fn finish(mut self) -> Recorded {
        let mut flows = std::mem::take(&mut self.kept);
        flows.sort_unstable();
        flows.dedup_by(|next, flow| {
            let is_continued = flow.is_continued(next, self.idle_timeout_ns);
            if is_continued {
                flow.last_ns = flow.last_ns.max(next.last_ns);
            }
            is_continued
        });
        flows.sort_unstable_by_key(|flow| flow.first_ns);
        let begins_in = |flow: &&Kept| (self.from_ns..self.to_ns).contains(&flow.first_ns);
        let opened = flows.iter().filter(begins_in).count() as u64;
        let ipv6 = flows.iter().filter(begins_in).filter(|flow| flow.is_ipv6);
        let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
        let ipv6_share = share(ipv6.count() as f64, opened as f64);
        let observed_ns = self.observed_ns(&flows);
        let ends = flows.iter().map(|flow| flow.last_ns);
        let mut steps = Steps {
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            begins_ns: flows.iter().map(|flow| flow.first_ns).collect(),
            ends_ns: ends
                .map(|last_ns| last_ns.saturating_add(self.idle_timeout_ns))
                .collect(),
        };
        steps.ends_ns.sort_unstable();
        let mut peak = (0, None);
        steps.walk(0, u64::MAX, |_, at_ns, active| {
            if active > peak.0 {
                peak = (active, Some(at_ns));
            }
        });
        Recorded {
            packets: self.packets,
            bytes: self.bytes,
            observed_ns,
            flows_opened: opened,
            peak_active_flows: peak.0,
            peak_ns: peak.1,
            ipv6_share: ipv6_share.max(share(self.ipv6_packets, self.packets)),
            idle_timeout_ns: self.idle_timeout_ns,
            steps,
        }
    }

    /// The time between the first and the last packet, without long gaps; `flows` are sorted by
    /// first packet.
    fn observed_ns(&self, flows: &[Kept]) -> u64 {
        let (mut observed_ns, mut until_ns) = (0, None);
        for flow in flows {
            let first_ns = flow.first_ns.max(self.from_ns);
            let last_ns = flow.last_ns.min(self.to_ns - 1);
            if last_ns < first_ns {
                continue;
            }
            let before_ns: u64 = until_ns.unwrap_or(first_ns);
            if last_ns > before_ns {
                let is_silence = first_ns.saturating_sub(before_ns) > self.idle_timeout_ns;
                observed_ns += last_ns - if is_silence { first_ns } else { before_ns };
            }
            until_ns = Some(before_ns.max(last_ns));
        }
        observed_ns
    }
}

impl Kept {
    fn is_continued(&self, next: &Self, idle_timeout_ns: u64) -> bool {
        self.hash == next.hash && next.first_ns.saturating_sub(self.last_ns) <= idle_timeout_ns
    }
}

impl Steps {
    /// Calls `each` with the number of a step, a time in it, and the number of flows active at that
    /// time: at the start of each step, and whenever a flow begins. Steps begin at `start_ns` and
    /// are `width_ns` long.
    fn walk(&self, start_ns: u64, width_ns: u64, mut each: impl FnMut(usize, u64, u64)) {
        let (mut begun, mut ended) = (0, 0);
        let number = |at_ns: u64| (at_ns.saturating_sub(start_ns) / width_ns) as usize;
        let last = number(self.to_ns.saturating_sub(1));
        for step in number(self.from_ns)..=last {
            let step_ns = start_ns.saturating_add((step as u64).saturating_mul(width_ns));
            let from_ns = step_ns.max(self.from_ns);
            let to_ns = step_ns.saturating_add(width_ns).min(self.to_ns);
            let count_before = |times: &[u64], count: usize, at_ns: u64| {
                count
                    + times[count..]
                        .iter()
                        .take_while(|its| **its < at_ns)
                        .count()
            };
            begun = count_before(&self.begins_ns, begun, from_ns);
            ended = count_before(&self.ends_ns, ended, from_ns);
            each(step, from_ns, (begun - ended) as u64);
            while let Some(&at_ns) = self.begins_ns.get(begun).filter(|at_ns| **at_ns < to_ns) {
                begun += 1;
                ended = count_before(&self.ends_ns, ended, at_ns);
                each(step, at_ns, (begun - ended) as u64);
            }
        }
    }
}

impl Recorded {
    /// Active and new flows in `count` steps of `width_ns`, starting at `start_ns`.
    #[must_use]
    pub fn steps(&self, start_ns: u64, width_ns: u64, count: usize) -> Vec<Step> {
        let mut steps = vec![Step::default(); count];
        self.steps.walk(start_ns, width_ns, |step, _, active| {
            if let Some(step) = steps.get_mut(step) {
                step.active_flows = step.active_flows.max(active);
            }
        });
        let times = &self.steps;
        for at_ns in times
            .begins_ns
            .iter()
            .filter(|at_ns| (times.from_ns..times.to_ns).contains(at_ns))
        {
            let step = at_ns
                .checked_sub(start_ns)
                .map(|since_ns| since_ns / width_ns);
            if let Some(step) = step.and_then(|step| steps.get_mut(step as usize)) {
                step.flows_opened += 1;
            }
        }
        steps
    }

    /// The observed time, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.observed_ns as f64 / 1e9
    }

    /// The idle timeout, in seconds.
    #[must_use]
    pub fn idle_timeout_seconds(&self) -> f64 {
        self.idle_timeout_ns as f64 / 1e9
    }

    /// The traffic as input of Equation 2: means over the observed time, and the peak of active
    /// flows.
    ///
    /// If these contradict constant rates, the smaller one is raised
    /// ([`Traffic::check_active_flows`]). Within a time shorter than the idle timeout, fewer flows
    /// are active than if the traffic went on; and a short peak of active flows requires more
    /// packets than the mean rate provides.
    ///
    /// # Errors
    /// If no rate can be computed, because no two packets have different times.
    pub fn traffic(&self) -> Result<PlannedTraffic, Impossible> {
        if self.observed_ns == 0 {
            let mend = "two packets at different times are needed to compute a rate: \
                        choose a longer time, or more records";
            return Err(Impossible::new("observed_seconds", 0.0, mend));
        }
        let idle_timeout_seconds = self.idle_timeout_seconds();
        let flows_per_second = self.flows_opened as f64 / self.seconds();
        let peak = self.peak_active_flows.max(1) as f64;
        let active_flows = peak.max((flows_per_second * idle_timeout_seconds).floor());
        let mean = self.packets / self.seconds();
        let least = (active_flows - 1.0) / idle_timeout_seconds;
        let packets_per_second = mean.max(flows_per_second).max(least);
        Ok(PlannedTraffic {
            traffic: Traffic {
                packets_per_second,
                flows_per_second,
                active_flows,
                mean_packet_bytes: (self.bytes > 0.0).then(|| self.bytes / self.packets),
            },
            is_rate_raised: packets_per_second > mean,
            is_peak_raised: active_flows > peak,
        })
    }
}

#[cfg(test)]
mod tests;
