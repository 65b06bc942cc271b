// SPDX-License-Identifier: Apache-2.0
//! Microflow records of other TurboFlow processes.

use turboflow_engine::EngineCounters;
use turboflow_engine::wire::Encoder;
use turboflow_merge::MicroflowRecord;
use turboflow_record::WORDS_V4;

use super::*;

pub(super) const NOW_NS: u64 = NOW_MS * 1_000_000;

/// A record of this many packets, which began `ago_s` seconds before the collector's time and
/// lasted for one second.
pub(super) fn piece(number: u64, packets: u64, ago_s: i64) -> MicroflowRecord<WORDS_V4, 0> {
    let first_ns = NOW_NS.strict_add_signed(-ago_s * 1_000_000_000) + number;
    MicroflowRecord {
        key: [number, 6],
        base: Base {
            packets,
            bytes: packets * 100,
            first_ns,
            last_ns: first_ns + 1_000_000_000,
            ..Base::default()
        },
        state: [],
    }
}

/// The messages of a probe: each has these records.
pub(super) fn probe(engine_id: u32, batches: &[&[MicroflowRecord<WORDS_V4, 0>]]) -> Vec<Sent> {
    let layout = Layout::compile(&Definition::default(), false).expect("the default compiles");
    let mut encoder = Encoder::new(&layout, engine_id, 1_400).started_at(NOW_NS);
    let mut sent = Vec::new();
    for records in batches {
        let mut batch = MicroflowBatch::default();
        for record in *records {
            batch.plain_v4.push_record(*record);
        }
        encoder.records(&batch, |message| sent.push((1, message.to_vec())));
    }
    let counters = EngineCounters::default();
    encoder.counters(&counters, 0, true, |message| {
        sent.push((1, message.to_vec()))
    });
    sent
}

pub(super) const LIVE: CollectorConfig = CollectorConfig {
    lag_ns: Some(10_000_000_000),
    ..CONFIG
};

pub(super) fn live(sent: Vec<Sent>) -> Outcome {
    run_with(sent, LIVE, Some(NOW_NS))
}

#[test]
fn pieces_of_two_probes_come_in_the_order_of_time() {
    let [one, two] = [1, 2].map(|engine| {
        let pieces: Vec<_> = (0..50)
            .map(|at| piece(2 * at + engine, 1, 5 - (at / 20) as i64))
            .collect();
        probe(engine as u32, &[&pieces])
    });
    let outcome = live([one, two].concat());
    assert_eq!(outcome.sums(), (100, 100, 10_000));
    let starts = outcome.records.iter().map(|base| base.first_ns);
    assert!(starts.is_sorted());
    assert_eq!((outcome.dropped, outcome.counts.microflows), (0, 100));
    assert_eq!(outcome.known, (1, 2));
}

#[test]
fn what_is_missing_in_the_numbers_of_a_probe_is_lost() {
    let three = [piece(1, 1, 3), piece(2, 1, 3), piece(3, 1, 3)];
    let mut sent = probe(1, &[&three, &three[..2], &three]);
    sent.remove(1);
    let outcome = live(sent);
    assert_eq!((outcome.sums().0, outcome.dropped), (6, 2));
    // Also before its last message, which has no records.
    let mut sent = probe(1, &[&three, &three]);
    sent.remove(1);
    assert_eq!(live(sent).dropped, 3);
}

/// The messages of a probe that metered this many packets, and reports that at the end.
fn probe_that_counts(engine_id: u32, pieces: &[MicroflowRecord<WORDS_V4, 0>]) -> Vec<Sent> {
    let layout = Layout::compile(&Definition::default(), false).expect("the default compiles");
    let mut sent = probe(engine_id, &[pieces, pieces]);
    sent.pop();
    let packets: u64 = pieces.iter().map(|piece| 2 * piece.base.packets).sum();
    let mut counters = EngineCounters {
        packets_received: packets + 5,
        packets_metered: packets,
        source_dropped: 7,
        ..EngineCounters::default()
    };
    counters.rejected_packets[0] = 5;
    counters.rejected_bytes[0] = 300;
    let mut encoder = Encoder::new(&layout, engine_id, 1_400);
    encoder.counters(&counters, 0, true, |message| {
        let mut message = message.to_vec();
        turboflow_engine::wire::number(&mut message, 2 * pieces.len() as u32);
        sent.push((1, message));
    });
    sent
}

/// The engine after it has taken these messages.
fn collected(sent: Vec<Sent>) -> CollectorEngine {
    let layout = Layout::compile(&Definition::default(), false).expect("the default compiles");
    let source = Sends {
        messages: sent.into(),
        received_ns: Some(NOW_NS),
    };
    let mut engine = CollectorEngine::new(Box::new(source), &layout, LIVE);
    while !engine.has_ended() {
        engine
            .collect(&mut MicroflowBatch::default())
            .expect("memory is readable");
    }
    engine
}

#[test]
fn what_probes_counted_and_lost_is_in_the_counters() {
    let pieces = [piece(1, 2, 3), piece(2, 3, 3), piece(3, 4, 3)];
    for (lost_records, lost_packets) in [(0, 0), (3, 9)] {
        let mut sent = probe_that_counts(1, &pieces);
        if lost_records > 0 {
            sent.remove(1);
        }
        let mut engine = collected(sent);
        let counters = engine.counters().expect("it counts");
        assert_eq!(counters.microflows_dropped, lost_records);
        assert_eq!(counters.packets_received, 18 - lost_packets + 5);
        assert_eq!(counters.rejected_bytes[0], 300);
        let ports = engine.ports().expect("it tells");
        let [others, probe] = &ports[..] else {
            panic!("{ports:?}");
        };
        assert_eq!(
            (others.counters.seen, probe.name.as_str()),
            (0, "probe 192.0.2.1 1")
        );
        assert_eq!(probe.counters.dropped, 7 + lost_packets);
        assert_eq!(probe.counters.delivered, 18 - lost_packets + 5);
        let own = engine.own_counts().expect("it counts");
        let count = |name: &str| own.iter().find(|own| own.name == name).unwrap().count;
        assert_eq!(count("engine_collector_probe_packets_dropped"), 7);
        assert_eq!(count("engine_collector_probe_packets_lost"), lost_packets);
    }
}

/// Another collector had the records of its first hour.
#[test]
fn what_a_probe_counted_before_is_not_lost() {
    let layout = Layout::compile(&Definition::default(), false).expect("the default compiles");
    let mut encoder = Encoder::new(&layout, 1, 1_400);
    let mut sent = Vec::new();
    let mut counters = EngineCounters::default();
    for (received, is_end) in [(1_000_000, false), (1_000_000, false), (1_000_009, true)] {
        counters.packets_received = received;
        counters.packets_metered = received;
        counters.source_dropped = received / 1_000;
        counters.microflows_dropped = received / 100_000;
        encoder.counters(&counters, 0, is_end, |message| {
            sent.push((1, message.to_vec()))
        });
    }
    sent.remove(0);
    let mut engine = collected(sent);
    let now = engine.counters().expect("it counts");
    assert_eq!((now.source_dropped, now.microflows_dropped), (0, 0));
    let own = engine.own_counts().expect("it counts");
    let lost = own
        .iter()
        .find(|own| own.name.ends_with("probe_packets_lost"));
    assert_eq!(lost.unwrap().count, 0);
}

#[test]
fn records_ahead_of_this_clock_are_refused_and_missing() {
    let now = [piece(1, 1, 3)];
    let sent = probe(1, &[&now, &[piece(2, 1, -100)], &now]);
    let outcome = live(sent);
    assert_eq!((outcome.sums().0, outcome.dropped), (2, 1));
    assert_eq!(outcome.counts.microflows_refused, 1);
}

#[test]
fn a_probe_that_claims_much_shuts_no_other_out() {
    let lie = MicroflowRecord {
        base: Base {
            packets: 1 << 40,
            bytes: 1 << 56,
            ..piece(1, 1, 3).base
        },
        ..piece(1, 1, 3)
    };
    let lies = [[lie; 12]; 10];
    let messages: Vec<&[_]> = lies.iter().map(|message| &message[..]).collect();
    let mut sent = probe(1, &messages);
    // A lie takes nothing from the records that are in one message with it.
    sent.extend(probe(2, &[&[piece(2, 5, 3), lie, piece(3, 6, 3)]]));
    let outcome = live(sent);
    assert_eq!(outcome.sums(), (2, 11, 1_100));
    assert_eq!(outcome.counts.records_implausible, 121);
    assert_eq!((outcome.dropped, outcome.counts.microflows), (0, 2));
}

#[test]
fn messages_that_are_cut_or_of_another_layout_are_refused() {
    let (_, whole) = probe(1, &[&[piece(1, 1, 3)]]).swap_remove(0);
    for length in 2..whole.len() {
        let outcome = live(vec![(1, whole[..length].to_vec())]);
        assert_eq!(
            (outcome.counts.microflows_refused, outcome.sums().0),
            (1, 0)
        );
    }
    let mut other = whole.clone();
    other[8] ^= 1;
    assert_eq!(live(vec![(1, other)]).counts.microflows_refused, 1);
    let alone = CollectorConfig {
        only_microflows: true,
        ..LIVE
    };
    let sent = vec![(1, whole), message(0, &[flow(1, 10, 10)])];
    let outcome = run_with(sent, alone, Some(NOW_NS));
    assert_eq!((outcome.sums().0, outcome.counts.flows_refused), (1, 1));
}

/// Whatever bit is wrong, a message is refused as a whole, or its records are taken as they are.
#[test]
fn a_wrong_bit_is_refused_or_makes_another_record() {
    let (_, whole) = probe(1, &[&[piece(1, 1, 3), piece(2, 5, 2)]]).swap_remove(0);
    for bit in 16..8 * whole.len() {
        let mut wrong = whole.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let outcome = live(vec![(1, wrong)]);
        let (taken, refused) = (
            outcome.counts.microflows as usize,
            outcome.counts.microflows_refused,
        );
        assert_eq!((outcome.sums().0, outcome.dropped), (taken, 0), "bit {bit}");
        // A length may end after fewer records: the bytes after it are padding.
        assert!(refused == 1 && taken == 0 || refused == 0 && taken <= 2);
    }
}
