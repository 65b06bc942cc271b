// SPDX-License-Identifier: Apache-2.0
//! Tracks flows: when they begin, and how many are active at a time.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use turboflow_merge::KeyHash;

use super::SimulationConfig;

/// Number of parts of the idle timeout by which active flows are counted. A flow counts as active
/// for up to a 64th of the timeout too long.
const PARTS: u64 = 64;
/// Number of parts kept: one more, so that no flow is forgotten before its timeout has passed.
const KEPT: usize = PARTS as usize + 1;

/// Uses a flow's hash unchanged: it is keyed and evenly distributed.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("hashes of flows are whole words");
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// The state of a flow.
#[derive(Clone, Copy)]
struct FlowState {
    /// The time of its last packet.
    last_ns: u64,
    /// The first packet of its current flow record.
    record_ns: u64,
}

/// Flows by hash, and the number active in each part of the idle timeout.
pub(super) struct Flows {
    seen: HashMap<u64, FlowState, BuildHasherDefault<IdentityHasher>>,
    active_by_part: [u64; KEPT],
    active: u64,
    idle_timeout_ns: u64,
    active_timeout_ns: u64,
    part_ns: u64,
    max_flows: usize,
    /// The part in which expired flows were last removed.
    swept: Option<u64>,
    clock: Option<Clock>,
    pub(super) opened: u64,
    /// Flow records that these flows make.
    pub(super) records: u64,
    pub(super) peak_active: u64,
    /// Packets of flows beyond the limit on tracked flows.
    pub(super) untracked_packets: u64,
    /// Number of times that the clock was set back by more than the idle timeout.
    pub(super) clock_steps: u64,
    /// Observed time in nanoseconds, without gaps longer than the idle timeout.
    pub(super) observed_ns: u64,
    /// Sum of the gaps longer than the idle timeout, in nanoseconds.
    pub(super) silent_ns: u64,
}

#[derive(Clone, Copy)]
struct Clock {
    now_ns: u64,
    part: u64,
}

impl Flows {
    pub(super) fn new(config: &SimulationConfig) -> Self {
        let idle_timeout_ns = config.idle_timeout_ns;
        Self {
            seen: HashMap::default(),
            active_by_part: [0; KEPT],
            active: 0,
            idle_timeout_ns,
            active_timeout_ns: config.active_timeout_ns,
            part_ns: idle_timeout_ns.div_ceil(PARTS).max(1),
            max_flows: config.max_flows,
            swept: None,
            clock: None,
            opened: 0,
            records: 0,
            peak_active: 0,
            untracked_packets: 0,
            clock_steps: 0,
            observed_ns: 0,
            silent_ns: 0,
        }
    }

    /// Observes a packet. A flow begins with its first packet, and begins again after a gap longer
    /// than the idle timeout.
    pub(super) fn observe(&mut self, hash: KeyHash, timestamp_ns: u64) {
        let Clock { now_ns, part } = self.advance(timestamp_ns);
        let has_room = self.has_room(part);
        let Some(seen) = self.seen.get_mut(&hash.0) else {
            self.opened += 1;
            self.records += 1;
            if has_room {
                let (last_ns, record_ns) = (now_ns, now_ns);
                self.seen.insert(hash.0, FlowState { last_ns, record_ns });
                self.activate(part);
            } else {
                self.untracked_packets += 1;
            }
            return;
        };
        let begins_again = now_ns - seen.last_ns > self.idle_timeout_ns;
        let last_part = seen.last_ns / self.part_ns;
        seen.last_ns = now_ns;
        self.opened += u64::from(begins_again);
        if begins_again || now_ns - seen.record_ns > self.active_timeout_ns {
            self.records += 1;
            seen.record_ns = now_ns;
        }
        if last_part == part {
            return;
        }
        if part - last_part < KEPT as u64 {
            self.active_by_part[last_part as usize % KEPT] -= 1;
            self.active -= 1;
        }
        self.activate(part);
    }

    fn activate(&mut self, part: u64) {
        self.active_by_part[part as usize % KEPT] += 1;
        self.active += 1;
        self.peak_active = self.peak_active.max(self.active);
    }

    /// Moves the clock forward; late packets do not change it.
    fn advance(&mut self, timestamp_ns: u64) -> Clock {
        let part = timestamp_ns / self.part_ns;
        let Some(clock) = &mut self.clock else {
            return *self.clock.insert(Clock {
                now_ns: timestamp_ns,
                part,
            });
        };
        if timestamp_ns.saturating_add(self.idle_timeout_ns) < clock.now_ns {
            self.clock_steps += 1;
            self.seen.clear();
            self.active_by_part = [0; KEPT];
            self.active = 0;
            self.swept = None;
            let now_ns = timestamp_ns;
            *clock = Clock { now_ns, part };
            return *clock;
        }
        let passed_ns = timestamp_ns.saturating_sub(clock.now_ns);
        clock.now_ns += passed_ns;
        let sum_ns = match passed_ns <= self.idle_timeout_ns {
            true => &mut self.observed_ns,
            false => &mut self.silent_ns,
        };
        *sum_ns = sum_ns.saturating_add(passed_ns);
        if part > clock.part {
            let gone = (part - clock.part).min(KEPT as u64);
            for over in 1..=gone {
                let place = (clock.part + over) as usize % KEPT;
                self.active -= std::mem::take(&mut self.active_by_part[place]);
            }
            clock.part = part;
        }
        *clock
    }

    /// Whether another flow may be kept. Expired flows are removed once per part of the timeout,
    /// because none can expire within a part.
    fn has_room(&mut self, part: u64) -> bool {
        if self.seen.len() >= self.max_flows && self.swept != Some(part) {
            self.swept = Some(part);
            let part_ns = self.part_ns;
            self.seen
                .retain(|_, seen| part - seen.last_ns / part_ns < KEPT as u64);
        }
        self.seen.len() < self.max_flows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn of_at_most(max_flows: usize) -> Flows {
        Flows::new(&SimulationConfig {
            max_flows,
            ..SimulationConfig::default()
        })
    }

    fn flows(packets: &[(u64, u64)]) -> Flows {
        let mut flows = of_at_most(1_000);
        for (flow, second) in packets {
            flows.observe(KeyHash(*flow), second * SECOND_NS);
        }
        flows
    }

    #[test]
    fn a_flow_begins_again_after_a_silence_longer_than_the_timeout() {
        let seen = flows(&[(1, 100), (1, 130), (1, 161), (1, 191)]);
        assert_eq!((seen.opened, seen.peak_active), (2, 1));
    }

    #[test]
    fn only_a_flow_that_exceeds_the_active_timeout_has_another_record() {
        let short = flows(&[(1, 100), (2, 100), (1, 120), (2, 125), (1, 140)]);
        assert_eq!((short.opened, short.records), (2, 2));
        // Packets every 20 s, split before packets that are 121 s or more after the first one of
        // the record.
        let long: Vec<(u64, u64)> = (0..15).map(|packet| (1, 100 + 20 * packet)).collect();
        let long = flows(&long);
        assert_eq!((long.opened, long.records), (1, 3));
        let again = flows(&[(1, 100), (1, 161), (1, 180)]);
        assert_eq!((again.opened, again.records), (2, 2));
    }

    #[test]
    fn flows_are_active_for_little_longer_than_the_timeout() {
        let seen = flows(&[(1, 100), (2, 110), (3, 131), (4, 150)]);
        assert_eq!((seen.opened, seen.peak_active), (4, 2));
        let apart = flows(&[(1, 100), (2, 140), (3, 180)]);
        assert_eq!((apart.opened, apart.peak_active), (3, 1));
        let moving = flows(&[(1, 100), (2, 101), (1, 125), (2, 126), (3, 154)]);
        assert_eq!((moving.opened, moving.peak_active), (3, 3));
    }

    #[test]
    fn silences_are_not_counted_and_a_clock_set_back_restarts() {
        let seen = flows(&[(1, 1_000), (1, 1_010), (1, 5_000), (1, 5_005)]);
        assert_eq!(
            (seen.observed_ns, seen.silent_ns),
            (15 * SECOND_NS, 3_990 * SECOND_NS)
        );
        let back = flows(&[(1, 1_000), (2, 1_010), (1, 100), (1, 101)]);
        assert_eq!((back.clock_steps, back.opened, back.peak_active), (1, 3, 2));
        assert_eq!(back.observed_ns, 11 * SECOND_NS);
        let late = flows(&[(1, 1_000), (2, 990), (1, 1_001)]);
        assert_eq!(
            (late.clock_steps, late.opened, late.observed_ns),
            (0, 2, SECOND_NS)
        );
    }

    #[test]
    fn never_keeps_more_flows_than_it_may() {
        let mut seen = of_at_most(10);
        for flow in 0..15 {
            seen.observe(KeyHash(flow), 100 * SECOND_NS);
        }
        assert_eq!((seen.seen.len(), seen.untracked_packets), (10, 5));
        assert_eq!((seen.opened, seen.peak_active), (15, 10));
        // The earlier flows have expired, and are removed.
        seen.observe(KeyHash(100), 200 * SECOND_NS);
        assert_eq!((seen.seen.len(), seen.untracked_packets), (1, 5));
    }
}
