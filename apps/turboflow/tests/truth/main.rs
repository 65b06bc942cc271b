// SPDX-License-Identifier: Apache-2.0
//! Compares every capture with its ground truth, through the whole product. Without timeouts, the
//! records of a key add up to tshark's numbers, for any size of the microflow table, any number of
//! threads and any seed.
//!
//! The captures of `shared/captures` are not part of the project (licences differ), and the test
//! reports when the folder is missing. The project's own samples are always compared.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

#[path = "../../../../crates/packet/tests/support/ground_truth.rs"]
mod ground_truth;
mod plan;
mod variants;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use ground_truth::{
    EITHER, IMPOSSIBLE_TIMES, Key, Totals, UNREADABLE, frame_counts, is_unsupported, named, row,
    truth_files,
};
use turboflow_capture::{CaptureFile, Counters, OpenError};
use turboflow_run::Ledger;
use turboflow_testing::{Need, captures_folder, is_missing, is_missing_in_part};
use variants::{Flows, Variant, merge, meter};

#[derive(Default)]
struct Report {
    files: u64,
    runs: u64,
    rows: u64,
    packets: u64,
    rows_left_out: BTreeMap<String, u64>,
    packets_left_out: BTreeMap<String, u64>,
    frames_left_out: BTreeMap<String, u64>,
    differences: Vec<String>,
}

/// The ground truth of a capture.
struct Truth {
    rows: Vec<(Key, Totals)>,
    /// Keys in unsupported header stacks, which are not compared.
    left_out: HashSet<Key>,
    counts: [u64; 3],
}

impl Report {
    fn truth(&mut self, csv: &Path) -> Truth {
        let json = fs::read_to_string(csv.with_extension("json")).unwrap();
        let counts = frame_counts(&json);
        let mut truth = Truth {
            rows: Vec::new(),
            left_out: HashSet::new(),
            counts,
        };
        for line in fs::read_to_string(csv).unwrap().lines().skip(1) {
            let (key, totals, stacks) = row(line);
            if is_unsupported(&stacks) {
                // One of them has fifty headers.
                let stacks: String = stacks.chars().take(40).collect();
                *self.rows_left_out.entry(stacks.clone()).or_default() += 1;
                *self.packets_left_out.entry(stacks).or_default() += totals.packets;
                truth.left_out.insert(key);
            } else {
                truth.rows.push((
                    key,
                    Totals {
                        frame_bytes: 0,
                        ..totals
                    },
                ));
            }
        }
        truth
    }

    fn compare(&mut self, capture: &Path, csv: &Path) {
        let name = capture.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = fs::read(capture).unwrap();
        let open = || CaptureFile::from_bytes(name.clone(), bytes.clone());
        match open() {
            Ok(_) => {}
            Err(OpenError::UnsupportedLinkType {
                number, link_type, ..
            }) => {
                let link = format!("{number} ({link_type})");
                let json = fs::read_to_string(csv.with_extension("json")).unwrap();
                *self.frames_left_out.entry(link).or_default() += frame_counts(&json)[0];
                return;
            }
            Err(error) => return self.differences.push(error.to_string()),
        }
        let truth = self.truth(csv);
        self.files += 1;
        self.rows += truth.rows.len() as u64;
        for variant in Variant::all() {
            let (flows, ledger, counters) = meter(open().unwrap(), variant);
            self.runs += 1;
            self.packets += ledger.packets_received;
            let found = differences(capture, &truth, flows, &ledger, counters);
            let found = found
                .into_iter()
                .map(|what| format!("{name}, {variant:?}: {what}"));
            self.differences.extend(found.take(5));
        }
    }

    fn conclude(&self) {
        eprintln!(
            "{} captures, {} runs, {} rows, {} packets metered",
            self.files, self.runs, self.rows, self.packets
        );
        eprintln!("frames left out by link type: {:?}", self.frames_left_out);
        eprintln!("rows left out by stack: {:?}", self.rows_left_out);
        eprintln!("packets left out by stack: {:?}", self.packets_left_out);
        let (count, first) = (self.differences.len(), self.differences.iter().take(40));
        let first: Vec<_> = first.map(String::as_str).collect();
        assert!(count == 0, "{count} differences:\n{}", first.join("\n"));
        assert!(self.files > 0, "no capture was compared");
    }
}

fn differences(
    capture: &Path,
    truth: &Truth,
    mut flows: Flows,
    ledger: &Ledger,
    counters: Counters,
) -> Vec<String> {
    let mut found: Vec<String> = ledger
        .imbalances()
        .iter()
        .map(ToString::to_string)
        .collect();
    if ledger.packets_received != counters.packets {
        found.push(format!(
            "{counters:?} read, {} metered",
            ledger.packets_received
        ));
    }
    if named(capture, &EITHER) {
        return found;
    }
    for (key, totals) in &truth.rows {
        let (mut totals, Some(mut ours)) = (*totals, flows.remove(key)) else {
            found.push(format!("missing {key:?} {totals:?}"));
            continue;
        };
        if named(capture, &IMPOSSIBLE_TIMES) {
            (ours.first_ns, ours.last_ns) = (0, 0);
            (totals.first_ns, totals.last_ns) = (0, 0);
        }
        if ours != totals {
            found.push(format!("{key:?}\n   ours {ours:?}\n  truth {totals:?}"));
        }
    }
    // Frames of unsupported header stacks or link types are counted differently by tshark.
    if !truth.left_out.is_empty() || counters.packets_unknown_link_type > 0 {
        return found;
    }
    found.extend(
        flows
            .iter()
            .map(|(key, ours)| format!("only ours {key:?} {ours:?}")),
    );
    let ours = [
        ledger.packets_received,
        ledger.packets_non_ip,
        ledger.packets_malformed,
    ];
    if ours != truth.counts {
        let truth = truth.counts;
        found.push(format!(
            "frames, non-IP, malformed: ours {ours:?}, truth {truth:?}"
        ));
    }
    found
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn samples_equal_their_truth_with_any_options() {
    let samples = project().join("samples");
    let mut report = Report::default();
    report.compare(
        &samples.join("office.pcap"),
        &samples.join("truth/office.csv"),
    );
    report.compare(
        &samples.join("two-links.pcapng"),
        &samples.join("truth/two-links.csv"),
    );
    report.conclude();
}

/// Truth files with their captures.
fn pairs(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let truth = folder.join("truth");
    let capture = |csv: &PathBuf| {
        folder
            .join(csv.strip_prefix(&truth).unwrap())
            .with_extension("")
    };
    let pairs = truth_files(&truth)
        .into_iter()
        .map(|csv| (capture(&csv), csv));
    pairs
        .filter(|(capture, _)| capture.is_file() && !named(capture, &UNREADABLE))
        .collect()
}

#[test]
fn every_capture_equals_its_truth_with_any_options() {
    if is_missing(&[Need::Captures]) {
        return;
    }
    let folder = captures_folder().unwrap();
    let mut report = Report::default();
    for (capture, csv) in pairs(&folder) {
        report.compare(&capture, &csv);
    }
    report.conclude();
}

/// One capture in this many goes through the program itself.
const SAMPLED: usize = 12;

#[test]
fn the_program_writes_the_flows_of_the_truth() {
    let mut chosen = vec![
        (
            project().join("samples/office.pcap"),
            project().join("samples/truth/office.csv"),
        ),
        (
            project().join("samples/two-links.pcapng"),
            project().join("samples/truth/two-links.csv"),
        ),
    ];
    if !is_missing_in_part(&[Need::Captures]) {
        let folder = captures_folder().unwrap();
        chosen.extend(pairs(&folder).into_iter().step_by(SAMPLED));
    }
    let mut report = Report::default();
    for (index, (capture, csv)) in chosen.iter().enumerate() {
        let Some(flows) = record(capture, index) else {
            continue;
        };
        let name = capture.file_name().unwrap().to_string_lossy().into_owned();
        let truth = report.truth(csv);
        if named(capture, &EITHER) || named(capture, &IMPOSSIBLE_TIMES) {
            continue;
        }
        report.files += 1;
        report.rows += truth.rows.len() as u64;
        for (key, totals) in &truth.rows {
            if flows.get(key) != Some(totals) {
                let ours = flows.get(key);
                report
                    .differences
                    .push(format!("{name}: {key:?} {ours:?} {totals:?}"));
            }
        }
    }
    report.conclude();
}

/// The flows that `turboflow record` writes; `None` for an unsupported link type.
fn record(capture: &Path, index: usize) -> Option<Flows> {
    let (slots, threads) = ([1, 7, 1_024][index % 3], [1, 2][index % 2]);
    let output = Command::new(env!("CARGO_BIN_EXE_turboflow"))
        .arg("record")
        .arg("-r")
        .arg(capture)
        .args([
            "-w",
            "-",
            "--format",
            "csv",
            "--idle-timeout",
            "none",
            "--active-timeout",
            "none",
        ])
        .args([
            "--linger",
            "none",
            "--microflow-slots",
            &slots.to_string(),
            "-q",
        ])
        .args(["--threads", &threads.to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        Some(0) => {}
        Some(1) => assert!(!said.is_empty(), "exit 1 comes with a message"),
        Some(2) if said.contains("has link type") => return None,
        code => panic!("{}: exit {code:?}: {said}", capture.display()),
    }
    let mut flows = Flows::new();
    for line in String::from_utf8(output.stdout).unwrap().lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let address = |index: usize| -> IpAddr { fields[index].parse().unwrap() };
        let number = |index: usize| -> u64 { fields[index].parse().unwrap() };
        let key = (
            address(0),
            address(1),
            number(4) as u8,
            number(2) as u16,
            number(3) as u16,
        );
        let totals = Totals {
            packets: number(5),
            ip_bytes: number(6),
            frame_bytes: 0,
            first_ns: number(7),
            last_ns: number(8),
            tcp_flags: number(9) as u16,
            min_ip_length: number(10) as u32,
            max_ip_length: number(11) as u32,
        };
        merge(&mut flows, key, totals);
    }
    Some(flows)
}
