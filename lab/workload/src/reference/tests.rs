// SPDX-License-Identifier: Apache-2.0
//! Compares the oracle with results computed by hand, and with the laws.

use turboflow_record::{
    Column, ColumnKind, Feature, FiveTuple, FlowBatch, Input, KeyField, Op, TCP_ACK, TCP_FIN,
    TCP_RST, TCP_SYN, Value,
};

use super::*;
use crate::sequences::{SequenceShape, random_packets};

const FORWARD: FiveTuple = FiveTuple::v4([10, 0, 0, 1, 10, 0, 0, 2], [0, 9, 0, 80], 6);

/// Timeouts of 100, 1,000 and 50 ns with cells of 10 ns.
fn options() -> MeterOptions {
    MeterOptions {
        align_ns: None,
        idle_timeout_ns: Some(100),
        active_timeout_ns: Some(1_000),
        linger_ns: Some(50),
        max_age_ns: 10,
        biflow: false,
    }
}

fn packet(tuple: FiveTuple, timestamp_ns: u64, tcp_flags: u16) -> (Packet, InputValues) {
    let packet = Packet {
        tuple,
        timestamp_ns,
        ip_length_bytes: 40 + tcp_flags as u32,
        frame_length_bytes: 64,
        tcp_flags,
        ttl: 64,
        tos: 0,
        is_echo_reply: false,
    };
    (packet, InputValues::default())
}

/// (packets, first, last, reason) of each record, for packets of one key.
fn cuts(options: &MeterOptions, packets: &[(u64, u16)]) -> Vec<(u64, u64, u64, u64)> {
    let packets = packets
        .iter()
        .map(|&(time_ns, flags)| packet(FORWARD, time_ns, flags));
    let metered = meter(&Definition::default(), options, packets);
    let columns = ["packets", "first_ns", "last_ns", "end_reason"];
    let mut cuts: Vec<_> = metered
        .records
        .iter()
        .map(|record| columns.map(|name| record.unsigned(name)))
        .collect();
    cuts.sort_by_key(|cut| cut[1]);
    cuts.into_iter().map(Into::into).collect()
}

#[test]
fn a_silence_of_the_idle_timeout_joins_and_one_more_nanosecond_cuts() {
    assert_eq!(cuts(&options(), &[(5, 16), (105, 16)]), [(2, 5, 105, 4)]);
    assert_eq!(
        cuts(&options(), &[(5, 16), (106, 16)]),
        [(1, 5, 5, 1), (1, 106, 106, 4)]
    );
}

#[test]
fn the_active_cut_is_at_the_cell_that_would_exceed_it() {
    let steps: Vec<_> = (0..13).map(|step| (5 + 90 * step, TCP_ACK)).collect();
    // The packet at 995 is in the cell [990, 1000): 1000 - 5 <= 1000. The one at 1085 is in [1080,
    // 1090).
    assert_eq!(
        cuts(&options(), &steps),
        [(12, 5, 995, 2), (1, 1085, 1085, 4)]
    );
    // The cell [1000, 1010) reaches to 1005 after the first packet, although the packet itself
    // would fit.
    let steps = [
        (5, 16),
        (100, 16),
        (200, 16),
        (300, 16),
        (400, 16),
        (500, 16),
        (600, 16),
    ];
    let late = [(700, 16), (800, 16), (900, 16), (1_000, 16)];
    let expected = [(10, 5, 900, 2), (1, 1_000, 1_000, 4)];
    assert_eq!(
        cuts(&options(), &[&steps[..], &late[..]].concat()),
        expected
    );
}

#[test]
fn an_ended_flow_lingers_and_a_new_syn_opens_another() {
    let end = TCP_FIN | TCP_ACK;
    assert_eq!(
        cuts(&options(), &[(1, TCP_SYN), (2, end), (52, TCP_ACK)]),
        [(3, 1, 52, 4)]
    );
    let expected = [(2, 1, 2, 3), (1, 53, 53, 4)];
    assert_eq!(
        cuts(&options(), &[(1, TCP_SYN), (2, end), (53, TCP_ACK)]),
        expected
    );
    let expected = [(2, 1, 2, 3), (2, 3, 4, 4)];
    assert_eq!(
        cuts(&options(), &[(1, 2), (2, end), (3, TCP_SYN), (4, TCP_SYN)]),
        expected
    );
    // A SYN older than the RST was captured late; one with the same time opens a new flow.
    assert_eq!(
        cuts(&options(), &[(2, TCP_RST), (1, TCP_SYN), (3, TCP_SYN)]),
        [(2, 1, 2, 3), (1, 3, 3, 4)]
    );
    assert_eq!(
        cuts(&options(), &[(2, TCP_RST), (2, TCP_SYN)]),
        [(1, 2, 2, 4), (1, 2, 2, 3)]
    );
    // A SYN with ACK answers a connection; it does not begin one.
    assert_eq!(
        cuts(&options(), &[(1, 2), (2, end), (3, TCP_SYN | TCP_ACK)]),
        [(3, 1, 3, 4)]
    );
}

#[test]
fn without_linger_the_end_closes_at_once() {
    let options = MeterOptions {
        linger_ns: Some(0),
        ..options()
    };
    let expected = [(2, 1, 2, 3), (1, 3, 3, 4)];
    assert_eq!(
        cuts(&options, &[(1, TCP_SYN), (2, TCP_RST), (3, TCP_ACK)]),
        expected
    );
}

#[test]
fn with_the_linger_switched_off_fin_and_rst_end_nothing() {
    let options = MeterOptions {
        linger_ns: None,
        ..options()
    };
    let packets = [(1, TCP_SYN), (2, TCP_RST), (3, TCP_SYN), (104, TCP_ACK)];
    assert_eq!(cuts(&options, &packets), [(3, 1, 3, 1), (1, 104, 104, 4)]);
}

#[test]
fn at_the_end_due_flows_keep_their_reason_and_the_rest_is_forced() {
    let other = FiveTuple::v4([10, 0, 0, 3, 10, 0, 0, 4], [0, 9, 0, 80], 17);
    let reasons = |until_ns| {
        let packets = [packet(FORWARD, 5, 0), packet(other, until_ns, 0)];
        meter(&Definition::default(), &options(), packets).records_by_reason
    };
    assert_eq!(reasons(109), [0, 0, 0, 2, 0]); // 5 + 100 is in the cell [100, 110).
    assert_eq!(reasons(110), [1, 0, 0, 1, 0]);
    assert_eq!(reasons(2_000), [1, 0, 0, 1, 0]);
}

#[test]
fn a_clock_set_back_forces_everything_out() {
    let packets = [(5_000, 16), (4_900, 16), (4_899, 16), (4_905, 16)];
    assert_eq!(
        cuts(&options(), &packets),
        [(2, 4_899, 4_905, 4), (2, 4_900, 5_000, 4)]
    );
    let options = MeterOptions {
        idle_timeout_ns: None,
        ..options()
    };
    let joined = [(5_000, 16), (4_500, 16), (4_100, 16)];
    assert_eq!(cuts(&options, &joined), [(3, 4_100, 5_000, 4)]);
}

#[test]
fn a_biflow_starts_with_its_initiator_and_ends_from_both_sides() {
    let biflow = MeterOptions {
        biflow: true,
        ..options()
    };
    let back = FORWARD.reversed();
    let run = |packets: &[(Packet, InputValues)]| {
        meter(&Definition::default(), &biflow, packets.to_vec()).records
    };
    // The response was captured first. The SYN identifies the initiator.
    let records = run(&[
        packet(FORWARD, 1, TCP_SYN | TCP_ACK),
        packet(back, 2, TCP_SYN),
        packet(FORWARD, 3, TCP_FIN),
        packet(back, 4, TCP_SYN),
    ]);
    assert_eq!(records.len(), 1);
    let record = records.iter().next().unwrap();
    assert_eq!(record.unsigned("src_port"), 80);
    assert_eq!(
        (
            record.unsigned("packets"),
            record.unsigned("reverse_packets")
        ),
        (2, 2)
    );
    assert_eq!(
        record.unsigned("reverse_tcp_flags"),
        (TCP_SYN | TCP_ACK | TCP_FIN).into()
    );
    // FIN from both sides, then a new connection.
    let records = run(&[
        packet(FORWARD, 1, TCP_FIN),
        packet(back, 2, TCP_FIN),
        packet(back, 3, TCP_SYN),
    ]);
    let ports: Vec<_> = records
        .iter()
        .map(|record| record.unsigned("src_port"))
        .collect();
    assert_eq!(ports, [80, 9]); // In order of addresses.
}

#[test]
fn features_are_those_computed_by_hand() {
    let feature = Feature::new;
    let length = Some(Input::IpLength);
    let definition = Definition {
        key: vec![KeyField::Protocol],
        features: vec![
            feature("mean", Op::Mean, length),
            feature("variance", Op::Variance, length),
            feature("second", Op::Nth { k: 2 }, length),
            feature("ninth", Op::Nth { k: 9 }, length),
            feature("sizes", Op::List { k: 2 }, length),
            feature(
                "bins",
                Op::Histogram {
                    edges: vec![41, 44],
                },
                length,
            ),
            feature("gaps", Op::List { k: 9 }, Some(Input::Gap)),
            feature("gap_mean", Op::GapMean, None),
            feature("windows", Op::Count, Some(Input::TcpWindow)),
            feature("rate", Op::Rate, None),
            feature("bit_rate", Op::Rate, length),
            feature("duration", Op::Duration, None),
        ],
    };
    let packets = [(10, 0), (20, 1), (15, 4), (30, 5)];
    let packets = packets.map(|(time_ns, flags)| packet(FORWARD, time_ns, flags));
    let options = MeterOptions {
        linger_ns: None,
        ..options()
    };
    let records = meter(&definition, &options, packets).records;
    let record = records.iter().next().unwrap();
    let expected = [
        ("mean", OwnedValue::Float(42.5)),
        ("variance", OwnedValue::Float(4.25)),
        ("second", OwnedValue::Unsigned(41)),
        ("ninth", OwnedValue::Absent),
        ("sizes", OwnedValue::List(vec![40, 41])),
        ("bins", OwnedValue::List(vec![1, 1, 2])),
        ("gaps", OwnedValue::List(vec![10, 0, 15])),
        ("gap_mean", OwnedValue::Float(25.0 / 3.0)),
        ("windows", OwnedValue::Unsigned(0)),
        ("rate", OwnedValue::Float(4.0 / 20e-9)),
        ("bit_rate", OwnedValue::Float(170.0 / 20e-9)),
        ("duration", OwnedValue::Unsigned(20)),
        ("protocol", OwnedValue::Unsigned(6)),
        ("end_reason", OwnedValue::Unsigned(4)),
    ];
    for (name, value) in &expected {
        assert_eq!(record.get(name), Some(value), "{name}");
    }
    assert_eq!(record.iter().count(), expected.len());
}

#[test]
fn records_obey_the_laws_on_cuts_and_conserve_packets() {
    let definition = Definition {
        key: KeyField::FIVE_TUPLE.to_vec(),
        features: [
            ("packets", Op::Count, None),
            ("bytes", Op::Sum, Some(Input::IpLength)),
            ("duration", Op::Duration, None),
            ("times", Op::List { k: 200 }, Some(Input::Timestamp)),
        ]
        .map(|(name, op, of)| Feature::new(name, op, of))
        .to_vec(),
    };
    let mut reasons = [0; 5];
    for seed in 0..400 {
        let mut shape = SequenceShape::random(seed, 200);
        shape.options.biflow = false;
        let options = &shape.options;
        let packets = random_packets(seed, &shape);
        let bytes: u64 = packets
            .iter()
            .map(|(packet, _)| u64::from(packet.ip_length_bytes))
            .sum();
        let metered = meter(&definition, options, packets);
        let total = |name| {
            metered
                .records
                .iter()
                .map(|record| record.unsigned(name))
                .sum::<u64>()
        };
        assert_eq!((total("packets"), total("bytes")), (200, bytes));
        for record in &metered.records {
            assert_cut_as_law_5_says(record, options);
        }
        metered
            .records_by_reason
            .iter()
            .zip(&mut reasons)
            .for_each(|(more, sum)| *sum += more);
    }
    assert!(
        reasons[..4].iter().all(|&records| records > 100),
        "{reasons:?}"
    );
}

fn assert_cut_as_law_5_says(record: &Record, options: &MeterOptions) {
    if let Some(active_ns) = options.active_timeout_ns {
        assert!(
            record.unsigned("duration") <= active_ns,
            "{record:?} with {options:?}"
        );
    }
    let Some(idle_ns) = options.idle_timeout_ns else {
        return;
    };
    // A linger beyond the idle timeout would keep an ended flow longer than law 5 allows.
    let linger_ns = options.linger_ns.unwrap_or(0);
    let Some(OwnedValue::List(times)) = record.get("times") else {
        panic!("{record:?}")
    };
    let mut times = times.clone();
    times.sort_unstable();
    let silence_ns = times
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap_or(0);
    assert!(
        silence_ns <= idle_ns.max(linger_ns),
        "{record:?} with {options:?}"
    );
}

#[test]
fn fewer_packets_are_a_prefix() {
    let shape = SequenceShape {
        packets: 50,
        ..SequenceShape::default()
    };
    let all = random_packets(3, &shape);
    let few = random_packets(
        3,
        &SequenceShape {
            packets: 20,
            ..shape
        },
    );
    assert_eq!(all[..20], few);
}

#[test]
fn reads_the_products_records_and_names_their_differences() {
    let packets = [packet(FORWARD, 10, 16), packet(FORWARD, 20, 16)];
    let expected = meter(&Definition::default(), &options(), packets).records;
    let record = expected.iter().next().unwrap();
    let schema: Vec<_> = record
        .iter()
        .map(|(name, value)| {
            let kind = match value {
                OwnedValue::Address(_) => ColumnKind::Address,
                _ => ColumnKind::Unsigned { bits: 64 },
            };
            Column {
                name: name.to_owned(),
                kind,
                nullable: false,
            }
        })
        .collect();
    let mut row: Vec<_> = record
        .iter()
        .map(|(_, value)| match value {
            OwnedValue::Address(address) => Value::Address(*address),
            OwnedValue::Unsigned(number) => Value::Unsigned(*number),
            other => panic!("{other} is not in the default definition"),
        })
        .collect();
    let mut batch = FlowBatch::new(&schema);
    batch.push_row(&row);
    assert_same_records(&expected, &Records::from_batch(&schema, &batch));
    row[schema
        .iter()
        .position(|column| column.name == "bytes")
        .unwrap()] = Value::Unsigned(7);
    batch.clear();
    batch.push_row(&row);
    let difference = expected
        .difference(&Records::from_batch(&schema, &batch))
        .unwrap();
    assert!(difference.contains("in bytes: 112 / 7\n"), "{difference}");
}

#[test]
fn floats_are_equal_within_the_tolerance() {
    assert_eq!(OwnedValue::Float(1e9), OwnedValue::Float(1e9 + 1e-4));
    assert_ne!(OwnedValue::Float(1e9), OwnedValue::Float(1e9 + 1e-2));
    assert_ne!(OwnedValue::Float(0.0), OwnedValue::Unsigned(0));
}
