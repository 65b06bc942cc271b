// SPDX-License-Identifier: Apache-2.0
//! The conformance suite: the model always, and the SystemVerilog with the feature `rtl`. The
//! golden model is the software engine.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::collections::BTreeSet;

use turboflow_engine::conformance::{
    Arrival, Aspect, Check, InProcess, LeftOut, Observed, Sequence, Setup, Subject, Suite,
    hand_made, plain,
};
use turboflow_engine::{Abilities, EngineError, PacketEngines};
use turboflow_engine_rtl::{ABILITIES, Build, ModelEngines, Size};
use turboflow_engine_software::{Sizing, SoftwareEngines};
use turboflow_record::{Definition, Input, InputValues, Packet};
use turboflow_workload::reference::difference_of_flows;
use turboflow_workload::sequences::{SequenceShape, random_packets};

/// Checks that do not apply, because flows have other slots than in the golden model.
const LEFT_OUT: [LeftOut; 1] = [LeftOut {
    what: Aspect::SameSlots,
    why: "a flow has the slots of two buckets of its stage",
}];

/// Lines in this process. Their flows have other slots than those of direct-mapped tables.
struct Lines<F>(InProcess<F>);

impl<F: PacketEngines> Subject for Lines<F> {
    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }

    fn left_out(&self) -> &[LeftOut] {
        &LEFT_OUT
    }

    fn observe(&mut self, setup: &Setup, arrivals: &[Arrival]) -> Result<Observed, EngineError> {
        self.0.observe(setup, arrivals)
    }
}

/// The smallest lines, in which flows displace each other most, and larger ones.
const SIZES: [Size; 3] = [
    Size {
        stages: 1,
        buckets: 1,
    },
    Size {
        stages: 2,
        buckets: 2,
    },
    Size {
        stages: 4,
        buckets: 16,
    },
];

/// The size with this many slots.
fn size_of(slots: u32) -> Size {
    let with_slots = |size: &&Size| Build::V4.slots(**size) == slots;
    *SIZES
        .iter()
        .find(with_slots)
        .expect("slots are those of a size")
}

fn models() -> Lines<ModelEngines> {
    Lines(InProcess::new(ABILITIES, |slots| ModelEngines {
        size: size_of(slots),
    }))
}

/// Tests every size, observed after every packet, at intervals, and only at the end. Returns the
/// checks that held and were not left out.
fn holds(subject: &mut dyn Subject, setup: &Setup, sequence: &Sequence) -> BTreeSet<Check> {
    let mut held = BTreeSet::new();
    for size in SIZES {
        for look_every in [1, 23, sequence.arrivals.len().max(1)] {
            let setup = Setup {
                slots: Build::V4.slots(size),
                look_every,
                ..setup.clone()
            };
            let mut golden = InProcess::new(plain().abilities(), |slots| SoftwareEngines {
                sizing: Sizing::Fixed(slots),
            });
            let mut suite = Suite::new(&mut golden, &difference_of_flows);
            let report = suite.trial(subject, &setup, sequence).unwrap();
            let report = report.expect("it has the default definition");
            report.assert_held();
            held.extend(Check::ALL.into_iter().filter(|check| report.holds(*check)));
        }
    }
    held
}

fn holds_on_sequences_made_by_hand(subject: &mut dyn Subject) {
    const IDLE_NS: u64 = 5_000;
    let mut held = BTreeSet::new();
    for cell_ns in [1, 1_000, 1_000_000_000] {
        for sequence in hand_made(cell_ns, IDLE_NS) {
            for ends_cut in [false, true] {
                let setup = Setup::new(&Definition::default(), false, 1, cell_ns).unwrap();
                let setup = Setup {
                    idle_ns: IDLE_NS.max(cell_ns),
                    ends_cut,
                    ..setup
                };
                held.append(&mut holds(subject, &setup, &sequence));
            }
        }
    }
    assert_eq!(held, BTreeSet::from(Check::ALL));
}

/// Longer packets travel alone, which cuts records of their flow where no rule does.
fn shorten((packet, values): &mut (Packet, InputValues)) {
    packet.ip_length_bytes = packet.ip_length_bytes.min(65_535);
    values.set(Input::IpLength, packet.ip_length_bytes.into());
}

fn holds_on_random_sequences(subject: &mut dyn Subject, few: u64, many: u64) {
    let mut held = BTreeSet::new();
    let few = (0..few).map(|seed| SequenceShape::random(seed, 10 + 2 * seed as usize));
    let many = (0..many).map(|seed| SequenceShape {
        keys: 1_200,
        ..SequenceShape::random(seed, 3_000)
    });
    for (seed, mut shape) in (0..).zip(few.chain(many)) {
        shape.options.biflow = false;
        let mut packets = random_packets(seed, &shape);
        packets.iter_mut().for_each(shorten);
        let sequence = Sequence::of_packets("random", packets);
        let options = &shape.options;
        let setup = Setup::new(&Definition::default(), false, 1, options.cell_ns()).unwrap();
        let setup = Setup {
            idle_ns: options.idle_timeout_ns.unwrap_or(u64::MAX),
            ends_cut: options.linger_ns == Some(0),
            seed,
            ..setup
        };
        held.append(&mut holds(subject, &setup, &sequence));
    }
    assert_eq!(held, BTreeSet::from(Check::ALL));
}

#[test]
fn the_model_keeps_the_laws_on_sequences_made_by_hand() {
    holds_on_sequences_made_by_hand(&mut models());
}

#[test]
fn the_model_keeps_the_laws_on_random_sequences() {
    holds_on_random_sequences(&mut models(), 60, 2);
}

#[cfg(feature = "rtl")]
mod rtl {
    use turboflow_engine_rtl::RtlEngines;

    use super::*;

    fn lines() -> Lines<RtlEngines> {
        Lines(InProcess::new(ABILITIES, |slots| RtlEngines {
            size: size_of(slots),
        }))
    }

    #[test]
    fn the_line_keeps_the_laws_on_sequences_made_by_hand() {
        holds_on_sequences_made_by_hand(&mut lines());
    }

    #[test]
    fn the_line_keeps_the_laws_on_random_sequences() {
        holds_on_random_sequences(&mut lines(), 20, 1);
    }
}
