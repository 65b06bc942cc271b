// SPDX-License-Identifier: Apache-2.0
//! The program that meters behind the queue records what packets met there.

use crate::lane::{
    FLAG_ALL, FLAG_ODD, KIND_SETTINGS, KIND_SWEEP, LANE_BYTES, OUTER_BYTES, REPORT_BYTES,
};
use crate::switch::{CPU_PORT, Switch};
use crate::{PAPER_EIGHT, QUEUE};

const SESSION: u128 = 101;
const PORT: u16 = 6;
const NEIGHBOUR: u16 = 7;

/// A sweep of a slot listed in the cell of the frames below. It sweeps records of any cell.
fn sweep() -> Vec<u8> {
    let mut bytes = vec![0; 12];
    bytes.extend([0x88, 0xb6, KIND_SWEEP, FLAG_ALL | FLAG_ODD]);
    bytes.resize(OUTER_BYTES + LANE_BYTES, 0);
    bytes
}

/// A switch that meters.
fn switch(program: &str) -> Switch {
    let mut switch = Switch::new(program);
    switch.mirror_to_cpu(SESSION);
    let mut settings = vec![0; 12];
    settings.extend([0x88, 0xb6, KIND_SETTINGS]);
    settings.resize(OUTER_BYTES + LANE_BYTES + 31, 0);
    settings.push(1);
    let [(CPU_PORT, _)] = switch.receive(CPU_PORT, &settings)[..] else {
        panic!("settings are answered");
    };
    switch
}

/// A UDP packet of 28 bytes with this source port.
pub(crate) fn udp(source_port: u16) -> Vec<u8> {
    let ip = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
    let addresses = [1, 1, 1, 1, 2, 2, 2, 2];
    let ports = [source_port, 2, 8, 0].map(u16::to_be_bytes);
    [&[0; 12][..], &[8, 0], &ip, &addresses, ports.as_flattened()].concat()
}

/// A word of a record.
fn word(report: &[u8], at: usize) -> u64 {
    let words = &report[OUTER_BYTES + REPORT_BYTES..];
    u64::from_be_bytes(words[8 * at..8 * at + 8].try_into().unwrap())
}

#[test]
fn a_record_has_the_longest_queue_and_the_longest_wait() {
    let mut switch = switch(QUEUE);
    let frame = udp(1);
    for (now_us, depth, waits_us) in [(10, 3, 100), (20, 17, 250), (30, 9, 300), (340, 0, 1)] {
        switch.now_us = now_us;
        switch.queue = (depth, waits_us);
        // The frame is forwarded, and nothing else leaves.
        assert_eq!(switch.receive(PORT, &frame), [(NEIGHBOUR, frame.clone())]);
    }
    switch.queue = (99, 9_999);
    let swept = switch.receive(CPU_PORT, &sweep());
    let [(CPU_PORT, report)] = swept.as_slice() else {
        panic!("{swept:?}");
    };
    let [packets, bytes, first_ns, last_ns] = [5, 6, 7, 8].map(|at| word(report, at));
    assert_eq!((packets, bytes), (4, 4 * 28));
    // The times at which the packets left.
    assert_eq!((first_ns, last_ns), (110_000, 341_000));
    let [depth, latency_ns] = [15, 16].map(|at| word(report, at));
    assert_eq!((depth, latency_ns), (17, 300_000));
}

/// The paper's eight features, table 9.
#[test]
fn a_record_has_the_longest_time_between_packets() {
    let mut switch = switch(PAPER_EIGHT);
    let frame = udp(1);
    for (now_us, depth) in [(10, 3), (250, 17), (300, 9), (310, 0)] {
        switch.now_us = now_us;
        switch.queue = (depth, 5);
        switch.receive(PORT, &frame);
    }
    let swept = switch.receive(CPU_PORT, &sweep());
    let [(CPU_PORT, report)] = swept.as_slice() else {
        panic!("{swept:?}");
    };
    let [packets, length, sum_depth, max_depth, gap_ns] =
        [5, 10, 11, 12, 13].map(|at| word(report, at));
    assert_eq!((packets, length), (4, 28));
    assert_eq!((sum_depth, max_depth, gap_ns), (29, 17, 240_000));
}

/// Frames that the parser does not understand are forwarded, and also handed up.
#[test]
fn a_frame_is_handed_up_behind_the_queue() {
    let mut switch = switch(QUEUE);
    let frame = [&[0; 12][..], &[0x88, 0x47], &[5; 40]].concat();
    let [(NEIGHBOUR, passed_on), (CPU_PORT, report)] = &switch.receive(PORT, &frame)[..] else {
        panic!("a frame and its report leave");
    };
    assert_eq!(passed_on, &frame);
    assert_eq!(report[14 + 16..], frame);
}
