// SPDX-License-Identifier: Apache-2.0
//! The whole loop: tap, decide, order, hit, idle out.

use turboflow_engine::RemoteEngine;
use turboflow_engine_offload::{FirstPacket, LearnerConfig};
use turboflow_engine_xdp::TestedProgram;

use crate::run::{
    DropsHalf, TIMES, by_name, collect_into, finish, fire, fire_at, fired, load_offload,
};
use crate::support::{Totals, stay_on, tcp};

const PACKETS: u64 = 4_000_000;

#[test]
fn flows_are_offloaded_and_every_packet_is_recorded() {
    // No row expires, however long a busy machine takes.
    let times = LearnerConfig {
        idle_ns: 3_600_000_000_000,
        ..TIMES
    };
    for flows in [1, 40_000, 200_000] {
        let config = fired(1 << 19, flows);
        let Some(engine) = load_offload(&config, Box::new(FirstPacket), times) else {
            return;
        };
        let ran = fire_at(engine, PACKETS);
        ran.check(PACKETS);
        // Every flow has one row, unless its last packet came before a verdict was possible.
        assert_eq!(ran.own("rows_begun"), ran.own("rows_open"));
        assert!(ran.own("rows_begun") <= flows.into());
        assert!(ran.own("rows_begun") >= ran.totals.flows() as u64 * 9 / 10);
        assert_eq!(ran.own("packets_dropped"), 0);
        assert!(ran.own("hits") > PACKETS / 4);
    }
}

/// Rows of silent flows expire, each once.
#[test]
fn every_row_ends_once() {
    const FLOWS: u32 = 10_000;
    let times = LearnerConfig {
        idle_ns: 2_000_000_000,
        ..TIMES
    };
    let config = fired(1 << 17, FLOWS);
    let Some(mut engine) = load_offload(&config, Box::new(FirstPacket), times) else {
        return;
    };
    let mut totals = Totals::default();
    collect_into(&mut engine, &mut totals);
    let tester = engine.kernel().tester();
    fire(&tester, PACKETS / 4, || {
        collect_into(&mut engine, &mut totals)
    });
    let mut open = 1;
    while open > 0 || by_name(engine.own_counts().unwrap())["offload_rows_begun"] < FLOWS.into() {
        collect_into(&mut engine, &mut totals);
        open = by_name(engine.own_counts().unwrap())["offload_rows_open"];
        std::thread::yield_now();
    }
    let ran = finish(engine, totals);
    ran.check(PACKETS / 4);
    assert_eq!(ran.own("rows_idle"), ran.own("rows_begun"));
    assert_eq!(ran.own("rows_begun"), FLOWS.into());
    assert_eq!(ran.totals.flows(), FLOWS as usize);
}

/// A verdict to drop applies to both directions of a flow, and dropped packets are recorded.
#[test]
fn dropped_packets_are_recorded() {
    let config = fired(1 << 17, 10_000);
    let Some(engine) = load_offload(&config, Box::new(DropsHalf), TIMES) else {
        return;
    };
    let returned = engine.kernel().tester();
    let ran = fire_at(engine, PACKETS);
    ran.check(PACKETS);
    let dropped = ran.own("packets_dropped");
    assert_eq!(returned.returned().unwrap()[1], dropped);
    // Half of the flows, except their first packets.
    assert!(
        (PACKETS * 3 / 10..PACKETS * 6 / 10).contains(&dropped),
        "{dropped}"
    );
}

/// Both ends close, and the row leaves after the linger. A new connection with the same ports
/// begins anew, even while the row is still there.
#[test]
fn rows_end_with_their_connection() {
    const FIN_ACK: u8 = 0x11;
    const SYN: u8 = 0x02;
    const ACK: u8 = 0x10;
    let times = LearnerConfig {
        linger_ns: 200_000_000,
        ..TIMES
    };
    let config = fired(100, 0);
    let Some(mut engine) = load_offload(&config, Box::new(FirstPacket), times) else {
        return;
    };
    let mut totals = Totals::default();
    collect_into(&mut engine, &mut totals);
    stay_on(0);
    let tester = engine.kernel().tester();
    let meter = |frame: &[u8]| {
        tester.run(TestedProgram::Microflows, frame, 1).unwrap();
    };
    let mut wait_for = |name: &str, count: u64| {
        while by_name(engine.own_counts().unwrap())[name] != count {
            collect_into(&mut engine, &mut totals);
            std::thread::yield_now();
        }
    };
    let there = |flags| tcp(9, flags);
    let back = |flags| turned(&tcp(9, flags));
    meter(&there(SYN));
    wait_for("offload_rows_open", 1);
    meter(&back(0x12));
    meter(&there(ACK));
    meter(&there(FIN_ACK));
    meter(&back(FIN_ACK));
    // The connection ended, and a new one begins before the linger has passed.
    meter(&there(SYN));
    wait_for("offload_rows_removed", 1);
    wait_for("offload_rows_begun", 2);
    meter(&back(0x14));
    wait_for("offload_rows_idle", 1);
    let ran = finish(engine, totals);
    assert_eq!(ran.own("hits"), 5);
    assert_eq!(ran.own("misses"), 2);
    assert_eq!(ran.own("rows_open"), 0);
    assert_eq!(ran.totals.packets, 7);
}

/// A plain TCP packet over IPv4 in the other direction.
fn turned(frame: &[u8]) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    bytes[26..30].copy_from_slice(&frame[30..34]);
    bytes[30..34].copy_from_slice(&frame[26..30]);
    bytes[34..36].copy_from_slice(&frame[36..38]);
    bytes[36..38].copy_from_slice(&frame[34..36]);
    bytes
}
