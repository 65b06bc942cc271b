// SPDX-License-Identifier: Apache-2.0
//! Captures that are still being written into a pipe.

use std::io::Write;
use std::net::UdpSocket;
use std::process::{Child, Stdio};

use turboflow_testing::{PATIENCE, Talk};

use crate::support::{command, pcap_header, pcap_packet, udp_frame};

/// Long ago, in seconds since 1970: over a pipe, the packets set the clock.
const START_S: u64 = 1_500_000_000;

/// Starts a run that reads its standard input.
fn reading(args: &[&str]) -> Child {
    let mut run = command(["record", "-q", "-r", "-"]);
    run.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    run.spawn().unwrap()
}

/// Writes one packet for each of some flows, and leaves the pipe open.
fn burst(run: &mut Child, at_s: u64, flows: std::ops::Range<u16>) {
    let pipe = run.stdin.as_mut().unwrap();
    for flow in flows {
        let packet = pcap_packet((START_S + at_s) * 1_000_000, &udp_frame(flow));
        pipe.write_all(&packet).unwrap();
    }
    pipe.flush().unwrap();
}

/// The last packet sets the clock, whatever its date, and the pipe stays open.
#[test]
fn records_leave_a_pipe_once_they_are_due() {
    let mut run = reading(&["-w", "-", "--format", "csv"]);
    let header = pcap_header(1);
    run.stdin.as_mut().unwrap().write_all(&header).unwrap();
    let mut rows = Talk::of(run.stdout.take().unwrap());
    burst(&mut run, 0, 0..5);
    assert!(rows.line().unwrap().starts_with("src_addr"));
    for minute in 1..4_u16 {
        burst(&mut run, u64::from(minute) * 60, minute * 5..minute * 5 + 5);
        let mut ports: Vec<u16> = (0..5)
            .map(|_| {
                rows.line()
                    .unwrap()
                    .split(',')
                    .nth(2)
                    .unwrap()
                    .parse()
                    .unwrap()
            })
            .collect();
        ports.sort_unstable();
        let before: Vec<_> = ((minute - 1) * 5..minute * 5).collect();
        assert_eq!(ports, before);
    }
    drop(run.stdin.take());
    assert!(run.wait().unwrap().success());
}

#[test]
fn records_of_a_pipe_reach_a_collector_once_they_are_due() {
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    collector.set_read_timeout(Some(PATIENCE)).unwrap();
    let url = format!("netflow5+udp://{}", collector.local_addr().unwrap());
    let mut run = reading(&["-w", &url]);
    run.stdin
        .as_mut()
        .unwrap()
        .write_all(&pcap_header(1))
        .unwrap();
    burst(&mut run, 0, 0..5);
    burst(&mut run, 60, 5..6);
    let (mut message, mut records) = ([0; 2_000], 0);
    while records < 5 {
        collector.recv(&mut message).unwrap();
        records += u16::from_be_bytes([message[2], message[3]]);
    }
    assert_eq!(records, 5);
    drop(run.stdin.take());
    assert!(run.wait().unwrap().success());
}
