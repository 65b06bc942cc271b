// SPDX-License-Identifier: Apache-2.0
//! Runs the conformance suite on a P4 program, with the software engine as golden model.
//! [`LEFT_OUT`] lists the checks that do not apply.

use std::collections::BTreeSet;
use std::io;

use turboflow_engine::conformance::{
    Arrival, Aspect, Check, Elsewhere, InProcess, LeftOut, OpenRemote, Report, Sequence, Setup,
    Subject, Suite, TABLES, hand_made, plain,
};
use turboflow_engine::{Abilities, EngineError};
use turboflow_engine_p4::{ABILITIES, Came, Frames, P4Record, Port, Replay, ReplayConfig};
use turboflow_engine_software::{Sizing, SoftwareEngines};
use turboflow_merge::Layout;
use turboflow_packet::{Frame, LinkType, Parser, ParserConfig};
use turboflow_record::{Definition, InputValues};
use turboflow_workload::frames::frame_of;
use turboflow_workload::reference::difference_of_flows;
use turboflow_workload::sequences::{SequenceShape, random_packets};

use super::Shared;

/// Checks of the suite that do not apply to this engine.
const LEFT_OUT: [LeftOut; 1] = [LeftOut {
    what: Aspect::SameSlots,
    why: "its hash is another one than that of user space",
}];

/// The pipeline, used for one trial after another.
struct Pipeline(Shared);

/// An input without frames of its own: frames are sent one by one.
struct Given;

impl Frames for Given {
    fn next(&mut self, _: &mut dyn FnMut(&Frame<'_>)) -> io::Result<Came> {
        Ok(Came::Nothing)
    }
}

impl OpenRemote for Pipeline {
    type Engine = Replay;

    fn abilities(&self) -> Abilities {
        ABILITIES
    }

    fn left_out(&self) -> &[LeftOut] {
        &LEFT_OUT
    }

    fn takes(&self, layout: &Layout) -> bool {
        P4Record::new(&Definition::default(), layout).is_ok()
    }

    fn open(&mut self, setup: &Setup) -> Result<Replay, EngineError> {
        let config = ReplayConfig {
            // The number of slots must be a power of two.
            slots: 1 << setup.slots.ilog2(),
            cell_ns: setup.cell_ns,
            tolerance_ns: setup.idle_ns,
            cuts_at_ends: setup.ends_cut,
            seeds: [setup.seed, !setup.seed],
            window: None,
        };
        let record = P4Record::new(&setup.definition, &setup.layout).unwrap();
        let engine = Replay::open(
            Box::new(self.0.clone()),
            Box::new(Given),
            record,
            &setup.layout,
            &config,
        );
        engine.map_err(EngineError::new)
    }

    fn give(&mut self, engine: &mut Replay, arrival: &Arrival) -> Result<(), EngineError> {
        let frame = frame_with(&arrival.frame, time_of(arrival));
        engine.send(&frame).map_err(EngineError::new)
    }
}

fn frame_with(bytes: &[u8], timestamp_ns: u64) -> Frame<'_> {
    Frame {
        bytes,
        wire_length_bytes: bytes.len() as u32,
        timestamp_ns,
        interface: 0,
        link_type: LinkType::Ethernet,
    }
}

/// Frames that are not packets do not move the clock.
fn time_of(arrival: &Arrival) -> u64 {
    let packet = arrival.packet.as_ref();
    packet.map_or(0, |(packet, _)| packet.timestamp_ns)
}

/// The packets of a sequence as frames, with their times.
fn framed(sequence: &Sequence) -> Sequence {
    let mut parser = Parser::new(ParserConfig::default());
    let packets = sequence.arrivals.iter().map(|arrival| {
        let (packet, values) = arrival.packet.as_ref().unwrap();
        let frame = frame_of(packet, values);
        let parsed = parser.parse(&frame_with(&frame, packet.timestamp_ns));
        Arrival {
            packet: Ok((parsed.unwrap(), InputValues::default())),
            frame,
        }
    });
    Sequence {
        name: sequence.name.clone(),
        arrivals: packets.collect(),
    }
}

fn trial(subject: &mut dyn Subject, setup: &Setup, sequence: &Sequence) -> Report {
    let mut golden = InProcess::new(plain().abilities(), |slots| SoftwareEngines {
        sizing: Sizing::Fixed(slots),
    });
    let mut suite = Suite::new(&mut golden, &difference_of_flows);
    let report = suite.trial(subject, setup, sequence).unwrap();
    report.expect("it has the default definition")
}

/// Tests tables of every size, observed after every packet, at intervals, and only at the end.
fn hold(subject: &mut dyn Subject, setup: &Setup, sequence: &Sequence, held: &mut BTreeSet<Check>) {
    for slots in TABLES {
        for look_every in [1, 23, sequence.arrivals.len().max(1)] {
            let setup = Setup {
                slots,
                look_every,
                ..setup.clone()
            };
            let report = trial(subject, &setup, sequence);
            report.assert_held();
            held.extend(Check::ALL.into_iter().filter(|check| report.holds(*check)));
        }
    }
}

pub(crate) fn keeps_the_laws_on_sequences_made_by_hand(port: impl Port + 'static) {
    const IDLE_NS: u64 = 5_000;
    let mut subject = Elsewhere(Pipeline(Shared::new(port)));
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
                hold(&mut subject, &setup, &framed(&sequence), &mut held);
            }
        }
    }
    assert!(held.len() > 4, "{held:?}");
}

pub(crate) fn keeps_the_laws_on_random_sequences(port: impl Port + 'static) {
    let mut subject = Elsewhere(Pipeline(Shared::new(port)));
    let mut held = BTreeSet::new();
    let few = (0..60).map(|seed| SequenceShape::random(seed, 10 + 2 * seed as usize));
    let many = (0..2).map(|seed| SequenceShape {
        keys: 2_500,
        ..SequenceShape::random(seed, 5_000)
    });
    for (seed, mut shape) in (0..).zip(few.chain(many)) {
        shape.options.biflow = false;
        let sequence = Sequence::of_packets("random", random_packets(seed, &shape));
        let options = &shape.options;
        let setup = Setup::new(&Definition::default(), false, 1, options.cell_ns()).unwrap();
        let setup = Setup {
            idle_ns: options.idle_timeout_ns.unwrap_or(u64::MAX),
            ends_cut: options.linger_ns == Some(0),
            seed,
            ..setup
        };
        hold(&mut subject, &setup, &framed(&sequence), &mut held);
    }
    assert_eq!(held, BTreeSet::from(Check::ALL));
}
