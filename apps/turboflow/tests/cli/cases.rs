// SPDX-License-Identifier: Apache-2.0
//! `samples/cases`: captures of a few frames, whose expected flows are written by hand.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::support::{Folder, project, turboflow};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    says: String,
    options: Vec<String>,
    non_ip: u64,
    malformed: u64,
    #[serde(default)]
    flow: Vec<Flow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flow {
    src: IpAddr,
    dst: IpAddr,
    sport: u16,
    dport: u16,
    protocol: u8,
    packets: u64,
    bytes: u64,
}

type Key = (IpAddr, IpAddr, u16, u16, u8);

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(project("samples/cases")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = paths
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    cases.sort();
    cases
}

/// Packets and bytes of every flow, and two counters of the run.
fn metered(capture: &Path, options: &[String]) -> (BTreeMap<Key, (u64, u64)>, u64, u64) {
    let folder = Folder::new();
    let ledger = folder.file("l.json");
    let capture = capture.display().to_string();
    let args = [
        "record", "-q", "-r", &capture, "-w", "-", "--format", "csv", "--ledger", &ledger,
    ];
    let options = options.iter().map(String::as_str);
    let ran = turboflow(args.into_iter().chain(options)).exits(0);
    let mut flows = BTreeMap::new();
    for line in ran.stdout.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let number = |index: usize| -> u64 { fields[index].parse().unwrap() };
        let key = (
            fields[0].parse().unwrap(),
            fields[1].parse().unwrap(),
            number(2) as u16,
            number(3) as u16,
            number(4) as u8,
        );
        let (packets, bytes) = flows.entry(key).or_default();
        *packets += number(5);
        *bytes += number(6);
    }
    let json: serde_json::Value = serde_json::from_str(&folder.read("l.json")).unwrap();
    let number = |key: &str| json[key].as_u64().unwrap();
    (flows, number("packets_non_ip"), number("packets_malformed"))
}

#[test]
fn every_case_gives_the_flows_written_by_hand() {
    let cases = cases();
    assert!(cases.len() >= 61, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for path in &cases {
        let case: Case = toml::from_str(&fs::read_to_string(path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let flow = |f: &Flow| {
            (
                (f.src, f.dst, f.sport, f.dport, f.protocol),
                (f.packets, f.bytes),
            )
        };
        let expected: BTreeMap<Key, (u64, u64)> = case.flow.iter().map(flow).collect();
        assert_eq!(
            expected.len(),
            case.flow.len(),
            "{}: a duplicate flow",
            path.display()
        );
        let (flows, non_ip, malformed) = metered(&path.with_extension("pcap"), &case.options);
        if (&flows, non_ip, malformed) != (&expected, case.non_ip, case.malformed) {
            wrong.push(format!(
                "{} ({}):\n  flows {flows:?}, non-IP {non_ip}, malformed {malformed}\n  \
                 expected {expected:?}, {}, {}",
                path.display(),
                case.says,
                case.non_ip,
                case.malformed
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cases differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
