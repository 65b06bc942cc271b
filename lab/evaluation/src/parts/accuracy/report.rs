// SPDX-License-Identifier: Apache-2.0
//! What the report says of accuracy.

use turboflow_accuracy::ERROR_STEPS;

use super::{PART, within_name};
use crate::facts::{Fact, Facts, Raw};
use crate::report::axis::{Spacing, short};
use crate::report::chart::{Bar, Bars};
use crate::report::{Section, number, percent};

pub(super) fn report(raw: &Raw, section: &mut Section) {
    let facts = &raw.part(PART.name);
    let (packets, flows) = (facts.first("packets"), facts.first("flows"));
    section.say(format!(
        "{} packets of {} flows of the Internet workload go through each method as parsed packets, \
         in order, on one core. TurboFlow is the product itself: engine, aggregator, flow records, \
         added up by flow; its numbers are compared with the truth as the others' are. *Memory* is \
         what has to be fast: the sketch, or our microflow table, 1 MiB each but for FlowRadar, \
         which is sized by its flows, and for sampling, whose flow cache it is. A flow is *named* \
         if the method can say that it was there, *small* with at most 10 packets; the error is \
         |said - true| / true, a flow that is not known counting as 0 packets.",
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
    let designs = facts.names("design");
    let bars = Bars {
        title: "Flows that a method can name, and small flows it misses",
        x: "",
        y: ("% of flows", Spacing::Linear),
        groups: (1..=designs.len()).map(|index| index.to_string()).collect(),
        bars: [
            ("named", "listed_share"),
            ("small, missed", "small_missed_share"),
        ]
        .into_iter()
        .enumerate()
        .map(|(colour, (name, value))| {
            let shares = facts.0.iter().map(|fact| Some(fact.get(value) * 100.0));
            Bar::ours(name, colour, shares.collect())
        })
        .collect(),
    };
    section.plot(
        "accuracy-flows",
        "Flows named and small flows missed, by method",
        bars.svg(),
    );
    let legend: Vec<String> = designs
        .iter()
        .enumerate()
        .map(|(index, design)| format!("{} {design}", index + 1))
        .collect();
    section.say(legend.join(", ") + ".");
    section.plot(
        "accuracy-error",
        "Share of flows within an error",
        errors(facts),
    );
    section.say(
        "What the paper says without numbers (sections 2.1 and 2.2) shows: sampling loses nearly \
         all small flows and counts those it sees in steps of the interval; FlowRadar names every \
         flow while its table has cells enough and falls apart where it has not, one flow that its \
         filter takes for a known one spoils the packets of many others on the way of the \
         decoding, and that decoding is work for a server; Count-Min cannot name flows; HashPipe \
         keeps heavy flows alone; the Elastic sketch is good at elephants and approximate for the \
         rest. TurboFlow names every flow and counts every packet; what it spends is the memory of \
         a flow cache beside the fast table. Nanoseconds a packet are those of this processor: \
         switches do the sketches' work in hardware.",
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

/// How many flows are off by no more than each step, for one design of each kind.
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
    let groups = ERROR_STEPS.map(|step| match step {
        0.0 => "exact".to_owned(),
        step => format!("at most {} %", step * 100.0),
    });
    let bars = SHOWN.iter().enumerate().map(|(colour, design)| {
        let of_design = facts.with("design", design);
        let shares = ERROR_STEPS.map(|step| {
            let share = of_design.first(&within_name(step));
            share.map(|share| share * 100.0)
        });
        Bar::ours(*design, colour, shares.to_vec())
    });
    let plot = Bars {
        title: "Flows whose packets a method says so well",
        x: "error",
        y: ("% of flows", Spacing::Linear),
        groups: groups.to_vec(),
        bars: bars.collect(),
    };
    plot.svg()
}
