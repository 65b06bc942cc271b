// SPDX-License-Identifier: Apache-2.0
//! Runs the conformance suite with the software engine as golden model, on one CPU and with both
//! designs of the table. [`LEFT_OUT`] lists the checks that do not apply.

use std::collections::BTreeSet;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use turboflow_engine::conformance::{
    Arrival, Aspect, Check, Elsewhere, InProcess, LeftOut, Loss, Lossy, OpenRemote, Report,
    Sequence, Setup, Subject, Suite, TABLES, each_op_alone, hand_made, plain,
};
use turboflow_engine::{Abilities, EngineError};
use turboflow_engine_software::{Sizing, SoftwareEngines};
use turboflow_engine_xdp::{KernelConfig, Tables, TestedProgram, check_layout};
use turboflow_merge::Layout;
use turboflow_packet::{Parser, ParserConfig};
use turboflow_record::{Definition, Input, InputValues};
use turboflow_workload::definitions::random_definition;
use turboflow_workload::frames::frame_of;
use turboflow_workload::reference::difference_of_flows;
use turboflow_workload::sequences::{SequenceShape, random_packets};

use crate::generate;
use crate::subject::{ABILITIES, INPUTS, SubjectEngine, load_subject, tester_of};
use crate::support::{DESIGNS, SECOND_NS, config, frame, frames_of, is_runnable, load, root};

/// Checks of the suite that do not apply to this engine.
const LEFT_OUT: [LeftOut; 5] = [
    LeftOut {
        what: Aspect::GivenTimes,
        why: "test runs are stamped by the kernel's clock: late packets, silences of a length, and clocks set back \
              cannot be put to it",
    },
    LeftOut {
        what: Aspect::SameSlots,
        why: "its hash is another one than that of user space",
    },
    LeftOut {
        what: Aspect::AgeApartFromFlush,
        why: "a record that no other displaced is counted as flushed at the end, even if its cell is over",
    },
    LeftOut {
        what: Aspect::HandsOverAtOnce,
        why: "records of later cells wait in user space until their cell has come",
    },
    LeftOut {
        what: Aspect::UndisturbedByLooks,
        why: "tables are emptied by a look after the end of a cell, when the next one has begun",
    },
];

/// A cell that ends long after the test.
const ENDLESS_NS: u64 = 1_000_000 * SECOND_NS;
/// The interface of test runs: loopback.
const INTERFACE: u32 = 1;

/// The engine on one CPU, where the records of a flow are in order.
struct Kernel {
    tables: Tables,
}

impl OpenRemote for Kernel {
    type Engine = SubjectEngine;

    fn abilities(&self) -> Abilities {
        Abilities {
            ordered: true,
            ..ABILITIES
        }
    }

    fn left_out(&self) -> &[LeftOut] {
        &LEFT_OUT
    }

    fn takes(&self, layout: &Layout) -> bool {
        check_layout(layout).is_ok()
    }

    fn open(&mut self, setup: &Setup) -> Result<SubjectEngine, EngineError> {
        let config = KernelConfig {
            tables: self.tables,
            layout: Some(setup.layout.clone()),
            cell_ns: setup.cell_ns,
            evict_after: setup.evict_after(),
            ..config(setup.slots)
        };
        load_subject(&config).map_err(EngineError::new)
    }

    fn give(&mut self, engine: &mut SubjectEngine, arrival: &Arrival) -> Result<(), EngineError> {
        let tester = tester_of(engine);
        let run = tester.run(TestedProgram::Microflows, &arrival.frame, 1);
        run.map(drop).map_err(EngineError::new)
    }
}

fn software() -> InProcess<SoftwareEngines> {
    InProcess::new(plain().abilities(), |slots| SoftwareEngines {
        sizing: Sizing::Fixed(slots),
    })
}

/// `None` where the engine does not support the setup.
fn trial(subject: &mut dyn Subject, setup: &Setup, sequence: &Sequence) -> Option<Report> {
    let mut golden = software();
    let mut suite = Suite::new(&mut golden, &difference_of_flows);
    suite.trial(subject, setup, sequence).unwrap()
}

/// The engine with both designs. If this user may not load it, reports that and returns none.
fn subjects() -> Vec<Elsewhere<Kernel>> {
    let is_allowed = load(&config(1)).is_some();
    let designs = DESIGNS.into_iter().filter(|_| is_allowed);
    designs.map(|tables| Elsewhere(Kernel { tables })).collect()
}

fn setup(definition: &Definition, slots: u32, cell_ns: u64) -> Setup {
    Setup::new(definition, false, slots, cell_ns).unwrap()
}

/// A frame as parsed in user space.
fn arrival(bytes: Vec<u8>) -> Arrival {
    let mut parser = Parser::new(ParserConfig {
        needs: INPUTS,
        ..ParserConfig::default()
    });
    let mut frame = frame(&bytes);
    frame.interface = INTERFACE;
    let mut values = InputValues::default();
    let packet = parser.parse_with_inputs(&frame, &mut values);
    let packet = packet.map(|packet| {
        values.set(Input::ReceiveQueue, 0);
        (packet, values)
    });
    Arrival {
        packet,
        frame: bytes,
    }
}

fn of_frames(name: &str, frames: impl IntoIterator<Item = Vec<u8>>) -> Sequence {
    let frames = frames.into_iter().filter(|bytes| is_runnable(bytes));
    Sequence {
        name: name.to_owned(),
        arrivals: frames.map(arrival).collect(),
    }
}

/// The packets of a sequence as frames, where they can be represented.
fn framed(sequence: &Sequence) -> Sequence {
    let packets = sequence
        .arrivals
        .iter()
        .filter_map(|arrival| arrival.packet.as_ref().ok());
    of_frames(
        &sequence.name,
        packets.map(|(packet, values)| frame_of(packet, values)),
    )
}

/// Random packets of few or many flows.
fn random(seed: u64, packets: usize) -> Sequence {
    let shape = SequenceShape {
        keys: [2, 40, 400][seed as usize % 3],
        ..SequenceShape::random(seed, packets)
    };
    framed(&Sequence::of_packets(
        "random",
        random_packets(seed, &shape),
    ))
}

/// One setup of every kind for the default definition: an endless cell, observed after every
/// packet; cells that end between packets, observed at intervals and only at the end; and a cell
/// for each packet.
fn setups(slots: u32, packets: usize) -> [Setup; 5] {
    let of = |cell_ns, look_every, ends_cut| Setup {
        look_every,
        ends_cut,
        ..setup(&Definition::default(), slots, cell_ns)
    };
    [
        of(ENDLESS_NS, 1, false),
        of(ENDLESS_NS, packets, true),
        of(200_000, packets, false),
        of(200_000, 10, true),
        of(1, packets, false),
    ]
}

/// Joins several sequences, so that the program is loaded less often.
fn joined(name: &str, sequences: &[Sequence]) -> Sequence {
    let arrivals = sequences.iter().flat_map(|sequence| &sequence.arrivals);
    Sequence {
        name: name.to_owned(),
        arrivals: arrivals.cloned().collect(),
    }
}

fn made_by_hand() -> Sequence {
    let sequences: Vec<_> = hand_made(1_000, u64::MAX).iter().map(framed).collect();
    joined("made by hand", &sequences)
}

/// Frames of every kind, half of them damaged, from the generator of the parser's tests.
fn generated() -> Sequence {
    let (mut runner, strategy) = (TestRunner::deterministic(), generate::frames());
    let frames = (0..300).map(|_| strategy.new_tree(&mut runner).unwrap().current());
    let frames: Vec<_> = frames.collect();
    of_frames("generated", frames)
}

/// The checks that held and were applicable in some trial.
#[derive(Default)]
struct Held {
    checks: BTreeSet<Check>,
    watermarks: usize,
}

impl Held {
    /// Runs every setup.
    fn hold(&mut self, subject: &mut dyn Subject, sequence: &Sequence, setups: &[Setup]) {
        for setup in setups {
            let report = trial(subject, setup, sequence).expect("it has the default definition");
            report.assert_held();
            let held = Check::ALL.into_iter().filter(|check| report.holds(*check));
            self.checks.extend(held);
            self.watermarks += report.watermarks;
        }
    }
}

#[test]
fn keeps_the_laws_with_the_default_definition() {
    let few = [made_by_hand(), random(0, 200), random(1, 300)];
    let few = joined("made by hand and random", &few);
    let many = random(2, 2_000);
    let office = of_frames("office", frames_of(&root().join("samples/office.pcap")));
    let real = joined("generated and office", &[generated(), office]);
    assert!(real.arrivals.iter().any(|arrival| arrival.packet.is_err()));
    for mut subject in subjects() {
        let mut held = Held::default();
        for slots in TABLES {
            held.hold(&mut subject, &few, &setups(slots, few.arrivals.len()));
            for sequence in [&many, &real] {
                let setups = setups(slots, sequence.arrivals.len());
                held.hold(&mut subject, sequence, &setups[1..3]);
            }
        }
        assert_eq!(held.checks, BTreeSet::from(Check::ALL));
        assert!(held.watermarks > 10, "{} watermarks", held.watermarks);
    }
}

/// Runs the definitions alternately with both designs, in tables of every size, in an endless cell
/// and in short ones. Returns how many definitions the engine supports.
fn hold_definitions(definitions: impl IntoIterator<Item = Definition>) -> usize {
    let mut subjects = subjects();
    if subjects.is_empty() {
        return usize::MAX;
    }
    let sequence = joined("by hand and random", &[made_by_hand(), random(1, 150)]);
    let mut had = 0;
    for (number, definition) in definitions.into_iter().enumerate() {
        let cell_ns = [ENDLESS_NS, 200_000, ENDLESS_NS][number % 3];
        let setup = Setup {
            look_every: [10, 1_000][number / 2 % 2],
            ends_cut: number % 5 == 0,
            ..setup(&definition, TABLES[number / 4 % 3], cell_ns)
        };
        if let Some(report) = trial(&mut subjects[number % 2], &setup, &sequence) {
            report.assert_held();
            had += 1;
        }
    }
    had
}

#[test]
fn keeps_the_laws_with_every_op() {
    let definitions = each_op_alone();
    let count = definitions.len();
    assert!(hold_definitions(definitions) >= count, "it has every op");
}

/// The definitions whose size and inputs the engine supports.
#[test]
fn keeps_the_laws_with_random_definitions() {
    let definitions = (0..60).map(|seed| random_definition(seed, false));
    let had = hold_definitions(definitions);
    assert!(had > 20, "{had} definitions were within its abilities");
}

/// Loss behind this engine is detected too, and where it is counted, packets balance. In an endless
/// cell nothing can be late.
#[test]
fn losses_behind_it_are_seen() {
    let sequence = random(1, 300);
    for Elsewhere(kernel) in subjects() {
        for (loss, caught_by) in [
            (Loss::DroppedAndCounted, Check::Exactness),
            (Loss::DroppedUnseen, Check::Conservation),
            (Loss::Repeated, Check::Conservation),
        ] {
            let tables = kernel.tables;
            let mut lossy = Lossy {
                subject: Elsewhere(Kernel { tables }),
                loss,
                record: 10,
            };
            let setup = setup(&Definition::default(), 7, ENDLESS_NS);
            let report = trial(&mut lossy, &setup, &sequence).unwrap();
            assert!(report.broken().contains(&caught_by), "{loss:?}\n{report}");
            let balances = loss == Loss::DroppedAndCounted;
            assert_eq!(report.holds(Check::Conservation), balances, "{report}");
        }
    }
}
