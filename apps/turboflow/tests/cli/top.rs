// SPDX-License-Identifier: Apache-2.0
//! `turboflow top` without a terminal: its screens as text, compared with `turboflow record`.

use serde_json::Value;

use crate::support::{Folder, command, finish, office, project, turboflow};

/// Parses a number with thousands separators.
fn number(text: &str) -> u64 {
    text.replace(',', "").parse().unwrap()
}

/// The number before these words.
#[track_caller]
fn before(text: &str, words: &str) -> u64 {
    let (before, _) = text
        .split_once(words)
        .unwrap_or_else(|| panic!("no {words:?} in {text}"));
    number(before.rsplit([' ', '\n']).next().unwrap())
}

#[test]
fn totals_are_those_of_record() {
    let folder = Folder::new();
    let ledger = folder.file("ledger.json");
    for (capture, filter) in [
        (office(), vec![]),
        (project("samples/two-links.pcapng"), vec![]),
        (office(), vec!["--decapsulate"]),
    ] {
        for threads in ["1", "3"] {
            let record = ["record", "-q", "-r", &capture, "--ledger", &ledger];
            turboflow(record.into_iter().chain(filter.iter().copied())).exits(0);
            let ledger: Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
            let count = |name: &str| ledger[name].as_u64().unwrap();
            let top = ["top", "-r", &capture, "--batch", "1", "--threads", threads];
            let screen = turboflow(top.into_iter().chain(filter.iter().copied()))
                .exits(0)
                .stdout;
            assert_eq!(
                before(&screen, " packets  "),
                count("packets_recorded"),
                "{screen}"
            );
            assert_eq!(
                before(&screen, " bytes in flows"),
                count("bytes_recorded"),
                "{screen}"
            );
            let refused = count("packets_non_ip") + count("packets_malformed");
            assert_eq!(before(&screen, " packets not metered"), refused, "{screen}");
        }
    }
}

#[test]
fn every_flow_has_the_totals_of_its_record() {
    let folder = Folder::new();
    let exact = [
        "--idle-timeout",
        "none",
        "--active-timeout",
        "none",
        "--linger",
        "none",
    ];
    let csv = folder.file("totals.csv");
    let office = office();
    let record = ["record", "-q", "-r", &office, "-w", &csv];
    turboflow(record.into_iter().chain(exact)).exits(0);
    let read = folder.read("totals.csv");
    let flows = read.lines().count() - 1;
    // Address, port and bytes of the largest flow.
    let mut command = command([
        "top", "-r", &office, "--batch", "1", "--sort", "total", "--rows", "1000",
    ]);
    let screen = finish(command.env("COLUMNS", "160")).exits(0).stdout;
    assert_eq!(before(&screen, " flows"), flows as u64);
    let rows: Vec<&str> = screen.trim_end().lines().skip(5).collect();
    assert_eq!(rows.len(), flows);
    let header = read.lines().next().unwrap();
    let at = |name: &str| header.split(',').position(|column| column == name).unwrap();
    for record in read.lines().skip(1) {
        let cells: Vec<&str> = record.split(',').collect();
        let end = |address: usize, port: usize| match (cells[address], cells[port]) {
            (address, "0") => address.to_owned(),
            (address, port) if address.contains(':') => format!("[{address}]:{port}"),
            (address, port) => format!("{address}:{port}"),
        };
        let ends = (
            end(at("src_addr"), at("src_port")),
            end(at("dst_addr"), at("dst_port")),
        );
        let bytes: u64 = cells[at("bytes")].parse().unwrap();
        let bytes = turboflow_formats::table::count(bytes).replace(' ', "");
        let is_shown = rows.iter().any(|row| {
            let words: Vec<&str> = row.split_whitespace().collect();
            (words[0], words[1], words[6]) == (&ends.0, &ends.1, bytes.as_str())
        });
        assert!(is_shown, "{record}");
    }
}

#[test]
fn filters_choose_packets_and_flows() {
    let office = office();
    let top = ["top", "-r", &office, "--batch", "1", "--rows", "500"];
    let all = turboflow(top).exits(0).stdout;
    let shown = turboflow(top.into_iter().chain(["--where", "tcp and port 443"]));
    let shown = shown.exits(0).stdout;
    assert!(shown.contains("filter: tcp and port 443"));
    assert!(
        shown
            .lines()
            .skip(5)
            .all(|row| row.is_empty() || row.contains(":443")),
        "{shown}"
    );
    assert!(before(&shown, " flows") > 0 && before(&shown, " flows") < before(&all, " flows"));
    let hosts = turboflow(top.into_iter().chain(["--view", "hosts", "--where", "udp"]));
    assert!(before(&hosts.exits(0).stdout, " hosts") < before(&all, " hosts"));
    for view in ["protocols", "health"] {
        let screen = turboflow(top.into_iter().chain(["--view", view]))
            .exits(0)
            .stdout;
        let words = if view == "health" {
            "not IP: arp"
        } else {
            "tcp/443"
        };
        assert!(screen.contains(words), "{screen}");
    }
}

#[test]
fn a_replay_keeps_its_speed_and_prints_its_screens() {
    let office = office();
    // 27 s of packets, at 20 times the original speed.
    let top = [
        "top",
        "-r",
        &office,
        "--speed",
        "20",
        "--batch",
        "3",
        "--interval",
        "500ms",
    ];
    let screens = turboflow(top).exits(0).stdout;
    let heads: Vec<&str> = screens
        .lines()
        .filter(|line| line.starts_with("turboflow"))
        .collect();
    assert!((1..=3).contains(&heads.len()), "{screens}");
    assert!(heads.last().unwrap().contains("at its end"));
    assert!(
        heads[..heads.len() - 1]
            .iter()
            .all(|head| head.contains("speed 20"))
    );
}

#[test]
fn impossible_views_are_refused_at_the_start() {
    let office = office();
    turboflow(["top", "-r", &office])
        .exits(2)
        .says(&["not a terminal", "--batch 1"]);
    turboflow(["top", "--batch", "1"])
        .exits(2)
        .says(&["nothing to meter", "--read FILE or --interface IFACE"]);
    turboflow([
        "top",
        "--engine",
        "records",
        "--records-from",
        "a",
        "--batch",
        "1",
    ])
    .exits(2)
    .says(&["engine `records` is for `turboflow record`"]);
    turboflow(["top", "-r", "nothere.pcap", "--batch", "1"])
        .exits(2)
        .says(&["nothere.pcap does not exist"]);
    let batch = ["top", "-r", &office, "--batch", "1"];
    for (words, message) in [
        (["--where", "bsp > 1"], "unknown field \"bsp\""),
        (["--speed", "0"], "or `max`"),
        (["--interval", "700ms"], "in steps of 500ms"),
        (["--interval", "11s"], "from 500ms to 10s"),
        (["--max-flows", "0"], "--max-flows must be from 1"),
        (["--view", "all"], "possible values"),
    ] {
        let ran = turboflow(batch.into_iter().chain(words));
        assert_eq!(ran.stdout, "", "{words:?}");
        ran.exits(2).says(&[message]);
    }
    let lo = ["top", "-i", "no-such-if", "--batch", "1"];
    turboflow(lo).exits(2).says(&["no-such-if"]);
}
