// SPDX-License-Identifier: Apache-2.0
//! In-band telemetry from the wire to the records: the meter finds what was generated
//! (`docs/telemetry.md`).

use std::fs;

use turboflow_record::Family;
use turboflow_workload::telemetry::{Carrier, MeasuredFlow, Network, NetworkConfig};

use super::support::{Folder, pcap_header, pcap_packet, project, turboflow};

const MARKS: [&str; 2] = ["--int-port=5000", "--int-report-port=5001"];

fn definition(name: &str) -> String {
    project(&format!("samples/definitions/{name}.toml"))
}

/// The network that `turboflow generate` writes.
fn network(carrier: Option<Carrier>) -> Network {
    let config = NetworkConfig {
        carrier,
        ..NetworkConfig::default()
    };
    Network::new(&config).unwrap()
}

/// Generates a network, and records it with the features of Table 2.
fn recorded(folder: &Folder, options: &[&str]) -> String {
    let (capture, flows) = (folder.file("network.pcap"), folder.file("flows.parquet"));
    let generate = ["generate", "-q", "--workload", "telemetry", "-w", &capture];
    turboflow(generate.iter().chain(options)).exits(0);
    let table = definition("paper-table-2-network");
    let record = [
        "record",
        "-q",
        "-r",
        &capture,
        "--definition",
        &table,
        "-w",
        &flows,
    ];
    turboflow(record.iter().chain(&MARKS)).exits(0);
    flows
}

/// What `turboflow show` answers about records.
fn asked(flows: &str, question: &[&str]) -> Vec<String> {
    let show = ["show", flows, "--format", "csv"];
    let answer = turboflow(show.iter().chain(question)).exits(0).stdout;
    answer.lines().skip(1).map(str::to_owned).collect()
}

/// A path of at most six nodes as a number. Longer ones are hashed, and not computed here.
fn path(nodes: &[u32]) -> Option<String> {
    let digits = nodes.iter().map(|node| format!("{node:03}"));
    (nodes.len() <= 6).then(|| {
        digits
            .collect::<String>()
            .trim_start_matches('0')
            .to_owned()
    })
}

#[test]
fn records_of_every_carrier_are_what_the_nodes_wrote() {
    let folder = Folder::new();
    for (name, carrier) in [
        (None, None),
        (Some("int-dscp"), Some(Carrier::IntByDscp)),
        (Some("int-port"), Some(Carrier::IntByPort)),
        (Some("report"), Some(Carrier::Report)),
        (Some("ioam"), Some(Carrier::Ioam)),
    ] {
        let options: Vec<&str> = name.iter().flat_map(|name| ["--carrier", name]).collect();
        let flows = recorded(&folder, &options);
        let question = [
            "--select",
            "src_addr,dst_addr,src_port,dst_port,protocol,packets,measured_packets,\
             max_queue_depth,mean_latency_ns,egress_interface,max_hop_count,min_ttl,first_path,\
             last_path",
        ];
        let mut found = asked(&flows, &question);
        found.sort();
        let mut expected: Vec<_> = network(carrier).flows().iter().map(row).collect();
        expected.sort();
        assert_eq!(found.len(), expected.len(), "{name:?}");
        for (found, (expected, last_path)) in found.iter().zip(&expected) {
            let (found, path) = found.rsplit_once(',').unwrap();
            assert_eq!(found, expected, "{name:?}");
            match last_path {
                Some(last_path) => assert_eq!(path, last_path, "{name:?}: {found}"),
                None => assert!(path.parse::<u64>().unwrap() >> 63 == 1, "{found}: {path}"),
            }
        }
    }
}

/// The expected record, derived from what the nodes wrote, and the last path.
fn row(flow: &MeasuredFlow) -> (String, Option<String>) {
    let tuple = &flow.tuple;
    let row = format!(
        "{},{},{},{},{},{},{},{},{:?},{},{},{},{}",
        tuple.source(),
        tuple.destination(),
        tuple.source_port(),
        tuple.destination_port(),
        tuple.protocol(),
        flow.packets,
        flow.packets,
        flow.max_queue_depth,
        flow.mean_latency_ns,
        flow.egress_interface,
        flow.max_hop_count,
        flow.min_ttl,
        path(&flow.first_path).unwrap(),
    );
    (row, path(&flow.last_path))
}

/// The commands in this section of `docs/telemetry.md`, without their indentation.
fn commands_of(heading: &str) -> Vec<Vec<String>> {
    let page = fs::read_to_string(project("docs/telemetry.md")).unwrap();
    let (_, section) = page.split_once(heading).unwrap();
    let section = section.split("\n## ").next().unwrap().replace("\\\n", " ");
    let commands = section
        .lines()
        .filter_map(|line| line.strip_prefix("    turboflow "));
    commands.map(words).collect()
}

/// The words of a command. Quoted text is one word.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('\'').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

#[test]
fn the_walk_through_finds_the_incast_and_the_loop() {
    let folder = Folder::new();
    let mut answers = Vec::new();
    for words in commands_of("## Find what is wrong") {
        let here = |word: &String| match &**word {
            "network.pcap" | "flows.parquet" => folder.file(word),
            sample if sample.starts_with("samples/") => project(sample),
            _ => word.clone(),
        };
        let ran = turboflow(words.iter().map(here).chain(match &*words[0] {
            "show" => vec!["--format".to_owned(), "csv".to_owned()],
            _ => Vec::new(),
        }));
        let ran = ran.exits(0);
        match &*words[0] {
            "generate" => {
                ran.says(&[
                    "1,450 packets",
                    "deep queues: 16 flows; most packets, 100, from 10.0.8.7 port 5007 to \
                     10.0.9.9, queues up to 220, 3 hops at most",
                    "loops: 1 flow; most packets, 40, from 2001:db8::a01:d port 7013",
                    "flows: 44 with a packet",
                ]);
            }
            "show" => answers.push(ran.stdout.lines().skip(1).map(str::to_owned).collect()),
            _ => {}
        }
    }
    let [incast, loops]: [Vec<String>; 2] = answers.try_into().unwrap();
    assert_eq!(incast.len(), 16, "{incast:#?}");
    assert_eq!(incast[0], "10.0.9.9,5007,3,1002003,220");
    assert!(incast.iter().all(|row| row.starts_with("10.0.9.9,50")));
    assert_eq!(loops, ["2001:db8::a01:d,7013,1002003,7,57"]);
}

#[test]
fn a_seed_gives_one_capture_of_a_network() {
    let folder = Folder::new();
    let made = |name: &str, options: &[&str]| {
        let file = folder.file(name);
        let generate = ["generate", "-q", "--workload", "telemetry", "-w", &file];
        turboflow(generate.iter().chain(options)).exits(0);
        fs::read(file).unwrap()
    };
    let first = made("a.pcap", &[]);
    assert_eq!(first, made("b.pcap", &["--seed", "1"]));
    assert_ne!(first, made("c.pcap", &["--seed", "2"]));
    for (args, words) in [
        (
            &["--workload", "site", "--carrier", "ioam"][..],
            "--carrier is of no use with --workload site, only with --workload telemetry",
        ),
        (
            &["--workload", "telemetry", "--flows", "5"],
            "--flows is of no use with --workload telemetry",
        ),
        (
            &["--workload", "telemetry", "--packets", "0"],
            "0 packets asked for",
        ),
        (
            &["--workload", "telemetry", "--snap-length", "10"],
            "snap length 10",
        ),
    ] {
        turboflow(["generate", "--to-memory"].iter().chain(args))
            .exits(2)
            .says(&[words]);
    }
}

#[test]
fn what_is_not_read_is_counted_and_what_nothing_looks_for_is_refused() {
    let folder = Folder::new();
    let network = network(Some(Carrier::IntByDscp));
    let packets = network.packets().iter().map(|(packet, _)| packet);
    let packets: Vec<_> = packets
        .filter(|its| its.tuple.family() == Family::V4)
        .collect();
    let mut bytes = pcap_header(1);
    for (number, packet) in packets.iter().enumerate() {
        let mut frame = packet.frame(Carrier::IntByDscp);
        // After Ethernet, IPv4 and UDP or TCP comes the header of INT with its version.
        let header = if packet.tuple.protocol() == 17 {
            42
        } else {
            54
        };
        if number % 2 == 1 {
            frame[header + 4] = 0x10;
        }
        bytes.extend(pcap_packet(packet.timestamp_ns / 1_000, &frame));
    }
    let capture = folder.write("half.pcap", bytes);
    let (table, ledger) = (definition("paper-table-1"), folder.file("ledger.json"));
    let record = [
        "record",
        "-r",
        &capture,
        "--definition",
        &table,
        "--ledger",
        &ledger,
    ];
    turboflow(record).exits(0);
    let ledger: serde_json::Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    let half = packets.len() / 2;
    assert_eq!(ledger["packets_recorded"], packets.len());
    assert_eq!(ledger["telemetry"]["packets_read"], packets.len() - half);
    let unread = &ledger["telemetry"]["unread"][0];
    assert_eq!(
        (&unread["reason"], &unread["packets"]),
        (&"other_version".into(), &half.into())
    );

    let args = ["record", "-r", &capture, "--int-port", "5000"];
    turboflow(args)
        .exits(2)
        .says(&["--int-port", "no input of in-band telemetry"]);
    // Without such an input, telemetry is not parsed.
    let plain = turboflow(["record", "-q", "-r", &capture, "-w", "-", "--format", "csv"]).exits(0);
    assert!(!plain.stdout.contains("queue"));
}
