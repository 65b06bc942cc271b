// SPDX-License-Identifier: Apache-2.0
//! The report on accuracy.

use turboflow_accuracy::ERROR_STEPS;

use super::{PART, within_name};
use crate::facts::{Fact, Facts, Raw};
use crate::report::axis::{Spacing, short};
use crate::report::panels::{BarSource, Panels, Row};
use crate::report::{Section, number, percent};

pub(super) fn report(raw: &Raw, section: &mut Section) {
    let facts = &raw.part(PART.name);
    let (packets, flows) = (facts.first("packets"), facts.first("flows"));
    section.say(format!(
        "{} packets of {} flows of the Internet workload go through each method as parsed packets, \
         in order, on one core. TurboFlow is the product itself: engine, aggregator, and flow \
         records summed by flow. Its numbers are compared with the truth like those of the \
         others. *Memory* is what has to be fast: the sketch, or the microflow table, 1 MiB each. \
         FlowRadar is sized by its flows, and the memory of sampling is its flow cache. A flow is \
         *named* if the method can tell that it existed, and *small* with at most 10 packets. The \
         error is |reported - true| / true; an unknown flow counts as 0 packets.",
        short(packets.unwrap_or(f64::NAN)),
        short(flows.unwrap_or(f64::NAN)),
    ));
    let rows: Vec<Vec<String>> = facts.0.iter().map(row).collect();
    let names = [
        "method",
        "flows named",
        "small flows missed",
        "exact",
        "mean error",
        "median",
        "90 %",
        "99 %",
        "memory",
        "flow cache",
        "ns a packet",
    ];
    section.table(&names, &rows);
    section.plot(
        "accuracy-flows",
        "Flows named and small flows missed, by method",
        named(facts),
    );
    section.plot(
        "accuracy-error",
        "Share of flows within an error",
        errors(facts),
    );
    section.say(
        "This agrees with what the paper says without numbers (sections 2.1 and 2.2). Sampling \
         loses nearly all small flows, and counts the others in steps of the interval. FlowRadar \
         names every flow while its table has enough cells, and fails suddenly when it has not. \
         One false positive of its filter spoils the packet counts of many flows during decoding, \
         and decoding is work for a server. Count-Min cannot name flows. HashPipe keeps heavy \
         flows only. The Elastic sketch is good at heavy flows and approximate for the rest. \
         TurboFlow names every flow and counts every packet; the price is the memory of a flow \
         cache beside the fast table. Nanoseconds per packet are those of this processor; \
         switches do the work of a sketch in hardware.",
    );
}

fn row(fact: &Fact) -> Vec<String> {
    let bytes = |name: &str| match fact.get(name) {
        0.0 => "-".to_owned(),
        bytes => format!("{:.0} KiB", bytes / 1_024.0),
    };
    let mut row = vec![fact.label("design").to_owned()];
    row.extend(
        ["listed_share", "small_missed_share", "exact_share"].map(|name| percent(fact.get(name))),
    );
    row.extend(
        ["error_mean", "error_p50", "error_p90", "error_p99"].map(|name| number(fact.get(name), 3)),
    );
    row.extend(["memory_bytes", "flow_cache_bytes"].map(bytes));
    row.push(number(fact.get("ns_per_packet"), 1));
    row
}

/// The row of TurboFlow has its own colour.
fn source(design: &str) -> BarSource {
    match design {
        "TurboFlow" => BarSource::Ours,
        _ => BarSource::Others,
    }
}

/// Flows that each method lists, and small flows that it misses.
fn named(facts: &Facts) -> String {
    let rows = facts.0.iter().map(|fact| {
        let shares = ["listed_share", "small_missed_share"];
        let values = shares.map(|name| Some(fact.get(name) * 100.0));
        let design = fact.label("design");
        Row::new(design, source(design), values.to_vec())
    });
    let plot = Panels {
        title: "Flows that a method can name, and small flows that it misses",
        axis: ("% of flows", Spacing::Linear),
        panels: vec![
            "flows named (more is better)".to_owned(),
            "small flows missed (less is better)".to_owned(),
        ],
        rows: rows.collect(),
    };
    plot.svg()
}

/// Shares of flows within each error step, for one design of each kind.
fn errors(facts: &Facts) -> String {
    const SHOWN: [&str; 7] = [
        "TurboFlow",
        "sampling 1:100, random",
        "FlowRadar, 1.3 cells a flow",
        "FlowRadar, 1.1 cells a flow",
        "Count-Min",
        "HashPipe",
        "Elastic sketch",
    ];
    let panels = ERROR_STEPS.map(|step| match step {
        0.0 => "exact".to_owned(),
        step => format!("within {} %", step * 100.0),
    });
    let rows = SHOWN.iter().map(|design| {
        let of_design = facts.with("design", design);
        let shares = ERROR_STEPS.map(|step| {
            let share = of_design.first(&within_name(step));
            share.map(|share| share * 100.0)
        });
        Row::new(*design, source(design), shares.to_vec())
    });
    let plot = Panels {
        title: "Flows whose packet count is off by no more than an error",
        axis: ("% of flows", Spacing::Linear),
        panels: panels.to_vec(),
        rows: rows.collect(),
    };
    plot.svg()
}
