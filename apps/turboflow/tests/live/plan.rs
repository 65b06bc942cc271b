// SPDX-License-Identifier: Apache-2.0
//! `turboflow plan -i`: the answer for an interface equals the answer for the same packets in a
//! file.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::link::{FAR, Link};
use crate::support::{Folder, command, pcap_header, pcap_packet, turboflow, udp_frame};

/// Packets, of a hundred interleaved flows.
const PACKETS: u16 = 3_000;

#[test]
fn an_interface_is_measured_like_a_file() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let packets = (0..PACKETS).flat_map(|at| {
        pcap_packet(
            1_000_000 + u64::from(at) * 100,
            &udp_frame(1_000 + at % 100),
        )
    });
    let capture = [pcap_header(1), packets.collect()].concat();
    let capture = folder.write("flows.pcap", capture);
    let program = command([""; 0]).get_program().to_os_string();
    let mut child = link
        .inside(program.to_str().unwrap())
        .args(["plan", "-i", FAR, "--for", "10m", "--json", "udp port 53"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("listening on")));
    std::thread::spawn(move || said.for_each(drop));
    assert!(link.replay(&capture, &["--topspeed"]));
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let mut live = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut live).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{live}");
    let live: serde_json::Value = serde_json::from_str(&live).unwrap();
    let file = turboflow(["plan", "-r", &capture, "--json"]).exits(0);
    let file: serde_json::Value = serde_json::from_str(&file.stdout).unwrap();
    assert_eq!(live["source"]["packets"], PACKETS);
    assert_eq!(live["traffic"]["active_flows"], 100.0);
    let measured = |plan: &serde_json::Value| {
        let tables = plan["tables"].as_array().unwrap().iter();
        tables
            .map(|row| row["measured_packets_per_microflow"].as_f64().unwrap())
            .collect::<Vec<_>>()
    };
    // Times differ, but hashes do not.
    for (live, file) in measured(&live).into_iter().zip(measured(&file)) {
        assert!((live / file - 1.0).abs() < 1e-9, "{live} and {file}");
    }
}
