// SPDX-License-Identifier: Apache-2.0
//! Figure 13: the rate of microflow records over time.

use turboflow_plan::{SimulationConfig, worst_case_microflows_per_second};

use super::links::{PAPERS_RECORD_BYTES, Simulated, links, simulate};
use super::{FactSink, Part, Scale};
use crate::facts::{Fact, Raw};
use crate::report::axis::{Spacing, short};
use crate::report::chart::{Marks, Plot, Series};
use crate::report::{Section, number};

pub(super) const PART: Part = Part {
    name: "figure13",
    title: "Figure 13: microflow records over time",
    measure,
    report,
    is_computed: false,
};

const SLOTS: [u32; 3] = [2_048, 8_192, 65_536];
/// Colour of the worst case: the darkest.
const WORST_COLOUR: usize = 7;

fn measure(scale: &Scale, give: FactSink<'_>) -> anyhow::Result<()> {
    let [internet, ..] = links();
    let config = SimulationConfig {
        table_slots: SLOTS.to_vec(),
        ..SimulationConfig::default()
    };
    let packets = scale.pick(6_000_000, 54_000_000);
    let Simulated { measured, .. } = simulate(internet.kind, packets, 1, &config)?;
    let traffic = measured.traffic()?;
    let interval_s = measured.interval_ns as f64 / 1e9;
    let Some(first) = measured.intervals.first() else {
        anyhow::bail!("the workload made no packets");
    };
    let first_ns = first.start_ns;
    // The first and the last interval are incomplete.
    let whole = 1..measured.intervals.len().saturating_sub(1);
    for interval in &measured.intervals[whole] {
        for (table, &microflows) in measured.tables.iter().zip(&interval.microflows) {
            let slots = u64::from(table.slots);
            let fact = Fact::new(PART.name)
                .of("workload", internet.name)
                .value("slots", slots as f64)
                .value("at_s", (interval.start_ns - first_ns) as f64 / 1e9)
                .value("packets_per_s", interval.packets as f64 / interval_s)
                .value("microflows_per_s", microflows as f64 / interval_s)
                .value(
                    "worst_case_per_s",
                    worst_case_microflows_per_second(&traffic, slots),
                );
            give(fact);
        }
    }
    Ok(())
}

fn report(raw: &Raw, section: &mut Section) {
    let facts = raw.part(PART.name);
    section.say(
        "Microflow records per second on the Internet workload, in intervals of half a second, \
         for three table sizes. The dashed line is the worst case by Equation 2 for the mean \
         rates of this traffic; it is nearly the same for the three tables, so the largest is \
         drawn.",
    );
    let mut series = Vec::new();
    let mut rows = Vec::new();
    let mut bound: Vec<(f64, f64)> = Vec::new();
    for (colour, slots) in SLOTS.into_iter().map(f64::from).enumerate() {
        let here = facts.at("slots", slots);
        let points: Vec<(f64, f64)> = here
            .points("at_s", "microflows_per_s")
            .into_iter()
            .map(|(at, rate)| (at, rate / 1e3))
            .collect();
        let worst = here.first("worst_case_per_s").unwrap_or(f64::NAN) / 1e3;
        let memory = short(slots * PAPERS_RECORD_BYTES);
        let ends = [points.first(), points.last()].into_iter().flatten();
        let here: Vec<(f64, f64)> = ends.map(|(at, _)| (*at, worst)).collect();
        if bound.first().is_none_or(|(_, most)| *most < worst) {
            bound = here;
        }
        let rates: Vec<f64> = points.iter().map(|(_, rate)| *rate).collect();
        let name = format!("{memory}B table");
        series.push(Series::ours(name, colour, points).marked(Marks::Line));
        rows.push(spread(&memory, &rates, worst));
    }
    series.push(Series::papers("worst case", WORST_COLOUR, bound).marked(Marks::Line));
    let plot = Plot {
        title: "Figure 13: microflow records over time, Internet link",
        note: "Solid: measured here. Dashed: worst case by Equation 2. Vertical axis logarithmic.",
        x: ("seconds", Spacing::Linear),
        y: ("thousand microflow records/s", Spacing::Logarithmic),
        series,
    };
    section.plot(
        "figure13",
        "Microflow records a second over time",
        plot.svg(),
    );
    section.table(
        &[
            "memory (24 bytes a slot)",
            "mean, K/s",
            "standard deviation",
            "largest, K/s",
            "worst case, K/s",
        ],
        &rows,
    );
    section.say(
        "The rate is steady from the first seconds, as in the paper: a short sample is enough to \
         choose a table size. Where it differs: our workload has constant rates by construction; \
         the paper's trace of one hour also drifts.",
    );
}

fn spread(memory: &str, rates: &[f64], worst: f64) -> Vec<String> {
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / count;
    let largest = rates.iter().copied().fold(f64::NAN, f64::max);
    vec![
        format!("{memory}B"),
        number(mean, 1),
        number(variance.sqrt() / mean * 100.0, 1) + " %",
        number(largest, 1),
        number(worst, 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_mean_deviation_and_largest() {
        let row = spread("49K", &[1.0, 3.0], 9.0);
        assert_eq!(row, ["49KB", "2.0", "50.0 %", "3.0", "9.0"]);
    }
}
