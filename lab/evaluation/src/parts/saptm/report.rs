// SPDX-License-Identifier: Apache-2.0
//! The report on SAPTM.

use super::disagreements::DISAGREEMENTS;
use super::sheets::{Ours, Paper};
use super::{
    ACTIVITIES, ANYWHERE, CLOCK_MHZ, HEADER_BYTES, LINE, LINES, ONE_STAGE, PART, STAGES,
    STAGES_OF_FIGURE_10, drawings, equations,
};
use crate::facts::{Facts, Raw};
use crate::report::axis::Spacing;
use crate::report::chart::{Plot, Series};
use crate::report::{Section, number, percent};
use crate::saptm::equations::{key_gbps, minimum_frames_mpps, mkeys_per_s};
use crate::saptm::line::{Keys, StageBy};
use crate::saptm::victims::Victim;

/// The paper's gain over the best and the worst sketch (Figure 13).
const GAINS: [(&str, f64); 2] = [("SketchVisor", 14.1), ("Deltoid", 70.5)];

/// Rules of placement: name, description, and what each needs in addition to what the line has.
const TRIED: [(&str, &str, &str); 7] = [
    (
        "anywhere",
        "anywhere, as on a processor",
        "two passes, or 16 records of a flow",
    ),
    ("one stage", "in one stage, which the hash says", "none"),
    (
        "neighbours",
        "in a stage and the next one",
        "two passes, or 2 records of a flow",
    ),
    (
        "front 4096",
        "in one stage, which a table in front of 4,096 entries says",
        "20 Kbit",
    ),
    ("front 16384", "the same, 16,384 entries", "80 Kbit"),
    ("front 65536", "the same, 65,536 entries", "320 Kbit"),
    ("front 262144", "the same, 262,144 entries", "1,280 Kbit"),
];

pub(super) fn report(raw: &Raw, section: &mut Section) {
    let facts = raw.part(PART.name);
    section.say(
        "Everything here is simulated key by key, the same on any machine, except Table 2, which a \
         synthesis counts. Flows are of Zipf's law with exponent 1; the paper's trace is not \
         public. *One stage*: both buckets of a flow lie in one stage, as in our FPGA engine. \
         *Anywhere*: as in the paper, and on a processor.",
    );
    disagreements(section);
    figure_10(&facts, section);
    printed(&facts.with("is", "printed"), section);
    victims(&facts.with("is", "victim"), section);
    saved(&facts.with("is", "saved"), section);
    equations::say(raw, section);
    throughput(raw, &facts, section);
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
    let placed = facts.with("is", "placement");
    let mut rows = Vec::new();
    for stages in STAGES {
        let mut row = vec![stages.to_string()];
        for name in [ANYWHERE.0, ONE_STAGE.0, LINE] {
            let here = placed.with("placement", name).at("stages", stages as f64);
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
        "one stage, by the hash: mean",
        "variance",
        "load at first overflow",
        "ours: mean",
        "variance",
        "load at first overflow",
    ];
    section.table(&names, &rows);
    drawings::figure_10(facts, section);
    tried(facts, section);
}

/// Placements that were tried to even out stages: effect and cost.
fn tried(facts: &Facts, section: &mut Section) {
    let placed = facts.with("is", "placement");
    let placed = placed.at("stages", STAGES_OF_FIGURE_10 as f64);
    let processor = placed.with("placement", "anywhere").first("stage_variance");
    let processor = processor.unwrap_or(f64::NAN);
    let row = |what: &str, variance: Option<f64>, load: Option<f64>, price: &str| {
        let variance = variance.unwrap_or(f64::NAN);
        vec![
            what.to_owned(),
            number(variance, 0),
            number(variance / processor, 2),
            number(load.unwrap_or(f64::NAN), 3),
            price.to_owned(),
        ]
    };
    let mut rows: Vec<Vec<String>> = TRIED
        .iter()
        .map(|(name, what, price)| {
            let here = placed.with("placement", name);
            let load = here.first("load_at_first_overflow");
            row(what, here.first("stage_variance"), load, price)
        })
        .collect();
    let built = facts.with("is", "stages of the line");
    for (by, keys, cells) in LINES {
        let here = built.with("by", by.name()).with("keys", keys.name());
        let variance = here.at("cells", cells as f64).first("stage_variance");
        let load = placed.with("placement", LINE);
        let load = load.first("load_at_first_overflow");
        let is_first = (by, keys, cells) == LINES[0];
        let what = format!("{}, {}", of_line(by), of_keys(keys, cells));
        let price = match by {
            StageBy::Table => "96 Kbit",
            StageBy::Hash => "none",
        };
        rows.push(row(&what, variance, load.filter(|_| is_first), price));
    }
    section.say(
        "The variants that were tried for 8 stages, with means over the seeds, and the line as it \
         is built. A table in front has no keys: it is addressed by the hash. The first flow of an \
         entry in a cell gets the stage that the fewest entries have, and all other flows of that \
         entry follow. In the line, an entry that had a flow in the cell before keeps its stage, \
         and others get the next stage in turn that has at most one entry more than the mean. The \
         order of sweeps, the length of a cell, ties and the choice of victims change nothing: \
         until a pair of buckets is full, nothing leaves.",
    );
    let names = [
        "buckets of a flow",
        "variance over stages",
        "times the processor's",
        "load at first overflow",
        "what it takes",
    ];
    section.table(&names, &rows);
}

fn of_line(by: StageBy) -> &'static str {
    match by {
        StageBy::Table => "**ours**, in one stage, which the table says",
        StageBy::Hash => "ours without the table",
    }
}

fn of_keys(keys: Keys, cells: u64) -> String {
    match (keys, cells) {
        (Keys::Random, 1) => "random keys".to_owned(),
        (Keys::Random, cells) => format!("random keys, in the last of {cells} cells"),
        (Keys::Neighbours, _) => "keys that count up".to_owned(),
    }
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
    let [random_name, activity_name, recent_name] = Victim::ALL.map(Victim::name);
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
        random_name,
        activity_name,
        recent_name,
        "saved by activity",
    ];
    section.table(&names, &rows);
}

/// How many records the activity rule saves with 4,096 slots, in the study and in the line itself.
fn saved(facts: &Facts, section: &mut Section) {
    section.say(
        "The line itself on the same packets, 4,096 slots: its records are those of the model, \
         which the SystemVerilog gives one by one. With random keys it saves what the study says. \
         A linear hash does not spread keys that count up as it spreads random keys. Evicting any \
         victim then costs fewer or more records, depending on the seed, and a chosen victim costs \
         as many as with random keys.",
    );
    let of = [
        ("study", "the study above"),
        (Keys::Random.name(), "the line, random keys"),
        (Keys::Neighbours.name(), "the line, keys that count up"),
    ];
    let tuned = ACTIVITIES.map(|(name, _)| (name, name));
    let others = [("least recently used", "least recently used")];
    saved_table("by", &of, facts, section);
    section.say(
        "Other definitions of idle, in the study: the number of periods since the last use, where \
         a period has as many packets as the table has slots, times a number. *1 or 2 periods of \
         2* is that of the line.",
    );
    saved_table("idle", &[&tuned[..], &others].concat(), facts, section);
}

fn saved_table(what: &str, of: &[(&str, &str)], facts: &Facts, section: &mut Section) {
    let rows = of.iter().map(|(by, name)| {
        let here = facts.with("by", by);
        let column = |key| {
            here.0
                .iter()
                .map(|fact| fact.get(key))
                .collect::<Vec<f64>>()
        };
        let any = column("any_records_per_packet");
        let chosen = column("activity_records_per_packet");
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let saved: Vec<f64> = any
            .iter()
            .zip(&chosen)
            .map(|(any, one)| 1.0 - one / any)
            .collect();
        vec![
            (*name).to_owned(),
            number(mean(&any), 4),
            number(mean(&chosen), 4),
            percent(mean(&saved)),
            percent(saved.iter().copied().fold(f64::INFINITY, f64::min)),
            percent(saved.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        ]
    });
    let names = [
        what,
        "any victim, records a packet",
        "by activity",
        "saved, mean of the seeds",
        "least",
        "most",
    ];
    section.table(&names, &rows.collect::<Vec<_>>());
}

fn throughput(raw: &Raw, facts: &Facts, section: &mut Section) {
    let clocks = facts.first("new_key_clocks").unwrap_or(f64::NAN);
    let rate = mkeys_per_s(CLOCK_MHZ, clocks);
    let effective = rate * HEADER_BYTES * 8.0 / 1e3;
    section.say(format!(
        "### Figures 11 to 13\n\nA new key takes {clocks:.0} clocks in stage \
         1. At the paper's best clock of {CLOCK_MHZ:.0} MHz (32 stages, the one number of Figure \
         11 in the text), that is {rate:.1} M new keys/s or {:.1} Gb/s of keys; 100 Gb/s carry \
         {:.1} M frames of 64 bytes. Ours takes one key in every clock, so 150 MHz are enough.",
        key_gbps(CLOCK_MHZ, clocks),
        minimum_frames_mpps(100.0),
    ));
    drawings::figure_11(facts, section);
    let routed = Ours::in_tree().routed;
    let routed = routed
        .iter()
        .map(|one| format!("{} MHz with {} stages ({})", one.mhz, one.stages, one.run));
    section.say(format!(
        "Figure 11 is a drawing without numbers. Here a known key takes SAPTM one clock, which \
         favours it, and its clock is its best one for any number of stages. Ours was routed for \
         an ECP5, a slower chip than the paper's: {}.",
        routed.collect::<Vec<_>>().join(", ")
    ));
    if drawings::figures_12_and_13(raw, section) {
        section.say(
            "Figure 12 is a drawing without numbers, of Deltoid, UnivMon, Reversible Sketch, \
             FlowRadar and SketchVisor. These are the designs of `lab/accuracy` (part `accuracy` \
             of this run, without recovering flows from a sketch), and the aggregator behind a \
             line of 65,536 slots (part `figure12`, times the records a packet above). They say \
             how a processor and a line compare, not how ours compare with the paper's testbed.",
        );
    } else {
        section.say(
            "This run lacks the parts `accuracy` and `figure12`, of which Figures 12 and 13 are \
             drawn.",
        );
    }
    let gains = GAINS.map(|(sketch, gain)| {
        let share = effective / gain;
        format!("{share:.2} Gb/s for {sketch} ({gain}x)")
    });
    section.say(format!(
        "Figure 13's *effective throughput* counts headers of 20 bytes: with only new keys \
         {effective:.1} Gb/s by the equations. Its gains then mean {}. If a key took one \
         clock, they mean 14.1 and 70.5 of {:.1} Gb/s. They compare an FPGA with sketches on a \
         processor, whose testbed is not described well enough to run it again.",
        gains.join(" and "),
        CLOCK_MHZ * HEADER_BYTES * 8.0 / 1e3,
    ));
}

fn resources(section: &mut Section) {
    section.say(
        "### Table 2\n\nThe paper's slot has a key and a counter, 136 bits, on a VU9P. Ours has \
         all default features, 298 bits; what is counted is one stage, times the number of stages, \
         and the table that gives the stage, without hash, head and egress.",
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
            "| 32 | 5 | 3 | 51.5 | 1 | 426 |",
            "71.6 M new keys/s",
            "| 29531 / 29066 / 595 / 0 (2026-11-28-fpga-bytes) |",
            "/ 325 / 68 | 104748 / 113154 / 740 / 0 (2026-11-28-fpga-bytes) |",
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
