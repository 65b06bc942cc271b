// SPDX-License-Identifier: Apache-2.0
//! Offload plans, compared with computations by hand.

use super::*;

/// A hundred packets per flow; each active flow has two per second.
const LINK: Traffic = Traffic {
    packets_per_second: 1_000.0,
    flows_per_second: 10.0,
    active_flows: 500.0,
    mean_packet_bytes: Some(100.0),
};

/// A thousand rows, of which a hundred can be added per second; all delays are a second.
pub(super) fn plain() -> Card {
    Card {
        name: "plain".to_owned(),
        place: Place::Card,
        capacity: 1_000.0,
        learning_rate: 100.0,
        memory: None,
        delay_seconds: 1.0,
        event_lag_seconds: 2.0,
        host_bytes_per_flow: Some(50.0),
        bus_bits_per_second: None,
    }
}

pub(super) fn cuckoo(accesses_per_second: f64) -> Card {
    Card {
        memory: Some(CuckooMemory {
            accesses_per_second,
            ways: 2,
            slots: 4,
        }),
        ..plain()
    }
}

/// Costs that are easy to compute with.
fn assumptions() -> Assumptions {
    let mut assumptions = Assumptions::default();
    for (assumption, value) in [
        (Assumption::CoreUtilization, 0.5),
        (Assumption::InspectionNsPerPacket, 3e6),
        (Assumption::InspectionPacketsPerFlow, 4.0),
        (Assumption::MeterPacketsPerSecondPerCore, 1_000.0),
        (Assumption::OffloadNsPerFlow, 5e6),
        (Assumption::ServerCores, 2.0),
        (Assumption::BusBitsPerSecond, 480e3),
    ] {
        assumptions.set(assumption, value, "the test").unwrap();
    }
    assumptions
}

fn planned(card: &Card, traffic: &Traffic, links: u64) -> OffloadPlan {
    OffloadPlan::of(card, traffic, links, &assumptions()).unwrap()
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

fn use_of(plan: &OffloadPlan, of: Bottleneck) -> (f64, f64) {
    let mut uses = plan.uses.iter();
    let found = uses.find(|one| one.of == of).unwrap();
    close(found.share, found.needed / found.available);
    (found.needed, found.available)
}

#[test]
fn the_host_sees_the_first_packets_and_those_of_the_delay() {
    let plan = planned(&plain(), &LINK, 1);
    // 4 packets until a flow is decided, and 2 during the second until its row is in place.
    close(plan.inspected.packets_per_second, 10.0 * (4.0 + 2.0));
    close(plan.inspected.packet_share, 0.06);
    // The first packet decides, and 2 more follow before the row is in place.
    close(plan.uninspected.packets_per_second, 10.0 * (1.0 + 2.0));
    assert_eq!(plan.software.packet_share, 1.0);
    // 60 ms for packets, 50 ms for flows and 40 inspections of 3 ms, on half-utilized cores.
    close(plan.inspected.cores, (0.060 + 0.050 + 0.120) / 0.5);
    close(plan.uninspected.cores, (0.030 + 0.050) / 0.5);
    close(plan.software_inspected.cores, (1.0 + 0.120) / 0.5);
    close(plan.software.cores, 1.0 / 0.5);
    // 60 packets of 100 bytes instead of 1,000.
    close(plan.bus_bits_per_second_saved().unwrap(), 940.0 * 800.0);
    assert_eq!(plan.host_bytes, Some(25_000.0));
}

#[test]
fn what_is_used_most_limits_first() {
    let plan = planned(&plain(), &LINK, 1);
    // Rows are freed 2 s after the end of their flows.
    assert_eq!(use_of(&plan, Bottleneck::Rows), (520.0, 1_000.0));
    assert_eq!(use_of(&plan, Bottleneck::Births), (10.0, 100.0));
    assert_eq!(use_of(&plan, Bottleneck::Bus), (60.0 * 800.0, 480e3));
    let (cores, available) = use_of(&plan, Bottleneck::HostCores);
    close(cores, 0.46);
    assert_eq!(available, 2.0);
    assert_eq!(
        (plan.first_limit, plan.offloaded_share),
        (Bottleneck::Rows, 1.0)
    );
    let narrow = Card {
        bus_bits_per_second: Some(50e3),
        ..plain()
    };
    assert_eq!(planned(&narrow, &LINK, 1).first_limit, Bottleneck::Bus);
}

#[test]
fn flows_without_a_row_stay_in_software_with_all_their_packets() {
    // Four links need 2,080 rows of 1,000.
    let plan = planned(&plain(), &LINK, 4);
    close(plan.offloaded_share, 1_000.0 / 2_080.0);
    let refused = 1.0 - 1_000.0 / 2_080.0;
    let packets = (1.0 - refused) * 240.0 + refused * 4_000.0;
    close(plan.inspected.packets_per_second, packets);
    assert_eq!(plan.first_limit, Bottleneck::Rows);
    // A table that learns 5 flows per second takes half of the births.
    let slow = Card {
        learning_rate: 5.0,
        ..plain()
    };
    let plan = planned(&slow, &LINK, 1);
    assert_eq!(
        (plan.first_limit, plan.offloaded_share),
        (Bottleneck::Births, 0.5)
    );
    close(plan.inspected.packets_per_second, 0.5 * 60.0 + 500.0);
    // Every flow is inspected, whether it is offloaded or not.
    close(plan.inspected.cores, (0.530 + 0.050 + 0.120) / 0.5);
}

#[test]
fn no_more_packets_of_a_flow_reach_the_host_than_it_has() {
    let short = Traffic {
        flows_per_second: 500.0,
        ..LINK
    };
    let fast = Card {
        learning_rate: 1e6,
        capacity: 1e6,
        ..plain()
    };
    let plan = planned(&fast, &short, 1);
    // Flows of two packets end before they are decided.
    close(plan.inspected.packet_share, 1.0);
    close(plan.inspected.cores, (1.0 + 2.5 + 3.0) / 0.5);
    let none = Traffic {
        flows_per_second: 0.0,
        ..LINK
    };
    let plan = planned(&fast, &none, 1);
    assert_eq!(plan.inspected.packets_per_second, 0.0);
    assert_eq!(plan.inspected.cores, 0.0);
}

#[test]
fn a_table_in_the_host_saves_no_bus() {
    let kernel = Card {
        place: Place::Host,
        ..plain()
    };
    let plan = planned(&kernel, &LINK, 1);
    assert_eq!(plan.bus_bits_per_second_saved(), Some(0.0));
    assert!(plan.uses.iter().all(|one| one.of != Bottleneck::Bus));
    let unknown = Traffic {
        mean_packet_bytes: None,
        ..LINK
    };
    let plan = planned(&plain(), &unknown, 1);
    assert_eq!(plan.bus_bits_per_second_saved(), None);
    assert_eq!(plan.uses.len(), 3);
}

#[test]
fn a_nearly_full_cuckoo_table_is_short_of_rows_before_they_are_used_up() {
    // 936 rows of 1,000 are needed; at that load, the table cannot learn 18 flows per second.
    let busy = Traffic {
        active_flows: 900.0,
        flows_per_second: 18.0,
        ..LINK
    };
    let card = cuckoo(18.0 * 18.1);
    let plan = planned(&card, &busy, 1);
    let (needed, usable) = use_of(&plan, Bottleneck::Rows);
    assert_eq!(needed, 936.0);
    assert!((895.0..905.0).contains(&usable), "{usable}");
    assert_eq!(plan.first_limit, Bottleneck::Rows);
    close(plan.offloaded_share, usable / 936.0);
}

#[test]
fn an_impossible_card_is_refused() {
    let none = Card {
        capacity: 0.0,
        ..plain()
    };
    let error = OffloadPlan::of(&none, &LINK, 1, &assumptions()).unwrap_err();
    assert_eq!(error.argument, "capacity");
}
