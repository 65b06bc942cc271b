// SPDX-License-Identifier: Apache-2.0
//! Figure 14: the ratio of the worst case (Equation 2) to the measured rate, which must be above 1.

use turboflow_plan::{Measured, SimulationConfig};
use turboflow_workload::workloads::{InternetConfig, Kind};

use super::links::{Simulated, captures, links, simulate, simulate_capture};
use super::{FactSink, Part, Scale};
use crate::facts::{Fact, Facts, Raw};
use crate::report::axis::Spacing;
use crate::report::panels::{BarSource, Panels, Row};
use crate::report::{Section, number};

pub(super) const PART: Part = Part {
    name: "figure14",
    title: "Figure 14: worst case to measured",
    measure,
    report,
    is_computed: false,
};

/// Eight Internet links stand for the paper's eight traces. They span the packet and flow rates of
/// Table 6.
const TRACES: u32 = 8;
/// Kinds of traffic, in the order of the report.
const GROUPS: [&str; 3] = ["Internet links", "data centre", "captures"];

fn measure(scale: &Scale, give: FactSink<'_>) -> anyhow::Result<()> {
    let config = SimulationConfig::default();
    // Captures come first, so that an unreadable file is reported before the long part.
    for path in captures(&scale.captures) {
        let first = simulate_capture(&path, 0, &config)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        // A few packets have no rate.
        if first.packets == 0 || first.traffic().is_err() {
            continue;
        }
        // Equation 2 is an expectation, from which a few packets deviate. The mean over many hash
        // functions deviates less.
        let more = if first.packets < SHORT_CAPTURE {
            HASH_FUNCTIONS
        } else {
            1
        };
        let mut all = vec![first];
        for seed in 1..more {
            all.push(simulate_capture(&path, seed, &config)?);
        }
        facts("captures", &name, &all, give);
    }
    for trace in 0..TRACES {
        let share = f64::from(trace) / f64::from(TRACES - 1);
        let kind = Kind::Internet(InternetConfig {
            packets_per_second: 250e3 + share * 350e3,
            flows_per_second: 5e3 + share * 35e3,
            ..InternetConfig::default()
        });
        let packets = scale.pick(500_000, 10_000_000);
        let Simulated { measured, .. } = simulate(kind, packets, u64::from(trace) + 1, &config)?;
        facts(
            "Internet links",
            &format!("link {}", trace + 1),
            &[measured],
            give,
        );
    }
    for link in &links()[1..] {
        let packets = scale.pick(2_000_000, 50_000_000);
        let Simulated { measured, .. } = simulate(link.kind, packets, 1, &config)?;
        facts("data centre", link.name, &[measured], give);
    }
    Ok(())
}

/// Captures with fewer packets are simulated with several hash functions.
const SHORT_CAPTURE: u64 = 1_000_000;
const HASH_FUNCTIONS: u64 = 32;

/// One fact per table size, from runs of the same traffic with different hash functions.
fn facts(group: &str, trace: &str, runs: &[Measured], give: FactSink<'_>) {
    for (index, table) in runs[0].tables.iter().enumerate() {
        let ratios = runs
            .iter()
            .map(|run| run.worst_case_to_measured(&run.tables[index]));
        let (ratio, error) = mean_and_error(&ratios.collect::<Vec<_>>());
        let fact = Fact::new(PART.name)
            .of("group", group)
            .of("trace", trace)
            .value("packets", runs[0].packets as f64)
            .value("active_flows", runs[0].peak_active_flows as f64)
            .value("slots", f64::from(table.slots))
            .value("hash_functions", runs.len() as f64)
            .value("worst_case_to_measured", ratio)
            .value("standard_error", error);
        give(fact);
    }
}

/// The mean and its standard error; 0 for a single value, whose error is unknown.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0) / count).sqrt())
}

fn report(raw: &Raw, section: &mut Section) {
    let all = raw.part(PART.name);
    let by_group = GROUPS.iter().flat_map(|group| all.with("group", group).0);
    let facts = Facts(by_group.collect());
    section.say(
        "Microflow records by Equation 2, divided by those of a simulated table, for tables of 1 \
         to 2^20 slots. The traffic is eight Internet links that span the rates of Table 6, both \
         switches, and real captures if they are beside the checkout. Active flows are those with \
         a packet within the last 30 s, at the peak. Equation 2 gives an expectation, so captures \
         of less than a million packets are run with 32 hash functions, and the mean is used.",
    );
    section.plot(
        "figure14",
        "Number of tables by ratio of worst case to measured",
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
    section.say(verdict(&facts));
    if !facts.names("group").iter().any(|group| group == "captures") {
        section.say("No captures were at hand in this run.");
    }
}

/// Whether the bound holds: every mean is above 1, or below it by less than three standard errors.
fn verdict(facts: &Facts) -> String {
    let (mut broken, mut by_chance) = (Vec::new(), 0);
    for fact in &facts.0 {
        let (ratio, error) = (
            fact.get("worst_case_to_measured"),
            fact.get("standard_error"),
        );
        if ratio + 3.0 * error < 1.0 {
            broken.push(format!(
                "{} ({} slots)",
                fact.label("trace"),
                fact.get("slots")
            ));
        } else if ratio < 1.0 {
            by_chance += 1;
        }
    }
    let least = facts.numbers("worst_case_to_measured").first().copied();
    let verdict = match broken.as_slice() {
        [] => "The bound holds".to_owned(),
        broken => format!("The bound **does not hold** for {}", broken.join(", ")),
    };
    format!(
        "{verdict}; the least ratio is {:.5}, and {by_chance} of {} lie below 1 by less than three \
         standard errors of the mean over hash functions. Ratios close to 1 occur in floods and \
         scans, where nearly every packet is a flow of its own, and in tables so small that \
         nearly every packet evicts: there the worst case is the normal case.",
        least.unwrap_or(f64::NAN),
        facts.0.len(),
    )
}

/// Ratios in steps, per group of traffic.
fn histogram(facts: &Facts) -> String {
    const EDGES: [f64; 8] = [1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, f64::INFINITY];
    let steps = EDGES.windows(2).map(|pair| match pair[1] {
        f64::INFINITY => format!("{} and more", pair[0]),
        above => format!("{} to {above}", pair[0]),
    });
    let mut names = vec!["below 1".to_owned()];
    names.extend(steps);
    let groups = facts.names("group");
    let mut counts = vec![vec![0_u32; groups.len()]; EDGES.len()];
    for fact in &facts.0 {
        let ratio = fact.get("worst_case_to_measured");
        let step = EDGES.partition_point(|edge| *edge <= ratio);
        if let Some(group) = groups.iter().position(|name| name == fact.label("group")) {
            counts[step][group] += 1;
        }
    }
    let rows = names.into_iter().zip(counts).map(|(name, counts)| {
        let counts = counts.into_iter().map(|count| Some(f64::from(count)));
        Row::new(name, BarSource::Ours, counts.collect())
    });
    let plot = Panels {
        title: "Figure 14: worst case divided by measured, all table sizes",
        axis: ("tables with that ratio", Spacing::Linear),
        rows: rows.collect(),
        panels: groups,
    };
    plot.svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_below_1_breaks_the_bound_unless_chance_explains_it() {
        let fact = |ratio: f64, error: f64| {
            Fact::new("figure14")
                .of("trace", "scan")
                .value("slots", 64.0)
                .value("worst_case_to_measured", ratio)
                .value("standard_error", error)
        };
        let holds = verdict(&Facts(vec![fact(0.9999, 0.0001), fact(1.2, 0.0)]));
        assert!(holds.starts_with("The bound holds; the least ratio is 0.99990, and 1 of 2"));
        let broken = verdict(&Facts(vec![fact(0.99, 0.001)]));
        assert!(
            broken.contains("does not hold** for scan (64 slots)"),
            "{broken}"
        );
    }

    #[test]
    fn the_error_of_a_mean_shrinks_with_its_number() {
        assert_eq!(mean_and_error(&[2.0]), (2.0, 0.0));
        let (mean, error) = mean_and_error(&[1.0, 3.0]);
        assert_eq!((mean, error), (2.0, 1.0));
    }
}
