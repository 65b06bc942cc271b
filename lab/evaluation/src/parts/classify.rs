// SPDX-License-Identifier: Apache-2.0
//! Section 6.5: how many flow records per second an analysis application processes.

use turboflow_bench::Options;

use super::{FactSink, Part, Scale, benches};
use crate::facts::Raw;
use crate::report::{Section, number};

pub(super) const PART: Part = Part {
    name: "classify",
    title: "Section 6.5: classifying flow records",
    measure,
    report,
    is_computed: false,
};

/// M flow records per second and core (TurboFlow, section 6.5).
const PAPERS: f64 = 4.25;

fn measure(scale: &Scale, give: FactSink<'_>) -> anyhow::Result<()> {
    let options = Options {
        flows: Vec::new(),
        items: scale.pick(500_000, 20_000_000),
        repetitions: scale.pick(1, 5),
        redis: scale.redis(),
    };
    benches::run("classify", PART.name, &options, give)
}

fn report(raw: &Raw, section: &mut Section) {
    let facts = &raw.part(PART.name);
    section.say(
        "Flow records per second on one core, in millions, from columns in memory to a class and a \
         confidence for each: ten features of the default definition, 14 classes. The paper's \
         classifier names applications too, with Dlib.",
    );
    let rate = |design: &str| {
        let rate = facts.with("design", design).first("items_per_s");
        rate.map_or(f64::NAN, |rate| rate / 1e6)
    };
    let designs = [
        ("tree", "one tree, ten levels"),
        ("forest_10", "a forest of ten such trees"),
        ("linear", "a linear model"),
    ];
    let row = |what: &str, rate: f64| {
        vec![
            what.to_owned(),
            number(rate, 2),
            number(rate / PAPERS, 1) + " times",
        ]
    };
    let ours = designs.map(|(design, what)| row(what, rate(design)));
    let papers = row("the paper's classifier, on its server", PAPERS);
    let rows: Vec<_> = ours.into_iter().chain([papers]).collect();
    section.table(&["classifier", "M records/s", "to the paper's"], &rows);
    let verdict = match rate("forest_10") >= PAPERS {
        true => "met",
        false => "**missed**",
    };
    section.say(format!(
        "The goal, 4.25 M records/s a core for a forest of at most ten trees: {verdict}."
    ));
    section.say(
        "Where it differs: the paper does not say which of Dlib's models it takes, with how many \
         features, and its server is another machine. The trees here are grown at random on \
         records like those that they are shown; trained ones are smaller.",
    );
}
