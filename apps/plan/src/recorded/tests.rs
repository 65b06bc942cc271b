// SPDX-License-Identifier: Apache-2.0
//! Compares flow records with the packets that they were made from.

use std::collections::HashMap;

use proptest::prelude::*;
use turboflow_merge::KeyHasher;

use super::*;
use crate::{Observed, Simulation, SimulationConfig};

const S: u64 = 1_000_000_000;
const IDLE: u64 = 30 * S;

fn record(hash: u64, first_s: u64, last_s: u64, packets: u64) -> RecordedFlow {
    RecordedFlow {
        hash,
        first_ns: first_s * S,
        last_ns: last_s * S,
        packets,
        bytes: packets * 100,
        is_ipv6: hash % 4 == 3,
    }
}

fn recorded(records: &[RecordedFlow], from_s: u64, to_s: u64) -> Recorded {
    let mut recording = Recording::new(from_s * S, to_s * S, IDLE, 1000);
    for record in records {
        recording.add(record).unwrap();
    }
    recording.finish()
}

#[test]
fn records_of_one_flow_are_one_flow_until_it_is_idle() {
    let cut = [
        record(1, 100, 220, 9),
        record(1, 0, 99, 3),
        record(1, 251, 260, 4),
    ];
    let all = recorded(&cut, 0, 1000);
    assert_eq!((all.flows_opened, all.peak_active_flows), (2, 1));
    // The flow is active until 250 s, and begins again at 251 s.
    assert_eq!(recorded(&cut[..2], 0, 1000).flows_opened, 1);
    let steps = recorded(&cut[..2], 0, 1000).steps(0, 50 * S, 8);
    let active: Vec<u64> = steps.iter().map(|step| step.active_flows).collect();
    assert_eq!(active, [1, 1, 1, 1, 1, 1, 0, 0]);
    assert_eq!(steps[0].flows_opened, 1);
}

#[test]
fn a_part_of_time_has_the_flows_that_are_active_in_it() {
    // The second flow ended 20 s before the range and is still active; the third ended too early.
    let records = [
        record(1, 0, 100, 100),
        record(2, 0, 30, 5),
        record(3, 0, 10, 5),
        record(4, 55, 55, 1),
    ];
    let part = recorded(&records, 50, 60);
    assert_eq!((part.flows_opened, part.peak_active_flows), (1, 3));
    assert_eq!(part.peak_ns, Some(55 * S));
    assert!((part.packets - 11.0).abs() < 1e-6, "{}", part.packets);
    assert_eq!(part.observed_ns, 10 * S - 1);
    assert_eq!(part.ipv6_share, 0.0);
    let mut full = Recording::new(0, 60 * S, IDLE, 1);
    full.add(&records[0]).unwrap();
    full.add(&record(5, 70, 80, 1)).unwrap();
    assert_eq!(full.add(&records[1]), Err(TooMany));
}

#[test]
fn silences_are_no_observed_time() {
    let records = [
        record(1, 0, 10, 2),
        record(2, 41, 50, 2),
        record(3, 60, 60, 2),
    ];
    assert_eq!(recorded(&records, 0, 100).observed_ns, 29 * S);
    let one = recorded(&records[2..], 0, 100);
    assert_eq!(one.traffic().unwrap_err().argument, "observed_seconds");
    assert_eq!(recorded(&[], 0, 100).peak_ns, None);
}

#[test]
fn rates_that_cannot_be_are_raised() {
    // 100 flows begin within one second. On a link that continues like this, 3,000 are active after
    // half a minute.
    let short: Vec<_> = (0..100)
        .map(|hash| record(hash, hash % 2, hash % 2, 1))
        .collect();
    let planned = recorded(&short, 0, 10).traffic().unwrap();
    assert_eq!(
        (planned.traffic.active_flows, planned.is_peak_raised),
        (3000.0, true)
    );
    // A scan within an hour: 600 flows that are active together require 20 packets per second.
    let mut scan: Vec<_> = (0..600).map(|hash| record(hash, 9, 9, 1)).collect();
    scan.push(record(700, 0, 3600, 100));
    let planned = recorded(&scan, 0, 4000).traffic().unwrap();
    assert_eq!(
        (planned.traffic.packets_per_second, planned.is_rate_raised),
        (20.0, true)
    );
    assert!(!planned.is_peak_raised);
}

/// Packets ordered by time, and the records that a flow cache makes of them, cut at arbitrary
/// packets.
fn traffic() -> impl Strategy<Value = (Vec<Observed>, Vec<RecordedFlow>)> {
    let packets = prop::collection::vec((0u64..12, 0u64..40 * S, any::<bool>()), 2..80);
    packets.prop_map(|packets| {
        let hasher = KeyHasher::new(1);
        let (mut now_ns, mut observed) = (S, Vec::new());
        let mut records: Vec<RecordedFlow> = Vec::new();
        let mut open: HashMap<u64, usize> = HashMap::new();
        for (flow, gap_ns, is_cut) in packets {
            now_ns += gap_ns / 4;
            let hash = hasher.hash(&[flow, 7]);
            let is_ipv6 = flow % 4 == 3;
            observed.push(Observed {
                hash,
                timestamp_ns: now_ns,
                wire_bytes: 100,
                is_ipv6,
            });
            let place = open.get(&hash.0).copied().filter(|_| !is_cut);
            match place.filter(|place| now_ns - records[*place].last_ns <= IDLE) {
                Some(place) => {
                    let record = &mut records[place];
                    (record.last_ns, record.packets) = (now_ns, record.packets + 1);
                    record.bytes += 100;
                }
                None => {
                    open.insert(hash.0, records.len());
                    records.push(RecordedFlow {
                        hash: hash.0,
                        first_ns: now_ns,
                        last_ns: now_ns,
                        packets: 1,
                        bytes: 100,
                        is_ipv6,
                    });
                }
            }
        }
        records.reverse();
        (observed, records)
    })
}

proptest! {
    #[test]
    fn records_tell_what_their_packets_tell((packets, records) in traffic()) {
        let mut simulation = Simulation::new(&SimulationConfig::default()).unwrap();
        simulation.observe(&packets);
        let measured = simulation.finish();
        let mut recording = Recording::new(0, u64::MAX, IDLE, records.len());
        for record in &records {
            recording.add(record).unwrap();
        }
        let recorded = recording.finish();
        prop_assert_eq!(recorded.packets, measured.packets as f64);
        prop_assert_eq!(recorded.bytes, measured.wire_bytes as f64);
        prop_assert_eq!(recorded.flows_opened, measured.flows_opened);
        prop_assert_eq!(recorded.observed_ns, measured.observed_ns);
        // The simulation keeps flows active for up to a 64th of the timeout too long.
        prop_assert!(recorded.peak_active_flows <= measured.peak_active_flows);
        if let Ok(planned) = recorded.traffic() {
            planned.traffic.check().unwrap();
            planned.traffic.check_active_flows(30.0).unwrap();
        }
    }

    #[test]
    fn every_step_has_its_peak(
        (_, records) in traffic(),
        from_s in 0u64..200,
        length_s in 1u64..200,
        width_s in 1u64..20,
    ) {
        let (from_ns, to_ns) = (from_s * S, (from_s + length_s) * S);
        let mut recording = Recording::new(from_ns, to_ns, IDLE, records.len());
        for record in &records {
            recording.add(record).unwrap();
        }
        let recorded = recording.finish();
        let width_ns = width_s * S;
        let steps = recorded.steps(from_ns, width_ns, length_s.div_ceil(width_s) as usize);
        let most = steps.iter().map(|step| step.active_flows).max();
        prop_assert_eq!(most, Some(recorded.peak_active_flows));
        let opened: u64 = steps.iter().map(|step| step.flows_opened).sum();
        prop_assert_eq!(opened, recorded.flows_opened);
        if let Ok(planned) = recorded.traffic() {
            planned.traffic.check_active_flows(30.0).unwrap();
        }
    }
}
