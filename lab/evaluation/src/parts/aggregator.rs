// SPDX-License-Identifier: Apache-2.0
//! Figure 12: throughput of the aggregator, optimisation by optimisation, on 1 to all cores.

use turboflow_bench::Options;

use super::{FactSink, Part, Scale, benches};
use crate::facts::{Facts, Raw};
use crate::report::axis::{Spacing, short};
use crate::report::panels::{BarSource, Panels, Row};
use crate::report::{Section, number};

pub(super) const PART: Part = Part {
    name: "figure12",
    title: "Figure 12: the aggregator, optimisation by optimisation",
    measure,
    report,
    is_computed: false,
};

/// Throughput of the paper with all optimisations, in M microflow records per second, on 1 to 4
/// cores of an Intel D1517 (TurboFlow, section 6.3: 13.73, then 8.4, 8.9 and 7.79 more).
const PAPERS: [f64; 4] = [13.73, 22.13, 31.03, 38.82];
/// Speedup over Redis and over `std::unordered_map`, from that section.
const PAPERS_FACTORS: [(&str, &str, f64); 2] = [("redis", "Redis", 20.0), ("std", "std", 5.67)];

/// Designs in the order of the paper's bars.
const DESIGNS: [(&str, &str); 6] = [
    ("redis", "Redis"),
    ("std", "std"),
    ("flat", "flat table"),
    ("integers", "integer keys"),
    ("paper", "batched (the paper's)"),
    ("turboflow", "TurboFlow"),
];

fn measure(scale: &Scale, give: FactSink<'_>) -> anyhow::Result<()> {
    let options = Options {
        flows: scale.pick(vec![100_000], vec![100_000, 1_000_000]),
        items: scale.pick(2_000_000, 20_000_000),
        repetitions: scale.pick(1, 5),
        redis: scale.redis(),
    };
    benches::run("cores", PART.name, &options, give)
}

fn report(raw: &Raw, section: &mut Section) {
    let facts = &raw.part(PART.name);
    section.say(
        "Microflow records merged into open flows. *Flat table* is linear probing with keys as a \
         structure of fields. *Integer keys* uses two 64-bit integers instead. *Batched* adds \
         prefetched lookups in groups of ten, and is the paper's complete method. *TurboFlow* is \
         the product's flow cache. Every core has its own table and its own flows.",
    );
    for flows in facts.numbers("flows") {
        for traffic in facts.names("traffic") {
            let here = facts.at("flows", flows).with("traffic", &traffic);
            cluster(&here, flows, &traffic, section);
        }
    }
    compare(facts, section);
}

/// M items per second of a design on a number of cores.
fn rate(facts: &Facts, design: &str, cores: f64) -> Option<f64> {
    let rate = facts.with("design", design).at("cores", cores);
    rate.first("items_per_s").map(|rate| rate / 1e6)
}

fn cluster(facts: &Facts, flows: f64, traffic: &str, section: &mut Section) {
    let cores = facts.numbers("cores");
    let title = format!("{} flows, {traffic} traffic", short(flows));
    let rows = DESIGNS.iter().map(|(design, name)| {
        let of = match *design {
            "turboflow" => BarSource::Ours,
            _ => BarSource::Others,
        };
        let values = cores.iter().map(|cores| rate(facts, design, *cores));
        Row::new(*name, of, values.collect())
    });
    let plot = Panels {
        title: &format!("Figure 12: microflow records merged, {title}"),
        axis: (
            "M microflow records/s, logarithmic; dashed: the paper's numbers on an Intel D1517",
            Spacing::Logarithmic,
        ),
        panels: cores.iter().map(|cores| plural(*cores)).collect(),
        rows: rows.chain(papers(&cores)).collect(),
    };
    let name = format!("figure12-{}-{traffic}", short(flows).to_lowercase());
    section.plot(&name, &format!("Throughput by design: {title}"), plot.svg());
    let rows: Vec<Vec<String>> = cores
        .iter()
        .map(|cores| {
            let measured = DESIGNS
                .iter()
                .map(|(design, _)| number(rate(facts, design, *cores).unwrap_or(f64::NAN), 2));
            let paper = PAPERS.get(*cores as usize - 1).copied();
            let mut row = vec![cores.to_string()];
            row.extend(measured);
            row.push(number(paper.unwrap_or(f64::NAN), 2));
            row
        })
        .collect();
    let mut names = vec!["cores"];
    names.extend(DESIGNS.map(|(_, name)| name));
    names.push("batched, in the paper");
    section.table(&names, &rows);
}

/// The paper's bars, as far as its text gives the numbers: baselines on one core, its own design on
/// 1 to 4 cores.
fn papers(cores: &[f64]) -> Vec<Row> {
    let mut rows: Vec<Row> = PAPERS_FACTORS
        .iter()
        .map(|(_, name, factor)| {
            let on_one = |cores: &f64| (*cores == 1.0).then_some(PAPERS[0] / factor);
            let name = format!("{name}, in the paper");
            Row::new(name, BarSource::Paper, cores.iter().map(on_one).collect())
        })
        .collect();
    let batched = |cores: &f64| PAPERS.get(*cores as usize - 1).copied();
    let values = cores.iter().map(batched).collect();
    rows.push(Row::new("batched, in the paper", BarSource::Paper, values));
    rows
}

/// A number of cores with the noun in singular or plural.
pub(super) fn plural(cores: f64) -> String {
    let plural = if cores == 1.0 { "" } else { "s" };
    format!("{cores} core{plural}")
}

fn compare(facts: &Facts, section: &mut Section) {
    let mut rows = Vec::new();
    for flows in facts.numbers("flows") {
        for traffic in facts.names("traffic") {
            let here = facts.at("flows", flows).with("traffic", &traffic);
            for (baseline, name, papers) in PAPERS_FACTORS {
                let base = rate(&here, baseline, 1.0).unwrap_or(f64::NAN);
                let times = |design| number(rate(&here, design, 1.0).unwrap_or(f64::NAN) / base, 1);
                rows.push(vec![
                    format!("{} flows, {traffic}", short(flows)),
                    name.to_owned(),
                    times("turboflow"),
                    times("paper"),
                    papers.to_string(),
                ]);
            }
        }
    }
    section.say("On one core, as multiples of the baseline:");
    let names = [
        "flows and traffic",
        "baseline",
        "TurboFlow",
        "batched",
        "batched, in the paper",
    ];
    section.table(&names, &rows);
    section.say(
        "Where it differs: the paper measured on an Intel D1517 at 1.6 GHz, with traces whose \
         number of flows it does not state. Ratios depend on how much of a table fits in the \
         caches, and Zipf traffic helps every design. `std` is Rust's map with its default hash, \
         which keeps all flows in one table; `std::unordered_map` allocates a node for each. \
         Redis is one server on one core with its client on another, and pays for the socket.",
    );
    if facts.with("design", "redis").0.is_empty() {
        section.say("No Redis server was found, so its bars are missing.");
    }
}
