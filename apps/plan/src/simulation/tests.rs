// SPDX-License-Identifier: Apache-2.0
//! Compares the simulation with a straightforward implementation, and with the bound.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use turboflow_merge::KeyHasher;

use super::*;

const MS_NS: u64 = 1_000_000;

fn config(table_slots: &[u32]) -> SimulationConfig {
    SimulationConfig {
        table_slots: table_slots.to_vec(),
        ..SimulationConfig::default()
    }
}

/// Packets of the numbered flows, `apart_ns` apart.
fn packets(flows: &[u64], apart_ns: u64, seed: u64) -> Vec<Observed> {
    let hasher = KeyHasher::new(seed);
    let packet = |(index, flow): (usize, &u64)| Observed {
        hash: hasher.hash(&[*flow, 7]),
        timestamp_ns: 1_000 * MS_NS + index as u64 * apart_ns,
        wire_bytes: 100,
        is_ipv6: flow % 4 == 3,
    };
    flows.iter().enumerate().map(packet).collect()
}

fn simulate(packets: &[Observed], config: &SimulationConfig) -> Measured {
    let mut simulation = Simulation::new(config).unwrap();
    // Uneven batches, because nothing may depend on batch boundaries.
    for batch in packets.chunks(7) {
        simulation.observe(batch);
    }
    simulation.finish()
}

/// The table, implemented in the simplest way.
fn plain(packets: &[Observed], slots: u32) -> (u64, u64) {
    let mut residents: HashMap<usize, u64> = HashMap::new();
    let (mut started, mut evicted) = (0, 0);
    for packet in packets {
        match residents.insert(packet.hash.slot(slots), packet.hash.0) {
            Some(resident) if resident == packet.hash.0 => {}
            resident => {
                started += 1;
                evicted += u64::from(resident.is_some());
            }
        }
    }
    (started, evicted)
}

#[test]
fn refuses_invalid_configurations() {
    let refused = |config: SimulationConfig| Simulation::new(&config).err().unwrap().argument;
    assert_eq!(refused(config(&[4, 0])), "table_slots");
    assert_eq!(refused(config(&[1; MAX_TABLES + 1])), "table_slots");
    let idle_timeout_ns = 0;
    let never = SimulationConfig {
        idle_timeout_ns,
        ..config(&[4])
    };
    assert_eq!(refused(never), "idle_timeout_ns");
    let interval_ns = 0;
    assert_eq!(
        refused(SimulationConfig {
            interval_ns,
            ..config(&[4])
        }),
        "interval_ns"
    );
    let max_flows = 0;
    assert_eq!(
        refused(SimulationConfig {
            max_flows,
            ..config(&[4])
        }),
        "max_flows"
    );
}

#[test]
fn counts_packets_flows_bytes_and_time() {
    let packets = packets(&[1, 2, 1, 1, 3, 1], 250 * MS_NS, 1);
    let measured = simulate(&packets, &config(&[1_024]));
    assert_eq!((measured.packets, measured.wire_bytes), (6, 600));
    assert_eq!((measured.flows_opened, measured.peak_active_flows), (3, 3));
    assert_eq!(measured.observed_ns, 1_250 * MS_NS);
    let traffic = measured.traffic().unwrap();
    assert_eq!(traffic.packets_per_second, 4.8);
    assert_eq!(traffic.flows_per_second, 2.4);
    assert_eq!(traffic.mean_packet_bytes, Some(100.0));
    let packets_by_interval: Vec<u64> = measured
        .intervals
        .iter()
        .map(|interval| interval.packets)
        .collect();
    assert_eq!(packets_by_interval, [2, 2, 2]);
    // The mean, because the last interval is incomplete.
    assert_eq!(measured.busiest_packets_per_second(), 4.8);
    assert_eq!(measured.intervals[0].start_ns, 1_000 * MS_NS);
}

#[test]
fn the_busiest_interval_is_counted_from_the_first_packet_and_never_below_the_mean() {
    let mut burst = packets(&[1; 10], 40 * MS_NS, 1);
    for packet in &mut burst {
        // From 300 ms to 660 ms of a second: less than half a second, but across the middle of the
        // second.
        packet.timestamp_ns += 300 * MS_NS;
    }
    let measured = simulate(&burst, &config(&[64]));
    assert_eq!(measured.intervals.len(), 1);
    assert_eq!(measured.intervals[0].start_ns, 1_300 * MS_NS);
    let mean = measured.traffic().unwrap().packets_per_second;
    assert_eq!(measured.busiest_packets_per_second(), mean);
    burst.extend(packets(&[1; 10], 40 * MS_NS, 1).into_iter().map(|packet| {
        let timestamp_ns = packet.timestamp_ns + 20_000 * MS_NS;
        Observed {
            timestamp_ns,
            ..packet
        }
    }));
    let measured = simulate(&burst, &config(&[64]));
    assert_eq!(measured.busiest_packets_per_second(), 20.0);
}

#[test]
fn the_share_of_ipv6_is_the_larger_of_its_shares_of_packets_and_flow_records() {
    let share = |flows: &[u64]| simulate(&packets(flows, MS_NS, 1), &config(&[64])).ipv6_share();
    assert_eq!(share(&[1, 2, 4, 5]), 0.0);
    // One packet in four, one flow in two.
    assert_eq!(share(&[1, 1, 1, 3]), 0.5);
    // Three packets in four, two flows in three.
    assert_eq!(share(&[1, 3, 3, 7]), 0.75);
    assert_eq!(share(&[3, 7]), 1.0);
}

#[test]
fn a_clock_set_back_starts_an_interval_and_late_packets_do_not() {
    let mut packets = packets(&[1, 2, 3, 4, 5], 0, 1);
    for (packet, at_ms) in packets
        .iter_mut()
        .zip([90_000, 90_600, 90_400, 90_700, 1_000])
    {
        packet.timestamp_ns = at_ms * MS_NS;
    }
    let measured = simulate(&packets, &config(&[64]));
    let intervals = measured.intervals.iter();
    let found: Vec<(u64, u64)> = intervals
        .map(|interval| (interval.start_ns / MS_NS, interval.packets))
        .collect();
    assert_eq!(found, [(90_000, 1), (90_500, 3), (1_000, 1)]);
}

#[test]
fn one_packet_gives_no_rate() {
    let measured = simulate(&packets(&[1], 0, 1), &config(&[4]));
    assert_eq!(measured.traffic().unwrap_err().argument, "observed_seconds");
}

/// A skewed choice of flows, as in real traffic: `flow = below^2 / flows`.
fn skewed(flows: u64) -> impl Strategy<Value = Vec<u64>> {
    let flow = (0..flows).prop_map(move |below| below * below / flows);
    prop::collection::vec(flow, 1..400)
}

proptest! {
    /// Captures may contain any times, and users may choose any timeout.
    #[test]
    fn counts_every_packet_once_whatever_the_times(
        times in prop::collection::vec(
            prop_oneof![any::<u64>(), 0..100u64, (u64::MAX - 100)..=u64::MAX],
            1..80,
        ),
        idle_timeout_ns in prop_oneof![1..100u64, any::<u64>().prop_map(|ns| ns.max(1))],
        max_flows in 1usize..20,
    ) {
        let mut packets = packets(&(0..times.len() as u64).map(|at| at % 9).collect::<Vec<_>>(), 0, 3);
        for (packet, at_ns) in packets.iter_mut().zip(&times) {
            packet.timestamp_ns = *at_ns;
        }
        let config = SimulationConfig { idle_timeout_ns, max_flows, interval_ns: 10, ..config(&[4]) };
        let measured = simulate(&packets, &config);
        prop_assert_eq!(measured.packets, times.len() as u64);
        let sum: u64 = measured.intervals.iter().map(|interval| interval.packets).sum();
        prop_assert_eq!(sum, measured.packets);
        prop_assert!(measured.flows_opened <= measured.packets);
        prop_assert!(measured.peak_active_flows <= max_flows as u64);
    }

    #[test]
    fn equals_plain_tables_whatever_their_sizes(
        flows in skewed(60),
        slots in prop::collection::vec(1u32..300, 1..6),
        seed in any::<u64>(),
    ) {
        let packets = packets(&flows, MS_NS, seed);
        let measured = simulate(&packets, &config(&slots));
        let wanted: HashSet<u32> = slots.iter().copied().collect();
        prop_assert_eq!(measured.tables.len(), wanted.len());
        for table in &measured.tables {
            let found = (table.microflows, table.evictions);
            prop_assert_eq!(found, plain(&packets, table.slots), "{} slots", table.slots);
        }
        let by_interval = |of: fn(&Interval) -> u64| measured.intervals.iter().map(of).sum::<u64>();
        prop_assert_eq!(by_interval(|interval| interval.packets), measured.packets);
        prop_assert_eq!(by_interval(|interval| interval.flows_opened), measured.flows_opened);
        prop_assert_eq!(by_interval(|interval| interval.microflows[0]), measured.tables[0].microflows);
    }

    #[test]
    fn a_very_large_table_evicts_nothing(flows in skewed(60), seed in any::<u64>()) {
        let packets = packets(&flows, MS_NS, seed);
        let distinct = flows.iter().collect::<HashSet<_>>().len();
        let slots: HashSet<usize> = packets.iter().map(|packet| packet.hash.slot(1 << 26)).collect();
        // Two flows may share a slot by chance; then the table does evict.
        prop_assume!(slots.len() == distinct);
        let distinct = distinct as u64;
        let measured = simulate(&packets, &config(&[1, 1 << 26]));
        let endless = measured.tables[1];
        prop_assert_eq!((endless.microflows, endless.evictions), (distinct, 0));
        prop_assert_eq!(measured.flows_opened, distinct);
        // A table of one slot begins a record whenever the flow changes.
        let changes = 1 + flows.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
        prop_assert_eq!(measured.tables[0].microflows, changes);
    }

    /// The bound is an expectation over hash functions, so it is compared with the mean over many.
    #[test]
    fn the_worst_case_is_above_what_is_measured(
        flows in skewed(60),
        apart_ns in prop::sample::select(vec![MS_NS, 40 * MS_NS, 900 * MS_NS]),
    ) {
        const SEEDS: u64 = 64;
        let slots = [4, 16, 64, 256];
        let (mut worst, mut found) = ([0.0; 4], [const { Vec::new() }; 4]);
        for seed in 0..SEEDS {
            let measured = simulate(&packets(&flows, apart_ns, seed), &config(&slots));
            for (index, table) in measured.tables.iter().enumerate() {
                found[index].push(table.microflows as f64);
                worst[index] = table.microflows as f64 * measured.worst_case_to_measured(table);
            }
        }
        for (worst, found) in worst.into_iter().zip(found) {
            let mean = found.iter().sum::<f64>() / SEEDS as f64;
            let squares: f64 = found.iter().map(|found| (found - mean).powi(2)).sum();
            // An event that happens for one seed in 7 is missing from all 64 seeds with a
            // probability of e^-10. It then does not show in the variance.
            let unseen = 10.0 / SEEDS as f64;
            let chance = 4.0 * (squares / (SEEDS * (SEEDS - 1)) as f64).sqrt() + unseen;
            prop_assert!(mean - chance <= worst * (1.0 + 1e-9), "{mean} of at most {worst}");
        }
    }
}
