// SPDX-License-Identifier: Apache-2.0
//! Answers are consistent, and invalid questions are refused with the argument's name.

use super::*;
use crate::{Observed, Simulation, SimulationConfig, eviction_probability};
use turboflow_merge::KeyHasher;

const LINK: Traffic = Traffic {
    packets_per_second: 500e3,
    flows_per_second: 20e3,
    active_flows: 60e3,
    mean_packet_bytes: Some(700.0),
};

fn question(assumptions: &Assumptions, target: Target) -> Question<'_> {
    Question {
        traffic: LINK,
        measured: None,
        copies: 1.0,
        links: 4,
        target,
        assumptions,
    }
}

fn refused(question: &Question<'_>, argument: &str) -> String {
    let error = question.answer().unwrap_err();
    assert_eq!(error.argument, argument, "{error}");
    error.to_string()
}

/// 400 packets of 20 flows in turn, each flow in trains of two, over 4 s.
fn measured() -> Measured {
    let hasher = KeyHasher::new(3);
    let packets: Vec<Observed> = (0..400u64)
        .map(|index| Observed {
            hash: hasher.hash(&[index / 2 % 20, 9]),
            timestamp_ns: index * 10_000_000,
            wire_bytes: 700,
            is_ipv6: false,
        })
        .collect();
    let mut simulation = Simulation::new(&SimulationConfig::default()).unwrap();
    simulation.observe(&packets);
    simulation.finish()
}

#[test]
fn the_table_for_a_ratio_reaches_it_and_all_rates_follow() {
    let assumptions = Assumptions::default();
    let plan = question(&assumptions, Target::PacketsPerMicroflow(5.0))
        .answer()
        .unwrap();
    let need = plan.worst_case.unwrap();
    assert!(
        need.packets_per_microflow >= 5.0 && need.packets_per_microflow < 5.001,
        "{need:?}"
    );
    let rate = 4.0 * worst_case_microflows_per_second(&LINK, need.slots_per_link);
    assert_eq!(need.microflows_per_second, rate);
    assert_eq!(need.table_bytes, need.slots_per_link as f64 * 4.0 * 64.0);
    assert_eq!(need.aggregator_cores, rate / (27.2e6 * 0.8));
    assert_eq!(need.bus_bits_per_second, rate * 512.0);
    assert_eq!(need.bus_share, rate * 512.0 / 31.5e9);
    assert_eq!(plan.measured, None);
    assert_eq!(plan.software_cores, 2e6 / (14e6 * 0.8));
    // 20K new flows, and 60K active ones that may each be split every 120 s: 20,500 records per
    // second from each link. A message holds 23 records.
    assert_eq!(plan.export.flow_records_per_second, 82_000.0);
    assert!(plan.export.is_upper_bound);
    assert_eq!(
        plan.export.bits_per_second,
        82_000.0 * (58.0 + 48.0 / 23.0) * 8.0
    );
    assert_eq!(plan.terabits_per_second, 0.04);
    assert!(plan.tables.windows(2).all(|pair| {
        pair[0].worst_case_packets_per_microflow <= pair[1].worst_case_packets_per_microflow
    }));
}

#[test]
fn equivalent_targets_give_equal_tables() {
    let assumptions = Assumptions::default();
    let by_ratio = question(&assumptions, Target::PacketsPerMicroflow(8.0))
        .answer()
        .unwrap();
    let need = by_ratio.worst_case.unwrap();
    for target in [
        Target::MicroflowsPerSecond(need.microflows_per_second),
        Target::Cores(need.aggregator_cores * (1.0 + 1e-12)),
        Target::TableBytes(need.table_bytes),
    ] {
        let plan = question(&assumptions, target).answer().unwrap();
        assert_eq!(plan.worst_case, Some(need), "{target:?}");
    }
    let machine = Target::Machine {
        table_bytes: need.table_bytes,
        cores: need.aggregator_cores,
    };
    let plan = question(&assumptions, machine).answer().unwrap();
    // More table or more cores never carry fewer links. Without a table every packet is a record.
    let carried: Vec<f64> = plan
        .machines
        .iter()
        .map(|one| one.links_worst_case)
        .collect();
    assert_eq!(carried.len(), 24);
    assert!(carried.chunks(4).all(|row| row.is_sorted()));
    assert!((0..4).all(|cores| carried[cores..].iter().step_by(4).is_sorted()));
    assert!((carried[1] / (2.0 * 27.2e6 * 0.8 / 500e3) - 1.0).abs() < 1e-9);
    // Four cores merge more than the bus carries.
    assert!((carried[3] / (31.5e9 / 512.0 / 500e3) - 1.0).abs() < 1e-9);
    let limits = [1, 3].map(|index| plan.machines[index].limit_worst_case);
    assert_eq!(limits, [Limit::Cores, Limit::Bus]);
    let links = plan.capacity.unwrap().links_worst_case;
    assert!((links - 4.0).abs() < 1e-3, "{links}");
}

#[test]
fn the_default_target_is_reachable() {
    let assumptions = Assumptions::default();
    let ten = question(&assumptions, Target::Default).answer().unwrap();
    assert_eq!(ten.target_packets_per_microflow, Some(10.0));
    let mut churning = question(&assumptions, Target::Default);
    churning.traffic.flows_per_second = 100e3;
    let plan = churning.answer().unwrap();
    assert_eq!(plan.target_packets_per_microflow, Some(4.0));
    assert!(plan.worst_case.is_some());
    churning.traffic.flows_per_second = 500e3;
    let need = churning.answer().unwrap().worst_case.unwrap();
    assert_eq!((need.slots_per_link, need.packets_per_microflow), (0, 1.0));
}

#[test]
fn a_measurement_chooses_among_the_simulated_tables() {
    let assumptions = Assumptions::default();
    let measured = measured();
    let mut question = question(&assumptions, Target::PacketsPerMicroflow(10.0));
    question.traffic = measured.traffic().unwrap();
    question.measured = Some(&measured);
    let plan = question.answer().unwrap();
    let (worst, found) = (plan.worst_case.unwrap(), plan.measured.unwrap());
    assert!(found.slots_per_link <= worst.slots_per_link);
    let table = measured
        .tables
        .iter()
        .find(|table| u64::from(table.slots) == found.slots_per_link);
    let share = table.unwrap().microflows as f64 / 400.0;
    assert!((found.packets_per_microflow - 1.0 / share).abs() < 1e-9);
    assert!(found.packets_per_microflow >= 10.0);
    // As counted: 20 flows, all shorter than the active timeout, on each of the four links.
    let records = 4.0 * 20.0 / measured.seconds();
    assert!((plan.export.flow_records_per_second / records - 1.0).abs() < 1e-9);
    assert!(!plan.export.is_upper_bound);
    // More than the 20 packets of a flow is reachable only if flows last longer.
    question.target = Target::PacketsPerMicroflow(20.1);
    assert!(refused(&question, "target_ratio").contains("one for 20.00 packets"));
    // One record per flow of four seconds: the largest measured table reaches that.
    question.target = Target::PacketsPerMicroflow(19.9);
    assert!(question.answer().unwrap().measured.is_some());
}

#[test]
fn copies_of_the_measured_traffic_share_a_link_and_its_table() {
    let assumptions = Assumptions::default();
    let measured = measured();
    let mut question = question(&assumptions, Target::PacketsPerMicroflow(10.0));
    question.traffic = measured.traffic().unwrap();
    question.measured = Some(&measured);
    let one = question.answer().unwrap().measured.unwrap();
    question.copies = 2.5;
    question.traffic.packets_per_second *= 2.5;
    question.traffic.flows_per_second *= 2.5;
    question.traffic.active_flows *= 2.5;
    let more = question.answer().unwrap();
    let need = more.measured.unwrap();
    assert_eq!(need.slots_per_link, (one.slots_per_link * 5).div_ceil(2));
    assert_eq!(need.packets_per_microflow, one.packets_per_microflow);
    assert!((need.microflows_per_second / one.microflows_per_second - 2.5).abs() < 1e-9);
    assert_eq!(more.tables[1].slots_per_link, 5);
    question.copies = f64::NAN;
    refused(&question, "copies");
}

#[test]
fn invalid_arguments_are_refused_by_name() {
    let assumptions = Assumptions::default();
    let ask = |target| question(&assumptions, target);
    let mut nothing = ask(Target::Default);
    nothing.links = 0;
    refused(&nothing, "links");
    for ratio in [0.0, 0.9, -1.0, f64::NAN, f64::INFINITY, 25.1] {
        refused(&ask(Target::PacketsPerMicroflow(ratio)), "target_ratio");
    }
    for rate in [0.0, f64::NAN, 79_999.0] {
        refused(&ask(Target::MicroflowsPerSecond(rate)), "target_rate");
    }
    for cores in [0.0, -1.0, f64::NAN, 0.003] {
        refused(&ask(Target::Cores(cores)), "cores");
    }
    for bytes in [0.0, -64.0, f64::NAN, 255.0] {
        refused(&ask(Target::TableBytes(bytes)), "table_memory");
    }
    let table_bytes = 1e6;
    refused(
        &ask(Target::Machine {
            table_bytes,
            cores: 0.0,
        }),
        "cores",
    );
    let mut crowded = ask(Target::Default);
    crowded.traffic.packets_per_second = 2e6;
    let said = refused(&crowded, "link_bits_per_second");
    assert!(said.contains("11200000000 bits"), "{said}");
}

#[test]
fn a_given_table_is_divided_over_links() {
    let assumptions = Assumptions::default();
    let plan = question(&assumptions, Target::TableBytes(1e6))
        .answer()
        .unwrap();
    let need = plan.worst_case.unwrap();
    assert_eq!(need.slots_per_link, 3_906);
    let evicts = eviction_probability(3_906, 60e3);
    assert_eq!(need.microflows_per_second, 4.0 * (20e3 + 480e3 * evicts));
    assert_eq!(plan.target_packets_per_microflow, None);
}

#[test]
fn extreme_prices_give_finite_costs() {
    let mut assumptions = Assumptions::default();
    for assumption in Assumption::all() {
        use Assumption as A;
        let value = match assumption {
            A::ServerCostUsd | A::ServerPowerWatts | A::SwitchProcessorPowerWatts => 1e18,
            A::SwitchCostUsdPerTerabit | A::SwitchPowerWattsPerTerabit => 1e18,
            A::ServerCores | A::SwitchBitsPerSecond | A::CoreUtilization => 1e-18,
            A::KeyValueUpdatesPerSecondPerCore | A::CollectorRecordsPerSecondPerCore => 1e-18,
            A::AnalysisRecordsPerSecondPerCore | A::AggregatorRecordsPerSecondPerCore => 1e-18,
            _ => assumption.default_value(),
        };
        assumptions.set(assumption, value, "the test").unwrap();
    }
    let target = Target::PacketsPerMicroflow(5.0);
    let plan = question(&assumptions, target).answer().unwrap();
    for cost in [plan.cost, plan.server_based_cost] {
        for cost in [
            cost.switches,
            cost.generation,
            cost.analysis,
            cost.monitoring(),
        ] {
            assert!(cost.usd_per_terabit.is_finite() && cost.watts_per_terabit.is_finite());
        }
    }
    assert!(plan.worst_case.unwrap().aggregator_cores.is_finite());
    let beyond = assumptions.set(Assumption::ServerCostUsd, 1e300, "the test");
    let said = beyond.unwrap_err().to_string();
    assert_eq!(
        said,
        "server_cost_usd is 1e300: a number from 0 to 1e18 is needed"
    );
}
