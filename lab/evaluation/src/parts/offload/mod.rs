// SPDX-License-Identifier: Apache-2.0
//! The offload paper's own measurements: its authors' sheets compared with its tables, a model that
//! explains them, and the costs of a cuckoo table in a card.

mod card;
mod disagreements;
mod host;
mod report;
mod sheets;

use turboflow_engine_offload::model::{Shape, curve};

use super::{FactSink, Part, Scale};
use crate::facts::Fact;
use host::{
    Cost, DECIDING_PACKETS, FAST, FAST_NO_NDPI, LEARNING_RATES, LONG, Load, Outcome, Prediction,
    cost, late_share, predictions, prompt_share,
};
use sheets::{Mode, Paper, Setup, Sheets};

pub(super) const PART: Part = Part {
    name: "offload",
    title: "The offload paper: a flow table in the card",
    measure,
    report: report::report,
    is_computed: true,
};

/// The shapes of tables whose cost is computed. The first matches the paper's card, judging by its
/// learning rates.
const SHAPES: [Shape; 4] = [shape(2, 4), shape(2, 8), shape(4, 1), shape(3, 1)];
/// Maximum number of rows that an insertion may move before it is refused.
const MAX_MOVES: usize = 500;
const SEED: u64 = 1;

const fn shape(ways: u32, slots_per_bucket: u32) -> Shape {
    Shape {
        ways,
        slots_per_bucket,
    }
}

/// `2 ways of 4`: two buckets of four slots each.
fn shape_name(shape: Shape) -> String {
    format!("{} ways of {}", shape.ways, shape.slots_per_bucket)
}

fn setup_name(setup: Setup) -> String {
    let cores = match setup.cores {
        1 => "1 core".to_owned(),
        cores => format!("{cores} cores"),
    };
    let ndpi = if setup.ndpi { "nDPI" } else { "no nDPI" };
    format!("{cores}, {} M packets/s, {ndpi}", setup.offered_mpps)
}

/// The rate that the paper's probe handled on 16 cores, without nDPI and without offload, when
/// offered 89 M packets/s of 60 bytes: active flows, and M packets/s.
///
/// The heading of Table I says instead 10 M packets/s of 970 bytes, of which the probe lost none.
pub(super) fn software_rates() -> Vec<(f64, f64)> {
    let sheets = Sheets::in_tree();
    let flows = Paper::in_tree().table_1.flows;
    let rates = flows.iter().filter_map(|flows| {
        let run = Outcome::of_run(&sheets, FAST_NO_NDPI, Mode::Passive, flows)?;
        let offered = f64::from(FAST_NO_NDPI.offered_mpps);
        Some((sheets::count(flows), offered * (1.0 - run.loss)))
    });
    rates.collect()
}

/// The share of packets that reached the paper's host without nDPI and with offload, on 16 cores
/// that were offered 89 M packets/s: active flows, and the share derived from the runs with nDPI.
pub(super) fn host_shares() -> Vec<(f64, f64)> {
    let sheets = Sheets::in_tree();
    let flows = sheets.flows(FAST).into_iter();
    let shares = flows.filter_map(|flows| {
        let (_, cpu) = sheets.outcome(FAST, Mode::PassiveOffload, &flows)?;
        let share = late_share(&sheets, FAST, &flows).filter(|_| !cpu.is_bound)?;
        Some((sheets::count(&flows), share))
    });
    shares.collect()
}

fn measure(scale: &Scale, give: FactSink<'_>) -> anyhow::Result<()> {
    let sheets = Sheets::in_tree();
    for prediction in predictions(&sheets) {
        give(predicted(&prediction));
    }
    for setup in [FAST, LONG] {
        for flows in sheets.flows(setup) {
            if let Some(cost) = cost(&sheets, setup, &flows) {
                give_late(&sheets, setup, &flows, cost, give);
            }
        }
    }
    for flows in ["10K", "100K", "1M", "10M", "20M"] {
        give_model_card(&sheets, flows, scale, give);
    }
    let slots = scale.pick(1 << 16, 1 << 19);
    for shape in SHAPES {
        for point in curve(shape, slots, MAX_MOVES, SEED) {
            let fact = Fact::new(PART.name)
                .of("is", "cuckoo")
                .of("shape", shape_name(shape))
                .value("slots", slots as f64)
                .value("load", point.load)
                .value("accesses_per_insertion", point.accesses_per_insertion)
                .value("refused_share", point.refused_share);
            give(fact);
        }
    }
    Ok(())
}

/// Runs our learner on the model card, deciding a flow by the packet at which nDPI decides, and by
/// the first one. The costs of the host are those of the paper's host.
fn give_model_card(sheets: &Sheets, flows: &str, scale: &Scale, give: FactSink<'_>) {
    let rates = scale.pick(&LEARNING_RATES[..1], &LEARNING_RATES[..]);
    for (setup, deciding_packet) in [(FAST, DECIDING_PACKETS as u32), (FAST_NO_NDPI, 1)] {
        let Some(cost) = cost(sheets, setup, flows) else {
            continue;
        };
        let load = Load::of(setup, flows);
        for learning_rate in rates {
            let seen = card::simulate(load, *learning_rate, deciding_packet);
            let outcome = cost.outcome(load, seen.host_share());
            let fact = Fact::new(PART.name)
                .of("is", "model card")
                .of("setup", setup_name(setup))
                .value("flows", load.active_flows)
                .value("rules_per_s", *learning_rate)
                .value("host_share", seen.host_share())
                .value("refused", seen.refused as f64)
                .value("late_packets", seen.late as f64)
                .value("cpu", outcome.cpu)
                .value("loss", outcome.loss);
            give(fact);
        }
    }
}

fn predicted(prediction: &Prediction) -> Fact {
    let basis = if prediction.is_fit {
        "its own"
    } else {
        "others"
    };
    Fact::new(PART.name)
        .of("is", "run")
        .of("setup", setup_name(prediction.setup))
        .of("mode", prediction.mode.name())
        .of("costs_of", basis)
        .value("flows", sheets::count(&prediction.flows))
        .value("model_cpu", prediction.model.cpu)
        .value("model_loss", prediction.model.loss)
        .value("sheet_cpu", prediction.sheet.cpu)
        .value("sheet_loss", prediction.sheet.loss)
}

/// The share of packets that reached the host with offload, and the share if rules were in place
/// promptly. A load below 1 % reveals nothing about the share.
fn give_late(sheets: &Sheets, setup: Setup, flows: &str, cost: Cost, give: FactSink<'_>) {
    let load = Load::of(setup, flows);
    let base = || {
        Fact::new(PART.name)
            .of("setup", setup_name(setup))
            .value("flows", load.active_flows)
    };
    let outcome = sheets.outcome(setup, Mode::PassiveOffload, flows);
    let is_known = outcome.is_some_and(|(_, cpu)| !cpu.is_bound);
    if let Some(share) = late_share(sheets, setup, flows).filter(|_| is_known) {
        let fact = base()
            .of("is", "late")
            .value("packet_ns", cost.packet_seconds * 1e9)
            .value("host_share", share)
            .value("packets_per_flow_at_host", share * load.packets_per_flow())
            .value("packets_per_flow", load.packets_per_flow())
            .value("seconds_late", share * host::FLOW_LIFE_SECONDS);
        give(fact);
    }
    if setup != FAST {
        return;
    }
    for learning_rate in LEARNING_RATES {
        let share = prompt_share(load, learning_rate);
        let outcome = cost.outcome(load, share);
        let fact = base()
            .of("is", "prompt")
            .value("rules_per_s", learning_rate)
            .value("host_share", share)
            .value("cpu", outcome.cpu)
            .value("loss", outcome.loss);
        give(fact);
    }
}

#[cfg(test)]
mod tests {
    use turboflow_engine_offload::model::CurvePoint;
    use turboflow_plan::offload::{cuckoo_points, cuckoo_shapes};

    use super::*;

    #[test]
    fn the_sweep_shows_the_runs_with_89_million_packets() {
        let rates: Vec<(f64, f64)> = software_rates()
            .into_iter()
            .map(|(flows, rate)| (flows, (rate * 10.0).round() / 10.0))
            .collect();
        let expected = [
            (1e4, 89.0),
            (1e5, 89.0),
            (1e6, 89.0),
            (1e7, 53.4),
            (2e7, 32.9),
        ];
        assert_eq!(rates, expected);
    }

    /// The planner must not depend on the laboratory, so it has its own copy of the curves.
    #[test]
    fn the_planner_knows_the_curves() {
        let shapes: Vec<Shape> = cuckoo_shapes()
            .map(|(ways, slots)| shape(ways, slots))
            .collect();
        assert_eq!(shapes, SHAPES);
        for Shape {
            ways,
            slots_per_bucket,
        } in SHAPES
        {
            let points = curve(shape(ways, slots_per_bucket), 1 << 19, MAX_MOVES, 2);
            for (load, accesses) in cuckoo_points(ways, slots_per_bucket) {
                let at = |point: &&CurvePoint| (point.load - load).abs() < 0.002;
                let point = points.iter().find(at).expect("the table gets that full");
                assert!(
                    point.refused_share < 0.05,
                    "{ways} {slots_per_bucket} {point:?}"
                );
                // If a key in a hundred needs many moves, the mean fluctuates.
                let within = if *accesses > 100.0 { 0.25 } else { 0.08 };
                let ratio = point.accesses_per_insertion / accesses;
                assert!((ratio - 1.0).abs() < within, "{ways} {point:?} {accesses}");
            }
        }
    }
}
