// SPDX-License-Identifier: Apache-2.0
//! Figure 11: packets per microflow record, by memory of the table, on each workload.

use turboflow_plan::SimulationConfig;

use super::links::{Link, PAPERS_RECORD_BYTES, Simulated, links, simulate};
use super::{FactSink, Part, Scale};
use crate::facts::{Fact, Facts, Raw};
use crate::report::axis::{Spacing, short};
use crate::report::chart::{Plot, Series};
use crate::report::{Section, number};

pub(super) const PART: Part = Part {
    name: "figure11",
    title: "Figure 11: packets for each microflow record, by memory",
    measure,
    report,
    is_computed: false,
};

/// The claims of section 6.3: at least so many packets per record, with so much memory in bytes.
const STATED: [(&str, f64, f64); 5] = [
    ("Internet link", 1e6, 10.0),
    ("ToR switch", 1e6, 10.0),
    ("aggregation switch", 1e6, 10.0),
    ("ToR switch", 100e3, 135.0),
    ("aggregation switch", 100e3, 45.0),
];

fn measure(scale: &Scale, give: FactSink<'_>) -> anyhow::Result<()> {
    for link in links() {
        // More than a minute of an Internet link, or about two seconds of a switch.
        let full = if link.gigabits < 100.0 {
            40_000_000
        } else {
            200_000_000
        };
        let packets = scale.pick(full / 10, full);
        let simulated = simulate(link.kind, packets, 1, &SimulationConfig::default())?;
        facts(&link, &simulated, give)?;
    }
    Ok(())
}

fn facts(link: &Link, simulated: &Simulated, give: FactSink<'_>) -> anyhow::Result<()> {
    let Simulated {
        measured,
        flows_per_second,
        asked,
    } = simulated;
    let traffic = measured.traffic()?;
    for table in &measured.tables {
        let share = table.microflows as f64 / measured.packets as f64;
        let fact = Fact::new(PART.name)
            .of("workload", link.name)
            .value("gigabits", link.gigabits)
            .value("packets", measured.packets as f64)
            .value("packets_per_s", traffic.packets_per_second)
            .value("flows_per_s", *flows_per_second)
            .value("packets_per_s_asked", asked.packets_per_second)
            .value("flows_per_s_asked", asked.flows_per_second)
            .value("active_flows", traffic.active_flows)
            .value(
                "mean_packet_bytes",
                traffic.mean_packet_bytes.unwrap_or(f64::NAN),
            )
            .value("slots", f64::from(table.slots))
            .value("table_bytes", f64::from(table.slots) * PAPERS_RECORD_BYTES)
            .value("microflows_per_s", share * traffic.packets_per_second)
            .value("packets_per_microflow", 1.0 / share)
            .value(
                "worst_case_to_measured",
                measured.worst_case_to_measured(table),
            );
        give(fact);
    }
    Ok(())
}

/// Packets per record with that memory, interpolated between measured sizes on logarithmic axes.
fn ratio_at(facts: &Facts, bytes: f64) -> f64 {
    let points = facts.points("table_bytes", "packets_per_microflow");
    let pairs = points
        .windows(2)
        .find(|pair| pair[0].0 <= bytes && bytes <= pair[1].0);
    pairs.map_or(f64::NAN, |pair| {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        y0 * (y1 / y0).powf((bytes / x0).ln() / (x1 / x0).ln())
    })
}

fn report(raw: &Raw, section: &mut Section) {
    let facts = raw.part(PART.name);
    section.say(
        "Direct-mapped tables of 1 to 2^20 slots, as in the paper, all driven by the same packets. \
         Memory is counted as in the paper, 24 bytes a slot. The paper's points come from its \
         Table 10: the bus load gives microflow records per second. Packets per second are those \
         of Table 6, or of our traffic for the Internet link.",
    );
    let mut series = Vec::new();
    for (colour, link) in links().iter().enumerate() {
        let ours = facts.with("workload", link.name);
        let Some(rate) = ours.first("packets_per_s") else {
            continue;
        };
        let points = ours.points("table_bytes", "packets_per_microflow");
        series.push(Series::ours(link.name, colour, points));
        let papers = link.papers_bus_mbits.map(|(slots, mbits)| {
            let records = mbits * 1e6 / (PAPERS_RECORD_BYTES * 8.0);
            (f64::from(slots) * PAPERS_RECORD_BYTES, rate / records)
        });
        series.push(Series::papers("", colour, papers.to_vec()));
    }
    let plot = Plot {
        title: "Figure 11: packets per microflow record",
        note: "Dots: measured here. Rings, dashed: the paper's Table 10. Both axes logarithmic.",
        x: (
            "memory of the table, bytes (24 a slot)",
            Spacing::Logarithmic,
        ),
        y: ("packets per microflow record", Spacing::Logarithmic),
        series,
    };
    section.plot(
        "figure11",
        "Packets per microflow record, by memory and workload",
        plot.svg(),
    );
    rates(&facts, section);
    stated(&facts, section);
}

fn rates(facts: &Facts, section: &mut Section) {
    let rows: Vec<Vec<String>> = links()
        .iter()
        .map(|link| {
            let of_link = facts.with("workload", link.name);
            let value = |name: &str| of_link.first(name).unwrap_or(f64::NAN);
            let beside = |name: &str| {
                let asked = value(&format!("{name}_asked"));
                let off = (value(name) / asked - 1.0) * 100.0;
                format!("{} ({}, {off:+.1} %)", short(value(name)), short(asked))
            };
            vec![
                link.name.to_owned(),
                short(value("packets")),
                beside("packets_per_s"),
                beside("flows_per_s"),
                short(value("active_flows")),
                short(value("mean_packet_bytes")),
            ]
        })
        .collect();
    section.say(
        "The generated traffic. Values in brackets are the paper's: from Table 6, and for the \
         Internet link from Table 10 and the slides. A flow is active if it had a packet within \
         the last 30 s; the table shows the peak.",
    );
    let names = [
        "workload",
        "packets",
        "packets/s",
        "new flows/s",
        "active flows",
        "bytes a packet",
    ];
    section.table(&names, &rows);
}

fn stated(facts: &Facts, section: &mut Section) {
    let rows: Vec<Vec<String>> = STATED
        .iter()
        .map(|(workload, bytes, papers)| {
            let ours = ratio_at(&facts.with("workload", workload), *bytes);
            let verdict = if ours >= *papers {
                "reached".to_owned()
            } else {
                format!("**{:.0} % short**", (1.0 - ours / papers) * 100.0)
            };
            vec![
                format!("{workload}, {}B", short(*bytes)),
                number(ours, 1),
                number(*papers, 0),
                verdict,
            ]
        })
        .collect();
    section.say("What section 6.3 states in words:");
    section.table(
        &["", "packets per record, ours", "paper, at least", ""],
        &rows,
    );
    section.say(
        "Where it differs: the paper uses CAIDA traces of 2015 and a simulator; our traffic is \
         generated from the statistics that the paper and its sources state. They do not state \
         how long packet trains are, which is what small tables depend on.",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_interpolated_between_measured_sizes() {
        let fact = |bytes: f64, ratio: f64| {
            Fact::new("x")
                .value("table_bytes", bytes)
                .value("packets_per_microflow", ratio)
        };
        let facts = Facts(vec![fact(100.0, 2.0), fact(10_000.0, 8.0)]);
        assert!((ratio_at(&facts, 1_000.0) - 4.0).abs() < 1e-9);
        assert!(ratio_at(&facts, 50.0).is_nan());
    }
}
