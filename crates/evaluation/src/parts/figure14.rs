// SPDX-License-Identifier: Apache-2.0
//! Figure 14: the worst case by Equation 2 over what was measured, which has to stay above 1.

use turboflow_plan::{Measured, SimulationConfig};
use turboflow_workload::workloads::{InternetConfig, Kind};

use super::links::{captures, links, simulate, simulate_capture};
use super::{Give, Part, Scale};
use crate::facts::{Fact, Facts, Raw};
use crate::report::axis::Spacing;
use crate::report::chart::Bars;
use crate::report::{Section, number};

pub(super) const PART: Part = Part {
    name: "figure14",
    title: "Figure 14: worst case to measured",
    measure,
    report,
};

/// Eight Internet links, as the paper has eight traces: from the least to the greatest of Table 6's
/// packets and flows a second.
const TRACES: u32 = 8;

fn measure(scale: &Scale, give: Give<'_>) -> anyhow::Result<()> {
    let config = SimulationConfig::default();
    for trace in 0..TRACES {
        let share = f64::from(trace) / f64::from(TRACES - 1);
        let kind = Kind::Internet(InternetConfig {
            packets_per_second: 250e3 + share * 350e3,
            flows_per_second: 5e3 + share * 35e3,
            ..InternetConfig::default()
        });
        let packets = scale.pick(500_000, 10_000_000);
        let measured = simulate(kind, packets, u64::from(trace) + 1, &config)?;
        facts(
            "Internet links",
            &format!("link {}", trace + 1),
            &measured,
            give,
        );
    }
    for link in &links()[1..] {
        let packets = scale.pick(2_000_000, 50_000_000);
        let measured = simulate(link.kind, packets, 1, &config)?;
        facts("data centre", link.name, &measured, give);
    }
    for path in captures(&scale.captures) {
        let measured = simulate_capture(&path, &config)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        // Of a few packets there is no rate.
        if measured.packets > 0 && measured.traffic().is_ok() {
            facts("captures", &name, &measured, give);
        }
    }
    Ok(())
}

fn facts(group: &str, trace: &str, measured: &Measured, give: Give<'_>) {
    for table in &measured.tables {
        let fact = Fact::new(PART.name)
            .of("group", group)
            .of("trace", trace)
            .value("packets", measured.packets as f64)
            .value("active_flows", measured.peak_active_flows as f64)
            .value("slots", f64::from(table.slots))
            .value(
                "worst_case_to_measured",
                measured.worst_case_to_measured(table),
            );
        give(fact);
    }
}

fn report(raw: &Raw, section: &mut Section) {
    let facts = raw.part(PART.name);
    section.say(
        "Equation 2's microflow records over those of a simulated table, for tables of 64 to 2^20 slots: eight Internet links over the \
         rates of Table 6, both switches, and real captures where they lie beside the checkout. \
         Active flows are those with a packet within the last 30 s, at most.",
    );
    section.plot(
        "figure14",
        "How often each ratio was found",
        histogram(&facts),
    );
    let rows: Vec<Vec<String>> = facts
        .names("trace")
        .into_iter()
        .map(|trace| {
            let of_trace = facts.with("trace", &trace);
            let ratios = of_trace.numbers("worst_case_to_measured");
            let middle = ratios.get(ratios.len() / 2).copied();
            vec![
                trace,
                number(of_trace.first("packets").unwrap_or(f64::NAN), 0),
                number(of_trace.first("active_flows").unwrap_or(f64::NAN), 0),
                number(ratios.first().copied().unwrap_or(f64::NAN), 3),
                number(middle.unwrap_or(f64::NAN), 3),
                number(ratios.last().copied().unwrap_or(f64::NAN), 3),
            ]
        })
        .collect();
    section.table(
        &[
            "traffic",
            "packets",
            "active flows",
            "least",
            "median",
            "greatest",
        ],
        &rows,
    );
    let least = facts.numbers("worst_case_to_measured").first().copied();
    let least = least.unwrap_or(f64::NAN);
    let verdict = if least >= 1.0 {
        "holds"
    } else {
        "**does not hold**"
    };
    section.say(format!(
        "The bound {verdict} for all of them; the least ratio is {least:.4}. It comes close to 1 where a table is so large that \
         hardly anything but the first packet of a flow begins a record, or so small that nearly every packet does.",
    ));
    if !facts.names("group").iter().any(|group| group == "captures") {
        section.say("No captures were at hand in this run.");
    }
}

/// Ratios in steps, for each group of traffic.
fn histogram(facts: &Facts) -> String {
    const EDGES: [f64; 8] = [1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, f64::INFINITY];
    let groups = EDGES.windows(2).map(|pair| match pair[1] {
        f64::INFINITY => format!("{} up", pair[0]),
        above => format!("{}-{above}", pair[0]),
    });
    let mut names = vec!["below 1".to_owned()];
    names.extend(groups);
    let bars = facts.names("group").into_iter().map(|group| {
        let of_group = facts.with("group", &group);
        let mut counts = vec![0_u32; EDGES.len()];
        for fact in &of_group.0 {
            let ratio = fact.get("worst_case_to_measured");
            counts[EDGES.partition_point(|edge| *edge <= ratio)] += 1;
        }
        let counts = counts.into_iter().map(|count| Some(f64::from(count)));
        (group, counts.collect())
    });
    let plot = Bars {
        title: "Worst case to measured, all sizes of the table",
        x: "worst case over measured",
        y: ("tables", Spacing::Linear),
        groups: names,
        bars: bars.collect(),
    };
    plot.svg()
}
