// SPDX-License-Identifier: Apache-2.0
//! Several remote engines in one run. Their records are merged in time order, and an engine that
//! fails or ends does not end the others.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use turboflow_engine::{
    Abilities, Collected, EngineCounters, EngineError, MicroflowBatch, Port, PortCounters,
    PortState, RemoteEngine,
};
use turboflow_formats::{ExportError, FlowWriter, WriteSummary};
use turboflow_merge::{Base, MicroflowRecord};
use turboflow_record::{FlowBatch, Value, WORDS_V4};
use turboflow_run::{
    Controls, Limits, Output, PipelineConfig, RunEvent, RunOutputs, RunReport, Snapshots, Source,
    Stop,
};

const SECOND_NS: u64 = 1_000_000_000;

/// An engine that plays a script: a list of seconds, each with whether its only flow has a packet.
struct Scripted {
    name: &'static str,
    seconds: VecDeque<(u64, bool)>,
    fails: bool,
    started_ns: u64,
    complete_ns: u64,
    packets: u64,
}

impl Scripted {
    fn new(name: &'static str, seconds: &[(u64, bool)]) -> Self {
        Self {
            name,
            seconds: seconds.iter().copied().collect(),
            fails: false,
            started_ns: seconds[0].0 * SECOND_NS,
            complete_ns: seconds[0].0 * SECOND_NS,
            packets: 0,
        }
    }
}

impl RemoteEngine for Scripted {
    fn abilities(&self) -> &Abilities {
        const { &Abilities::none("scripted") }
    }

    fn started_ns(&self) -> u64 {
        self.started_ns
    }

    fn collect(&mut self, batch: &mut MicroflowBatch) -> Result<Collected, EngineError> {
        let Some(&(second, has_packet)) = self.seconds.front() else {
            return match self.fails {
                true => Err(EngineError::new(std::io::Error::other("unplugged"))),
                false => Ok(Collected::default()),
            };
        };
        if self.complete_ns < second * SECOND_NS {
            // The records of this second do not belong to the current cell yet.
            self.complete_ns = second * SECOND_NS;
            return Ok(Collected::all_before(self.complete_ns));
        }
        self.seconds.pop_front();
        if has_packet {
            let time_ns = second * SECOND_NS + 1;
            let record: MicroflowRecord<WORDS_V4, 0> = MicroflowRecord {
                key: [1, 6],
                base: Base {
                    packets: 1,
                    bytes: 100,
                    first_ns: time_ns,
                    last_ns: time_ns,
                    ..Base::default()
                },
                state: [],
            };
            batch.plain_v4.push_record(record);
            self.packets += 1;
        }
        self.complete_ns = (second + 1) * SECOND_NS;
        Ok(Collected::all_before(self.complete_ns))
    }

    fn longest_pause(&self) -> Duration {
        Duration::ZERO
    }

    fn counters(&mut self) -> Result<EngineCounters, EngineError> {
        let mut counters = EngineCounters {
            packets_received: self.packets,
            packets_metered: self.packets,
            bytes_metered: 100 * self.packets,
            ..EngineCounters::default()
        };
        counters.evicted.age = self.packets;
        Ok(counters)
    }

    fn ports(&mut self) -> Result<Vec<Port>, EngineError> {
        Ok(vec![Port {
            name: self.name.to_owned(),
            state: PortState::Up,
            interface_index: None,
            counters: PortCounters {
                seen: self.packets,
                delivered: self.packets,
                ..PortCounters::default()
            },
        }])
    }

    fn has_ended(&self) -> bool {
        self.seconds.is_empty() && !self.fails
    }

    fn ends_by_itself(&self) -> bool {
        true
    }

    fn finish(&mut self) -> Result<(), EngineError> {
        self.seconds.clear();
        Ok(())
    }
}

/// Passes every batch to the test.
struct Kept(Sender<FlowBatch>);

impl FlowWriter for Kept {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        self.0.send(batch.clone()).unwrap();
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError> {
        Ok(WriteSummary::default())
    }
}

/// Runs these engines. Returns the report, and the packets of each flow record, sorted.
fn ran(engines: Vec<Scripted>, stop: &Stop) -> (RunReport, Vec<u64>) {
    observed(engines, stop, |_| ())
}

/// Like [`ran`], with an observer of the run.
fn observed(
    engines: Vec<Scripted>,
    stop: &Stop,
    observe: impl FnMut(RunEvent<'_>),
) -> (RunReport, Vec<u64>) {
    let engines = engines.into_iter().map(|engine| Box::new(engine) as _);
    let (sender, receiver) = channel();
    let output = Output {
        name: "kept".to_owned(),
        writer: Box::new(Kept(sender)),
        may_stall: false,
    };
    let controls = Controls {
        limits: Limits::default(),
        stop,
        snapshots: &Snapshots::new(),
    };
    let config = PipelineConfig::default();
    let source = Source::engines(engines.collect());
    let outputs = RunOutputs::fixed(vec![output]);
    let report = turboflow_run::run(&config, source, outputs, controls, observe).unwrap();
    let schema = config.compile().unwrap();
    let packets = schema
        .schema()
        .iter()
        .position(|column| column.name == "packets");
    let mut records: Vec<u64> = Vec::new();
    for batch in receiver.iter() {
        for row in 0..batch.rows() {
            match batch.value(row, packets.unwrap()) {
                Value::Unsigned(packets) => records.push(packets),
                other => panic!("{other:?} packets"),
            }
        }
    }
    records.sort_unstable();
    (report, records)
}

#[test]
fn a_flow_that_passes_two_engines_is_cut_by_their_common_clock() {
    // A packet every 20 s, alternating, so the flow is never idle for 30 s; then 100 s of silence.
    let here = Scripted::new("here", &[(0, true), (40, true), (180, true), (300, false)]);
    let there = Scripted::new("there", &[(20, true), (60, true), (300, false)]);
    let (report, records) = ran(vec![here, there], &Stop::new());
    assert_eq!(records, [1, 4]);
    assert_eq!(report.ledger.imbalances_at_the_end(), []);
    assert!(report.failure.is_none() && !report.stopped);
    assert_eq!(report.ports.len(), 2);
}

#[test]
fn an_engine_that_fails_does_not_end_the_others() {
    let mut short = Scripted::new("short", &[(0, true)]);
    short.fails = true;
    let long = Scripted::new("long", &[(0, true), (1, true), (2, true), (100, true)]);
    let mut said = Vec::new();
    let (report, records) = observed(vec![short, long], &Stop::new(), |event| {
        if let RunEvent::Failed(error) = event {
            said.push(error.to_string());
        }
    });
    assert_eq!(records, [1, 4]);
    // The failure is reported at once, and again at the end.
    assert_eq!(said, ["unplugged"]);
    assert!(report.failure.unwrap().to_string().contains("unplugged"));
    assert_eq!(report.ledger.imbalances_at_the_end(), []);
}

#[test]
fn why_the_last_engine_fails_is_said_at_the_end_alone() {
    let mut only = Scripted::new("only", &[(0, true)]);
    only.fails = true;
    let observe = |event: RunEvent<'_>| assert!(!matches!(event, RunEvent::Failed(_)));
    let (report, _) = observed(vec![only], &Stop::new(), observe);
    assert!(report.failure.is_some());
}

#[test]
fn a_run_that_is_stopped_before_the_end_of_its_engines_says_so() {
    let stop = Stop::new();
    stop.ask();
    let engine = Scripted::new("file", &[(0, true), (1, true)]);
    let (report, records) = ran(vec![engine], &stop);
    assert!(report.stopped && records.is_empty());
    assert_eq!(report.ledger.imbalances_at_the_end(), []);
}
