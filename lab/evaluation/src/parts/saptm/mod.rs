// SPDX-License-Identifier: Apache-2.0
//! SAPTM: its table as printed, its figures and equations, and what its placement is worth.

mod disagreements;
mod report;
mod sheets;

use super::{FactSink, Part, Scale};
use crate::facts::Fact;
use crate::saptm::equations::TABLE_3;
use crate::saptm::printed::{Counts, Printed};
use crate::saptm::victims::{self, Victim};
use crate::saptm::{Placement, SUBTABLES, Shape, placement, zipf};

pub(super) const PART: Part = Part {
    name: "saptm",
    title: "SAPTM: a line of stages in an FPGA",
    measure,
    report: report::report,
    is_computed: true,
};

/// The numbers of stages of Table 2 and Figure 11.
const STAGES: [usize; 5] = [4, 8, 16, 32, 64];
/// Flows and packets of Figure 10.
const FLOWS: usize = 10_000;
const PACKETS: usize = 48_579;
/// The paper does not say how long a candidate may be silent: packets, chosen here.
const ACTIVENESS: u64 = 10_000;
const SEED: u64 = 1;

const PLACEMENTS: [(&str, Placement); 2] = [
    ("anywhere", Placement::Anywhere),
    ("one stage", Placement::OneStage),
];

fn measure(scale: &Scale, give: FactSink<'_>) -> anyhow::Result<()> {
    let seeds = scale.pick(3, 20);
    for (name, placement) in PLACEMENTS {
        for stages in STAGES {
            give(placed(name, placement, stages, seeds));
        }
    }
    let loads = [
        ("Figure 10's", zipf(FLOWS, PACKETS, SEED)),
        ("30K flows", zipf(30_000, scale.pick(50_000, 500_000), SEED)),
    ];
    for (name, packets) in &loads {
        for stages in STAGES {
            let mut table = Printed::new(Shape::of_paper(stages), ACTIVENESS, SEED);
            packets.iter().for_each(|flow| table.packet(*flow));
            give(as_printed(name, stages, &table.finish()));
        }
    }
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

/// Figure 10 and the load at the first overflow, in the mean over seeds.
fn placed(name: &str, placement: Placement, stages: usize, seeds: u64) -> Fact {
    let shape = Shape::of_paper(stages);
    let spreads = (0..seeds).map(|seed| placement::spread(shape, placement, FLOWS as u64, seed));
    let spreads: Vec<placement::Spread> = spreads.collect();
    let mean =
        |of: fn(&placement::Spread) -> f64| spreads.iter().map(of).sum::<f64>() / seeds as f64;
    let loads = (0..seeds).map(|seed| placement::first_overflow(shape, placement, seed));
    Fact::new(PART.name)
        .of("is", "placement")
        .of("placement", name)
        .value("stages", stages as f64)
        .value("seeds", seeds as f64)
        .value("stage_mean_flows", mean(|spread| spread.mean))
        .value("stage_variance", mean(|spread| spread.variance))
        .value("refused_share", mean(|spread| spread.refused_share))
        .value("load_at_first_overflow", loads.sum::<f64>() / seeds as f64)
}

fn as_printed(name: &str, stages: usize, counts: &Counts) -> Fact {
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
