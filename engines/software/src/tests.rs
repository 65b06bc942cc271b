// SPDX-License-Identifier: Apache-2.0

use turboflow_engine::{EvictAll, PacketEngine};
use turboflow_merge::{KeyHasher, Layout, Marks, MicroflowRecord};
use turboflow_record::{Definition, FiveTuple, Packet, TCP_ACK, TCP_FIN, TCP_SYN};

use super::*;

type Record = MicroflowRecord<2, 0>;
type Engine = SoftwareEngine<2, 0>;

fn engine(sizing: Sizing, evict_after: u8) -> Engine {
    let layout = Layout::compile(&Definition::default(), false).unwrap();
    let config = EngineConfig {
        sizing,
        evict_after,
    };
    let mut engine = Engine::new(config, layout.plan().clone(), KeyHasher::new(1));
    engine.enter_cell(1_000, 50);
    engine
}

fn packet(flow: u32, timestamp_ns: u64, tcp_flags: u16) -> Record {
    let [a, b, c, d] = flow.to_be_bytes();
    Record::of_v4(&Packet {
        tuple: FiveTuple::v4([10, 0, 0, 1, a, b, c, d], [0, 80, 4, 0], 6),
        timestamp_ns,
        ip_length_bytes: 40,
        frame_length_bytes: 54,
        tcp_flags,
        ttl: 64,
        tos: 0,
        is_echo_reply: false,
    })
}

/// Packets and first time of each evicted record.
fn left(evicted: &[Record]) -> Vec<(u64, u64)> {
    evicted
        .iter()
        .map(|record| (record.base.packets, record.base.first_ns))
        .collect()
}

#[test]
fn merges_packets_of_a_flow_and_evicts_on_collision() {
    let mut engine = engine(Sizing::Fixed(1), 0);
    let mut evicted = Vec::new();
    let packets = [
        packet(1, 1_001, 0),
        packet(1, 1_002, 0),
        packet(2, 1_003, 0),
    ];
    engine.observe(&packets, &mut evicted);
    assert_eq!(left(&evicted), [(2, 1_001)]);
    assert_eq!(engine.resident(), 1);
    assert_eq!(engine.evicted().collision, 1);
    engine.evict_all(EvictAll::Cell, &mut evicted);
    assert_eq!(left(&evicted), [(2, 1_001), (1, 1_003)]);
    assert_eq!(engine.resident(), 0);
    assert_eq!(engine.evicted().total(), 2);
}

#[test]
fn a_late_packet_is_not_merged() {
    let mut engine = engine(Sizing::Fixed(8), 0);
    let mut evicted = Vec::new();
    // One packet before the cell, one before the record's first packet.
    let times = [1_010, 999, 1_012, 1_011, 1_013];
    engine.observe(&times.map(|at| packet(1, at, 0)), &mut evicted);
    engine.evict_all(EvictAll::Flush, &mut evicted);
    assert_eq!(
        left(&evicted),
        [(1, 1_010), (1, 999), (1, 1_012), (2, 1_011)]
    );
    assert_eq!(engine.evicted().cut, 3);
}

#[test]
fn a_syn_joins_no_record() {
    let mut engine = engine(Sizing::Fixed(8), 0);
    let mut evicted = Vec::new();
    let flags = [
        TCP_ACK,
        TCP_SYN,
        TCP_SYN,
        TCP_ACK | TCP_FIN,
        TCP_ACK,
        TCP_SYN,
    ];
    let packets: Vec<_> = (1_001..)
        .zip(flags)
        .map(|(at, flags)| packet(1, at, flags))
        .collect();
    engine.observe(&packets, &mut evicted);
    engine.evict_all(EvictAll::Flush, &mut evicted);
    let expected = [(1, 1_001), (1, 1_002), (3, 1_003), (1, 1_006)];
    assert_eq!(left(&evicted), expected);
}

#[test]
fn with_a_linger_of_0_nothing_joins_after_an_end() {
    let mut engine = engine(Sizing::Fixed(8), Marks::ENDS);
    let mut evicted = Vec::new();
    let flags = [TCP_ACK, TCP_FIN, TCP_ACK, TCP_ACK];
    let packets: Vec<_> = (1_001..)
        .zip(flags)
        .map(|(at, flags)| packet(1, at, flags))
        .collect();
    engine.observe(&packets, &mut evicted);
    engine.evict_all(EvictAll::Flush, &mut evicted);
    assert_eq!(left(&evicted), [(2, 1_001), (2, 1_003)]);
}

#[test]
fn bypasses_a_table_that_does_not_pay_and_tries_again() {
    let mut engine = engine(Sizing::Adaptive, 0);
    let mut evicted = Vec::new();
    let (mut packets, mut flow, mut aside) = (0, 0, 0);
    while packets < 2_500_000 {
        let batch: Vec<_> = (0..500)
            .map(|_| {
                flow += 1;
                packet(flow, 1_001, 0)
            })
            .collect();
        packets += batch.len();
        if engine.is_bypassed() {
            engine.pass(batch.len());
            aside += batch.len();
        } else {
            engine.observe(&batch, &mut evicted);
        }
    }
    assert!(
        aside > 2_000_000,
        "unique keys never hit, yet only {aside} passed by"
    );
    let windows = (packets - aside) as u64 / 65_536;
    assert!(
        (2..=4).contains(&windows),
        "a trial window now and then, not {windows}"
    );
    engine.evict_all(EvictAll::Flush, &mut evicted);
    assert_eq!(engine.evicted().total(), packets as u64);
}

#[test]
fn stays_in_use_while_packets_come_in_trains() {
    let mut engine = engine(Sizing::Adaptive, 0);
    let mut evicted = Vec::new();
    for train in 0..100_000 {
        engine.observe(&[packet(train, 1_001, 0); 5], &mut evicted);
    }
    assert!(!engine.is_bypassed());
    assert_eq!(engine.evicted().bypass, 0);
}

#[test]
fn gives_equal_records_for_equal_seeds() {
    let run = || {
        let mut engine = engine(Sizing::Fixed(7), 0);
        let mut evicted = Vec::new();
        let packets: Vec<_> = (0..1_000)
            .map(|at| packet(at * at % 40, 1_001 + u64::from(at), 0))
            .collect();
        engine.observe(&packets, &mut evicted);
        engine.evict_all(EvictAll::Flush, &mut evicted);
        evicted
    };
    assert_eq!(run(), run());
    assert_eq!(
        run().iter().map(|record| record.base.packets).sum::<u64>(),
        1_000
    );
}

#[test]
#[should_panic(expected = "packets are metered in a table")]
fn observing_without_a_table_panics() {
    let mut engine = engine(Sizing::Off, 0);
    engine.observe(&[packet(1, 1_001, 0)], &mut Vec::new());
}
