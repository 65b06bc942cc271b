// SPDX-License-Identifier: Apache-2.0
//! Assigns packets to records. A flow's records, in the order in which they were handed over, hold
//! its packets in order of arrival.

use std::collections::BTreeMap;
use std::ops::Range;

use turboflow_merge::WORDS_WIDE;

use super::{Arrival, Lane, Observed, Record, Setup};

/// A key, padded to the width of the widest.
pub(super) type Key = [u64; WORDS_WIDE];

/// A record, and the packets that it should hold.
pub(super) struct Run<'a> {
    pub(super) record: &'a Record,
    /// Index of the event that handed it over.
    pub(super) event: usize,
    /// How many frames had been given by then.
    pub(super) given: usize,
    /// Indices into [`Flow::packets`], clipped to its length.
    pub(super) packets: Range<usize>,
}

/// The packets and records of a flow.
pub(super) struct Flow<'a> {
    pub(super) lane: Lane,
    /// Indices of its packets in the list of arrivals.
    pub(super) packets: Vec<usize>,
    pub(super) runs: Vec<Run<'a>>,
}

impl Flow<'_> {
    /// The sum of the packet counts of its records.
    pub(super) fn packets_in_records(&self) -> u64 {
        self.runs.iter().map(|run| run.record.base.packets).sum()
    }

    /// The arrivals of a run's packets.
    pub(super) fn arrivals_of(&self, run: &Run<'_>) -> &[usize] {
        &self.packets[run.packets.clone()]
    }
}

/// All flows of a trial.
pub(super) struct Flows<'a> {
    pub(super) by_key: BTreeMap<Key, Flow<'a>>,
    /// Records with a key that no packet has.
    pub(super) unknown_records: Vec<&'a Record>,
}

impl<'a> Flows<'a> {
    pub(super) fn new(setup: &Setup, arrivals: &[Arrival], observed: &'a Observed) -> Self {
        let mut by_key: BTreeMap<Key, Flow<'a>> = BTreeMap::new();
        for (number, arrival) in arrivals.iter().enumerate() {
            if let Ok((packet, values)) = &arrival.packet {
                let (key, _) = setup.layout.key(packet, values);
                let flow = by_key.entry(key).or_insert_with(|| Flow {
                    lane: Lane::of(&setup.layout, packet),
                    packets: Vec::new(),
                    runs: Vec::new(),
                });
                flow.packets.push(number);
            }
        }
        let mut unknown_records = Vec::new();
        for (event, lane, record) in observed.records() {
            let flow = by_key.get_mut(&record.key);
            let Some(flow) = flow.filter(|flow| flow.lane == lane) else {
                unknown_records.push(record);
                continue;
            };
            let start = flow.runs.last().map_or(0, |run| run.packets.end);
            let left = flow.packets.len() - start;
            let packets =
                usize::try_from(record.base.packets).map_or(left, |count| count.min(left));
            flow.runs.push(Run {
                record,
                event,
                given: observed.events[event].given,
                packets: start..start + packets,
            });
        }
        Self {
            by_key,
            unknown_records,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Flow<'a>> {
        self.by_key.values()
    }
}
