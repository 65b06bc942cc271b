// SPDX-License-Identifier: Apache-2.0
//! `turboflow generate -i`: everything sent arrives, and nothing arrives too early.

use std::process::Output;

use crate::link::{FAR, Link, NEAR};
use crate::support::command;

/// Sends generated packets from the near end.
fn generate(link: &Link, options: &[&str]) -> Output {
    let program = command([""; 0]).get_program().to_os_string();
    let mut command = link.inside(program.to_str().unwrap());
    command.args(["generate", "-i", NEAR]).args(options);
    command.output().unwrap()
}

#[test]
fn everything_sent_arrives() {
    let Some(link) = Link::new() else { return };
    for traffic in [
        &[
            "--flows",
            "500",
            "--ipv6-share",
            "0.5",
            "--vlan-share",
            "0.5",
        ][..],
        &["--workload", "internet"],
        &["--workload", "dc-aggregation"],
    ] {
        let recording = link.record(&[FAR], &["--packets", "20k"]);
        let speed = ["--packets", "20k", "--speed", "max"];
        let sent = generate(&link, &[&speed, traffic].concat());
        let said = String::from_utf8(sent.stderr).unwrap();
        assert_eq!(sent.status.code(), Some(0), "{said}");
        assert!(said.contains("at full speed"), "{said}");
        let ledger = recording.end().balanced(0).ledger;
        assert_eq!(ledger["packets_recorded"], 20_000);
    }
}

#[test]
fn no_packet_is_sent_before_its_time() {
    let Some(link) = Link::new() else { return };
    let rate = ["--packets-per-second", "2000", "--packets", "501"];
    for (speed, least_seconds) in [("1", 0.25), ("5", 0.05)] {
        let sent = generate(&link, &[&rate[..], &["--speed", speed]].concat());
        let said = String::from_utf8(sent.stderr).unwrap();
        let seconds = said
            .split("sent in ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let seconds: f64 = seconds.unwrap().parse().unwrap();
        assert!(seconds >= least_seconds, "{said}");
        assert!(said.contains("501 packets"), "{said}");
    }
}

#[test]
fn unsendable_frames_are_reported() {
    let Some(link) = Link::new() else { return };
    link.ip(&["link", "set", NEAR, "mtu", "1000"]);
    for (options, words) in [
        (
            &["--size", "1500"][..],
            "a frame of 1500 bytes is too long for interface va",
        ),
        (&["--snap-length", "64"], "cannot be used with"),
        (&["--speed", "0"], "write `max`, or a number above 0"),
    ] {
        let sent = generate(&link, options);
        let said = String::from_utf8(sent.stderr).unwrap();
        assert_eq!(sent.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
    link.ip(&["link", "set", NEAR, "down"]);
    let sent = generate(&link, &["--packets", "10"]);
    let said = String::from_utf8(sent.stderr).unwrap();
    assert_eq!(sent.status.code(), Some(2), "{said}");
    assert!(said.contains("interface va: nothing can be sent"), "{said}");
}
