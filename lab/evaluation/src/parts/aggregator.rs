// SPDX-License-Identifier: Apache-2.0
//! Figure 12: throughput of the aggregator with one optimisation after the other, on 1 to all
//! cores.

use turboflow_bench::Options;

use super::{Give, Part, Scale, benches};
use crate::facts::{Facts, Raw};
use crate::report::axis::{Spacing, short};
use crate::report::chart::{Bar, Bars};
use crate::report::{Section, number};

pub(super) const PART: Part = Part {
    name: "figure12",
    title: "Figure 12: the aggregator, optimisation by optimisation",
    measure,
    report,
};

/// What the paper's optimisations add up to, in M microflow records a second on 1 to 4 cores of an
/// Intel D1517 (TurboFlow, section 6.3: 13.73, and 8.4, 8.9 and 7.79 more).
const PAPERS: [f64; 4] = [13.73, 22.13, 31.03, 38.82];
/// How many times that is of Redis and of `std::unordered_map`, by the same section.
const PAPERS_FACTORS: [(&str, f64); 2] = [("redis", 20.0), ("std", 5.67)];

/// Designs in the order of the paper's bars.
const DESIGNS: [(&str, &str); 6] = [
    ("redis", "Redis"),
    ("std", "std"),
    ("flat", "flat table"),
    ("integers", "integer keys"),
    ("paper", "batched (paper's)"),
    ("turboflow", "ours"),
];

fn measure(scale: &Scale, give: Give<'_>) -> anyhow::Result<()> {
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
        "Microflow records merged into open flows. *Flat table*: linear probing, keys as a \
         structure of fields; *integer keys*: two 64-bit integers instead; *batched*: lookups in \
         groups of ten, prefetched, which is all that the paper has; *ours* is the product's flow \
         cache. Every core has a table and flows of its own.",
    );
    for flows in facts.numbers("flows") {
        for traffic in facts.names("traffic") {
            let here = facts.at("flows", flows).with("traffic", &traffic);
            cluster(&here, flows, &traffic, section);
        }
    }
    compare(facts, section);
}

/// M items a second of a design on so many cores.
fn rate(facts: &Facts, design: &str, cores: f64) -> Option<f64> {
    let rate = facts.with("design", design).at("cores", cores);
    rate.first("items_per_s").map(|rate| rate / 1e6)
}

fn cluster(facts: &Facts, flows: f64, traffic: &str, section: &mut Section) {
    let cores = facts.numbers("cores");
    let title = format!("{} flows, {traffic} traffic", short(flows));
    let ours = DESIGNS.iter().enumerate().map(|(colour, (design, name))| {
        let values = cores.iter().map(|cores| rate(facts, design, *cores));
        Bar::ours(*name, colour, values.collect())
    });
    let groups = cores.iter().map(|cores| plural(*cores)).collect();
    let plot = Bars {
        title: &title,
        x: "",
        y: ("M microflow records/s", Spacing::Linear),
        groups,
        bars: ours.chain(papers(&cores)).collect(),
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
    names.push("in the paper, batched");
    section.table(&names, &rows);
}

/// The paper's bars, as far as its text says them: baselines on one core, its own on 1 to 4.
fn papers(cores: &[f64]) -> Vec<Bar> {
    let batched = |cores: &f64| PAPERS.get(*cores as usize - 1).copied();
    let colour = |design: &str| DESIGNS.iter().position(|(name, _)| *name == design);
    let mut bars: Vec<Bar> = PAPERS_FACTORS
        .iter()
        .map(|(design, factor)| {
            let on_one = |cores: &f64| (*cores == 1.0).then_some(PAPERS[0] / factor);
            let values = cores.iter().map(on_one).collect();
            Bar::papers(
                format!("{design}, paper's D1517"),
                colour(design).unwrap_or(0),
                values,
            )
        })
        .collect();
    let values = cores.iter().map(batched).collect();
    bars.push(Bar::papers(
        "batched, paper's D1517",
        colour("paper").unwrap_or(0),
        values,
    ));
    bars
}

/// A number of cores in words.
pub(super) fn plural(cores: f64) -> String {
    let plural = if cores == 1.0 { "" } else { "s" };
    format!("{cores} core{plural}")
}

fn compare(facts: &Facts, section: &mut Section) {
    let mut factors: Vec<String> = Vec::new();
    for flows in facts.numbers("flows") {
        for traffic in facts.names("traffic") {
            let here = facts.at("flows", flows).with("traffic", &traffic);
            let (paper, ours) = (rate(&here, "paper", 1.0), rate(&here, "turboflow", 1.0));
            for (baseline, papers) in PAPERS_FACTORS {
                if let (Some(paper), Some(ours), Some(base)) =
                    (paper, ours, rate(&here, baseline, 1.0))
                {
                    factors.push(format!(
                        "at {} flows, {traffic}, the paper's method is {:.1} times {baseline} and \
                         ours {:.1} times, where the paper says {papers}",
                        short(flows),
                        paper / base,
                        ours / base
                    ));
                }
            }
        }
    }
    section.say(format!("On one core: {}.", factors.join("; ")));
    section.say(
        "Where it differs: the paper's bars are of an Intel D1517 of 1.6 GHz and of traces whose \
         flows it does not say; ratios depend on how much of a table fits in the caches, and Zipf \
         traffic is kinder to every design than uniform. `std` here is Rust's map with its own \
         hash, which keeps flows in one table, where `std::unordered_map` has a node for each. \
         Redis is one server on one core, its client on another, and pays the way through a \
         socket.",
    );
    if facts.with("design", "redis").0.is_empty() {
        section.say("No Redis server was found, so its bars are missing.");
    }
}
