// SPDX-License-Identifier: Apache-2.0
//! The report on SAPTM.

use super::disagreements::DISAGREEMENTS;
use super::sheets::{Ours, Paper};
use super::{PART, PLACEMENTS, STAGES};
use crate::facts::{Facts, Raw};
use crate::report::axis::Spacing;
use crate::report::chart::{Plot, Series};
use crate::report::{Section, number, percent};
use crate::saptm::equations::{key_gbps, minimum_frames_mpps, mkeys_per_s};
use crate::saptm::victims::Victim;

/// The paper's best clock, at 32 stages (section 5.2), and its header in bytes.
const CLOCK_MHZ: f64 = 358.0;
const HEADER_BYTES: f64 = 20.0;
/// Its gain over the best and the worst sketch (Figure 13).
const GAINS: [(&str, f64); 2] = [("SketchVisor", 14.1), ("Deltoid", 70.5)];

pub(super) fn report(raw: &Raw, section: &mut Section) {
    let facts = raw.part(PART.name);
    section.say(
        "Everything here is simulated key by key, the same on any machine, except Table 2, which a \
         synthesis counts. Flows are of Zipf's law with exponent 1; the paper's trace is not \
         public. *One stage*: both buckets of a flow lie in one stage, as in our FPGA engine. \
         *Anywhere*: as in the paper, and on a processor.",
    );
    disagreements(section);
    figure_10(&facts.with("is", "placement"), section);
    printed(&facts.with("is", "printed"), section);
    victims(&facts.with("is", "victim"), section);
    throughput(&facts.with("is", "clocks"), section);
    resources(section);
}

fn disagreements(section: &mut Section) {
    section.say("### Where the paper disagrees with itself");
    let list = DISAGREEMENTS
        .iter()
        .map(|one| format!("- {}: {}.\n", one.about, one.sentence));
    section.say(list.collect::<String>().trim_end());
}

fn figure_10(facts: &Facts, section: &mut Section) {
    section.say(
        "### Figure 10, and how full a table gets\n\n10,000 flows in 65,536 slots (d = 2, \
         w = 4096, h = 8): flows of a stage, their variance over the stages, and the share of \
         slots in use when a flow first finds both buckets full.",
    );
    let mut rows = Vec::new();
    for stages in STAGES {
        let mut row = vec![stages.to_string()];
        for (name, _) in PLACEMENTS {
            let here = facts.with("placement", name).at("stages", stages as f64);
            let of = |key, digits| number(here.first(key).unwrap_or(f64::NAN), digits);
            row.extend([
                of("stage_mean_flows", 1),
                of("stage_variance", 0),
                of("load_at_first_overflow", 3),
            ]);
        }
        rows.push(row);
    }
    let names = [
        "stages",
        "anywhere: mean",
        "variance",
        "load at first overflow",
        "one stage: mean",
        "variance",
        "load at first overflow",
    ];
    section.table(&names, &rows);
}

fn printed(facts: &Facts, section: &mut Section) {
    section.say(
        "### The table as printed\n\nThe flow-key caches of all stages have 1,024 lines together \
         (section 5.2). What they forget is recorded again.",
    );
    let rows: Vec<Vec<String>> = facts
        .0
        .iter()
        .map(|fact| {
            let share = |key: &str, of: &str| percent(fact.get(key) / fact.get(of));
            vec![
                fact.label("packets_of").to_owned(),
                number(fact.get("stages"), 0),
                share("cache_hits", "packets"),
                share("second_records", "records"),
                number(fact.get("most_of_one_flow"), 0),
                number(fact.get("resident"), 0),
                number(fact.get("resident_flows"), 0),
                number(fact.get("records") / fact.get("packets"), 3),
            ]
        })
        .collect();
    let names = [
        "packets",
        "stages",
        "cache hits",
        "second records, of all",
        "most of one flow",
        "slots in use",
        "of so many flows",
        "records a packet",
    ];
    section.table(&names, &rows);
}

fn victims(facts: &Facts, section: &mut Section) {
    section.say(
        "### Which record makes room\n\nRecords a packet, those at the end included, of 100,000 \
         flows, in a table of four stages.",
    );
    let of = |victim: Victim| {
        let points = facts.with("victim", victim.name());
        points.points("slots", "records_per_packet")
    };
    let series = Victim::ALL.into_iter().enumerate();
    let series = series.map(|(colour, victim)| Series::ours(victim.name(), colour, of(victim)));
    let title = "Records a packet, by slots and by choice of victim";
    let plot = Plot {
        title,
        note: "Both buckets of a flow in one stage.",
        x: ("slots", Spacing::Logarithmic),
        y: ("records a packet", Spacing::Linear),
        series: series.collect(),
    };
    section.plot("saptm-victims", title, plot.svg());
    let [random, activity, recent] = Victim::ALL.map(of);
    let rows = random.iter().zip(&activity).zip(&recent);
    let rows: Vec<Vec<String>> = rows
        .map(|(((slots, random), (_, activity)), (_, recent))| {
            vec![
                number(*slots, 0),
                number(*random, 4),
                number(*activity, 4),
                number(*recent, 4),
                percent(1.0 - activity / random),
            ]
        })
        .collect();
    let names = [
        "slots",
        Victim::Random.name(),
        Victim::Activity.name(),
        Victim::LeastRecent.name(),
        "saved by activity",
    ];
    section.table(&names, &rows);
}

fn throughput(facts: &Facts, section: &mut Section) {
    let clocks = facts.first("new_key_clocks").unwrap_or(f64::NAN);
    let rate = mkeys_per_s(CLOCK_MHZ, clocks);
    let effective = rate * HEADER_BYTES * 8.0 / 1e3;
    section.say(format!(
        "### Equations 1 to 4, and Figures 11 to 13\n\nA new key takes {clocks:.0} clocks in stage \
         1. At the paper's best clock of {CLOCK_MHZ:.0} MHz (32 stages, the one number of Figure \
         11 in the text), that is {rate:.1} M new keys/s or {:.1} Gb/s of keys; 100 Gb/s carry \
         {:.1} M frames of 64 bytes. Ours takes one key in every clock, so 150 MHz are enough.",
        key_gbps(CLOCK_MHZ, clocks),
        minimum_frames_mpps(100.0),
    ));
    let rows: Vec<Vec<String>> = facts
        .0
        .iter()
        .map(|fact| {
            vec![
                number(fact.get("stages"), 0),
                number(fact.get("new_key_clocks"), 0),
                number(fact.get("mean_clocks_without_hash"), 1),
            ]
        })
        .collect();
    let names = [
        "stages",
        "clocks of a new key",
        "mean clocks, without the hash",
    ];
    section.table(&names, &rows);
    let gains = GAINS.map(|(sketch, gain)| {
        let share = effective / gain;
        format!("{share:.2} Gb/s for {sketch} ({gain}x)")
    });
    section.say(format!(
        "Figure 13's *effective throughput* counts headers of 20 bytes: with only new keys \
         {effective:.1} Gb/s by the equations. Its gains then mean {}. They compare an FPGA with \
         sketches on a processor. Figure 12, the processor's seconds, is a drawing without \
         numbers, and its testbed is not described well enough to run it again.",
        gains.join(" and ")
    ));
}

fn resources(section: &mut Section) {
    section.say(
        "### Table 2\n\nThe paper's slot has a key and a counter, 136 bits, on a VU9P. Ours has \
         all default features, 298 bits; counted is one stage, times their number, without hash, \
         head and egress.",
    );
    let ours = Ours::in_tree();
    let paper = Paper::in_tree();
    let rows = paper.resources.iter().map(|row| {
        let counted = ours.resources.iter().find(|one| one.stages == row.stages);
        let ours = counted.map_or("not measured".to_owned(), |one| {
            format!(
                "{} / {} / {} / {} ({})",
                one.lut, one.ff, one.bram36, one.dsp, one.run
            )
        });
        vec![
            row.stages.to_string(),
            format!(
                "{} ({} %) / {} ({} %) / {} / {}",
                row.lut, row.lut_percent, row.ff, row.ff_percent, row.bram36, row.dsp
            ),
            ours,
        ]
    });
    let names = ["stages", "paper: LUT / FF / BRAM36 / DSP", "ours"];
    section.table(&names, &rows.collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::Scale;

    #[test]
    fn the_report_has_each_disagreement_and_every_table() {
        let folder = tempfile::tempdir().unwrap();
        let scale = Scale {
            quick: true,
            redis: None,
            captures: folder.path().to_owned(),
        };
        let raw = Raw::open(folder.path()).unwrap();
        let mut section = Section::default();
        report(&PART.computed(&raw, &scale).unwrap(), &mut section);
        let text = section.text();
        for one in &DISAGREEMENTS {
            let sentence = format!("- {}: {}.\n", one.about, one.sentence);
            assert!(text.contains(&sentence), "{sentence}");
            assert!(!one.sentence.contains(". "), "{sentence}");
        }
        for row in [
            "| 8 | 1250.0 |",
            "| Figure 10's | 8 |",
            "| 4096 |",
            "| 32 | 5 | 51.5 |",
            "71.6 M new keys/s",
            "| 29112 / 28736 / 592 / 0 (2026-11-28-fpga) |",
            "| 32 | 142000 (6.6 %) / 188000 (6.8 %) / 325 / 68 | not measured |",
        ] {
            assert!(text.contains(row), "{row} is missing in {text}");
        }
    }

    #[test]
    fn the_shares_of_table_2_are_of_no_vu9p() {
        let (lut, ff) = (1_182_240.0, 2_364_480.0);
        let paper = Paper::in_tree();
        let row = paper.resources.iter().find(|row| row.stages == 32).unwrap();
        let shares = (f64::from(row.lut) / lut, f64::from(row.ff) / ff);
        assert_eq!(
            (number(100.0 * shares.0, 1), number(100.0 * shares.1, 1)),
            ("12.0".to_owned(), "8.0".to_owned())
        );
        assert_eq!((row.lut_percent, row.ff_percent), (6.6, 6.8));
    }
}
