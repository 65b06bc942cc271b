// SPDX-License-Identifier: Apache-2.0
//! Random definitions and packets.

use proptest::collection::vec;
use proptest::prelude::*;

use super::naive::SeenPacket;
use turboflow_record::{
    Definition, Feature, FiveTuple, Input, InputSet, InputValues, KeyField, Op, Packet,
};

/// A TCP packet between two fixed ends, with all of its values derived from `number`.
pub(super) fn packet(number: u64, reversed: bool) -> Packet {
    let tuple = FiveTuple::v4([10, 0, 0, 1, 10, 0, 0, 2], [0x12, 0x34, 0, 80], 6);
    Packet {
        tuple: if reversed { tuple.reversed() } else { tuple },
        timestamp_ns: 1_700_000_000_000_000_000 + number,
        ip_length_bytes: 20 + number as u32 % 1_481,
        frame_length_bytes: 34 + number as u32 % 1_481,
        tcp_flags: 0,
        ttl: number as u8,
        tos: (number >> 8) as u8,
        is_echo_reply: false,
    }
}

fn op() -> impl Strategy<Value = Op> {
    let k = 1usize..7;
    let edges = vec(0u64..3_000, 1..24).prop_map(|mut edges| {
        edges.sort_unstable();
        edges.dedup();
        Op::Histogram { edges }
    });
    let plain: Vec<Op> = Op::NAMES.into_iter().filter_map(Op::with_name).collect();
    prop_oneof![
        4 => proptest::sample::select(plain).prop_filter("has numbers", |op| op.name() != "histogram"),
        1 => k.clone().prop_map(|k| Op::Nth { k }),
        1 => k.prop_map(|k| Op::List { k }),
        1 => edges,
    ]
}

/// A random feature that makes sense.
fn feature(biflow: bool) -> impl Strategy<Value = Feature> {
    let of = proptest::option::weighted(0.9, proptest::sample::select(Input::ALL.to_vec()));
    (op(), of, any::<bool>()).prop_filter_map("op and input fit", move |(op, of, per_biflow)| {
        let of = if op.operand() == turboflow_record::Operand::Needless {
            None
        } else {
            of
        };
        if of == Some(Input::Direction) && !biflow {
            return None;
        }
        let feature = Feature {
            name: "x".to_owned(),
            op,
            of,
            per_biflow,
        };
        let definition = Definition {
            key: KeyField::FIVE_TUPLE.to_vec(),
            features: vec![feature.clone()],
        };
        // `texts.rs` tests texts.
        let is_text = |of: Input| of.column_kind() == turboflow_record::ColumnKind::Text;
        let is_number = !feature.is_of_flow() && !feature.of.is_some_and(is_text);
        (is_number && definition.check().is_ok()).then_some(feature)
    })
}

/// Between one feature and as many as fill the largest records.
pub(super) fn features(biflow: bool) -> impl Strategy<Value = Vec<Feature>> {
    let few = vec(feature(biflow), 1..4);
    let some = vec(feature(biflow), 1..12);
    let many = vec(feature(biflow), 12..60);
    prop_oneof![few, some, many].prop_map(|mut features| {
        for (index, feature) in features.iter_mut().enumerate() {
            feature.name = format!("f{index}");
        }
        features
    })
}

/// Values of an input: often 0, 1 or the largest, for which an encoding is most likely to be wrong.
fn input_value(input: Input) -> impl Strategy<Value = Option<u64>> {
    // Moments are checked in 128-bit arithmetic, which sums of squares of 64-bit values would
    // exceed.
    let bits = match input {
        Input::HopLatency => 50,
        _ => input.bits(),
    };
    let max = if bits == 64 {
        u64::MAX - 1
    } else {
        (1 << bits) - 1
    };
    let value = prop_oneof![Just(0), Just(1), Just(max), 0..=max];
    proptest::option::weighted(0.6, value)
}

fn inputs() -> impl Strategy<Value = InputValues> {
    let all: Vec<_> = Input::ALL.into_iter().map(input_value).collect();
    all.prop_map(|values| {
        let mut inputs = InputValues::default();
        for (input, value) in Input::ALL.into_iter().zip(values) {
            let is_filled_in = !InputSet::DERIVED.contains(input) && !input.is_inspected();
            if let (Some(value), true) = (value, is_filled_in) {
                inputs.set(input, value);
            }
        }
        inputs
    })
}

prop_compose! {
    fn seen(biflow: bool)(
        inputs in inputs(),
        reversed in proptest::bool::weighted(if biflow { 0.4 } else { 0.0 }),
        offset_ns in prop_oneof![0u64..4, 0u64..1_000_000_000, 0u64..100_000_000_000],
        lengths in [any::<u32>(), any::<u32>()],
        ttl in any::<u8>(),
        tos in any::<u8>(),
        flags in 0u16..4_096,
    ) -> SeenPacket {
        let mut inputs = inputs;
        let mut packet = packet(offset_ns, reversed);
        [packet.ip_length_bytes, packet.frame_length_bytes] = lengths;
        (packet.ttl, packet.tos) = (ttl, tos);
        if inputs.get(Input::TcpFlags).is_some() {
            packet.tcp_flags = flags;
            inputs.set(Input::TcpFlags, u64::from(flags));
        }
        SeenPacket { packet, inputs, reversed }
    }
}

/// The packets of a flow in order of arrival, with timestamps that may go backwards.
pub(super) fn flow(biflow: bool) -> impl Strategy<Value = Vec<SeenPacket>> {
    prop_oneof![vec(seen(biflow), 1..3), vec(seen(biflow), 1..20)]
}
