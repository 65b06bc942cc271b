// SPDX-License-Identifier: Apache-2.0
//! Compares every capture in `shared/captures` with the ground truth from tshark.
//!
//! The captures are not part of the project because their licences differ. Without the folder, the
//! test is skipped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/ground_truth.rs"]
mod ground_truth;

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use ground_truth::{
    EITHER, IMPOSSIBLE_TIMES, Key, Totals, UNREADABLE, frame_counts, is_unsupported, named, row,
    truth_files,
};
use turboflow_packet::{Parser, ParserConfig, RejectClass};
use turboflow_testing::{Need, captures_folder, is_missing};

#[derive(Default)]
struct Metered {
    flows: BTreeMap<Key, Totals>,
    frames: u64,
    non_ip: u64,
    malformed: u64,
    unknown_link: BTreeMap<u32, u64>,
}

fn meter(file: &[u8]) -> Option<Metered> {
    let mut metered = Metered::default();
    let mut parser = Parser::new(ParserConfig::default());
    for record in support::read(file)? {
        metered.frames += 1;
        let Some(frame) = record.frame() else {
            *metered
                .unknown_link
                .entry(record.link_type_number)
                .or_default() += 1;
            continue;
        };
        let packet = match parser.parse(&frame) {
            Ok(packet) => packet,
            Err(rejected) => {
                match rejected.class() {
                    RejectClass::NonIp => metered.non_ip += 1,
                    RejectClass::Malformed => metered.malformed += 1,
                    RejectClass::Held => panic!("nothing is held without reassemble_flows"),
                }
                continue;
            }
        };
        let tuple = packet.tuple;
        let key = (
            tuple.source(),
            tuple.destination(),
            tuple.protocol(),
            tuple.source_port(),
            tuple.destination_port(),
        );
        let one = Totals {
            packets: 0,
            ip_bytes: 0,
            frame_bytes: 0,
            first_ns: packet.timestamp_ns,
            last_ns: packet.timestamp_ns,
            tcp_flags: 0,
            min_ip_length: packet.ip_length_bytes,
            max_ip_length: packet.ip_length_bytes,
        };
        let totals = metered.flows.entry(key).or_insert(one);
        totals.packets += 1;
        totals.ip_bytes += u64::from(packet.ip_length_bytes);
        totals.frame_bytes += u64::from(packet.frame_length_bytes);
        totals.first_ns = totals.first_ns.min(packet.timestamp_ns);
        totals.last_ns = totals.last_ns.max(packet.timestamp_ns);
        totals.tcp_flags |= packet.tcp_flags;
        totals.min_ip_length = totals.min_ip_length.min(packet.ip_length_bytes);
        totals.max_ip_length = totals.max_ip_length.max(packet.ip_length_bytes);
    }
    Some(metered)
}

#[derive(Default)]
struct Report {
    files: u64,
    rows: u64,
    packets: u64,
    rows_left_out: BTreeMap<String, u64>,
    links_left_out: BTreeMap<u32, u64>,
    differences: Vec<String>,
}

impl Report {
    fn compare(&mut self, capture: &Path, csv: &Path) {
        let name = capture.file_name().unwrap().to_string_lossy().into_owned();
        let Some(metered) = meter(&fs::read(capture).unwrap()) else {
            let rows = fs::read_to_string(csv).unwrap().lines().count();
            if rows > 1 {
                self.differences
                    .push(format!("{name}: not read, {rows} lines in the truth"));
            }
            return;
        };
        self.files += 1;
        self.packets += metered.frames;
        let mut whole = metered.unknown_link.is_empty();
        for (number, frames) in &metered.unknown_link {
            *self.links_left_out.entry(*number).or_default() += frames;
        }
        let mut seen = BTreeSet::new();
        for line in fs::read_to_string(csv).unwrap().lines().skip(1) {
            let (key, mut truth, stacks) = row(line);
            if is_unsupported(&stacks) {
                *self.rows_left_out.entry(stacks).or_default() += 1;
                whole = false;
                seen.insert(key);
                continue;
            }
            self.rows += 1;
            seen.insert(key);
            if named(capture, &EITHER) {
                continue;
            }
            let Some(mut ours) = metered.flows.get(&key).copied() else {
                self.differences
                    .push(format!("{name}: missing {key:?} {truth:?} {stacks}"));
                continue;
            };
            if named(capture, &IMPOSSIBLE_TIMES) {
                (ours.first_ns, ours.last_ns) = (0, 0);
                (truth.first_ns, truth.last_ns) = (0, 0);
            }
            if ours != truth {
                self.differences.push(format!(
                    "{name}: {key:?}\n   ours {ours:?}\n  truth {truth:?} {stacks}"
                ));
            }
        }
        if !whole || named(capture, &EITHER) {
            return;
        }
        for (key, totals) in metered.flows.iter().filter(|(key, _)| !seen.contains(*key)) {
            self.differences
                .push(format!("{name}: only ours {key:?} {totals:?}"));
        }
        self.compare_counters(&name, &metered, &csv.with_extension("json"));
    }

    fn compare_counters(&mut self, name: &str, metered: &Metered, json: &Path) {
        let json = fs::read_to_string(json).unwrap();
        let ours = [metered.frames, metered.non_ip, metered.malformed];
        let truth = frame_counts(&json);
        if ours != truth {
            self.differences.push(format!(
                "{name}: frames, non-IP, malformed: ours {ours:?}, truth {truth:?}"
            ));
        }
    }
}

#[test]
fn every_capture_equals_its_ground_truth() {
    if is_missing(&[Need::Captures]) {
        return;
    }
    let captures = captures_folder().unwrap();
    let truth = captures.join("truth");
    let mut report = Report::default();
    for csv in truth_files(&truth) {
        let capture = captures
            .join(csv.strip_prefix(&truth).unwrap())
            .with_extension("");
        if capture.is_file() {
            if !named(&capture, &UNREADABLE) {
                report.compare(&capture, &csv);
            }
        } else {
            eprintln!("no capture for {}", csv.display());
        }
    }
    eprintln!(
        "{} files, {} frames, {} rows compared",
        report.files, report.packets, report.rows
    );
    eprintln!("rows left out by stack: {:?}", report.rows_left_out);
    eprintln!("frames left out by link type: {:?}", report.links_left_out);
    assert!(
        report.differences.is_empty(),
        "{} differences:\n{}",
        report.differences.len(),
        report.differences.join("\n")
    );
    assert!(report.files > 0, "no capture was compared");
}
