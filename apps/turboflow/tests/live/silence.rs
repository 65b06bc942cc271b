// SPDX-License-Identifier: Apache-2.0
//! Idle flows expire without further packets, on a silent link and on a link with only frames that
//! are not packets. `clock.rs` tests the exact time.

use std::process::Stdio;

use crate::link::{FAR, Link, NEAR, Recording};
use crate::support::{Folder, office, pcap_header, pcap_packet};

pub(crate) const PACKETS: u64 = 100;
/// Non-IP frames among the sent ones.
pub(crate) const PACKETS_NON_IP: u64 = 6;

/// Sends the first packets of the sample, and waits for their records while nothing else is sent.
pub(crate) fn flows_leave(link: &Link, recording: &mut Recording) {
    let header = recording.stdout.line().unwrap();
    let at = |name: &str| header.split(',').position(|column| column == name).unwrap();
    let limit = PACKETS.to_string();
    assert!(link.replay(&office(), &["--pps", "10000", "--limit", &limit]));
    let mut packets = 0;
    while packets < PACKETS - PACKETS_NON_IP {
        let line = recording.stdout.line().unwrap();
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells[at("end_reason")], "1", "{line}");
        packets += cells[at("packets")].parse::<u64>().unwrap();
    }
}

pub(crate) fn options(threads: &str) -> Vec<&str> {
    let fixed = "-w - --format csv --idle-timeout 1s --linger none --threads";
    fixed.split(' ').chain(threads.split(' ')).collect()
}

#[test]
fn flows_expire_on_a_silent_link() {
    let Some(link) = Link::new() else { return };
    for threads in ["1", "2", "1 --readers 2", "2 --readers 3"] {
        let mut recording = link.record(&[FAR], &options(threads));
        flows_leave(&link, &mut recording);
        let ended = recording.interrupt().balanced(0);
        assert_eq!(ended.count("packets_received"), PACKETS);
        assert_eq!(ended.count("packets_recorded"), PACKETS - PACKETS_NON_IP);
    }
}

#[test]
fn flows_expire_under_ten_thousand_malformed_frames_a_second() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    // IPv4 by its ethertype and version, with a header length of 8 bytes.
    let mut frame = [0; 60];
    frame[12] = 0x08;
    frame[14] = 0x42;
    let frames = (0..100).flat_map(|_| pcap_packet(1, &frame));
    let malformed = folder.write(
        "malformed.pcap",
        [pcap_header(1), frames.collect()].concat(),
    );
    let mut recording = link.record(&[FAR], &options("1"));
    let mut flood = link.inside("tcpreplay");
    flood.args([
        "-q", "-i", NEAR, "--pps", "10000", "--loop", "0", &malformed,
    ]);
    let mut flood = flood
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    flows_leave(&link, &mut recording);
    flood.kill().unwrap();
    flood.wait().unwrap();
    let ended = recording.interrupt().balanced(0);
    assert!(ended.count("packets_malformed") > 1_000);
    assert_eq!(ended.count("packets_recorded"), PACKETS - PACKETS_NON_IP);
}
