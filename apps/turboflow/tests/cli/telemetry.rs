// SPDX-License-Identifier: Apache-2.0
//! In-band telemetry from the wire to records: what was planted is what is found
//! (`docs/telemetry.md`).

use std::collections::BTreeMap;
use std::net::IpAddr;

use turboflow_record::FiveTuple;
use turboflow_workload::telemetry::{Carrier, Measured, incast, loop_of_two_nodes};

use super::support::{Folder, pcap_header, pcap_packet, project, rows, turboflow};

const DSCP: Carrier = Carrier::IntByDscp(23);
const PORT: Carrier = Carrier::IntByPort(5_000);
const REPORT: Carrier = Carrier::Report {
    port: 5_001,
    dscp: 23,
};
const MARKS: [&str; 2] = ["--int-port=5000", "--int-report-port=5001"];

fn definition(name: &str) -> String {
    project(&format!("samples/definitions/{name}.toml"))
}

fn capture(folder: &Folder, packets: &[Measured], carrier: Carrier) -> String {
    let mut bytes = pcap_header(1);
    for packet in packets {
        let microseconds = packet.timestamp_ns / 1_000;
        bytes.extend(pcap_packet(microseconds, &packet.frame(carrier)));
    }
    folder.write("network.pcap", bytes)
}

/// The record of Table 1 for every flow, without bytes: those differ with the carrier.
fn planted(packets: &[Measured]) -> Vec<String> {
    let mut flows: BTreeMap<FiveTuple, Vec<&Measured>> = BTreeMap::new();
    for packet in packets {
        flows.entry(packet.tuple).or_default().push(packet);
    }
    let row = |(tuple, packets): (FiveTuple, Vec<&Measured>)| {
        let hops = || packets.iter().flat_map(|packet| &packet.hops);
        let deepest = hops().map(|hop| hop.queue_depth).max().unwrap();
        let latency: u64 = hops().map(|hop| u64::from(hop.latency_ns)).sum();
        let mean = latency as f64 / packets.len() as f64;
        let ports = (tuple.source_port(), tuple.destination_port());
        let (source, destination) = (tuple.source(), tuple.destination());
        format!(
            "{source},{destination},{},{},{},{},{deepest},{mean}",
            ports.0,
            ports.1,
            tuple.protocol(),
            packets.len()
        )
    };
    let mut rows: Vec<String> = flows.into_iter().map(row).collect();
    rows.sort();
    rows
}

/// These columns in the records of a capture.
fn recorded(capture: &str) -> Vec<String> {
    let table = definition("paper-table-1");
    let args = ["record", "-q", "-r", capture, "--definition", &table];
    let out = ["-w", "-", "--format", "csv"];
    let ran = turboflow(args.iter().chain(&out).chain(&MARKS)).exits(0);
    let without_bytes = |row: String| {
        let cells: Vec<&str> = row.split(',').collect();
        let mean: f64 = cells[8].parse().unwrap();
        format!("{},{},{mean}", cells[..6].join(","), cells[7])
    };
    let mut rows: Vec<String> = rows(&ran.stdout).into_iter().map(without_bytes).collect();
    rows.sort();
    rows
}

fn over_ipv6(mut packets: Vec<Measured>) -> Vec<Measured> {
    for packet in &mut packets {
        let wide = |address: IpAddr| match address {
            IpAddr::V4(address) => {
                let mut octets = [0; 16];
                octets[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
                octets[12..].copy_from_slice(&address.octets());
                octets.into()
            }
            address => address,
        };
        let tuple = packet.tuple;
        packet.tuple = FiveTuple::new(
            wide(tuple.source()),
            wide(tuple.destination()),
            tuple.source_port(),
            tuple.destination_port(),
            tuple.protocol(),
        );
    }
    packets
}

#[test]
fn records_of_every_carrier_are_what_was_planted() {
    let folder = Folder::new();
    for carrier in [DSCP, PORT, REPORT] {
        let packets = incast();
        let found = recorded(&capture(&folder, &packets, carrier));
        assert_eq!(found, planted(&packets), "{carrier:?}");
    }
    for carrier in [DSCP, PORT, REPORT, Carrier::Ioam] {
        let packets = over_ipv6(loop_of_two_nodes());
        let found = recorded(&capture(&folder, &packets, carrier));
        assert_eq!(found, planted(&packets), "{carrier:?} over IPv6");
    }
}

/// Records of the rows of Table 2, and what `turboflow show` answers about them.
fn asked(folder: &Folder, packets: &[Measured], question: &[&str]) -> Vec<String> {
    let (capture, flows) = (capture(folder, packets, DSCP), folder.file("flows.parquet"));
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
    turboflow(record).exits(0);
    let show = ["show", &flows, "--format", "csv"];
    let answer = turboflow(show.iter().chain(question)).exits(0).stdout;
    answer.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn the_flow_that_makes_an_incast_is_found_from_records() {
    let question = [
        "--where",
        "max_queue_depth > 100",
        "--select",
        "dst_addr,src_port,egress_interface,last_path,max_queue_depth",
        "--by",
        "packets",
    ];
    let found = asked(&Folder::new(), &incast(), &question);
    assert_eq!(found.len(), 16, "{found:#?}");
    assert_eq!(found[0], "10.0.9.9,5007,3,1002003,220");
    assert!(found.iter().all(|row| row.starts_with("10.0.9.9,50")));
}

#[test]
fn the_flow_in_a_loop_is_found_from_records() {
    let question = [
        "--where",
        "max_hop_count > 4",
        "--select",
        "src_addr,src_port,first_path,max_hop_count,min_ttl",
    ];
    let found = asked(&Folder::new(), &loop_of_two_nodes(), &question);
    assert_eq!(found, ["10.1.0.13,7013,1002003,7,57"]);
}

#[test]
fn what_is_not_read_is_counted_and_what_nothing_looks_for_is_refused() {
    let folder = Folder::new();
    let packets = incast();
    let mut bytes = pcap_header(1);
    for (number, packet) in packets.iter().enumerate() {
        let mut frame = packet.frame(DSCP);
        // Behind Ethernet, IPv4 and UDP or TCP: the version in the header of INT.
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
    // Without such an input, nothing is looked at.
    let plain = turboflow(["record", "-q", "-r", &capture, "-w", "-", "--format", "csv"]).exits(0);
    assert!(!plain.stdout.contains("queue"));
}
