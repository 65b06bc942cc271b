// SPDX-License-Identifier: Apache-2.0
//! Runs the conformance suite with the plainest table as golden model. This engine is then the
//! golden model for other engines.

use turboflow_engine::Abilities;
use turboflow_engine::conformance::{
    Check, InProcess, Loss, Lossy, Report, Sequence, Setup, Subject, Suite, TABLES, each_op_alone,
    hand_made, plain,
};
use turboflow_engine_software::{Sizing, SoftwareEngines};
use turboflow_record::Definition;
use turboflow_workload::definitions::random_definition;
use turboflow_workload::reference::difference_of_flows;
use turboflow_workload::sequences::{SequenceShape, random_packets};

/// The engine, with tables of `slots` slots. It has all the abilities of the plainest engine.
fn software() -> InProcess<SoftwareEngines> {
    let abilities = Abilities {
        name: "software",
        ..plain().abilities()
    };
    InProcess::new(abilities, |slots| SoftwareEngines {
        sizing: Sizing::Fixed(slots),
    })
}

fn trial(subject: &mut dyn Subject, setup: &Setup, sequence: &Sequence) -> Report {
    let mut golden = plain();
    let mut suite = Suite::new(&mut golden, &difference_of_flows);
    let report = suite
        .trial(subject, setup, sequence)
        .expect("an engine in this process does not fail");
    report.expect("it takes every definition")
}

/// Tests tables of every size, observed after every packet, at intervals, and only at the end.
fn holds(setup: &Setup, sequence: &Sequence) {
    for slots in TABLES {
        for look_every in [1, 23, sequence.arrivals.len().max(1)] {
            let setup = Setup {
                slots,
                look_every,
                ..setup.clone()
            };
            trial(&mut software(), &setup, sequence).assert_held();
        }
    }
}

/// A setup for a random sequence of that shape.
fn setup_for(seed: u64, definition: &Definition, shape: &SequenceShape) -> Setup {
    let options = &shape.options;
    let setup = Setup::new(definition, options.biflow, 1, options.cell_ns());
    Setup {
        idle_ns: options.idle_timeout_ns.unwrap_or(u64::MAX),
        ends_cut: options.linger_ns == Some(0),
        seed,
        ..setup.expect("the definition has a layout")
    }
}

#[test]
fn keeps_the_laws_on_sequences_made_by_hand() {
    const IDLE_NS: u64 = 5_000;
    for cell_ns in [1, 1_000, 1_000_000_000] {
        for sequence in hand_made(cell_ns, IDLE_NS) {
            for ends_cut in [false, true] {
                let setup = Setup::new(&Definition::default(), false, 1, cell_ns);
                let setup = Setup {
                    idle_ns: IDLE_NS.max(cell_ns),
                    ends_cut,
                    ..setup.expect("the default definition has a layout")
                };
                holds(&setup, &sequence);
            }
        }
    }
}

#[test]
fn keeps_the_laws_on_random_sequences() {
    for seed in 0..200 {
        let mut shape = SequenceShape::random(seed, 10 + seed as usize);
        shape.options.biflow = false;
        let sequence = Sequence::of_packets("random", random_packets(seed, &shape));
        holds(&setup_for(seed, &Definition::default(), &shape), &sequence);
    }
}

/// More flows than slots, so that they collide in every table.
#[test]
fn keeps_the_laws_with_more_flows_than_slots() {
    for seed in 0..4 {
        let mut shape = SequenceShape::random(seed, 5_000);
        shape.options.biflow = false;
        shape.keys = 2_500;
        let sequence = Sequence::of_packets("many flows", random_packets(seed, &shape));
        holds(&setup_for(seed, &Definition::default(), &shape), &sequence);
    }
}

/// Biflows in the two-way form: few packets, and more flows than slots.
#[test]
fn keeps_the_laws_with_two_way_biflows() {
    let few = (0..100).map(|seed| (SequenceShape::random(seed, 10 + seed as usize), seed));
    let many = (0..2).map(|seed| {
        let shape = SequenceShape::random(seed, 2_000);
        (SequenceShape { keys: 800, ..shape }, seed)
    });
    for (mut shape, seed) in few.chain(many) {
        shape.options.biflow = true;
        let sequence = Sequence::of_packets("random", random_packets(seed, &shape));
        let setup = setup_for(seed, &Definition::default(), &shape);
        let layout = setup.layout.clone().in_two_way_form();
        assert!(layout.is_two_way());
        holds(&Setup { layout, ..setup }, &sequence);
    }
}

#[test]
fn keeps_the_laws_with_every_op() {
    for (seed, definition) in (0..).zip(each_op_alone()) {
        let mut shape = SequenceShape::random(seed, 80);
        shape.options.biflow = false;
        let sequence = Sequence::of_packets("random", random_packets(seed, &shape));
        holds(&setup_for(seed, &definition, &shape), &sequence);
    }
}

#[test]
fn keeps_the_laws_with_random_definitions() {
    for seed in 0..150 {
        let shape = SequenceShape::random(seed, 80);
        let definition = random_definition(seed, shape.options.biflow);
        let sequence = Sequence::of_packets("random", random_packets(seed, &shape));
        holds(&setup_for(seed, &definition, &shape), &sequence);
    }
}

/// Losses after this engine are detected too. Where they are counted, packets balance.
#[test]
fn losses_behind_it_are_seen() {
    let shape = SequenceShape::default();
    let sequence = Sequence::of_packets("random", random_packets(1, &shape));
    let setup = setup_for(1, &Definition::default(), &shape);
    for (loss, caught_by) in [
        (Loss::Delayed, Check::BoundedAge),
        (Loss::DroppedAndCounted, Check::Exactness),
        (Loss::DroppedUnseen, Check::Conservation),
        (Loss::Repeated, Check::Conservation),
    ] {
        let mut lossy = Lossy {
            subject: software(),
            loss,
            record: 10,
        };
        let report = trial(&mut lossy, &setup, &sequence);
        assert!(report.broken().contains(&caught_by), "{loss:?}\n{report}");
        let balances = matches!(loss, Loss::Delayed | Loss::DroppedAndCounted);
        assert_eq!(
            report.holds(Check::Conservation),
            balances,
            "{loss:?}\n{report}"
        );
    }
}
