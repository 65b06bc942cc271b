// SPDX-License-Identifier: Apache-2.0
//! The timestamps of engines with their own clock, read from their records.
//!
//! A record of the default definition holds the times of its first and last packet. Packets between
//! them are given the time of the first, because nothing in such a record depends on their times
//! and they are in the same cell. Records with further features list the times of their packets
//! (`Setup::timed`).

use std::collections::BTreeMap;

use turboflow_record::Input;

use super::runs::{Flows, Key, Run};
use super::setup::TIMES;
use super::{Arrival, Setup};

/// The arrivals. If records have further features, every flow is limited to as many packets as a
/// record lists times.
pub(super) fn shortened(setup: &Setup, arrivals: &[Arrival]) -> Vec<Arrival> {
    if setup.times_at().is_none() {
        return arrivals.to_vec();
    }
    let mut packets: BTreeMap<Key, usize> = BTreeMap::new();
    let mut is_known = |arrival: &&Arrival| {
        arrival.packet.as_ref().map_or(true, |(packet, values)| {
            let count = packets
                .entry(setup.layout.key(packet, values).0)
                .or_default();
            *count += 1;
            *count <= TIMES
        })
    };
    arrivals
        .iter()
        .filter(|arrival| is_known(arrival))
        .cloned()
        .collect()
}

/// The arrivals with the engine's timestamps. An arrival in no record gets the last known
/// timestamp.
pub(super) fn stamped(setup: &Setup, arrivals: &[Arrival], flows: &Flows<'_>) -> Vec<Arrival> {
    let times_at = setup.times_at();
    let mut times: Vec<Option<u64>> = vec![None; arrivals.len()];
    for flow in flows.iter() {
        for run in &flow.runs {
            let own = flow.arrivals_of(run);
            for (place, number) in own.iter().enumerate() {
                times[*number] = Some(time_of(run, place, own.len(), times_at));
            }
        }
    }
    let mut last_ns = 0;
    let mut stamped = arrivals.to_vec();
    for (arrival, time_ns) in stamped.iter_mut().zip(times) {
        last_ns = time_ns.unwrap_or(last_ns);
        if let Ok((packet, values)) = &mut arrival.packet {
            packet.timestamp_ns = last_ns;
            values.set(Input::Timestamp, last_ns);
        }
    }
    stamped
}

/// The arrival time of a packet, given its position in a record.
fn time_of(run: &Run<'_>, place: usize, packets: usize, times_at: Option<usize>) -> u64 {
    let (base, state) = (&run.record.base, &run.record.state);
    match times_at {
        Some(at) if (place as u64) < state[at] => state[at + 1 + place],
        _ if place > 0 && place + 1 == packets => base.last_ns,
        _ => base.first_ns,
    }
}
