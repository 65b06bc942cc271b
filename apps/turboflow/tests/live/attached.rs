// SPDX-License-Identifier: Apache-2.0
//! The XDP engine on several interfaces, and its removal from one of them by another program.

use crate::kernel::{XDP, has_program};
use crate::link::{Ended, FAR, Link, NEAR};
use crate::support::{Folder, office};

/// A second pair on the link, without traffic of its own.
const SECOND: [&str; 2] = ["vc", "vd"];

fn two_pairs() -> Option<Link> {
    let link = Link::for_xdp()?;
    let [near, far] = SECOND;
    link.ip(&["link", "add", near, "type", "veth", "peer", "name", far]);
    link.shell("for f in /proc/sys/net/ipv6/conf/*/disable_ipv6; do echo 1 > $f; done");
    for end in SECOND {
        link.ip(&["link", "set", end, "up"]);
    }
    Some(link)
}

/// Sends this many packets of the sample into one end.
fn send(link: &Link, near: &str, packets: &str) {
    let mut replay = link.inside("tcpreplay");
    replay.args(["-q", "-i", near, "--pps", "10000", "--limit", packets]);
    assert!(replay.arg(office()).output().unwrap().status.success());
}

fn of_interface(ended: &Ended, name: &str, counter: &str) -> u64 {
    let interfaces = ended.ledger["interfaces"].as_array().unwrap();
    let found = interfaces.iter().find(|found| found["name"] == name);
    found.unwrap()[counter].as_u64().unwrap()
}

fn ended_early<'a>(ended: &'a Ended, name: &str) -> Option<&'a str> {
    let interfaces = ended.ledger["interfaces"].as_array().unwrap();
    let found = interfaces.iter().find(|found| found["name"] == name);
    found.unwrap()["ended_early"].as_str()
}

#[test]
fn one_engine_counts_each_of_several_interfaces() {
    let Some(link) = two_pairs() else { return };
    for table in ["per-cpu", "row-lock"] {
        let options = [&["-w", "live.csv", "--table", table], &XDP[..]].concat();
        let recording = link.record(&[FAR, SECOND[1]], &options);
        send(&link, NEAR, "100");
        send(&link, SECOND[0], "250");
        send(&link, NEAR, "7");
        let ended = recording.interrupt().balanced(0);
        assert_eq!(ended.count("packets_received"), 357);
        for (name, packets) in [(FAR, 107), (SECOND[1], 250)] {
            for counter in ["packets_seen", "packets_delivered"] {
                assert_eq!(of_interface(&ended, name, counter), packets, "{name}");
            }
            assert_eq!(of_interface(&ended, name, "packets_dropped"), 0);
            assert_eq!(ended_early(&ended, name), None);
        }
    }
}

/// All interfaces share one ring, so drops of the ring belong to no interface.
#[test]
fn drops_of_a_full_ring_belong_to_no_interface_and_name_a_remedy() {
    let Some(link) = two_pairs() else { return };
    let fixed = "-w live.csv --ring-size 64KiB --microflow-slots 1 --linger none";
    let options: Vec<&str> = fixed.split(' ').chain(XDP).collect();
    let recording = link.record(&[FAR, SECOND[1]], &options);
    // While the program is stopped, the ring fills up.
    recording.signal("STOP");
    for near in [NEAR, SECOND[0]] {
        send(&link, near, "13035");
    }
    recording.signal("CONT");
    let ended = recording.interrupt().balanced(1);
    assert_eq!(ended.count("source_seen"), 26_070);
    assert!(ended.count("source_dropped") > 1_000);
    for name in [FAR, SECOND[1]] {
        assert_eq!(of_interface(&ended, name, "packets_seen"), 13_035);
        assert_eq!(of_interface(&ended, name, "packets_dropped"), 0);
    }
    for option in ["--ring-size", "--microflow-slots", "--threads"] {
        assert!(ended.said.contains(option), "{}", ended.said);
    }
    let lost = ended
        .said
        .lines()
        .find(|line| line.contains("ring was full"));
    assert!(!lost.unwrap().contains("filter"), "{}", ended.said);
}

/// A BPF link protects the program from replacement. A privileged detach is still possible, and is
/// noticed.
#[test]
fn a_replaced_program_is_reported_and_other_interfaces_go_on() {
    let Some(link) = two_pairs() else { return };
    let options = [&["-w", "live.csv"], &XDP[..]].concat();
    let mut recording = link.record(&[FAR, SECOND[1]], &options);
    let mut off = link.inside("ip");
    let off = off.args(["link", "set", "dev", FAR, "xdp", "off"]).output();
    assert!(!off.unwrap().status.success() && has_program(&link));
    send(&link, NEAR, "100");
    let args = ["record", "-i", FAR, "-w", "other.csv", "--replace"];
    let args = [&args[..], &XDP, &["--ledger", "ledger.json"]].concat();
    let other = link.start(Folder::new(), &args, &[]);
    recording.wait_for("vb: the engine was detached, or replaced by another program");
    send(&link, NEAR, "50");
    send(&link, SECOND[0], "30");
    assert_eq!(other.interrupt().balanced(0).count("packets_received"), 50);
    // The engine does not attach itself again.
    send(&link, NEAR, "20");
    let ended = recording.interrupt().balanced(1);
    assert_eq!(of_interface(&ended, FAR, "packets_seen"), 100);
    assert_eq!(of_interface(&ended, SECOND[1], "packets_seen"), 30);
    assert_eq!(ended_early(&ended, FAR), Some("displaced"));
    assert_eq!(ended_early(&ended, SECOND[1]), None);
    assert_eq!(ended.said.matches("replaced by another program").count(), 1);
    assert!(
        ended
            .said
            .contains("the engine was detached during the run"),
        "{}",
        ended.said
    );
}
