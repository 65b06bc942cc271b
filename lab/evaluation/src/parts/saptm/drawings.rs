// SPDX-License-Identifier: Apache-2.0
//! Draws Figures 10 to 13.

use super::sheets::{Ours, Routed};
use super::{ANYWHERE, AS_PRINTED, CLOCK_MHZ, HEADER_BYTES, LINE, ONE_STAGE, PART, STAGES};
use crate::facts::{Facts, Raw};
use crate::report::Section;
use crate::report::axis::Spacing::{self, Linear, Logarithmic};
use crate::report::chart::{Marks, Plot, Series};
use crate::report::panels::{BarSource, Panels, Row};
use crate::saptm::equations::{minimum_frames_mpps, mkeys_per_s};
use crate::saptm::victims::Victim;

/// Packets of the paper's trace (section 5.1).
const TRACE_PACKETS: f64 = 26_391_238.0;
/// Other methods: their names in the part `accuracy` and in the drawings.
const METHODS: [(&str, &str); 4] = [
    ("FlowRadar, 1.3 cells a flow", "FlowRadar"),
    ("Count-Min", "Count-Min"),
    ("HashPipe", "HashPipe"),
    ("Elastic sketch", "Elastic sketch"),
];

fn draw(
    section: &mut Section,
    file: &str,
    title: &str,
    (x, y): ((&str, Spacing), (&str, Spacing)),
    series: Vec<Series>,
) {
    let plot = Plot {
        title,
        note: "",
        x,
        y,
        series,
    };
    section.plot(file, title, plot.svg());
}

/// Figure 10: used slots of each stage; loads of the buckets within a stage; and the variance over
/// stages, by number of stages.
pub(super) fn figure_10(facts: &Facts, section: &mut Section) {
    let names = [
        (AS_PRINTED, "SAPTM as printed", 1),
        (ANYWHERE.0, "processor", 6),
        (ONE_STAGE.0, "by the hash alone", 7),
        (LINE, "ours", 0),
    ];
    let by_stage = |key: &str| -> Vec<Series> {
        let of = |(placement, name, colour): (&str, &str, usize)| {
            let here = facts.with("is", "stage").with("placement", placement);
            Series::ours(name, colour, here.points("stage", key))
        };
        names.map(of).to_vec()
    };
    draw(
        section,
        "saptm-figure10",
        "Figure 10: slots in use of each stage, 10,000 flows, one seed",
        (("stage", Linear), ("slots in use", Linear)),
        by_stage("slots"),
    );
    draw(
        section,
        "saptm-figure10-buckets",
        "Figure 10, read for buckets: variance of their slots in use",
        (("stage", Linear), ("variance within the stage", Linear)),
        by_stage("bucket_variance"),
    );
    let placements = facts.with("is", "placement");
    let by_number = names[1..].iter().map(|(placement, name, colour)| {
        let here = placements.with("placement", placement);
        // Other placements were tried only with one number of stages, and are labelled in the plot.
        Series::ours(*name, *colour, here.points("stages", "stage_variance"))
    });
    draw(
        section,
        "saptm-figure10-variance",
        "Variance over stages of the slots in use, 10,000 flows",
        (
            ("stages", Logarithmic),
            ("variance of slots in use", Logarithmic),
        ),
        by_number.collect(),
    );
}

/// Figure 11: keys per second, by number of stages.
pub(super) fn figure_11(facts: &Facts, section: &mut Section) {
    let ends = [2.0, *STAGES.last().expect("there are stages") as f64];
    let line = |rate: f64, from: f64| vec![(from, rate), (ends[1], rate)];
    let new_key = facts.first("new_key_clocks").unwrap_or(f64::NAN);
    let mixed = |name: &str| -> Vec<(f64, f64)> {
        let here = facts.with("is", "printed").with("packets_of", name);
        let rate = |fact: &crate::facts::Fact| {
            let new = fact.get("records") / fact.get("packets");
            let clocks = new * new_key + (1.0 - new);
            (fact.get("stages"), mkeys_per_s(CLOCK_MHZ, clocks))
        };
        here.0.iter().map(rate).collect()
    };
    let routed: Vec<(f64, f64)> = Ours::in_tree()
        .routed
        .iter()
        .map(|routed| (f64::from(routed.stages), routed.mhz))
        .collect();
    let new_only = line(mkeys_per_s(CLOCK_MHZ, new_key), STAGES[0] as f64);
    let link = line(minimum_frames_mpps(100.0), ends[0]);
    let series = vec![
        Series::ours("ours, routed on ECP5", 0, routed),
        Series::ours("SAPTM, Figure 10's flows", 2, mixed("Figure 10's")),
        Series::ours("SAPTM, 30K flows", 3, mixed("30K flows")),
        Series::papers("SAPTM, new keys", 1, new_only),
        Series::ours("100 Gb/s, 64 bytes", 7, link).marked(Marks::Line),
    ];
    draw(
        section,
        "saptm-figure11",
        "Figure 11: keys a second by stages; SAPTM with its best clock, 358 MHz",
        (("stages", Logarithmic), ("M keys/s", Linear)),
        series,
    );
}

/// Processor time per packet in nanoseconds, for each method that the run measured.
fn on_a_processor(raw: &Raw) -> Vec<(&'static str, BarSource, f64)> {
    let accuracy = raw.part("accuracy");
    let of = |design: &str| accuracy.with("design", design).first("ns_per_packet");
    let mut found: Vec<(&str, BarSource, f64)> = METHODS
        .iter()
        .filter_map(|(design, name)| of(design).map(|ns| (*name, BarSource::Others, ns)))
        .collect();
    found.extend(of("TurboFlow").map(|ns| ("TurboFlow in software", BarSource::Ours, ns)));
    found
}

/// Host time per packet behind a line of 65,536 slots, in nanoseconds: records per packet, times
/// the aggregator's time for a record.
fn behind_the_line(raw: &Raw) -> Option<f64> {
    let merged = raw.part("figure12").with("design", "turboflow");
    let merged = merged.with("traffic", "zipf").at("flows", 100_000.0);
    let ns = merged.at("cores", 1.0).first("ns_per_item")?;
    let records = raw.part(PART.name).with("victim", Victim::ALL[1].name());
    Some(ns * records.at("slots", 65_536.0).first("records_per_packet")?)
}

/// Figures 12 and 13, from measurements of the run on its processor. Returns whether the run has
/// these measurements.
pub(super) fn figures_12_and_13(raw: &Raw, section: &mut Section) -> bool {
    let methods = on_a_processor(raw);
    let behind = behind_the_line(raw);
    if methods.is_empty() {
        return false;
    }
    let bar =
        |(name, source, value): (&str, BarSource, f64)| Row::new(name, source, vec![Some(value)]);
    let seconds = |(name, source, ns): (&'static str, BarSource, f64)| {
        (name, source, ns * TRACE_PACKETS / 1e9)
    };
    let behind = behind.map(|ns| ("TurboFlow behind the line", BarSource::Ours, ns));
    let hosts = methods.iter().copied().chain(behind).map(seconds);
    let title = "Figure 12: seconds of a processor for the packets of the paper's trace";
    let drawn = Panels {
        title,
        axis: ("seconds", Logarithmic),
        panels: vec!["26.4 M packets, one core".to_owned()],
        rows: hosts.map(bar).collect(),
    };
    section.plot("saptm-figure12", title, drawn.svg());

    let header_bits = HEADER_BYTES * 8.0;
    let rate =
        |(name, source, ns): (&'static str, BarSource, f64)| (name, source, header_bits / ns);
    let clocked = |mhz: f64, clocks: f64| mkeys_per_s(mhz, clocks) * header_bits / 1e3;
    let new_key = raw.part(PART.name).first("new_key_clocks").unwrap_or(5.0);
    let fastest = Ours::in_tree()
        .routed
        .last()
        .map_or(f64::NAN, |routed: &Routed| routed.mhz);
    let in_hardware = [
        (
            "SAPTM, new keys",
            BarSource::Paper,
            clocked(CLOCK_MHZ, new_key),
        ),
        (
            "SAPTM, a key a clock",
            BarSource::Paper,
            clocked(CLOCK_MHZ, 1.0),
        ),
        ("our line, ECP5", BarSource::Ours, clocked(fastest, 1.0)),
    ];
    let title = "Figure 13: effective throughput, headers of 20 bytes";
    let drawn = Panels {
        title,
        axis: ("Gb/s of headers", Logarithmic),
        panels: vec!["one core, or one line".to_owned()],
        rows: methods
            .iter()
            .copied()
            .map(rate)
            .chain(in_hardware)
            .map(bar)
            .collect(),
    };
    section.plot("saptm-figure13", title, drawn.svg());
    true
}
