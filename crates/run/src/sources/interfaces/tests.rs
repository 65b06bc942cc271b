// SPDX-License-Identifier: Apache-2.0
//! The end of a run while packets are still in the ring of loopback. Skipped without the right to
//! capture.

use std::net::UdpSocket;

use turboflow_capture::filter::{Instruction, Program};
use turboflow_capture::live::{InterfaceConfig, InterfaceError, RingSize};
use turboflow_testing::{Need, is_missing};

use super::*;

/// These packets fill two blocks of a 1 MiB ring and part of a third.
const PACKETS: u64 = 600;
const PAYLOAD: [u8; 1_000] = [0; 1_000];
const IN_TWO_BLOCKS: u64 = 300;

/// A ring with only the packets of this test.
fn waiting() -> Option<Interface> {
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = receiver.local_addr().unwrap();
    let config = InterfaceConfig {
        ring: RingSize::new(1 << 20).unwrap(),
        filter: Some(udp_to(address.port())),
        ..InterfaceConfig::default()
    };
    let mut interface = match Interface::open("lo", &config) {
        Ok(interface) => interface,
        Err(InterfaceError::PermissionDenied { .. })
            if is_missing(&[Need::Right("capture", false)]) =>
        {
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..PACKETS {
        sender.send_to(&PAYLOAD, address).unwrap();
    }
    let arrived = |interface: &mut Interface| {
        let counters = interface.counters().unwrap();
        counters.seen >= PACKETS
    };
    while !arrived(&mut interface) {
        std::thread::yield_now();
    }
    Some(interface)
}

fn udp_to(port: u16) -> Program {
    let instruction = |code, jump_false, k| Instruction {
        code,
        jump_true: 0,
        jump_false,
        k,
    };
    Program::new(vec![
        instruction(0x28, 0, 12),
        instruction(0x15, 5, 0x0800),
        instruction(0x30, 0, 23),
        instruction(0x15, 3, 17),
        instruction(0x28, 0, 36),
        instruction(0x15, 1, port.into()),
        instruction(0x06, 0, u32::MAX),
        instruction(0x06, 0, 0),
    ])
    .unwrap()
}

fn shared(packets: Option<u64>) -> Shared {
    let limits = Limits {
        duration: None,
        packets,
    };
    Shared::new(limits, 1)
}

fn reader(interface: Interface, shared: &Shared) -> Reader<'_, Meter, impl FnMut(RunEvent<'_>)> {
    let config = PipelineConfig::default();
    let meter = Meter::new(&config, |_shard| Box::new(|_records| {})).unwrap();
    Reader::new(vec![interface], meter, 0, shared, |_event| {})
}

fn report<O: FnMut(RunEvent<'_>)>(
    reader: Reader<'_, Meter, O>,
    failure: Option<io::Error>,
) -> RunReport {
    super::report(vec![reader.finish(failure)])
}

#[track_caller]
fn balanced(report: &RunReport) {
    assert_eq!(report.ledger.imbalances(), []);
    assert_eq!(report.ledger.source_seen, PACKETS);
}

#[test]
fn full_blocks_are_metered_without_time_limit() {
    let Some(interface) = waiting() else { return };
    let shared = shared(None);
    let mut reader = reader(interface, &shared);
    // No time for the kernel to hand over the last block; reading full ones has no limit.
    let closed = reader.close(Duration::ZERO);
    let report = report(reader, closed.err());
    balanced(&report);
    let ledger = &report.ledger;
    assert!(ledger.packets_received > IN_TWO_BLOCKS, "{ledger:?}");
    assert_eq!(report.failure.is_some(), ledger.source_unread > 0);
}

#[test]
fn packets_left_by_a_failed_run_are_unread() {
    let Some(interface) = waiting() else { return };
    let shared = shared(None);
    let failure = io::Error::other("no memory");
    let report = report(reader(interface, &shared), Some(failure));
    balanced(&report);
    assert_eq!(report.ledger.source_unread, PACKETS);
}

#[test]
fn packets_past_the_limit_are_counted_one_by_one() {
    let Some(interface) = waiting() else { return };
    let shared = shared(Some(100));
    let mut reader = reader(interface, &shared);
    reader.listen(&Stop::new(), |_| {}).unwrap();
    reader.close(CLOSING).unwrap();
    assert_eq!(reader.unread, PACKETS - 100);
    let report = report(reader, None);
    balanced(&report);
    assert_eq!(report.ledger.packets_received, 100);
}

#[test]
fn the_limit_covers_all_readers_and_a_blocked_reader_stops_progress() {
    let limits = Limits {
        duration: None,
        packets: Some(100),
    };
    let shared = Shared::new(limits, 2);
    assert_eq!((shared.take(60), shared.take(60)), (60, 40));
    assert!(shared.is_over());
    assert_eq!((shared.take(1), shared.progress().packets), (0, 100));
    let mut told = Vec::new();
    shared.count_round(0, 1);
    assert!(shared.all_made_a_round(&mut told));
    shared.count_round(0, 2);
    assert!(!shared.all_made_a_round(&mut told));
    shared.count_round(1, 3);
    assert!(shared.all_made_a_round(&mut told));
    shared.has_ended(1);
    for dropped in 2..4 {
        shared.count_round(0, dropped);
        assert!(shared.all_made_a_round(&mut told));
    }
    assert_eq!(shared.progress().dropped, 6);
}
