// SPDX-License-Identifier: Apache-2.0
//! From an interface to a collector: a running collector gets every flow, and a missing one delays
//! nothing.

use std::net::{TcpListener, UdpSocket};
use std::process::{Command, Stdio};

use turboflow_testing::{Need, is_idle, is_missing, until};

use crate::exact::{NO_TIMEOUTS, equal, of_file};
use crate::link::{FAR, Link};
use crate::support::{Folder, office};

const OFFICE_PACKETS: &str = "13035";

fn replayed(link: &Link, url: &str) -> crate::link::Ended {
    let fixed = ["-w", "live.csv", "-w", url, "--packets", OFFICE_PACKETS];
    let options: Vec<&str> = fixed.iter().chain(&NO_TIMEOUTS).copied().collect();
    let recording = link.record(&[FAR], &options);
    assert!(link.replay(&office(), &["--pps", "10000"]));
    recording.end()
}

/// The number after a word in the output of `nfdump -I`.
fn number(statistics: &str, word: &str) -> u64 {
    let line = statistics.lines().find_map(|line| line.strip_prefix(word));
    line.unwrap_or_else(|| panic!("no {word} in {statistics}"))
        .trim()
        .parse()
        .unwrap()
}

/// Octets in the receive buffer of each UDP socket on the collectors' port.
fn waiting(link: &Link) -> Vec<String> {
    let mut ss = link.inside("ss");
    let output = ss.args(["-Hlun", "sport = 4739"]).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let waiting = lines
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    waiting.map(str::to_owned).collect()
}

#[test]
fn a_collector_gets_every_flow_of_an_interface() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    if is_missing(&[Need::Tool("nfcapd")]) {
        return;
    }
    let mut nfcapd = link.inside("nfcapd");
    nfcapd.args(["-w", folder.path().to_str().unwrap(), "-b", "127.0.0.1"]);
    nfcapd.args(["-p", "4739", "-t", "3600", "-B", "4194304"]);
    nfcapd.stdout(Stdio::null()).stderr(Stdio::null());
    let mut nfcapd = nfcapd.spawn().unwrap();
    until("nfcapd listens", || !waiting(&link).is_empty());
    let ended = replayed(&link, "ipfix+udp://127.0.0.1:4739").balanced(0);
    // Everything sent is in the collector's socket. On exit it writes what it has processed.
    until("nfcapd has handled it", || {
        waiting(&link) == ["0"] && is_idle(nfcapd.id())
    });
    let stop = format!("kill -TERM {}", nfcapd.id());
    assert!(
        Command::new("sh")
            .args(["-c", &stop])
            .status()
            .unwrap()
            .success()
    );
    nfcapd.wait().unwrap();
    let mut nfdump = Command::new("nfdump");
    let output = nfdump
        .arg("-R")
        .arg(folder.path())
        .arg("-I")
        .output()
        .unwrap();
    let statistics = String::from_utf8(output.stdout).unwrap();
    let (_, rows) = of_file(&office(), &[]);
    equal(&ended, &rows);
    assert_eq!(number(&statistics, "Flows:"), rows.len() as u64);
    assert_eq!(
        number(&statistics, "Packets:"),
        ended.count("packets_recorded")
    );
    assert_eq!(number(&statistics, "Bytes:"), ended.count("bytes_recorded"));
    assert_eq!(number(&statistics, "Sequence failures:"), 0);
}

/// The route to the collector is missing when the first templates are due. They are sent again soon
/// after the route is back, and both changes are reported.
#[test]
fn unsent_templates_are_sent_again_when_the_route_is_back() {
    let Some(link) = Link::new() else { return };
    let collector = link.open(|| UdpSocket::bind("0.0.0.0:4739").unwrap());
    collector.set_nonblocking(true).unwrap();
    let options = ["-w", "ipfix+udp://192.0.2.9", "--idle-timeout", "200ms"];
    let address = |verb: &str| link.ip(&["addr", verb, "192.0.2.9/32", "dev", "lo"]);
    address("add");
    let mut recording = link.record(&[FAR], &options);
    let some = ["--pps", "10000", "--limit", "100"];
    address("del");
    assert!(link.replay(&office(), &some));
    recording.wait_for("192.0.2.9:4739: Network is unreachable");
    address("add");
    until("templates come", || {
        assert!(link.replay(&office(), &some));
        let (mut message, mut has_templates) = ([0; 1 << 16], false);
        while collector.recv(&mut message).is_ok() {
            has_templates |= message[16..18] == [0, 2];
        }
        has_templates
    });
    recording.wait_for("192.0.2.9:4739 accepts records again");
    // The unsent messages may or may not contain records.
    assert_eq!(recording.interrupt().ledger["balanced"], true);
}

#[test]
fn a_missing_collector_stalls_nothing() {
    let Some(link) = Link::new() else { return };
    let ended = replayed(&link, "ipfix+tcp://127.0.0.1:9").balanced(1);
    assert_eq!(ended.count("source_dropped"), 0);
    assert!(ended.said.contains("count as lost"), "{}", ended.said);
    equal(&ended, &of_file(&office(), &[]).1);
}

#[test]
fn a_collector_that_stalls_in_the_handshake_stalls_nothing_else() {
    let Some(link) = Link::new() else { return };
    let folder = Folder::new();
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ca",
    ]);
    openssl.args(["-keyout", "key.pem", "-out", "ca.pem"]);
    if is_missing(&[Need::Tool("openssl")]) {
        return;
    }
    assert!(
        openssl
            .current_dir(folder.path())
            .output()
            .unwrap()
            .status
            .success()
    );
    // A server that accepts connections but never sends a byte.
    let _silent = link.open(|| TcpListener::bind("127.0.0.1:4740").unwrap());
    let authority = folder.file("ca.pem");
    let url = "ipfix+tls://127.0.0.1";
    let fixed = ["-w", "live.csv", "-w", url, "--tls-ca", &authority];
    let options: Vec<&str> = fixed.iter().chain(&NO_TIMEOUTS).copied().collect();
    let recording = link.record(&[FAR], &options);
    assert!(link.replay(&office(), &["--pps", "10000"]));
    let ended = recording.interrupt().balanced(1);
    assert_eq!(ended.count("source_dropped"), 0);
    assert!(ended.said.contains("does not answer"), "{}", ended.said);
    equal(&ended, &of_file(&office(), &[]).1);
}
