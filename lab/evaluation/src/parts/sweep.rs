// SPDX-License-Identifier: Apache-2.0
//! The offload paper's sweep of active flows, a tenth of which is replaced every second.

use turboflow_bench::Options;

use super::{FactSink, Part, Scale, benches, offload};
use crate::facts::Raw;
use crate::report::axis::{Spacing, short};
use crate::report::chart::{Marks, Plot, Series};
use crate::report::{Section, number};

pub(super) const PART: Part = Part {
    name: "sweep",
    title: "The offload paper: 10 K to 20 M active flows",
    measure,
    report,
    is_computed: false,
};

/// Numbers of active flows (Deri and others, section V).
const FLOWS: [u64; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 20_000_000];

fn measure(scale: &Scale, give: FactSink<'_>) -> anyhow::Result<()> {
    let options = Options {
        flows: scale.pick(FLOWS[..3].to_vec(), FLOWS.to_vec()),
        items: scale.pick(2_000_000, 40_000_000),
        repetitions: scale.pick(1, 3),
        redis: scale.redis(),
    };
    benches::run("sweep", PART.name, &options, give)
}

fn report(raw: &Raw, section: &mut Section) {
    let facts = &raw.part(PART.name);
    section.say(
        "Frames of 64 bytes go from memory through parser, microflow table, flow cache and expiry \
         to flow records, on one core. Every second of the traffic's clock, which runs at 10 M \
         packets/s, a tenth of the flows ends and is replaced. The run fails if a packet is lost \
         or a flow has to leave early.",
    );
    let papers = offload::software_rates();
    let of = |design| -> Vec<(f64, f64)> {
        let points = facts
            .with("design", design)
            .points("flows", "items_per_s")
            .into_iter();
        points.map(|(flows, rate)| (flows, rate / 1e6)).collect()
    };
    let ours = of("turboflow");
    let plot = Plot {
        title: "Packets metered per second, by active flows",
        note: "Dots: measured here. Rings, dashed: the paper, offered 89 M packets/s. \
               Both axes logarithmic.",
        x: ("active flows", Spacing::Logarithmic),
        y: ("M packets/s", Spacing::Logarithmic),
        series: vec![
            Series::ours("TurboFlow, 1 core", 0, ours.clone()).marked(Marks::LineAndNumbers),
            Series::papers("Cento, 16 cores", 1, papers.clone()).marked(Marks::LineAndNumbers),
        ],
    };
    section.plot(
        "sweep",
        "Packets metered per second, by active flows",
        plot.svg(),
    );
    table(&ours, &papers, &of("lines"), section);
    section.say(
        "Where it differs: Cento receives from a network card and drops what it cannot take, ours \
         reads memory. Its packets have 60 bytes and no data that inspection would read. Its drops \
         without inspection or offload are those of the paper's Table I. The table says that they \
         are of 10 M packets/s with 970 bytes; according to the authors' data sheet they are of \
         89 M with 60 bytes, and at 10 M nothing was dropped. At 89 M packets/s, a new flow comes \
         with 8.9 times as many packets as in our traffic. The last column is the rate at which \
         one core of this machine changes 64-byte lines at random, prefetched, out of as many \
         lines as there are flows. A packet of a flow that no cache holds needs two lines at \
         least, one of them changed. The lines of up to 100 K flows fit in its caches.",
    );
    if let Some((_, rate)) = ours.iter().find(|(flows, _)| *flows == 20e6) {
        let verdict = if *rate >= 10.0 { "met" } else { "**missed**" };
        section.say(format!(
            "The goal of 10 M packets/s on one core with 20 M active flows and 2 M new flows per \
             second is {verdict}: {rate:.1} M."
        ));
    }
}

/// Pairs of a number of flows and a rate, in M packets or lines per second.
type Rates = [(f64, f64)];

fn table(ours: &Rates, papers: &Rates, lines: &Rates, section: &mut Section) {
    let at = |rates: &Rates, flows: f64| {
        let found = rates.iter().find(|(known, _)| *known == flows);
        found.map_or(f64::NAN, |(_, rate)| *rate)
    };
    let rows: Vec<Vec<String>> = papers
        .iter()
        .map(|(flows, paper)| {
            vec![
                short(*flows),
                short(flows / 10.0),
                number(at(ours, *flows), 1),
                number(*paper, 1),
                number(at(lines, *flows), 1),
            ]
        })
        .collect();
    section.table(
        &[
            "active flows",
            "new flows/s",
            "ours, M packets/s, one core",
            "Cento without offload, M packets/s of 89 offered, 16 cores",
            "this machine's memory, M lines/s",
        ],
        &rows,
    );
}
