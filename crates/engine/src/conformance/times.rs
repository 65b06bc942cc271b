// SPDX-License-Identifier: Apache-2.0
//! Engines that stamp packets themselves: their own times, as their records tell them.
//!
//! A record of the default definition tells those of its first and last packets. The ones between
//! take that of the first: nothing that such a record holds depends on them, and they are of its
//! cell. Records that hold more tell the times of all their packets (`Setup::timed`).

use std::collections::BTreeMap;

use turboflow_record::Input;

use super::runs::{Flows, Key, Run};
use super::setup::TIMES;
use super::{Arrival, Setup};

/// The arrivals, but of every flow no more than a record tells times of, where records hold more
/// than those of the default definition.
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

/// The arrivals, at the times that the engine gave them. Those of no record take the last one known.
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

/// When the packet at that place of a record arrived.
fn time_of(run: &Run<'_>, place: usize, packets: usize, times_at: Option<usize>) -> u64 {
    let (base, state) = (&run.record.base, &run.record.state);
    match times_at {
        Some(at) if (place as u64) < state[at] => state[at + 1 + place],
        _ if place > 0 && place + 1 == packets => base.last_ns,
        _ => base.first_ns,
    }
}
