// SPDX-License-Identifier: Apache-2.0
//! Other record definitions: every op of every input, and every key, give the same words of state
//! in the kernel as in user space.

use std::collections::HashMap;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use turboflow_engine::MicroflowBatch;
use turboflow_engine_xdp::{INPUTS, KernelConfig, KernelEngine};
use turboflow_merge::{KeyWidths, Layout, MicroflowRecord, StateContent, StateStep, WORDS_WIDE};
use turboflow_packet::{Parser, ParserConfig};
use turboflow_record::{Definition, Feature, Input, InputSet, InputValues, KeyField, Op, Packet};

use crate::generate;
use crate::support::{
    DESIGNS, captures, collect, config, finish, frame, frames_of, is_runnable, load, meter, root,
    tcp,
};

/// Sufficient for any state and any key.
const N: usize = 120;
type Key = [u64; WORDS_WIDE];
type Record = MicroflowRecord<WORDS_WIDE, N>;

/// Number of known times per flow: features that depend on times are compared in flows of at most
/// this many packets.
const TIMES: usize = 40;
/// The interface of test runs: loopback.
const INTERFACE: u32 = 1;

pub(crate) fn compile(definition: &Definition) -> Layout {
    Layout::compile(definition, false).unwrap()
}

/// A definition of these features, and of the times of a flow's first packets.
fn timed(key: &[KeyField], features: &[Feature]) -> Definition {
    let times = Feature::new("times", Op::List { k: TIMES }, Some(Input::Timestamp));
    Definition {
        key: key.to_vec(),
        features: [features, &[times]].concat(),
    }
}

/// The frames as parsed in user space, grouped by the layout's key, in order.
pub(crate) struct Expected {
    packets: HashMap<Key, Vec<(Packet, InputValues)>>,
}

impl Expected {
    fn of(frames: &[Vec<u8>], layout: &Layout) -> Self {
        Self::of_driver(frames, layout, |_, _| {})
    }

    /// Parses frames for which a driver provides further values, by frame number.
    pub(crate) fn of_driver(
        frames: &[Vec<u8>],
        layout: &Layout,
        told: impl Fn(u64, &mut InputValues),
    ) -> Self {
        let mut parser = Parser::new(ParserConfig {
            needs: layout.needs(),
            ..ParserConfig::default()
        });
        let mut packets: HashMap<Key, Vec<_>> = HashMap::new();
        let mut values = InputValues::default();
        for (number, bytes) in (0..).zip(frames) {
            let mut frame = frame(bytes);
            frame.interface = INTERFACE;
            if let Ok(packet) = parser.parse_with_inputs(&frame, &mut values) {
                values.set(Input::ReceiveQueue, 0);
                told(number, &mut values);
                let (key, _) = layout.key(&packet, &values);
                let of_key = packets.entry(key).or_default();
                of_key.push((packet, values.clone()));
            }
        }
        Self { packets }
    }
}

/// The records of a batch, widened to one width.
pub(crate) fn records(batch: &MicroflowBatch, layout: &Layout) -> Vec<Record> {
    fn widen<const K: usize>(record: MicroflowRecord<K, N>) -> Record {
        let mut key = [0; WORDS_WIDE];
        key[..K].copy_from_slice(&record.key);
        Record {
            key,
            base: record.base,
            state: record.state,
        }
    }
    match layout.key_widths() {
        KeyWidths::Wide => batch.wide().collect(),
        KeyWidths::ByFamily => {
            let v4 = batch.v4().map(widen);
            v4.chain(batch.v6().map(widen)).collect()
        }
    }
}

/// Merges the records of each key, as the aggregator does.
pub(crate) fn totals(records: &[Record], layout: &Layout) -> HashMap<Key, Record> {
    let mut totals: HashMap<Key, Record> = HashMap::new();
    for record in records {
        totals
            .entry(record.key)
            .and_modify(|total| total.merge(record, layout.plan()))
            .or_insert(*record);
    }
    totals
}

fn is_of_time(step: &&StateStep) -> bool {
    matches!(step.of, Some(Input::Gap | Input::Timestamp))
}

/// Folds the packets of a flow in one pass, with the times from the kernel as far as known.
fn one_pass(packets: &[(Packet, InputValues)], times: &[u64], layout: &Layout) -> Record {
    let mut merged: Option<Record> = None;
    for (number, (packet, values)) in packets.iter().enumerate() {
        let packet = Packet {
            timestamp_ns: times.get(number).copied().unwrap_or(0),
            ..*packet
        };
        let record: Record = layout.open(&packet, values);
        match &mut merged {
            Some(merged) => merged.merge(&record, layout.plan()),
            None => merged = Some(record),
        }
    }
    merged.unwrap()
}

/// Clears what depends on unknown times.
fn without_times(mut record: Record, steps: &[StateStep]) -> Record {
    (record.base.first_ns, record.base.last_ns) = (0, 0);
    for step in steps.iter().filter(is_of_time) {
        record.state[step.word..step.word + step.what.words()].fill(0);
    }
    record
}

/// Compares the totals of every key with one pass over its packets. Returns how many were compared
/// including times.
pub(crate) fn compare_totals(
    totals: &HashMap<Key, Record>,
    expected: &Expected,
    layout: &Layout,
) -> usize {
    let steps = layout.steps().state;
    let times = steps
        .iter()
        .find(|step| {
            step.of == Some(Input::Timestamp) && matches!(step.what, StateContent::List(_))
        })
        .map(|step| step.word)
        .unwrap();
    assert_eq!(totals.len(), expected.packets.len());
    let mut timed = 0;
    for (key, packets) in &expected.packets {
        let total = totals[key];
        let kept = total.state[times] as usize;
        assert_eq!(kept, packets.len().min(TIMES));
        let known = &total.state[times + 1..times + 1 + kept];
        let one_pass = one_pass(packets, known, layout);
        if packets.len() <= TIMES {
            timed += 1;
            assert_eq!(total, one_pass, "{steps:?}");
        } else {
            let (total, one_pass) = (
                without_times(total, &steps),
                without_times(one_pass, &steps),
            );
            assert_eq!(total, one_pass, "{steps:?}");
        }
    }
    timed
}

/// Runs all frames with a definition, both designs and each configuration; `None` where this user
/// may not.
fn compare(
    frames: &[Vec<u8>],
    definition: &Definition,
    configs: &[KernelConfig],
) -> Option<Expected> {
    let layout = compile(definition);
    let expected = Expected::of(frames, &layout);
    for tables in DESIGNS {
        for config in configs {
            let config = KernelConfig {
                tables,
                layout: Some(layout.clone()),
                ring_bytes: 1 << 26,
                ..config.clone()
            };
            let mut engine = load(&config)?;
            let mut batch = MicroflowBatch::default();
            for chunk in frames.chunks(10_000) {
                chunk.iter().for_each(|bytes| meter(&engine, bytes));
                collect(&mut engine, &mut batch);
            }
            engine.finish().unwrap();
            collect(&mut engine, &mut batch);
            let counters = engine.counters().unwrap();
            let records = records(&batch, &layout);
            assert_eq!(counters.microflows_dropped, 0);
            assert_eq!(counters.in_common().evicted.total(), records.len() as u64);
            let totals = totals(&records, &layout);
            let timed = compare_totals(&totals, &expected, &layout);
            assert!(timed > 0, "some flows are short");
        }
    }
    Some(expected)
}

/// Every op, on every input to which it applies.
pub(crate) fn all_features() -> Vec<Feature> {
    let ops = [
        Op::Count,
        Op::Sum,
        Op::Min,
        Op::Max,
        Op::First,
        Op::Last,
        Op::Nth { k: 3 },
        Op::BitOr,
        Op::Mean,
        Op::Variance,
        Op::Histogram {
            edges: vec![1, 6, 64, 443, 1_000, 65_535, 10_000_000_000],
        },
        Op::List { k: 5 },
        Op::GapMin,
        Op::GapMax,
        Op::GapMean,
        Op::GapVariance,
        Op::Duration,
        Op::Rate,
        Op::CommunityId,
    ];
    assert_eq!(ops.len(), Op::NAMES.len());
    let inputs = INPUTS.iter().map(Some);
    let inputs: Vec<_> = inputs
        .filter(|input| *input != Some(Input::Direction))
        .chain([None])
        .collect();
    let mut features = Vec::new();
    for of in inputs {
        for op in &ops {
            let name = format!("f{}", features.len());
            let feature = Feature::new(&name, op.clone(), of);
            let alone = timed(&KeyField::FIVE_TUPLE, std::slice::from_ref(&feature));
            if alone.check().is_ok() {
                features.push(feature);
            }
        }
    }
    features
}

/// As few definitions as possible for all features, within the engine's limits.
pub(crate) fn definitions(features: &[Feature], key: &[KeyField]) -> Vec<Definition> {
    let mut definitions = Vec::new();
    let mut some: Vec<Feature> = Vec::new();
    for feature in features {
        some.push(feature.clone());
        let steps = compile(&timed(key, &some)).steps();
        if steps.words > 120 || steps.state.len() > 64 {
            some.pop();
            definitions.push(timed(key, &some));
            some = vec![feature.clone()];
        }
    }
    definitions.push(timed(key, &some));
    definitions
}

fn runnable(frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut frames = frames;
    frames.retain(|bytes| is_runnable(bytes));
    frames
}

fn office() -> Vec<Vec<u8>> {
    runnable(frames_of(&root().join("samples/office.pcap")))
}

/// A few frames of every kind.
fn of_every_kind() -> Vec<Vec<u8>> {
    let cases = captures().into_iter().filter(|path| {
        let path = path.to_string_lossy();
        path.contains("samples") && !path.contains("office")
    });
    runnable(cases.flat_map(|path| frames_of(&path)).collect())
}

/// The frames of the project's samples, with every definition in turn.
#[test]
fn every_op_of_every_input() {
    let features = all_features();
    assert!(features.len() > 250, "{}", features.len());
    let mut frames = [of_every_kind(), office()].concat();
    // The samples only have priority 0.
    let plain = tcp(1, 0x18);
    frames.push([&plain[..12], &[0x81, 0, 0xa0, 5], &plain[12..]].concat());
    let inputs = INPUTS;
    let mut met = InputSet::EMPTY;
    for definition in &definitions(&features, &KeyField::FIVE_TUPLE) {
        let Some(expected) = compare(&frames, definition, &[config(7), config(65_536)]) else {
            return;
        };
        let packets = expected.packets.values().flatten();
        met = packets.fold(met, |met, (_, values)| {
            let nonzero = inputs.iter().filter(|input| values.get(*input) > Some(0));
            met.union(nonzero.collect())
        });
    }
    let unmet = inputs.iter().filter(|input| !met.contains(*input));
    let unmet: InputSet = unmet.filter(|input| !input.is_always_present()).collect();
    // Tunnels are not entered; test runs have one queue and no driver; a single packet has no gap.
    assert_eq!(
        unmet.names(),
        "vni, teid, gre_key, gap, receive_queue, hardware_timestamp"
    );
}

/// Frames of every kind, half of them damaged, from the generator of the parser's tests.
#[test]
fn inputs_of_generated_frames() {
    let mut runner = TestRunner::deterministic();
    let strategy = generate::frames();
    let generated = (0..4_000).map(|_| strategy.new_tree(&mut runner).unwrap().current());
    let frames = runnable(generated.collect());
    let features = all_features();
    let some = features.into_iter().filter(|feature| {
        matches!(
            feature.op,
            Op::Count | Op::Min | Op::Max | Op::List { .. } | Op::GapMax
        )
    });
    let some: Vec<Feature> = some.collect();
    for definition in &definitions(&some, &KeyField::FIVE_TUPLE) {
        if compare(&frames, definition, &[config(1_024)]).is_none() {
            return;
        }
    }
}

/// Every capture, with the features that flow classifiers use; also tables of one row.
#[test]
fn sizes_and_gaps_of_all_captures() {
    let feature = Feature::new;
    let features = [
        feature("lengths", Op::List { k: 20 }, Some(Input::PayloadLength)),
        feature("mean", Op::Mean, Some(Input::IpLength)),
        feature("variance", Op::Variance, Some(Input::FrameLength)),
        feature("jitter", Op::GapVariance, None),
        feature("longest", Op::GapMax, None),
        feature("windows", Op::Min, Some(Input::TcpWindow)),
        feature("options", Op::BitOr, Some(Input::TcpOptions)),
        feature("last_ttl", Op::Last, Some(Input::Ttl)),
    ];
    let frames = captures().iter().flat_map(|path| frames_of(path)).collect();
    let frames: Vec<Vec<u8>> = runnable(frames);
    let definition = timed(&KeyField::FIVE_TUPLE, &features);
    let configs = [config(1), config(65_536)];
    if compare(&frames, &definition, &configs).is_none() {
        return;
    }
    // Cells so short that the runs span thousands.
    let short = KernelConfig {
        cell_ns: 50_000,
        ..config(1_024)
    };
    let _ = compare(&office(), &definition, &[short]);
}

/// Every key field: alone, with others, and all at once; IPv4 and IPv6 flows in one table.
#[test]
fn every_key() {
    let frames = [of_every_kind(), office()].concat();
    let features = [
        Feature::new("packets", Op::Count, None),
        Feature::new("bytes", Op::Sum, Some(Input::FrameLength)),
        Feature::new("first_port", Op::First, Some(Input::TcpSequence)),
    ];
    let all: Vec<KeyField> = KeyField::all()
        .filter(|field| !matches!(field, KeyField::Input(input) if !INPUTS.contains(*input)))
        .collect();
    let pairs = [KeyField::SourceAddress, KeyField::DestinationAddress];
    let with_vlan = [&pairs[..], &[KeyField::Input(Input::Vlan)]].concat();
    let mut keys = vec![all.clone(), pairs.to_vec(), with_vlan];
    // Fields with few values would give few flows, none of them short.
    let many = all.iter().filter(|field| {
        !matches!(
            field,
            KeyField::Protocol | KeyField::OuterSourceAddress | KeyField::OuterDestinationAddress
        )
    });
    keys.extend(many.map(|field| {
        let ports = [KeyField::DestinationPort, KeyField::SourcePort];
        let mut key = vec![KeyField::SourceAddress, *field];
        key.extend(ports);
        key.sort_by_key(|field| field.name());
        key.dedup();
        key
    }));
    for key in keys {
        if compare(&frames, &timed(&key, &features), &[config(64)]).is_none() {
            return;
        }
    }
}

/// A definition that needs only what every record has is measured by the default program.
#[test]
fn what_every_record_has_needs_no_plan() {
    let definition = Definition {
        features: vec![
            Feature::new("rate", Op::Rate, Some(Input::IpLength)),
            Feature::new("duration", Op::Duration, None),
        ],
        ..Definition::default()
    };
    let config = KernelConfig {
        layout: Some(compile(&definition)),
        ..config(8)
    };
    let Some(engine) = load(&config) else { return };
    meter(&engine, &tcp(1, 0x10));
    let mut batch = MicroflowBatch::default();
    finish(engine, &mut batch);
    assert_eq!(batch.v4::<0>().count(), 1);
    assert!(batch.is_plain());
}

fn refused(config: KernelConfig) -> String {
    match KernelEngine::load(&config) {
        Ok(_) => panic!("{config:?} was taken"),
        Err(error) => error.to_string(),
    }
}

fn with(features: &[Feature]) -> KernelConfig {
    KernelConfig {
        layout: Some(compile(&timed(&KeyField::FIVE_TUPLE, features))),
        ..config(8)
    }
}

/// Each limit can be reached, and one more is refused with its number.
#[test]
fn what_is_too_large_is_refused_with_its_number() {
    let list = |k| Feature::new("list", Op::List { k }, Some(Input::Ttl));
    let Some(_) = load(&with(&[list(78)])) else {
        return;
    };
    let words = refused(with(&[list(79)]));
    assert_eq!(
        words,
        "this definition takes 121 words of state; the engine in the kernel has room for 120; `engine.name=software` works"
    );
    let features: Vec<Feature> = all_features()
        .into_iter()
        .filter(|feature| matches!(feature.op, Op::Min | Op::First | Op::Last | Op::BitOr))
        .filter(|feature| !matches!(feature.of, Some(Input::Gap | Input::Timestamp)))
        .collect();
    let definition = |count| Definition {
        features: features[..count].to_vec(),
        ..Definition::default()
    };
    let steps = |count: &usize| compile(&definition(*count)).steps().state.len();
    let fits = (1..features.len())
        .rfind(|count| steps(count) == 64)
        .unwrap();
    let config_of = |count| KernelConfig {
        layout: Some(compile(&definition(count))),
        ..config(8)
    };
    assert!(load(&config_of(fits)).is_some());
    let contents = refused(config_of(fits + 1));
    assert_eq!(
        contents,
        "this definition takes 65 different values to keep; the engine in the kernel has room for 64; \
         `engine.name=software` works"
    );
}

#[test]
fn what_it_cannot_see_is_refused_by_name() {
    for (input, name) in [
        (Input::QueueDepth, "queue_depth"),
        (Input::HopLatency, "hop_latency"),
    ] {
        let error = refused(with(&[Feature::new("x", Op::Last, Some(input))]));
        let expected = format!("the engine in the kernel does not see `{name}`");
        assert_eq!(error, expected);
    }
    let last = Feature::new("x", Op::Last, Some(Input::Ttl));
    let definition = timed(&KeyField::FIVE_TUPLE, &[last]);
    let joined = refused(KernelConfig {
        layout: Some(Layout::compile(&definition, true).unwrap()),
        ..config(8)
    });
    assert!(
        joined.contains("does not join the two directions"),
        "{joined}"
    );
}
