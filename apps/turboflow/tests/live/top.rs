// SPDX-License-Identifier: Apache-2.0
//! `turboflow top -i`: an active flow shows its rate, and the totals are complete.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use turboflow_testing::is_missing_in_part;

use crate::link::{FAR, Link, NEAR, XDP_ENGINE};
use crate::support::{Folder, command, pcap_header, pcap_packet, udp_frame};

/// Packets of the one flow, within 6 s.
const PACKETS: u64 = 1_200;
/// IP bytes of each packet.
const BYTES: u64 = 46;

/// Starts the program, which prints screens, and returns once it listens.
fn watch(link: &Link, options: &[&str]) -> (Child, impl Iterator<Item = String> + use<>) {
    let program = command([""; 0]).get_program().to_os_string();
    let mut child = link
        .inside(program.to_str().unwrap())
        .args(["top", "-i", FAR, "--batch", "500", "--interval", "500ms"])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("listening on")));
    // Its standard error must be read, so that it does not block.
    std::thread::spawn(move || said.for_each(drop));
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines.map_while(Result::ok))
}

#[test]
fn a_long_flow_shows_its_rate_while_it_is_active() {
    let Some(link) = Link::new() else { return };
    for threads in ["1", "2", "1 --readers 2", "2 --readers 3", "1 --engine xdp"] {
        if threads.contains("xdp") && is_missing_in_part(&[XDP_ENGINE]) {
            continue;
        }
        let folder = Folder::new();
        let packets = (0..PACKETS).flat_map(|at| pcap_packet(1_000_000 + at, &udp_frame(9)));
        let flow = [pcap_header(1), packets.collect()].concat();
        let flow = folder.write("flow.pcap", flow);
        let options: Vec<_> = ["--threads"]
            .into_iter()
            .chain(threads.split(' '))
            .collect();
        let (mut child, lines) = watch(&link, &options);
        let mut sending = link.inside("tcpreplay");
        let mut sending = sending
            .args(["-q", "-i", NEAR, "--pps", "200", &flow])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let (mut rates_before_the_end, mut seen) = (0, 0);
        let total = format!("total 1,200 packets  {} bytes in flows", "55,200");
        assert_eq!(PACKETS * BYTES, 55_200);
        for line in lines {
            seen += 1;
            assert!(seen < 4_000, "the last packet never came");
            let words: Vec<&str> = line.split_whitespace().collect();
            if let ["192.0.2.1:9", "198.51.100.2:53", "udp", bits, ..] = words[..] {
                rates_before_the_end += u32::from(bits != "0");
            }
            if line.starts_with(&total) {
                break;
            }
        }
        assert!(sending.wait().unwrap().success());
        // A record exported only when the flow becomes idle would show no rate.
        assert!(
            rates_before_the_end >= 2,
            "{rates_before_the_end} with {threads} threads"
        );
        let interrupt = rustix::process::Signal::INT;
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, interrupt).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn health_shows_frames_without_a_flow_and_the_interface() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let mut frame = [0; 60];
    frame[12] = 0x08;
    frame[14] = 0x42;
    let frames = (0..50).flat_map(|at| pcap_packet(1_000_000 + at, &frame));
    let malformed = [pcap_header(1), frames.collect()].concat();
    let malformed = folder.write("malformed.pcap", malformed);
    let (mut child, mut lines) = watch(&link, &["--view", "health"]);
    assert!(link.replay(&malformed, &["--pps", "1000"]));
    let mut wait_for = |wanted: &dyn Fn(&str) -> bool| {
        let found = lines.by_ref().take(2_000).find(|line| wanted(line));
        found.expect("the health line is shown")
    };
    wait_for(&|line| line.contains("malformed: ") && line.contains(" 50  "));
    wait_for(&|line| line.contains("up, 50 seen, 0 dropped"));
    link.ip(&["link", "set", FAR, "down"]);
    wait_for(&|line| line.contains("down, 50 seen"));
    link.ip(&["link", "del", FAR]);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
