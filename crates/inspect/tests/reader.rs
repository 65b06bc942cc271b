// SPDX-License-Identifier: Apache-2.0
//! Packets, bytes and flows of each protocol, compared with `ndpiReader` of the same library
//! version.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use turboflow_inspect::InspectConfig;
use turboflow_packet::{ParserConfig, Tunnel, TunnelSet};
use turboflow_record::Packet;
use turboflow_testing::{Need, is_missing};

use crate::support::{LIBRARY, Texts, Totals, captures, config, inspect};

/// The protocols of a capture as `ndpiReader` counts them.
fn reader(path: &Path) -> BTreeMap<String, Totals> {
    let name = format!("turboflow-reader-{}", std::process::id());
    let file = std::env::temp_dir().join(name);
    let output = Command::new("ndpiReader")
        .args(["-q", "-i"])
        .arg(path)
        .arg("-w")
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(&file);
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [name, packets, bytes, flows] = cells[..] else {
            return None;
        };
        let totals = Totals {
            packets: packets.parse().ok()?,
            bytes: bytes.parse().ok()?,
            flows: flows.parse().ok()?,
        };
        Some((name.to_owned(), totals))
    });
    rows.collect()
}

/// Whether `ndpiReader` processes a packet: it discards later fragments, and packets that were not
/// captured completely.
fn is_read(packet: &Packet, datagram: Option<&[u8]>) -> bool {
    datagram.is_some_and(|datagram| datagram.len() >= packet.ip_length_bytes as usize)
}

/// The protocols according to an inspection: a flow counts for its application or, without one, for
/// its master.
fn ours(path: &Path) -> BTreeMap<String, Totals> {
    // `ndpiReader` always decapsulates these tunnels, and its flows rarely end before the capture.
    let parser = ParserConfig {
        decapsulate: TunnelSet::EMPTY.with(Tunnel::Ipip).with(Tunnel::SixInFour),
        ..ParserConfig::default()
    };
    let config = InspectConfig {
        idle_ns: u64::MAX,
        ..config()
    };
    let inspected = inspect(path, parser, config, &Texts::default(), is_read);
    let mut rows: BTreeMap<String, Totals> = BTreeMap::new();
    for (_, totals, verdict) in &inspected.flows {
        let number = verdict.map_or(0, |verdict| verdict.application);
        let number = match number & 0xffff {
            0 => number >> 16,
            application => application,
        };
        let row = rows.entry(inspected.names[&number].clone()).or_default();
        row.packets += totals.packets;
        row.bytes += totals.bytes;
        row.flows += totals.flows;
    }
    rows
}

/// Captures whose counts differ, with the reasons; all others must be equal.
const EXCEPTIONS: [(&str, &str); 4] = [
    (
        "AJP/ajp.pcap",
        "the reader takes 6 frames of EtherType 0x8903 for IP",
    ),
    (
        "Radius/fuzz-2020-02-16-11740.pcap",
        "the reader takes 16 frames whose EtherType is damaged for IP",
    ),
    (
        "Syslog/syslog.pcap",
        "the directions of a connection have different VLAN tags: two flows for the reader",
    ),
    (
        "Thrift/thrift.pcap",
        "the reader discards 3 packets of length 0, which the network card was to cut",
    ),
];

#[test]
fn protocols_equal_those_of_the_reader() {
    if is_missing(&[LIBRARY, Need::Captures, Need::Tool("ndpiReader")]) {
        return;
    }
    let mut different = Vec::new();
    for path in captures("l7") {
        let (expected, found) = (reader(&path), ours(&path));
        if expected == found {
            continue;
        }
        let mut folders = path.iter().rev().map(|part| part.to_string_lossy());
        let (file, folder) = (folders.next().unwrap(), folders.next().unwrap());
        let name = format!("{folder}/{file}");
        if !EXCEPTIONS.iter().any(|(known, _)| *known == name) {
            println!("{name}: {expected:#?}\nis {found:#?}");
        }
        different.push(name);
    }
    assert_eq!(different, EXCEPTIONS.map(|(name, _)| name));
}
