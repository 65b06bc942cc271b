// SPDX-License-Identifier: Apache-2.0
//! SAPTM: its table as printed, its figures and equations, and the effect of its placement.

mod disagreements;
mod drawings;
mod equations;
mod report;
mod sheets;

use super::{FactSink, Part, Scale};
use crate::facts::Fact;
use crate::saptm::equations::TABLE_3;
use crate::saptm::line::{self, Keys, StageBy};
use crate::saptm::placement::{self, Rule, Spread};
use crate::saptm::printed::{Counts, Printed};
use crate::saptm::victims::{self, Activity, Victim};
use crate::saptm::{Placement, SUBTABLES, Shape, zipf};

pub(super) const PART: Part = Part {
    name: "saptm",
    title: "SAPTM: a line of stages in an FPGA",
    measure,
    report: report::report,
    is_computed: true,
};

/// The numbers of stages of Table 2 and Figure 11.
const STAGES: [usize; 5] = [4, 8, 16, 32, 64];
/// Numbers of flows and packets of Figure 10.
const FLOWS: usize = 10_000;
const PACKETS: usize = 48_579;
/// How long a candidate may be silent, in packets. The paper gives no number, so this one is ours.
const ACTIVENESS: u64 = 10_000;
const SEED: u64 = 1;
/// The highest clock in the paper, at 32 stages (section 5.2), and the size of its header in bytes.
const CLOCK_MHZ: f64 = 358.0;
const HEADER_BYTES: f64 = 20.0;
/// Number of consecutive cells, each with new flows. With more cells, the share of entries that
/// keep their stage from the previous cell no longer grows.
const CELLS: u64 = 5;
/// The variants of the line: how the stage is chosen, the keys, and the number of cells.
const LINES: [(StageBy, Keys, u64); 5] = [
    (StageBy::Table, Keys::Random, 1),
    (StageBy::Table, Keys::Random, CELLS),
    (StageBy::Table, Keys::Neighbours, 1),
    (StageBy::Hash, Keys::Random, 1),
    (StageBy::Hash, Keys::Neighbours, 1),
];
/// The number of stages in Figure 10.
const STAGES_OF_FIGURE_10: usize = 8;

/// Placements that are compared for every number of stages: both buckets anywhere, and both in one
/// stage.
const ANYWHERE: (&str, Rule) = ("anywhere", Rule::of(Placement::Anywhere));
const ONE_STAGE: (&str, Rule) = ("one stage", Rule::of(Placement::OneStage));
const PLACEMENTS: [(&str, Rule); 2] = [ANYWHERE, ONE_STAGE];
/// The name of the line as built, which its model runs.
const LINE: &str = "line";
/// The name of the table as printed, in Figure 10.
const AS_PRINTED: &str = "as printed";
/// Other placements that were tried to even out stages, with the number of stages of Figure 10.
const TRIED: [(&str, Rule); 5] = [
    ("neighbours", Rule::of(Placement::Neighbours)),
    ("front 4096", Rule::front(4_096)),
    ("front 16384", Rule::front(16_384)),
    ("front 65536", Rule::front(65_536)),
    ("front 262144", Rule::front(262_144)),
];

/// Rules for when a slot is idle: the periods since its last use, and the length of a period.
const ACTIVITIES: [(&str, Activity); 6] = [
    ("2 periods of 1", activity(&[2], 1)),
    ("2 periods of 2", activity(&[2], 2)),
    ("1 or 2 periods of 1", activity(&[1, 2], 1)),
    ("1 or 2 periods of 2", Activity::OF_THE_LINE),
    ("1 or 2 periods of 4", activity(&[1, 2], 4)),
    ("2 or 3 periods of 1", activity(&[2, 3], 1)),
];

const fn activity(idle_ages: &'static [u64], packets_a_slot: u64) -> Activity {
    Activity {
        idle_ages,
        packets_a_slot,
    }
}

fn measure(scale: &Scale, give: FactSink<'_>) -> anyhow::Result<()> {
    stages(scale, give);
    as_printed(scale, give);
    records(scale, give);
    for stages in STAGES {
        let fact = Fact::new(PART.name)
            .of("is", "clocks")
            .value("stages", stages as f64)
            .value("new_key_clocks", TABLE_3.new_key(SUBTABLES as f64))
            .value(
                "mean_clocks_without_hash",
                TABLE_3.mean(0.0, SUBTABLES as f64, stages as f64),
            );
        give(fact);
    }
    Ok(())
}

/// Figure 10: how flows spread over stages, for each rule.
fn stages(scale: &Scale, give: FactSink<'_>) {
    let seeds = scale.pick(3, 20);
    for (name, rule) in PLACEMENTS {
        for stages in STAGES {
            give(placed(name, rule, stages, seeds));
        }
    }
    for (name, rule) in TRIED {
        give(placed(name, rule, STAGES_OF_FIGURE_10, seeds));
    }
    for stages in STAGES {
        // The overflow load takes most of the time, and Figure 10 needs only one number of stages.
        let is_filled = stages == STAGES_OF_FIGURE_10 || !scale.quick;
        give(placed_by_line(stages, seeds, is_filled));
    }
    let shape = Shape::of_paper(STAGES_OF_FIGURE_10);
    for (by, keys, cells) in LINES {
        let of = |seed| line::filled(shape, (by, keys), (FLOWS as u64, cells), seed);
        let fact = Fact::new(PART.name)
            .of("is", "stages of the line")
            .of("by", by.name())
            .of("keys", keys.name())
            .value("cells", cells as f64);
        give(spread(fact, shape, seeds, of));
    }
    let mut printed = Printed::new(shape, ACTIVENESS, SEED);
    let packets = zipf(FLOWS, PACKETS, SEED);
    packets.iter().for_each(|flow| printed.packet(*flow));
    let of = |(name, rule)| {
        let filled = placement::filled(shape, rule, FLOWS as u64, SEED);
        (name, filled)
    };
    let built = (StageBy::Table, Keys::Random);
    let built = line::filled(shape, built, (FLOWS as u64, 1), SEED);
    for (name, filled) in [
        of(ANYWHERE),
        of(ONE_STAGE),
        (AS_PRINTED, printed.filled()),
        (LINE, built),
    ] {
        for (stage, loads) in (1..).zip(placement::of_stages(shape, &filled)) {
            let buckets = Spread::of(&loads);
            let fact = Fact::new(PART.name)
                .of("is", "stage")
                .of("placement", name)
                .value("stage", f64::from(stage))
                .value("slots", loads.iter().sum())
                .value("bucket_mean", buckets.mean)
                .value("bucket_variance", buckets.variance);
            give(fact);
        }
    }
}

/// The table as printed, with every number of stages.
fn as_printed(scale: &Scale, give: FactSink<'_>) {
    let loads = [
        ("Figure 10's", zipf(FLOWS, PACKETS, SEED)),
        ("30K flows", zipf(30_000, scale.pick(50_000, 500_000), SEED)),
    ];
    for (name, packets) in &loads {
        for stages in STAGES {
            let mut table = Printed::new(Shape::of_paper(stages), ACTIVENESS, SEED);
            packets.iter().for_each(|flow| table.packet(*flow));
            give(counted(name, stages, &table.finish()));
        }
    }
}

/// Numbers of evicted records for each rule that chooses a victim, in the study and in the line.
fn records(scale: &Scale, give: FactSink<'_>) {
    let packets = zipf(100_000, scale.pick(100_000, 1_000_000), SEED);
    for buckets in [64, 256, 1_024, 4_096] {
        let shape = Shape {
            stages: 4,
            buckets,
            slots: 8,
        };
        for victim in Victim::ALL {
            let records = victims::records(shape, victim, &packets, SEED);
            let fact = Fact::new(PART.name)
                .of("is", "victim")
                .of("victim", victim.name())
                .value("slots", shape.all_slots() as f64)
                .value("records_per_packet", records as f64 / packets.len() as f64);
            give(fact);
        }
    }
    let shape = victims::FOUR_THOUSAND_SLOTS;
    for seed in 1..=scale.pick(1, 5) {
        let packets = zipf(100_000, scale.pick(100_000, 1_000_000), seed);
        let share = |records: usize| records as f64 / packets.len() as f64;
        let by = |name: &str, any: usize, chosen: usize| {
            Fact::new(PART.name)
                .of("is", "saved")
                .of("by", name)
                .value("seed", seed as f64)
                .value("any_records_per_packet", share(any))
                .value("activity_records_per_packet", share(chosen))
        };
        let [random, activity, recent] = Victim::ALL;
        let records = |victim| victims::records(shape, victim, &packets, seed);
        let any = records(random);
        give(by("study", any, records(activity)));
        give(by("least recently used", any, records(recent)));
        for (name, rule) in ACTIVITIES {
            give(by(name, any, records(Victim::Activity(rule))));
        }
        for keys in Keys::ALL {
            let [any, chosen] = [false, true]
                .map(|by_activity| line::records(shape, by_activity, keys, &packets, seed));
            give(by(keys.name(), any, chosen));
        }
    }
}

/// The numbers of Figure 10 and the load at the first overflow, as means over seeds.
fn placed(name: &str, rule: Rule, stages: usize, seeds: u64) -> Fact {
    let shape = Shape::of_paper(stages);
    let loads = (0..seeds).map(|seed| placement::first_overflow(shape, rule, seed));
    let load = loads.sum::<f64>() / seeds as f64;
    let of = |seed| placement::filled(shape, rule, FLOWS as u64, seed);
    spread(placement_fact(name, stages), shape, seeds, of).value("load_at_first_overflow", load)
}

/// The numbers of Figure 10 for the line. The load at the first overflow is included only if
/// `is_filled`.
fn placed_by_line(stages: usize, seeds: u64, is_filled: bool) -> Fact {
    let shape = Shape::of_paper(stages);
    let by = (StageBy::Table, Keys::Random);
    let of = |seed| line::filled(shape, by, (FLOWS as u64, 1), seed);
    let fact = spread(placement_fact(LINE, stages), shape, seeds, of);
    if !is_filled {
        return fact;
    }
    let loads = (0..seeds).map(|seed| line::first_overflow(shape, seed));
    fact.value("load_at_first_overflow", loads.sum::<f64>() / seeds as f64)
}

fn placement_fact(name: &str, stages: usize) -> Fact {
    Fact::new(PART.name)
        .of("is", "placement")
        .of("placement", name)
        .value("stages", stages as f64)
}

/// Mean and variance over stages, each as a mean over seeds.
fn spread(fact: Fact, shape: Shape, seeds: u64, filled: impl Fn(u64) -> Vec<usize>) -> Fact {
    let spreads: Vec<Spread> = (0..seeds)
        .map(|seed| Spread::over_stages(shape, &filled(seed)))
        .collect();
    let mean = |of: fn(&Spread) -> f64| spreads.iter().map(of).sum::<f64>() / seeds as f64;
    fact.value("seeds", seeds as f64)
        .value("stage_mean_flows", mean(|spread| spread.mean))
        .value("stage_variance", mean(|spread| spread.variance))
}

fn counted(name: &str, stages: usize, counts: &Counts) -> Fact {
    Fact::new(PART.name)
        .of("is", "printed")
        .of("packets_of", name)
        .value("stages", stages as f64)
        .value("packets", counts.packets as f64)
        .value("cache_hits", counts.cache_hits as f64)
        .value("tracking_hits", counts.tracking_hits as f64)
        .value("records", counts.records as f64)
        .value("second_records", counts.second_records as f64)
        .value("most_of_one_flow", counts.most_of_one_flow as f64)
        .value("inactive", counts.inactive as f64)
        .value("forced", counts.forced as f64)
        .value("resident", counts.resident as f64)
        .value("resident_flows", counts.resident_flows as f64)
        .value("packets_in_records", counts.packets_in_records as f64)
}
