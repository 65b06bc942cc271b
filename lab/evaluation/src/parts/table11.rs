// SPDX-License-Identifier: Apache-2.0
//! Table 11: how much traffic one machine can monitor, by memory and cores.

use turboflow_plan::{ShareCurve, links_carried, paper};

use super::links::{PAPERS_RECORD_BYTES, links};
use super::{Part, aggregator, figure11, paper_tables};
use crate::facts::{Facts, Raw};
use crate::report::axis::short;
use crate::report::{Section, number};

pub(super) const PART: Part = Part {
    name: "table11",
    title: "Table 11: monitoring capacity",
    measure: |_, give| paper_tables::cells("table11", paper::table_11(), give),
    report,
    is_computed: false,
};

/// Memory of the paper's table, in bytes.
const MEMORY: [f64; 6] = [0.0, 1e6, 4e6, 8e6, 16e6, 24e6];

fn report(raw: &Raw, section: &mut Section) {
    paper_tables::table(&raw.part(PART.name), section);
    let (curves, rates) = (
        raw.part(figure11::PART.name),
        raw.part(aggregator::PART.name),
    );
    let merging = merging(&rates);
    if curves.0.is_empty() || merging.is_empty() {
        section.say(
            "Figures 11 and 12 were not both measured in this run, so there is no capacity of this \
             machine.",
        );
        return;
    }
    section.say(
        "The capacity of this machine in Tb/s. It follows from the ratios of the generated \
         workloads in Figure 11, and from the rate of our aggregator in Figure 12 on uniform \
         traffic with the most flows. As in the paper, the table is in a switch.",
    );
    let mut names = vec!["workload and memory".to_owned()];
    names.extend(merging.iter().map(|(cores, _)| aggregator::plural(*cores)));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut rows = Vec::new();
    for link in links() {
        let facts = curves.with("workload", link.name);
        let Some(packets) = facts.first("packets_per_s") else {
            continue;
        };
        let curve = curve(&facts);
        for memory in MEMORY {
            let mut row = vec![format!("{}, {}B", link.name, short(memory))];
            row.extend(merging.iter().map(|(_, merged)| {
                let share = |slots: f64| curve.share(slots) * packets;
                let count = links_carried(share, memory / PAPERS_RECORD_BYTES, *merged);
                number(count * link.gigabits / 1e3, 2)
            }));
            rows.push(row);
        }
    }
    section.table(&names, &rows);
    section.say(
        "Where it differs: this processor merges several times as many records as the paper's \
         switch processor, and has only the cores that are shown. A capacity is that of links of \
         10 Gb/s, or of switches, at the load of the workload.",
    );
}

/// Cores, and the records per second that TurboFlow merges with the most flows and uniform traffic.
fn merging(rates: &Facts) -> Vec<(f64, f64)> {
    let most = rates.numbers("flows").last().copied().unwrap_or(f64::NAN);
    let ours = rates.at("flows", most).with("design", "turboflow");
    ours.with("traffic", "uniform")
        .points("cores", "items_per_s")
}

fn curve(facts: &Facts) -> ShareCurve {
    let points = facts.points("slots", "packets_per_microflow");
    ShareCurve::new(
        points
            .into_iter()
            .map(|(slots, ratio)| (slots as u64, 1.0 / ratio)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Fact;

    #[test]
    fn capacity_is_that_of_turboflow_with_the_most_flows() {
        let fact = |design: &str, flows: f64, cores: f64, rate: f64| {
            Fact::new("figure12")
                .of("design", design)
                .of("traffic", "uniform")
                .value("flows", flows)
                .value("cores", cores)
                .value("items_per_s", rate)
        };
        let facts = Facts(vec![
            fact("turboflow", 1e5, 1.0, 9.0),
            fact("turboflow", 1e6, 1.0, 5.0),
            fact("turboflow", 1e6, 2.0, 8.0),
            fact("std", 1e6, 1.0, 1.0),
        ]);
        assert_eq!(merging(&facts), [(1.0, 5.0), (2.0, 8.0)]);
    }
}
