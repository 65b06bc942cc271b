// SPDX-License-Identifier: Apache-2.0
//! NetGauze, a library that decodes IPFIX and NetFlow v9. The program in `netgauze/` prints what it
//! decodes.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::flow::{Flow, Got, as_shown, captures, equal, send};
use crate::sink::Sink;
use turboflow_testing::{Need, is_missing};

use crate::support::{Folder, project};

/// Path of the decoder; `None` if the test is skipped without it.
fn program() -> Option<String> {
    let program = project("target/tools/netgauze-flows");
    (!is_missing(&[Need::Tool(&program)])).then_some(program)
}

/// The flows and errors that the decoder finds in messages.
fn decoded(program: &str, messages: &[Vec<u8>]) -> Got {
    let mut decoder = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = decoder.stdin.take().unwrap();
    let framed: Vec<u8> = messages
        .iter()
        .flat_map(|message| [&(message.len() as u32).to_be_bytes(), message.as_slice()].concat())
        .collect();
    let feeding = std::thread::spawn(move || input.write_all(&framed).unwrap());
    let output = decoder.wait_with_output().unwrap();
    feeding.join().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = String::from_utf8(output.stdout).unwrap();
    got(&shown, messages.first().is_some_and(|first| first[1] == 10))
}

/// Parses the decoder's output into flows and errors. A gap in the sequence numbers counts as an
/// error. IPFIX numbers data records, NetFlow v9 numbers messages.
fn got(shown: &str, counts_records: bool) -> Got {
    let (mut flows, mut complaints, mut expected) = (Vec::new(), Vec::new(), None);
    for line in shown.lines() {
        let (kind, rest) = line.split_once(',').unwrap();
        match kind {
            "flow" => flows.push(flow(rest)),
            "message" => {
                let (sequence, records) = rest.split_once(',').unwrap();
                let sequence: u32 = sequence.parse().unwrap();
                if expected.is_some_and(|expected| expected != sequence) {
                    complaints.push(format!("sequence {sequence}, not {expected:?}"));
                }
                let step = if counts_records {
                    records.parse().unwrap()
                } else {
                    1
                };
                expected = Some(sequence.wrapping_add(step));
            }
            _ => complaints.push(line.to_owned()),
        }
    }
    flows.sort();
    Got { flows, complaints }
}

fn flow(fields: &str) -> Flow {
    let fields: Vec<_> = fields.split(',').collect();
    let number = |index: usize| fields[index].parse::<u64>().unwrap();
    Flow {
        addresses: [0, 1].map(|index| fields[index].parse().unwrap()),
        ports: [2, 3].map(number),
        protocol: number(4),
        packets: number(5),
        octets: number(6),
        first_ms: number(7),
        last_ms: number(8),
        tcp_flags: number(9),
        end_reason: number(10),
    }
}

/// Splits consecutive IPFIX messages by the lengths in their headers.
fn cut(mut stream: &[u8]) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    while !stream.is_empty() {
        let length = usize::from(u16::from_be_bytes([stream[2], stream[3]]));
        let (message, rest) = stream.split_at(length);
        messages.push(message.to_vec());
        stream = rest;
    }
    messages
}

#[track_caller]
fn is_as_sent(got: &Got, sent: Vec<Flow>, what: &str) {
    assert!(got.complaints.is_empty(), "{what}: {:#?}", got.complaints);
    // NetGauze has only eight TCP flags.
    equal(&got.flows, &as_shown(sent, true, true), what);
}

#[test]
fn netgauze_decodes_every_flow_over_udp() {
    let Some(program) = program() else { return };
    for capture in captures() {
        for scheme in ["ipfix+udp", "netflow9+udp"] {
            let sink = Sink::udp();
            let url = format!("{scheme}://127.0.0.1:{}", sink.port);
            let sent = send(&capture, &url, &["--export-rate", "20k"]);
            let got = decoded(&program, &sink.end());
            is_as_sent(&got, sent, &format!("{scheme} of {capture}"));
        }
    }
}

#[test]
fn netgauze_decodes_every_flow_over_tcp() {
    let Some(program) = program() else { return };
    for capture in captures() {
        let sink = Sink::tcp();
        let url = format!("ipfix+tcp://127.0.0.1:{}", sink.port);
        let sent = send(&capture, &url, &[]);
        let got = decoded(&program, &cut(&sink.end().concat()));
        is_as_sent(&got, sent, &capture);
    }
}

#[test]
fn netgauze_reads_ipfix_files() {
    let Some(program) = program() else { return };
    for capture in captures() {
        let folder = Folder::new();
        let file = folder.file("flows.ipfix");
        let sent = send(&capture, &file, &[]);
        let messages = cut(&std::fs::read(&file).unwrap());
        is_as_sent(&decoded(&program, &messages), sent, &capture);
    }
}
