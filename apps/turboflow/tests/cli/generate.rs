// SPDX-License-Identifier: Apache-2.0
//! `turboflow generate`.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::support::{Folder, command, finish, turboflow};

const MIXED: [&str; 14] = [
    "--packets",
    "50k",
    "--flows",
    "500",
    "--traffic",
    "zipf",
    "--sizes",
    "imix",
    "--ipv6-share",
    "0.3",
    "--vlan-share",
    "0.2",
    "--udp-share",
    "0.5",
];

#[test]
fn a_seed_gives_one_file_and_the_meter_counts_the_requested_packets() {
    let folder = Folder::new();
    let files = ["a.pcap", "b.pcap", "c.pcap"].map(|name| folder.file(name));
    for (file, seed) in files.iter().zip(["5", "5", "6"]) {
        let args = ["generate", "-w", file, "--seed", seed]
            .into_iter()
            .chain(MIXED);
        turboflow(args)
            .exits(0)
            .says(&["50,000 packets", "asked for", "IPv6", "seed"]);
    }
    let [a, b, c] = files.clone().map(|file| fs::read(file).unwrap());
    assert!(a == b && a != c);
    let ran = turboflow(["record", "-r", &files[0]]).exits(0);
    assert!(ran.stdout.contains("50,000 recorded"), "{}", ran.stdout);
    assert_eq!(folder.names(), ["a.pcap", "b.pcap", "c.pcap"]);
}

#[test]
fn the_meter_reads_generated_traffic_from_a_pipe() {
    let mut generator = command(["generate", "-w", "-", "--packets", "20k", "-q"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pipe = generator.stdout.take().unwrap();
    let ran = finish(command(["record", "-r", "-"]).stdin(pipe)).exits(0);
    assert!(ran.stdout.contains("20,000 packets"), "{}", ran.stdout);
    assert!(generator.wait().unwrap().success());
}

/// The reported numbers of flows are those that a meter finds in the file, not the requested ones.
#[test]
fn reported_flows_are_those_in_the_file() {
    let folder = Folder::new();
    let (file, ledger) = (folder.file("a.pcap"), folder.file("ledger.json"));
    for args in [
        &["--packets", "10"][..],
        &[
            "--packets",
            "5k",
            "--flows",
            "100",
            "--births-per-second",
            "20k",
        ],
        &["--packets", "5k", "--flows", "1000", "--traffic", "zipf"],
        &["--workload", "internet", "--duration", "50ms"],
        &["--workload", "dc-aggregation", "--packets", "20k"],
        &["--workload", "site", "--packets", "3k"],
        &["--workload", "telemetry", "--carrier", "int-dscp"],
        &[
            "--workload",
            "adversarial",
            "--attack",
            "single-packets",
            "--packets",
            "100",
        ],
    ] {
        let said = turboflow(["generate", "-w", &file].iter().chain(args)).exits(0);
        // Only the end of the file ends a flow.
        let whole = [
            "--idle-timeout=none",
            "--active-timeout=none",
            "--linger=none",
        ];
        let record = ["record", "-q", "-r", &file, "--ledger", &ledger];
        turboflow(record.iter().chain(&whole)).exits(0);
        let ledger: serde_json::Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
        let flows = ledger["flows_opened"].as_u64().unwrap();
        let digits = flows.to_string();
        let grouped = match digits.len() {
            1..=3 => digits,
            len => format!("{},{}", &digits[..len - 3], &digits[len - 3..]),
        };
        said.says(&[&format!("flows: {grouped} with a packet")]);
    }
}

#[test]
fn contradictions_are_refused() {
    let folder = Folder::new();
    let file = folder.file("a.pcap");
    for (args, words) in [
        (&["--packets", "0"][..], &["0 packets"][..]),
        (
            &["--births-per-second", "10", "--packets-per-second", "5"],
            &["10 births per second"],
        ),
        (
            &["--size", "100", "--sizes", "imix"],
            &["cannot be used with"],
        ),
        (&["--zipf-exponent", "1.2"], &["--traffic zipf"]),
        (&["--train-length", "3"], &["--traffic zipf"]),
        (
            &["--traffic", "zipf", "--zipf-exponent", "99"],
            &["Zipf exponent"],
        ),
        (
            &["--ipv6-share", "2"],
            &["--ipv6-share is 2: a share lies between 0 and 1"],
        ),
        (
            &["--vlan-share", "-0.1"],
            &["--vlan-share is -0.1: a share lies between 0 and 1"],
        ),
        (
            &["--packets", "-5"],
            &["invalid value '-5' for '--packets <N>'", "whole number"],
        ),
        (&["--duration", "none"], &["such as 30s\n"]),
        (
            &["--seed", "99999999999999999999999"],
            &["from 0 to 18446744073709551615"],
        ),
        (&["--size", "63"], &["63 bytes"]),
        (&["--snap-length", "10"], &["snap length"]),
        (&["--sizes", "64"], &["SIZE:WEIGHT"]),
        (&["--flows", "0"], &["0 flows"]),
        (&["--packets-per-second", "0"], &["packets per second"]),
        (&["--packets", "many"], &["whole number"]),
    ] {
        turboflow(["generate", "-w", &file].iter().chain(args))
            .exits(2)
            .says(words);
        assert_eq!(folder.names(), [""; 0]);
    }
    let ran = turboflow(["generate", "-w", "/nonexistent/a.pcap"]).exits(2);
    assert_eq!(ran.stderr.matches("/nonexistent/a.pcap").count(), 1);
    ran.says(&["no directory"]);
    turboflow(["generate", "-w", "/dev/full"])
        .exits(2)
        .says(&["/dev/full", "No space left"]);
    turboflow(["generate"]).exits(2).says(&["--write"]);
    for name in ["a.pcapng", "a.pcap.gz"] {
        let path = folder.file(name);
        let ran = turboflow(["generate", "-w", &path, "--packets", "10"]).exits(2);
        ran.says(&[&path, "classic pcap", "call it .pcap"]);
        assert!(!Path::new(&path).exists(), "{path}");
    }
}

#[test]
fn workloads_have_their_published_rates_and_the_meter_agrees() {
    for (workload, packets, flows) in [
        ("internet", "450.0 k", "9.10 k"),
        ("dc-tor", "124.0 M", "478.0 k"),
        ("dc-aggregation", "134.0 M", "1.29 M"),
    ] {
        let folder = Folder::new();
        let file = folder.file("a.pcap");
        let args = [
            "--workload",
            workload,
            "--packets",
            "30k",
            "--snap-length",
            "64",
        ];
        let said = turboflow(["generate", "-w", &file].into_iter().chain(args)).exits(0);
        let line = |name, asked| format!("{name:<20}{asked:>12}");
        said.says(&[&line("packets/s", packets), &line("new flows/s", flows)])
            .says(&["30,000 packets", "asked for", "came out", "under way"]);
        let ran = turboflow(["record", "-r", &file]).exits(0);
        assert!(ran.stdout.contains("30,000 recorded"), "{}", ran.stdout);
    }
}

#[test]
fn a_duration_is_in_the_traffics_own_time() {
    let common = ["generate", "--to-memory", "--duration"];
    let args = ["20ms", "--workload", "internet"];
    turboflow(common.into_iter().chain(args))
        .exits(0)
        .says(&["in 0.020 s"]);
    let args = ["10ms", "--workload", "probe-stress", "--flows", "100k"];
    turboflow(common.into_iter().chain(args)).exits(0).says(&[
        "100,000 packets in 0.010 s",
        "(asked for 100,000 active at any time), 100 born",
    ]);
}

#[test]
fn a_workload_refuses_options_of_other_traffic() {
    for (args, words) in [
        (
            &["--workload", "internet", "--flows", "5"][..],
            &[
                "--flows is of no use with --workload internet",
                "probe-stress",
            ][..],
        ),
        (
            &["--load", "0.5"],
            &["--load is of no use without --workload"],
        ),
        (
            &["--workload", "dc-tor", "--load", "1.5"],
            &["load 1.5", "0.95"],
        ),
        (
            &["--workload", "internet", "--births-per-second", "1M"],
            &["1000000 new flows per second cannot come from 450000"],
        ),
        (
            &["--workload", "probe-stress", "--births-per-second", "20M"],
            &["births per second cannot come"],
        ),
        (&["--workload", "dc-tor", "--packets", "0"], &["0 packets"]),
        (
            &["--packets", "5", "--duration", "5s"],
            &["cannot be used with"],
        ),
        (&["--workload", "lan"], &["dc-aggregation"]),
        (&["--speed", "2"], &["--speed is of no use without -i"]),
        (
            &["--workload", "adversarial"],
            &["--attack", "single-packets"],
        ),
        (
            &[
                "--workload",
                "adversarial",
                "--attack",
                "all-at-once",
                "--meter-seed",
                "1",
            ],
            &["--meter-seed is of no use without --attack collisions"],
        ),
        (
            &[
                "--workload",
                "adversarial",
                "--attack",
                "collisions",
                "--into-slots",
                "0",
            ],
            &["1000 flows into 0 of 32768 slots"],
        ),
        (
            &[
                "--workload",
                "adversarial",
                "--attack",
                "single-packets",
                "--flows",
                "5",
            ],
            &["--flows is of no use"],
        ),
        (
            &["--attack", "collisions"],
            &["--attack is of no use without --workload"],
        ),
        (&["--links", "2"], &["--read"]),
        (
            &["--workload", "internet", "--seen-at", "branch"],
            &["--seen-at is of no use with --workload internet, only with --workload site"],
        ),
        (
            &["--workload", "site", "--births-per-second", "20k"],
            &["20000 new flows per second", "10,000"],
        ),
    ] {
        turboflow(["generate", "--to-memory"].iter().chain(args))
            .exits(2)
            .says(words);
    }
    turboflow(["generate", "--to-memory", "-w", "a.pcap"])
        .exits(2)
        .says(&["cannot be used with"]);
    #[cfg(target_os = "linux")]
    turboflow(["generate", "-i", "no-such-link"])
        .exits(2)
        .says(&["no interface no-such-link; there are: lo"]);
}

#[test]
fn collisions_defeat_the_table_only_with_the_right_seed() {
    let folder = Folder::new();
    let (file, ledger) = (folder.file("a.pcap"), folder.file("ledger.json"));
    let attack = ["--workload", "adversarial", "--attack", "collisions"];
    let args = ["--meter-seed", "7", "--packets", "20k"];
    turboflow(
        ["generate", "-w", &file]
            .into_iter()
            .chain(attack)
            .chain(args),
    )
    .exits(0);
    for (seed, least, most) in [("7", 19_900, 20_000), ("8", 0, 3_000)] {
        let fixed = ["record", "-r", &file, "--ledger", &ledger, "--seed", seed];
        let table = ["--microflow-slots", "32768", "--threads", "1"];
        turboflow(fixed.into_iter().chain(table)).exits(0);
        let ledger: serde_json::Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
        let evicted = ledger["microflows_evicted"]["collision"].as_u64().unwrap();
        assert!((least..=most).contains(&evicted), "{seed}: {evicted}");
    }
}

#[test]
fn a_router_has_the_requested_links_with_distinct_flows() {
    let folder = Folder::new();
    let (one, all) = (folder.file("one.pcap"), folder.file("all.pcap"));
    let args = ["--packets", "3000", "--flows", "100", "--ipv6-share", "0.5"];
    turboflow(["generate", "-w", &one].into_iter().chain(args)).exits(0);
    turboflow(["generate", "-w", &all, "--links", "8", "-r", &one])
        .exits(0)
        .says(&["24,000 packets of 8 links"]);
    let flows = |file: &str| {
        let ledger = folder.file("ledger.json");
        turboflow(["record", "-r", file, "--ledger", &ledger]).exits(0);
        let ledger: serde_json::Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
        assert_eq!(ledger["packets_recorded"], ledger["packets_received"]);
        ledger["flows_opened"].as_u64().unwrap()
    };
    assert_eq!(flows(&all), 8 * flows(&one));
    for (links, words) in [("0", "0 links"), ("5000", "5000 links")] {
        turboflow(["generate", "--to-memory", "--links", links, "-r", &one])
            .exits(2)
            .says(&[words, "1 to 4094"]);
    }
    turboflow(["generate", "--to-memory", "--links", "2", "-r", "-"])
        .exits(2)
        .says(&["standard input"]);
    turboflow([
        "generate",
        "--to-memory",
        "--links",
        "2",
        "-r",
        &one,
        "--flows",
        "3",
    ])
    .exits(2)
    .says(&["--flows is of no use with --links"]);
}
