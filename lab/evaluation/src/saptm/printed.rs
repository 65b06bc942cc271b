// SPDX-License-Identifier: Apache-2.0
//! SAPTM's table as printed (sections 3.2 to 3.4): only a flow-key cache in each stage tells old
//! flows from new ones, and buckets are never searched.
//!
//! The paper leaves some points open, which are decided here. A cache evicts its least recently
//! used line. Partial keys never match by mistake. The tracking table is never full. A candidate
//! that is not used before its time is up is evicted (the text says the opposite). If both buckets
//! are full and no candidate's time is up, a random record of the chosen bucket leaves at once.

use std::collections::{HashMap, VecDeque};

use turboflow_merge::KeyHasher;
use turboflow_workload::random::Random;

use super::{Placement, SUBTABLES, Shape};

/// Total number of lines in the flow-key caches of all stages (section 5.2).
const CACHE_LINES: usize = 1_024;
/// Packets that arrive while a record travels through a stage, as an upper bound: a key takes 5
/// clocks in stage 1 and 3 in a later stage (Equations 1 and 3), so it is less than one packet.
const PACKETS_A_STAGE: u64 = 1;

#[derive(Clone, Copy)]
struct Record {
    id: u64,
    flow: u64,
    packets: u64,
    last_use: u64,
}

/// A line of a flow-key cache, or an entry of the tracking table.
#[derive(Clone, Copy)]
struct Line {
    bucket: usize,
    id: u64,
    last_use: u64,
}

/// An entry of the candidate eviction table.
struct Candidate {
    bucket: usize,
    id: u64,
    since: u64,
}

/// Counts of packets and records.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) packets: u64,
    /// Packets whose flow was found in a cache.
    pub(crate) cache_hits: u64,
    /// Packets whose flow was still on the way to its stage.
    pub(crate) tracking_hits: u64,
    /// Records begun.
    pub(crate) records: u64,
    /// Records begun for flows that already had one in the table.
    pub(crate) second_records: u64,
    pub(crate) most_of_one_flow: u64,
    /// Records that left because they were inactive, and records that were evicted to make room.
    pub(crate) inactive: u64,
    pub(crate) forced: u64,
    /// Records in the table at the end, and the number of their flows.
    pub(crate) resident: u64,
    pub(crate) resident_flows: u64,
    /// Packets in all records, which the host adds up.
    pub(crate) packets_in_records: u64,
}

/// The table with its caches and workload registers. Because the tracking table corrects these
/// registers, each choice is made as if records were written at once.
pub(crate) struct Printed {
    shape: Shape,
    hasher: KeyHasher,
    buckets: Vec<Vec<Record>>,
    caches: Vec<HashMap<u64, Line>>,
    tracking: HashMap<u64, Line>,
    /// When the records in the tracking table arrive, and their flows.
    arrivals: VecDeque<(u64, u64)>,
    candidates: VecDeque<Candidate>,
    /// Packets until an unused candidate is evicted.
    activeness: u64,
    random: Random,
    of_flow: HashMap<u64, u64>,
    counts: Counts,
}

impl Printed {
    /// An empty table. A candidate that is not used within `activeness` packets is evicted.
    pub(crate) fn new(shape: Shape, activeness: u64, seed: u64) -> Self {
        Self {
            shape,
            hasher: KeyHasher::new(seed),
            buckets: vec![Vec::new(); SUBTABLES * shape.buckets],
            caches: vec![HashMap::new(); shape.stages],
            tracking: HashMap::new(),
            arrivals: VecDeque::new(),
            candidates: VecDeque::new(),
            activeness,
            random: Random::new(seed),
            of_flow: HashMap::new(),
            counts: Counts::default(),
        }
    }

    /// Counts a packet (Figure 4).
    pub(crate) fn packet(&mut self, flow: u64) {
        let now = self.counts.packets;
        self.counts.packets += 1;
        self.arrive(now);
        self.evict_inactive(now);
        let [left, right] = Placement::Anywhere.buckets(self.shape, &self.hasher, flow);
        let is_right_emptier = self.buckets[right].len() < self.buckets[left].len();
        let target = if is_right_emptier { right } else { left };
        let stage = self.shape.stage(target);
        // Data path 1: a key consults only the caches that it passes on the way to its target.
        for cache in &mut self.caches[..=stage] {
            if let Some(line) = cache.get_mut(&flow) {
                line.last_use = now;
                let line = *line;
                self.counts.cache_hits += 1;
                return self.add(line, now);
            }
        }
        // Data path 2: the tracking table.
        if let Some(line) = self.tracking.get(&flow).copied() {
            self.counts.tracking_hits += 1;
            return self.add(line, now);
        }
        // Data path 3: a new record.
        self.begin(flow, target, now);
    }

    /// Evicts everything, as at the end of an epoch, and returns the counts.
    pub(crate) fn finish(mut self) -> Counts {
        self.counts.resident_flows =
            self.of_flow.values().filter(|count| **count > 0).count() as u64;
        for record in self.buckets.iter().flatten() {
            self.counts.resident += 1;
            self.counts.packets_in_records += record.packets;
        }
        self.counts
    }

    /// The used slots of every bucket.
    pub(crate) fn filled(&self) -> Vec<usize> {
        self.buckets.iter().map(Vec::len).collect()
    }

    fn add(&mut self, line: Line, now: u64) {
        let mut records = self.buckets[line.bucket].iter_mut();
        let record = records.find(|record| record.id == line.id);
        let record = record.expect("caches forget a record that leaves");
        record.packets += 1;
        record.last_use = now;
    }

    /// Begins a record in the target bucket for a flow that no cache on the way knows.
    fn begin(&mut self, flow: u64, target: usize, now: u64) {
        if self.buckets[target].len() == self.shape.slots {
            self.counts.forced += 1;
            let any = self.random.below(self.shape.slots as u64) as usize;
            self.leave(target, any);
        }
        let id = self.counts.records;
        self.counts.records += 1;
        self.buckets[target].push(Record {
            id,
            flow,
            packets: 1,
            last_use: now,
        });
        let of_flow = self.of_flow.entry(flow).or_default();
        self.counts.second_records += u64::from(*of_flow > 0);
        *of_flow += 1;
        self.counts.most_of_one_flow = self.counts.most_of_one_flow.max(*of_flow);
        // Alert threshold: a full bucket makes one of its records a candidate.
        if self.buckets[target].len() == self.shape.slots {
            let any = self.random.below(self.shape.slots as u64) as usize;
            self.candidates.push_back(Candidate {
                bucket: target,
                id: self.buckets[target][any].id,
                since: now,
            });
        }
        let line = Line {
            bucket: target,
            id,
            last_use: now,
        };
        match self.shape.stage(target) as u64 {
            0 => self.cache(flow, line),
            stage => {
                self.tracking.insert(flow, line);
                self.arrivals
                    .push_back((now + stage * PACKETS_A_STAGE, flow));
            }
        }
    }

    /// Moves records that have reached their stage from the tracking table to the stage's cache.
    fn arrive(&mut self, now: u64) {
        let mut waiting = VecDeque::new();
        while let Some((at, flow)) = self.arrivals.pop_front() {
            if at > now {
                waiting.push_back((at, flow));
            } else if let Some(line) = self.tracking.remove(&flow) {
                self.cache(flow, line);
            }
        }
        self.arrivals = waiting;
    }

    fn cache(&mut self, flow: u64, line: Line) {
        let lines = CACHE_LINES / self.shape.stages;
        let cache = &mut self.caches[self.shape.stage(line.bucket)];
        if cache.len() == lines && !cache.contains_key(&flow) {
            let oldest = cache
                .iter()
                .min_by_key(|(_, line)| (line.last_use, line.id));
            let oldest = oldest.map(|(flow, _)| *flow);
            if let Some(oldest) = oldest {
                cache.remove(&oldest);
            }
        }
        cache.insert(flow, line);
    }

    fn evict_inactive(&mut self, now: u64) {
        let activeness = self.activeness;
        let is_due = |candidate: &Candidate| candidate.since + activeness <= now;
        while self.candidates.front().is_some_and(&is_due) {
            let Some(Candidate { bucket, id, since }) = self.candidates.pop_front() else {
                return;
            };
            let mut records = self.buckets[bucket].iter();
            let unused = |record: &Record| record.id == id && record.last_use <= since;
            if let Some(at) = records.position(unused) {
                self.counts.inactive += 1;
                self.leave(bucket, at);
            }
        }
    }

    /// Sends a record to the host, and removes it from caches and tracking table.
    fn leave(&mut self, bucket: usize, at: usize) {
        let record = self.buckets[bucket].swap_remove(at);
        self.counts.packets_in_records += record.packets;
        if let Some(count) = self.of_flow.get_mut(&record.flow) {
            *count -= 1;
        }
        let stage = self.shape.stage(bucket);
        for lines in [&mut self.caches[stage], &mut self.tracking] {
            if lines
                .get(&record.flow)
                .is_some_and(|line| line.id == record.id)
            {
                lines.remove(&record.flow);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saptm::zipf;

    fn counts(shape: Shape, packets: &[u64]) -> Counts {
        let mut table = Printed::new(shape, 10_000, 1);
        packets.iter().for_each(|flow| table.packet(*flow));
        table.finish()
    }

    #[test]
    fn the_host_finds_every_packet_once_and_several_records_of_a_flow() {
        let packets = zipf(10_000, 48_579, 1);
        let counts = counts(Shape::of_paper(8), &packets);
        assert_eq!(counts.packets_in_records, counts.packets);
        assert_eq!(
            counts.cache_hits + counts.tracking_hits + counts.records,
            counts.packets
        );
        let share = counts.second_records as f64 / counts.records as f64;
        assert!((0.5..0.75).contains(&share), "{counts:?}");
        assert!(counts.most_of_one_flow > 8, "{counts:?}");
    }

    #[test]
    fn a_cache_that_holds_all_flows_begins_one_record_each_but_for_flipped_targets() {
        // With one stage, no target lies before the stage whose cache knows the flow.
        let packets: Vec<u64> = (0..5_000).map(|packet| packet % 500).collect();
        let counts = counts(Shape::of_paper(1), &packets);
        assert_eq!((counts.records, counts.second_records), (500, 0));
        assert_eq!(counts.resident, counts.resident_flows);
    }

    #[test]
    fn inactive_records_of_full_buckets_leave() {
        let shape = Shape {
            stages: 1,
            buckets: 4,
            slots: 8,
        };
        let packets: Vec<u64> = (0..20_000).map(|packet| packet / 100).collect();
        let mut table = Printed::new(shape, 50, 1);
        packets.iter().for_each(|flow| table.packet(*flow));
        let counts = table.finish();
        assert!(counts.inactive > 0, "{counts:?}");
        assert_eq!(counts.packets_in_records, 20_000);
    }
}
