// SPDX-License-Identifier: Apache-2.0
//! Table 10: load on the bus and on the network.

use turboflow_plan::paper;

use super::links::{OUR_RECORD_BYTES, PAPERS_RECORD_BYTES, links};
use super::{Part, figure11, paper_tables};
use crate::facts::{Facts, Raw};
use crate::report::axis::short;
use crate::report::{Section, number};

pub(super) const PART: Part = Part {
    name: "table10",
    title: "Table 10: load on bus and network",
    measure: |_, give| paper_tables::cells("table10", paper::table_10(), give),
    report,
    is_computed: false,
};

fn report(raw: &Raw, section: &mut Section) {
    paper_tables::table(&raw.part(PART.name), section);
    let measured = raw.part(figure11::PART.name);
    if measured.0.is_empty() {
        section.say(
            "Figure 11 was not measured in this run, so there are no loads of our own workloads.",
        );
        return;
    }
    section.say(
        "Loads of the generated workloads of Figure 11, in Mb/s, with microflow records of 24 bytes \
         as in the paper. In brackets, with our records of 64 bytes, which hold ten features and \
         64-bit counters. After the slash, the paper's load.",
    );
    let mut names = vec!["table"];
    let links = links();
    names.extend(links.iter().map(|link| link.name));
    let sizes = links[0].papers_bus_mbits.map(|(slots, _)| slots);
    let mut rows: Vec<Vec<String>> = sizes
        .iter()
        .enumerate()
        .map(|(index, slots)| {
            let mut row = vec![format!(
                "{}B",
                short(f64::from(*slots) * PAPERS_RECORD_BYTES)
            )];
            row.extend(links.iter().map(|link| {
                let (_, papers) = link.papers_bus_mbits[index];
                let rate = rate(&measured.with("workload", link.name), f64::from(*slots));
                let mbits = |bytes: f64| number(rate * bytes * 8.0 / 1e6, 2);
                format!(
                    "{} ({}) / {papers}",
                    mbits(PAPERS_RECORD_BYTES),
                    mbits(OUR_RECORD_BYTES)
                )
            }));
            row
        })
        .collect();
    rows.push(network(&measured));
    section.table(&names, &rows);
    section.say(
        "Where it differs: the loads follow from the ratios of Figure 11 and differ as those do.",
    );
}

fn rate(facts: &Facts, slots: f64) -> f64 {
    let at = facts.at("slots", slots);
    at.first("microflows_per_s").unwrap_or(f64::NAN)
}

/// Network load of flow records to the collector, 24 bytes each.
fn network(measured: &Facts) -> Vec<String> {
    const PAPERS: [f64; 3] = [1.75, 89.71, 247.92];
    let mut row = vec!["network, flow records of 24 B".to_owned()];
    row.extend(links().iter().zip(PAPERS).map(|(link, papers)| {
        let flows = measured.with("workload", link.name).first("flows_per_s");
        let mbits = flows.unwrap_or(f64::NAN) * PAPERS_RECORD_BYTES * 8.0 / 1e6;
        format!("{} / {papers}", number(mbits, 2))
    }));
    row
}
