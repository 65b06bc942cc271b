// SPDX-License-Identifier: Apache-2.0
//! Table 9: the cost of four more features.

use turboflow_bench::Options;

use super::{FactSink, Part, Scale, benches};
use crate::facts::Raw;
use crate::report::axis::short;
use crate::report::{Section, number};

pub(super) const PART: Part = Part {
    name: "table9",
    title: "Table 9: the cost of more features",
    measure,
    report,
    is_computed: false,
};

/// M microflow records per second with 4 and with 8 features (TurboFlow, Table 9).
const PAPERS: (f64, f64) = (13.73, 12.57);

fn measure(scale: &Scale, give: FactSink<'_>) -> anyhow::Result<()> {
    let options = Options {
        flows: scale.pick(vec![10_000], vec![10_000, 1_000_000]),
        items: scale.pick(1_000_000, 20_000_000),
        repetitions: scale.pick(1, 5),
        redis: scale.redis(),
    };
    benches::run("features", PART.name, &options, give)
}

fn report(raw: &Raw, section: &mut Section) {
    let facts = &raw.part(PART.name);
    section.say(
        "Microflow records per second in the aggregator on one core, in millions. The paper goes \
         from 4 features to 8. Our default definition has 10 features, which every record holds, \
         so the paper's 4 cost as much as those 10. Every further feature goes through the \
         compiled merge program of the definition.",
    );
    let mut rows = Vec::new();
    for flows in facts.numbers("flows") {
        for traffic in facts.names("traffic") {
            let here = facts.at("flows", flows).with("traffic", &traffic);
            let rate = |design: &str| {
                let rate = here.with("design", design).first("items_per_s");
                rate.map_or(f64::NAN, |rate| rate / 1e6)
            };
            let row = |what: String, few: f64, many: f64| {
                vec![
                    what,
                    number(few, 2),
                    number(many, 2),
                    number((1.0 - many / few) * 100.0, 1) + " %",
                ]
            };
            let place = format!("{} flows, {traffic}", short(flows));
            rows.push(row(
                format!("{place}: 4 and 8"),
                rate("4_features"),
                rate("8_features"),
            ));
            rows.push(row(
                format!("{place}: default (10) and 14"),
                rate("default"),
                rate("default_and_4"),
            ));
        }
    }
    let (few, many) = PAPERS;
    rows.push(vec![
        "the paper's switch CPU: 4 and 8".to_owned(),
        number(few, 2),
        number(many, 2),
        number((1.0 - many / few) * 100.0, 1) + " %",
    ]);
    section.table(&["features", "fewer", "more", "throughput lost"], &rows);
    section.say(
        "Where it differs: the paper's aggregator is compiled for its features, and prefetching \
         hides most of the cost of four more (section 6.3). Ours takes a definition at run time: \
         four more features are a second cache line, merged by a program, while the record \
         without them is merged in a dozen instructions. The paper's rows of the Tofino and the \
         NFP-4000 (44, 47 and 29 %) need hardware that we do not have.",
    );
}
