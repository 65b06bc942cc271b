// SPDX-License-Identifier: Apache-2.0
//! Filter expressions on files select the packets that tcpdump selects.

use std::process::Command;

use turboflow_testing::{Need, is_missing};

use crate::support::{Folder, libpcap, office, project, rows, turboflow};

const EXPRESSIONS: [&str; 16] = [
    "tcp port 443",
    "udp",
    "not tcp",
    "ip6",
    "arp",
    "icmp or icmp6",
    "vlan",
    "vlan and tcp",
    "greater 1000",
    "len <= 100 and ip",
    "tcp[tcpflags] & (tcp-syn|tcp-fin) != 0",
    "ip[6:2] & 0x1fff != 0",
    "portrange 5000-6000",
    "ether multicast",
    "udp port 4789 and udp[4:2] % 2 == 0",
    "net 192.0.2.0/24 and ip proto 47",
];

/// The number of packets that tcpdump selects; `None` if the test is skipped without tcpdump.
fn by_tcpdump(capture: &str, expression: &str) -> Option<u64> {
    if is_missing(&[Need::Tool("tcpdump")]) {
        return None;
    }
    let output = Command::new("tcpdump")
        .args(["-n", "-t", "-w", "-", "-r", capture, expression])
        .output()
        .unwrap();
    assert!(output.status.success(), "{expression}");
    let folder = Folder::new();
    let taken = folder.write("taken.pcap", output.stdout);
    Some(
        ledger(&["-r", &taken])["packets_received"]
            .as_u64()
            .unwrap(),
    )
}

fn ledger(arguments: &[&str]) -> serde_json::Value {
    let folder = Folder::new();
    let (output, ledger) = (folder.file("a.csv"), folder.file("l.json"));
    let fixed = ["record", "-q", "-w", &output, "--ledger", &ledger];
    turboflow(fixed.iter().chain(arguments)).exits(0);
    serde_json::from_str(&folder.read("l.json")).unwrap()
}

#[test]
fn filters_select_what_tcpdump_selects() {
    if is_missing(&[libpcap()]) {
        return;
    }
    let office = office();
    for expression in EXPRESSIONS {
        let Some(expected) = by_tcpdump(&office, expression) else {
            return;
        };
        // As one quoted argument after the file, as in tcpdump, and as words after `--`.
        let words: Vec<&str> = expression.split(' ').collect();
        for arguments in [
            vec!["-r", &office, expression],
            [&["-r", &office, "--"], &words[..]].concat(),
        ] {
            let ledger = ledger(&arguments);
            let filtered = ledger["packets_filtered"].as_u64().unwrap();
            assert_eq!(ledger["packets_received"], 13_035);
            assert_eq!(13_035 - filtered, expected, "{expression}");
            assert_eq!(ledger["filter"], expression);
        }
    }
}

#[test]
fn every_link_type_of_a_capture_has_its_filter() {
    if is_missing(&[libpcap()]) {
        return;
    }
    // tcpdump does not read a file with both Ethernet and raw IP.
    let links = project("samples/two-links.pcapng");
    let all = ledger(&["-r", &links]);
    let ip = ledger(&["-r", &links, "ip or ip6"]);
    assert_eq!(ip["packets_recorded"], all["packets_recorded"]);
    assert_eq!(ip["packets_filtered"], all["packets_non_ip"]);
    // Raw IP has no MAC addresses. libpcap refuses the filter, so none of its packets are selected.
    let ethernet = ledger(&["-r", &links, "not ether host 02:00:00:00:00:99"]);
    let taken = ethernet["packets_recorded"].as_u64().unwrap();
    assert!(taken > 0 && ethernet["packets_filtered"].as_u64().unwrap() > 0);
}

#[test]
fn names_of_files_may_begin_with_any_letter() {
    let folder = Folder::new();
    let copy = folder.write("été.pcap", std::fs::read(office()).unwrap());
    let both = ledger(&["-r", &office(), &copy]);
    assert_eq!(both["packets_received"], 2 * 13_035);
    turboflow(["record", "-r", &office(), "öffice.pcap"])
        .exits(2)
        .says(&["öffice.pcap"]);
}

/// A BSD loopback capture of UDP to port 53: IPv4, and IPv6 with the address family number of every
/// BSD.
fn bsd_loopback(link_type: u32, header: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let udp = [0xd4, 0x31, 0, 53, 0, 8, 0, 0];
    let ipv4 = [
        0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
    ];
    let mut ipv6 = [0; 40];
    (ipv6[0], ipv6[5], ipv6[6], ipv6[7]) = (0x60, 8, 17, 64);
    let mut capture = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link_type] {
        capture.extend(u32::to_le_bytes(word));
    }
    let packets: [(u32, &[u8]); 4] = [(2, &ipv4), (24, &ipv6), (28, &ipv6), (30, &ipv6)];
    for (second, (family, ip)) in (1..).zip(packets) {
        let frame = [&header(family), ip, &udp].concat();
        for word in [second, 0, frame.len() as u32, frame.len() as u32] {
            capture.extend(u32::to_le_bytes(word));
        }
        capture.extend(frame);
    }
    capture
}

#[test]
fn ipv6_of_every_bsd_is_ipv6() {
    if is_missing(&[libpcap()]) {
        return;
    }
    let folder = Folder::new();
    for capture in [
        folder.write("null.pcap", bsd_loopback(0, u32::to_le_bytes)),
        folder.write("loop.pcap", bsd_loopback(108, u32::to_be_bytes)),
    ] {
        for (expression, by_hand) in [
            ("ip6", 3),
            ("not ip6", 1),
            ("ip", 1),
            ("udp port 53", 4),
            ("ip6 and udp port 54", 0),
        ] {
            let ledger = ledger(&["-r", &capture, expression]);
            let taken = 4 - ledger["packets_filtered"].as_u64().unwrap();
            assert_eq!(taken, by_hand, "{capture} {expression}");
            if let Some(expected) = by_tcpdump(&capture, expression) {
                assert_eq!(taken, expected, "{capture} {expression}");
            }
        }
    }
}

/// The list of tunnels needs a `=`. After a space it is read as a filter.
#[test]
fn tunnels_in_place_of_a_filter_are_refused_with_a_hint() {
    for tunnels in ["gre", "geneve", "gre,vxlan"] {
        let words = ["record", "-r", &office(), "--decapsulate", tunnels];
        let mend = format!("write --decapsulate={tunnels}");
        let ran = turboflow(words).exits(2).says(&[&mend]);
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
        let words = ["plan", "-r", &office(), "--decapsulate", tunnels];
        turboflow(words).exits(2).says(&[&mend]);
    }
    let words = ["record", "-r", &office(), "--idle-timeout", "-5s"];
    turboflow(words)
        .exits(2)
        .says(&["invalid value '-5s' for '--idle-timeout <TIME>'"]);
}

/// As with `tcpdump -c`, packets that the filter leaves out do not count.
#[test]
fn a_limit_on_packets_counts_those_that_pass() {
    if is_missing(&[libpcap()]) {
        return;
    }
    let folder = Folder::new();
    let ledger = folder.file("l.json");
    let run = ["record", "-q", "-c", "100", "--ledger", &ledger, "-w"];
    let rest = [&folder.file("a.csv"), "-r", &office(), "tcp port 443"].map(str::to_owned);
    turboflow(run.into_iter().chain(rest.iter().map(String::as_str))).exits(0);
    let ledger: serde_json::Value = serde_json::from_str(&folder.read("l.json")).unwrap();
    assert_eq!(ledger["packets_recorded"], 100);
    assert!(ledger["packets_filtered"].as_u64().unwrap() > 100);
    assert_eq!(ledger["balanced"], true);
}

#[test]
fn tagged_packets_that_a_filter_leaves_out_are_said() {
    if is_missing(&[libpcap()]) {
        return;
    }
    let folder = Folder::new();
    let csv = folder.file("a.csv");
    let run = |filter: &str| turboflow(["record", "-r", &office(), "-w", &csv, filter]).exits(0);
    let ran = run("tcp port 443");
    let both = "(tcp port 443) or (vlan and (tcp port 443))";
    ran.says(&["with a VLAN tag", both]);
    let plain = rows(&folder.read("a.csv")).len();
    let ran = run(both);
    assert!(!ran.stderr.contains("VLAN tag"), "{}", ran.stderr);
    assert!(rows(&folder.read("a.csv")).len() > plain);
}
