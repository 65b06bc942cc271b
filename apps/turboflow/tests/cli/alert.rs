// SPDX-License-Identifier: Apache-2.0
//! `turboflow alert`: the rules that ship with it, on captures with and without what they look for;
//! and the receivers of alerts.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::thread;

use turboflow_testing::{Need, captures_folder, is_missing};

use crate::support::{Folder, office, pcap_header, pcap_packet, project, turboflow};

/// Link type of raw IP.
const RAW: u32 = 101;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
const SCANNER: [u8; 4] = [203, 0, 113, 9];

/// The captured headers of a TCP packet whose IP header states this length.
pub(crate) fn tcp(from: [u8; 4], to: [u8; 4], ports: [u16; 2], flags: u8, length: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 6, 0, 0]);
    packet.extend(from);
    packet.extend(to);
    packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    packet.extend([0; 8]);
    packet.extend([0x50, flags, 0, 0, 0, 0, 0, 0]);
    packet
}

/// Flow records of packets that are a millisecond apart, starting at the given second.
pub(crate) fn records(folder: &Folder, name: &str, second: u64, packets: &[Vec<u8>]) -> String {
    recorded(folder, name, second, packets, &[])
}

fn recorded(
    folder: &Folder,
    name: &str,
    second: u64,
    packets: &[Vec<u8>],
    options: &[&str],
) -> String {
    let mut capture = pcap_header(RAW);
    for (number, packet) in packets.iter().enumerate() {
        capture.extend(pcap_packet(
            second * 1_000_000 + number as u64 * 1_000,
            packet,
        ));
    }
    let capture = folder.write(&format!("{name}.pcap"), capture);
    let file = folder.file(&format!("{name}.parquet"));
    let args = ["record", "-q", "-r", &capture, "-w", &file];
    turboflow(args.iter().chain(options)).exits(0);
    file
}

pub(crate) fn shipped() -> String {
    project("contrib/alerts/rules.toml")
}

fn alerts(args: &[&str]) -> Vec<serde_json::Value> {
    let rules = shipped();
    let ran = turboflow(["alert", "--rules", &rules].iter().chain(args)).exits(0);
    let lines = ran.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// A port scan from changing source ports, and the refusals.
pub(crate) fn scan(ports: u16) -> Vec<Vec<u8>> {
    let target = [192, 0, 2, 1];
    let asked = |port| tcp(SCANNER, target, [40_000 + port, port], SYN, 40);
    let refused = |port| tcp(target, SCANNER, [port, 40_000 + port], RST | ACK, 40);
    (1..=ports)
        .flat_map(|port| [asked(port), refused(port)])
        .collect()
}

#[test]
fn a_port_scan_is_one_alert() {
    let folder = Folder::new();
    let found = alerts(&[&records(&folder, "scan", 1_700_000_000, &scan(150))]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["rule"], "port-scan");
    assert_eq!(found[0]["value"], 150);
    assert_eq!(found[0]["labels"]["src_addr"], "203.0.113.9");
    assert_eq!(found[0]["labels"]["dst_addr"], "192.0.2.1");
    assert_eq!(
        found[0]["summary"],
        "203.0.113.9 asked for 150 ports of 192.0.2.1 within five minutes"
    );
    // Exactly at the limit there is no alert.
    let few = records(&folder, "few", 1_700_000_000, &scan(100));
    assert_eq!(alerts(&[&few]), Vec::<serde_json::Value>::new());
}

#[test]
fn a_syn_flood_is_an_alert_of_its_target() {
    let folder = Folder::new();
    let from = |number: u16| {
        let [high, low] = number.to_be_bytes();
        tcp([198, 18, high, low], [192, 0, 2, 1], [40_000, 80], SYN, 40)
    };
    let flood: Vec<_> = (0..1_500).map(from).collect();
    let found = alerts(&[&records(&folder, "flood", 1_700_000_000, &flood)]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["rule"], "syn-flood");
    assert_eq!(found[0]["severity"], "critical");
    assert_eq!(found[0]["value"], 1_500);
    assert_eq!(found[0]["labels"]["dst_port"], "80");
    // Answered connections are no flood.
    let used: Vec<_> = (0..1_500)
        .map(|number: u16| {
            let [high, low] = number.to_be_bytes();
            tcp(
                [198, 18, high, low],
                [192, 0, 2, 1],
                [40_000, 80],
                SYN | ACK,
                40,
            )
        })
        .collect();
    let used = records(&folder, "used", 1_700_000_000, &used);
    assert_eq!(alerts(&[&used]), Vec::<serde_json::Value>::new());
}

#[test]
fn a_scan_of_hosts_is_one_alert() {
    let folder = Folder::new();
    // One port of each host, and every host refuses.
    let scan = |hosts: u8| -> Vec<_> {
        let asked = |host| tcp(SCANNER, [192, 0, 2, host], [40_000, 22], SYN, 40);
        let refused = |host| tcp([192, 0, 2, host], SCANNER, [22, 40_000], RST | ACK, 40);
        (1..=hosts)
            .flat_map(|host| [asked(host), refused(host)])
            .collect()
    };
    for options in [&[][..], &["--biflow"]] {
        let file = recorded(&folder, "scan", 1_700_000_000, &scan(51), options);
        let found = alerts(&[&file]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["rule"], "host-scan");
        assert_eq!(found[0]["value"], 51);
        assert_eq!(found[0]["labels"]["src_addr"], "203.0.113.9");
        // Exactly at the limit there is no alert.
        let few = recorded(&folder, "few", 1_700_000_000, &scan(50), options);
        assert_eq!(alerts(&[&few]), Vec::<serde_json::Value>::new());
    }
}

#[test]
fn much_that_goes_outside_is_exfiltration() {
    let folder = Folder::new();
    let sent = |to, packets| vec![tcp([10, 0, 0, 5], to, [40_000, 443], ACK, 60_000); packets];
    let recorded = |packets: &[_]| alerts(&[&records(&folder, "out", 1_700_000_000, packets)]);
    let found = recorded(&sent([198, 51, 100, 9], 2_000));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["rule"], "exfiltration");
    assert_eq!(found[0]["value"], 120_000_000);
    let none = Vec::<serde_json::Value>::new();
    assert_eq!(recorded(&sent([10, 9, 9, 9], 2_000)), none);
    assert_eq!(recorded(&sent([198, 51, 100, 9], 1_600)), none);
}

#[test]
fn a_host_that_only_answers_is_not_overlooked_in_biflows() {
    let folder = Folder::new();
    let outside = [198, 51, 100, 9];
    let begun = |host| tcp(outside, [10, 0, 0, host], [40_000, 443], SYN, 60);
    let answered = |host| tcp([10, 0, 0, host], outside, [443, 40_000], ACK, 60_000);
    let mut packets = vec![begun(5)];
    packets.extend(vec![answered(5); 2_000]);
    let file = recorded(&folder, "out", 1_700_000_000, &packets, &["--biflow"]);
    let found = alerts(&[&file]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["rule"], "exfiltration-in-answers");
    assert_eq!(found[0]["value"], 120_000_000);
    assert_eq!(
        found[0]["summary"],
        "10.0.0.5 sent 120000000 bytes to 198.51.100.9 within an hour, as answers"
    );
    // Host 7 is asked, but does not answer.
    let packets = [begun(5), answered(5), begun(6), answered(6), begun(7)];
    let second = recorded(&folder, "new", 1_700_003_600, &packets, &["--biflow"]);
    let state = folder.file("state.json");
    alerts(&[&file, "--state", &state]);
    let found = alerts(&[&second, "--state", &state]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["rule"], "new-answerer");
    assert_eq!(found[0]["labels"]["dst_addr"], "10.0.0.6");
}

#[test]
fn the_incidents_of_a_days_traffic_are_found_and_nothing_else() {
    let folder = Folder::new();
    let capture = folder.file("day.pcap");
    // An eighth of the usual conversations, but the complete incidents.
    let day = "generate -q --workload site --seen-at headquarters --snap-length 64 \
               --births-per-second 0.5 -w";
    turboflow(day.split_whitespace().chain([&*capture])).exits(0);
    for options in [&[][..], &["--biflow"]] {
        let file = folder.file("day.parquet");
        let args = ["record", "-q", "-r", &capture, "-w", &file];
        turboflow(args.iter().chain(options)).exits(0);
        let found = alerts(&[&file]);
        let found = found.iter().map(|alert| {
            let source = alert["labels"]["src_addr"].as_str();
            let value = alert["value"].as_u64();
            (
                alert["rule"].as_str().unwrap(),
                source.unwrap(),
                value.unwrap(),
            )
        });
        assert_eq!(
            found.collect::<Vec<_>>(),
            [
                ("host-scan", "203.0.113.77", 100),
                ("exfiltration", "10.20.16.45", 189_492_136),
            ]
        );
    }
}

#[test]
fn a_new_talker_is_told_once() {
    let folder = Folder::new();
    let from = |host| tcp([10, 0, 0, host], [192, 0, 2, 1], [40_000, 443], ACK, 60);
    let first = records(&folder, "first", 1_700_000_000, &[from(1), from(2)]);
    let second = records(&folder, "second", 1_700_000_600, &[from(1), from(3)]);
    let state = folder.file("state.json");
    // The first file only teaches the state.
    assert!(alerts(&[&first, "--state", &state]).is_empty());
    let found = alerts(&[&second, "--state", &state]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["rule"], "new-talker");
    assert_eq!(found[0]["labels"]["src_addr"], "10.0.0.3");
    assert!(alerts(&[&second, "--state", &state]).is_empty());
    assert!(alerts(&[&first, "--state", &state]).is_empty());
}

/// The records of one packet, from a probe of this name.
fn of_exporter(folder: &Folder, name: &str, second: u64) -> String {
    let packet = tcp([192, 0, 2, 1], [192, 0, 2, 2], [1, 2], ACK, 60);
    let options = ["--identity", "--exporter", name];
    recorded(
        folder,
        &format!("{name}-{second}"),
        second,
        &[packet],
        &options,
    )
}

#[test]
fn a_silent_exporter_is_told_once() {
    let folder = Folder::new();
    let of = |name: &str, second| of_exporter(&folder, name, second);
    let state = folder.file("state.json");
    let start = 1_700_000_000;
    let both = [of("tap-1", start), of("tap-2", start)];
    assert!(alerts(&[&both[0], &both[1], "--state", &state]).is_empty());
    assert!(alerts(&[&of("tap-1", start + 500), "--state", &state]).is_empty());
    let found = alerts(&[&of("tap-1", start + 700), "--state", &state]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["rule"], "silent-exporter");
    assert_eq!(found[0]["labels"]["exporter"], "tap-2");
    assert_eq!(
        found[0]["summary"],
        "tap-2 has been silent since 2023-11-14T22:13:20Z"
    );
    assert!(alerts(&[&of("tap-1", start + 900), "--state", &state]).is_empty());
}

#[test]
fn a_clock_that_is_far_ahead_makes_no_one_silent() {
    let folder = Folder::new();
    let of = |name: &str, second| of_exporter(&folder, name, second);
    let state = folder.file("state.json");
    let start = 1_700_000_000;
    // The clock of the second probe is in the year 2096.
    let files = [of("tap-1", start), of("tap-2", 4_000_000_000)];
    let rules = shipped();
    let args = [
        "alert", &files[0], &files[1], "--rules", &rules, "--state", &state,
    ];
    let ran = turboflow(args).exits(0);
    assert_eq!(ran.stdout, "", "{ran:?}");
    ran.says(&["more than 600 s ahead of this machine's clock: 1; silence is not measured"]);
    assert!(alerts(&[&of("tap-1", start + 500), "--state", &state]).is_empty());
    // The state remembers `tap-2` with the time of the others, not with its own.
    let found = alerts(&[&of("tap-1", start + 700), "--state", &state]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["labels"]["exporter"], "tap-2");
}

#[test]
fn captures_without_any_of_it_are_no_alert() {
    let folder = Folder::new();
    let file = folder.file("a.parquet");
    let is_quiet = |capture: &str| {
        for options in [&[][..], &["--biflow"]] {
            let args = ["record", "-q", "-r", capture, "-w", &file];
            turboflow(args.iter().chain(options)).exits(0);
            let none = Vec::<serde_json::Value>::new();
            assert_eq!(alerts(&[&file]), none, "{capture} {options:?}");
        }
    };
    is_quiet(&office());
    if is_missing(&[Need::Captures]) {
        return;
    }
    let captures = captures_folder().unwrap().join("l7");
    let mut found: Vec<_> = fs::read_dir(captures)
        .unwrap()
        .flat_map(|application| fs::read_dir(application.unwrap().path()).unwrap())
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "pcap"))
        .collect();
    // The largest files have most flows.
    found.sort_by_key(|path| std::cmp::Reverse(fs::metadata(path).unwrap().len()));
    for capture in &found[..10] {
        is_quiet(&capture.to_string_lossy());
    }
}

/// Answers one request, and returns the request.
fn answered(listener: TcpListener, with: &'static str) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let read = stream.read(&mut buffer).unwrap();
            request.extend(&buffer[..read]);
            let text = String::from_utf8_lossy(&request).into_owned();
            let length = text
                .lines()
                .find_map(|line| line.strip_prefix("Content-Length: "))
                .map(|length| length.parse::<usize>().unwrap());
            let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
            if read == 0 || (body.is_some() && body == length) {
                stream.write_all(with.as_bytes()).unwrap();
                return text;
            }
        }
    })
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const REFUSED: &str = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";

#[test]
fn alerts_go_to_webhooks_alertmanager_and_syslog() {
    let folder = Folder::new();
    let file = records(&folder, "scan", 1_700_000_000, &scan(150));
    let listen = || TcpListener::bind("127.0.0.1:0").unwrap();
    let (hook, manager) = (listen(), listen());
    let syslog = UdpSocket::bind("127.0.0.1:0").unwrap();
    let urls = [
        format!("http://{}/here", hook.local_addr().unwrap()),
        format!("alertmanager+http://{}", manager.local_addr().unwrap()),
        format!("syslog+udp://{}", syslog.local_addr().unwrap()),
    ];
    let (hook, manager) = (answered(hook, OK), answered(manager, OK));
    let to: Vec<&str> = urls.iter().flat_map(|url| ["--to", url]).collect();
    let found = alerts(&[&[&*file], &*to].concat());
    let body = |request: String, path: &str| -> serde_json::Value {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(
            head.starts_with(&format!("POST {path} HTTP/1.1\r\n")),
            "{head}"
        );
        serde_json::from_str(body).unwrap()
    };
    assert_eq!(
        body(hook.join().unwrap(), "/here"),
        serde_json::Value::from(found)
    );
    let told = body(manager.join().unwrap(), "/api/v2/alerts");
    assert_eq!(told[0]["labels"]["alertname"], "port-scan");
    assert_eq!(told[0]["labels"]["src_addr"], "203.0.113.9");
    assert_eq!(told[0]["startsAt"], "2023-11-14T22:10:00Z");
    let mut message = [0; 2048];
    let length = syslog.recv(&mut message).unwrap();
    let message = String::from_utf8_lossy(&message[..length]);
    let start = "<132>1 2023-11-14T22:10:00Z - turboflow - port-scan [alert@32473 value=\"150\" ";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn a_receiver_that_refuses_is_told_with_what_was_lost() {
    let folder = Folder::new();
    let file = records(&folder, "scan", 1_700_000_000, &scan(150));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let answer = answered(listener, REFUSED);
    let rules = shipped();
    let args = ["alert", &file, "--rules", &rules, "--to", &url];
    turboflow(args)
        .exits(1)
        .says(&["1 alerts were not sent", "500 Internal Server Error"]);
    answer.join().unwrap();
    // The receiver no longer listens.
    turboflow(args).exits(1).says(&["1 alerts were not sent"]);
}
