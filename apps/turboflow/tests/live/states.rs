// SPDX-License-Identifier: Apache-2.0
//! Interfaces that go down, come up or disappear during a capture; and signals.

use turboflow_testing::is_missing_in_part;

use crate::link::{FAR, Link, NEAR, XDP_ENGINE};
use crate::support::office;

/// The options for each way to read an interface.
const WAYS: &[&[&str]] = &[
    &["--readers", "1"],
    &["--readers", "3"],
    &["--engine", "xdp"],
];

/// The ways that this build supports.
fn ways() -> impl Iterator<Item = &'static [&'static str]> {
    let is_known = |way: &&&[&str]| !way.contains(&"xdp") || !is_missing_in_part(&[XDP_ENGINE]);
    WAYS.iter().filter(is_known).copied()
}

const HUNDRED: [&str; 4] = ["--pps", "10000", "--limit", "100"];

#[test]
fn down_and_up_again_is_survived() {
    let Some(link) = Link::new() else { return };
    for way in ways() {
        survives(&link, way);
    }
}

fn survives(link: &Link, way: &[&str]) {
    let options = ["-w", "live.csv", "--packets", "200"];
    let mut recording = link.record(&[FAR], &[&options[..], way].concat());
    assert!(link.replay(&office(), &HUNDRED));
    link.ip(&["link", "set", FAR, "down"]);
    recording.wait_for("vb is down");
    link.ip(&["link", "set", FAR, "up"]);
    recording.wait_for("vb is up");
    assert!(link.replay(&office(), &HUNDRED));
    let ended = recording.end().balanced(0);
    assert_eq!(ended.count("packets_received"), 200);
}

#[test]
fn a_renamed_interface_is_still_metered() {
    let Some(link) = Link::new() else { return };
    let mut recording = link.record(&[FAR], &["-w", "live.csv", "--packets", "200"]);
    assert!(link.replay(&office(), &HUNDRED));
    link.ip(&["link", "set", FAR, "down"]);
    recording.wait_for("vb is down");
    // Another interface that takes over the old name must not be confused with it.
    link.ip(&["link", "set", FAR, "name", "vc"]);
    link.ip(&["link", "add", FAR, "type", "veth", "peer", "name", "vd"]);
    link.ip(&["link", "set", "vc", "up"]);
    recording.wait_for("vb is up");
    assert!(link.replay(&office(), &HUNDRED));
    let ended = recording.end().balanced(0);
    assert_eq!(ended.count("packets_received"), 200);
    assert_eq!(ended.ledger["interfaces"][0]["name"], FAR);
}

#[test]
fn an_interface_that_is_down_at_the_start_is_waited_for() {
    let Some(link) = Link::new() else { return };
    for way in ways() {
        link.ip(&["link", "set", FAR, "down"]);
        let options = ["-w", "live.csv", "--packets", "100"];
        let mut recording = link.record(&[FAR], &[&options[..], way].concat());
        if !recording.said().contains("vb is down") {
            recording.wait_for("vb is down");
        }
        link.ip(&["link", "set", FAR, "up"]);
        recording.wait_for("vb is up");
        assert!(link.replay(&office(), &HUNDRED));
        let ended = recording.end().balanced(0);
        assert_eq!(ended.count("packets_received"), 100);
    }
}

#[test]
fn removal_ends_the_run_and_loses_nothing() {
    for readers in ["1", "2"] {
        let Some(link) = Link::new() else { return };
        let recording = link.record(&[FAR], &["-w", "live.csv", "--readers", readers]);
        assert!(link.replay(&office(), &HUNDRED));
        link.ip(&["link", "del", NEAR]);
        let ended = recording.end().balanced(1);
        assert!(ended.said.contains("vb was removed"), "{}", ended.said);
        assert_eq!(ended.count("packets_received"), 100);
    }
}

#[test]
fn sigterm_and_a_time_limit_end_a_run_cleanly() {
    let Some(link) = Link::new() else { return };
    for readers in ["1", "3"] {
        let recording = link.record(&[FAR], &["-w", "live.csv", "--readers", readers]);
        assert!(link.replay(&office(), &HUNDRED));
        recording.signal("TERM");
        let ended = recording.end().balanced(0);
        assert_eq!(ended.count("packets_received"), 100);
    }
    let ended = link
        .record(&[FAR], &["-w", "live.csv", "--duration", "100ms"])
        .end();
    assert_eq!(ended.balanced(0).count("packets_received"), 0);
}
