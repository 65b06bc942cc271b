// SPDX-License-Identifier: Apache-2.0
//! Tests of the suite itself: a correct engine passes, and every faulty one fails the check that is
//! meant for its fault.

mod remote;
mod wrong;

use std::collections::BTreeSet;

use turboflow_record::Definition;
use turboflow_workload::definitions::random_definition;
use turboflow_workload::reference::difference_of_flows;
use turboflow_workload::sequences::{SequenceShape, random_packets};

use super::*;
use remote::OwnClock;
use wrong::{Fault, wrong};

const CELL_NS: u64 = 1_000;
const IDLE_NS: u64 = 5_000;

fn setup(slots: u32) -> Setup {
    Setup {
        idle_ns: IDLE_NS,
        ..Setup::new(&Definition::default(), false, slots, CELL_NS).unwrap()
    }
}

fn trial(subject: &mut dyn Subject, setup: &Setup, sequence: &Sequence) -> Report {
    let mut golden = plain();
    let mut suite = Suite::new(&mut golden, &difference_of_flows);
    let report = suite.trial(subject, setup, sequence).unwrap();
    report.expect("the subject can do it")
}

/// Runs every sequence with every table size. Returns the checks that failed.
fn broken(mut subject: impl Subject, ends_cut: bool) -> BTreeSet<Check> {
    let mut broken = BTreeSet::new();
    for sequence in hand_made(CELL_NS, IDLE_NS) {
        for slots in TABLES {
            let setup = Setup {
                ends_cut,
                ..setup(slots)
            };
            broken.extend(trial(&mut subject, &setup, &sequence).broken());
        }
    }
    broken
}

#[test]
fn a_correct_engine_passes() {
    let mut held = BTreeSet::new();
    for sequence in hand_made(CELL_NS, IDLE_NS) {
        for (slots, look_every) in TABLES
            .into_iter()
            .flat_map(|slots| [(slots, 1), (slots, 5)])
        {
            for ends_cut in [false, true] {
                let setup = Setup {
                    look_every,
                    ends_cut,
                    ..setup(slots)
                };
                let report = trial(&mut plain(), &setup, &sequence);
                report.assert_held();
                held.extend(Check::ALL.into_iter().filter(|check| report.holds(*check)));
            }
        }
    }
    assert_eq!(held, BTreeSet::from(Check::ALL));
}

#[test]
fn every_op_alone_and_random_definitions_pass() {
    let random = (0..60).map(|seed| (random_definition(seed, seed % 3 == 0), seed % 3 == 0));
    let alone = each_op_alone()
        .into_iter()
        .map(|definition| (definition, false));
    let mut met = 0;
    for (seed, (definition, biflow)) in (0..).zip(alone.chain(random)) {
        let mut shape = SequenceShape::random(seed, 120);
        shape.options.biflow = biflow;
        let sequence = Sequence::of_packets("random", random_packets(seed, &shape));
        for slots in TABLES {
            let setup = Setup {
                idle_ns: shape.options.idle_timeout_ns.unwrap_or(u64::MAX),
                ends_cut: shape.options.linger_ns == Some(0),
                seed,
                look_every: 1 + seed as usize % 40,
                ..Setup::new(&definition, biflow, slots, shape.options.cell_ns()).unwrap()
            };
            trial(&mut plain(), &setup, &sequence).assert_held();
            met += 1;
        }
    }
    assert!(met > 250, "{met}");
}

/// The suite reads this engine's timestamps from its records, and uses them for all comparisons.
#[test]
fn a_remote_engine_with_its_own_clock_passes() {
    let random = (0..30).map(|seed| random_definition(seed, false));
    let definitions = each_op_alone().into_iter().chain(random);
    let mut watermarks = 0;
    for (seed, definition) in (0..).zip(definitions) {
        let mut sequences = hand_made(CELL_NS, u64::MAX);
        let shape = SequenceShape::random(seed, 150);
        let random = random_packets(seed, &shape);
        sequences.push(Sequence::of_packets("random", random));
        for (sequence, step_ns) in sequences
            .iter()
            .zip([0, 1, 90, 400, 5_000].into_iter().cycle())
        {
            let setup = Setup {
                ends_cut: seed % 2 == 0,
                look_every: sequence.arrivals.len(),
                ..Setup::new(&definition, false, TABLES[seed as usize % 3], CELL_NS).unwrap()
            };
            let mut subject = Elsewhere(OwnClock { step_ns });
            let report = trial(&mut subject, &setup, sequence);
            report.assert_held();
            watermarks += report.watermarks;
        }
    }
    assert!(watermarks > 1_000, "{watermarks} watermarks");
}

/// The suite finds losses although it reads timestamps from the records that did arrive.
#[test]
fn losses_behind_a_remote_engine_are_found() {
    let shape = SequenceShape::random(1, 150);
    let sequence = Sequence::of_packets("random", random_packets(1, &shape));
    for (loss, check) in [
        (Loss::Delayed, Check::BoundedAge),
        (Loss::DroppedAndCounted, Check::Exactness),
        (Loss::DroppedUnseen, Check::Conservation),
        (Loss::Repeated, Check::Conservation),
    ] {
        let mut subject = Lossy {
            subject: Elsewhere(OwnClock { step_ns: 90 }),
            loss,
            record: 4,
        };
        let report = trial(&mut subject, &setup(7), &sequence);
        assert!(report.broken().contains(&check), "{loss:?}\n{report}");
    }
}

/// Other checks may fail as well.
#[test]
fn every_faulty_engine_fails_the_check_for_its_fault() {
    let expected = [
        (Fault::AgesLate, Check::BoundedAge),
        (Fault::CountsAnotherCause, Check::Golden),
        (Fault::CountsOneMore, Check::Conservation),
        (Fault::DropsOne, Check::Conservation),
        (Fault::EvictsForNothing, Check::Golden),
        (Fault::HasMoreSlots, Check::BoundedMemory),
        (Fault::LetsLateJoin, Check::Cuts),
        (Fault::LetsSpanCells, Check::Cuts),
        (Fault::MergesAcrossSyn, Check::Cuts),
        (Fault::MergesAfterEnd, Check::Cuts),
        (Fault::MergesWrong, Check::Exactness),
        (Fault::MergesWrong, Check::Reference),
        (Fault::RepeatsOne, Check::Conservation),
        (Fault::SwapsTwo, Check::Order),
    ];
    for (fault, check) in expected {
        let broken = broken(wrong(fault), true);
        assert!(broken.contains(&check), "{fault:?} broke {broken:?}");
    }
    let caught: BTreeSet<Check> = expected.into_iter().map(|(_, check)| check).collect();
    assert_eq!(
        caught,
        BTreeSet::from(Check::ALL),
        "every check finds a fault"
    );
}

/// These faults fail no other checks.
#[test]
fn faults_break_no_unrelated_checks() {
    let only = |fault| Vec::from_iter(broken(wrong(fault), true));
    assert_eq!(only(Fault::CountsAnotherCause), [Check::Golden]);
    assert_eq!(
        only(Fault::CountsOneMore),
        [Check::Conservation, Check::Golden]
    );
    assert_eq!(only(Fault::EvictsForNothing), [Check::Golden]);
    assert_eq!(only(Fault::MergesAfterEnd), [Check::Cuts, Check::Golden]);
}

/// The suite finds records that are lost, repeated or late between engine and aggregator. Losses
/// that are counted do not break conservation.
#[test]
fn losses_between_engine_and_aggregator_are_found() {
    let expected: [(Loss, &[Check], &[Check]); 4] = [
        (Loss::Delayed, &[Check::BoundedAge], &[Check::Conservation]),
        (
            Loss::DroppedAndCounted,
            &[Check::Exactness, Check::Reference],
            &[Check::Conservation],
        ),
        (
            Loss::DroppedUnseen,
            &[Check::Conservation, Check::Exactness, Check::Reference],
            &[],
        ),
        (
            Loss::Repeated,
            &[Check::Conservation, Check::Exactness, Check::Reference],
            &[],
        ),
    ];
    for (loss, breaks, leaves) in expected {
        for record in 0..12 {
            let lossy = Lossy {
                subject: plain(),
                loss,
                record,
            };
            let broken = broken(lossy, false);
            assert!(
                breaks.iter().all(|check| broken.contains(check)),
                "{loss:?}: {broken:?}"
            );
            assert!(
                !leaves.iter().any(|check| broken.contains(check)),
                "{loss:?}: {broken:?}"
            );
        }
    }
}
