// SPDX-License-Identifier: Apache-2.0
//! Every capture against its ground truth, through the whole product: for any size of the
//! microflow table, any number of threads and any seed, with no timeout the records of a key add
//! up to what tshark says of it.
//!
//! The captures of `shared/captures` are no part of the project (licences differ): where the
//! folder is not there the test says so. The project's own samples are always compared.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

#[path = "../../packet/tests/support/ground_truth.rs"]
mod ground_truth;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use ground_truth::{
    EITHER, IMPOSSIBLE_TIMES, Key, Totals, UNREADABLE, frame_counts, is_unsupported, named, row,
    truth_files,
};
use turboflow_aggregate::Timeouts;
use turboflow_capture::{CaptureFile, Counters, OpenError};
use turboflow_engine_software::Sizing;
use turboflow_pipeline::{Ledger, Meter, PipelineConfig};
use turboflow_record::{FlowBatch, Schema, Value};

const SIZINGS: [Sizing; 4] = [
    Sizing::Fixed(1),
    Sizing::Fixed(7),
    Sizing::Fixed(1_024),
    Sizing::Adaptive,
];
const THREADS: [usize; 2] = [1, 2];
const SEEDS: [u64; 3] = [1, 0x0123_4567_89ab_cdef, u64::MAX];

/// A way to meter.
#[derive(Clone, Copy, Debug)]
struct Way {
    sizing: Sizing,
    threads: usize,
    seed: u64,
}

impl Way {
    fn all() -> Vec<Self> {
        let mut ways = Vec::new();
        for sizing in SIZINGS {
            for threads in THREADS {
                ways.extend(SEEDS.map(|seed| Self {
                    sizing,
                    threads,
                    seed,
                }));
            }
        }
        ways
    }

    fn config(self) -> PipelineConfig {
        PipelineConfig {
            timeouts: Timeouts {
                idle_ns: None,
                active_ns: None,
                linger_ns: None,
            },
            sizing: self.sizing,
            threads: self.threads,
            seed: self.seed,
            ..PipelineConfig::default()
        }
    }
}

type Flows = HashMap<Key, Totals>;

/// Adds the records of a batch up by key.
struct Sums {
    columns: [usize; 12],
    flows: Flows,
}

impl Sums {
    fn new(schema: &Schema) -> Self {
        let at = |name| {
            schema
                .iter()
                .position(|column| column.name == name)
                .unwrap()
        };
        let columns = [
            "src_addr",
            "dst_addr",
            "protocol",
            "src_port",
            "dst_port",
            "packets",
            "bytes",
            "first_ns",
            "last_ns",
            "tcp_flags",
            "min_length",
            "max_length",
        ];
        Self {
            columns: columns.map(at),
            flows: Flows::new(),
        }
    }

    fn add(&mut self, batch: &FlowBatch) {
        for row in 0..batch.rows() {
            let address = |index: usize| match batch.value(row, self.columns[index]) {
                Value::Address(address) => address,
                other => panic!("{other:?} is no address"),
            };
            let number = |index: usize| match batch.value(row, self.columns[index]) {
                Value::Unsigned(number) => number,
                other => panic!("{other:?} is no number"),
            };
            let port = |index| number(index) as u16;
            let key = (address(0), address(1), number(2) as u8, port(3), port(4));
            let record = Totals {
                packets: number(5),
                ip_bytes: number(6),
                frame_bytes: 0,
                first_ns: number(7),
                last_ns: number(8),
                tcp_flags: number(9) as u16,
                min_ip_length: number(10) as u32,
                max_ip_length: number(11) as u32,
            };
            merge(&mut self.flows, key, record);
        }
    }
}

fn merge(flows: &mut Flows, key: Key, record: Totals) {
    let empty = Totals {
        packets: 0,
        ip_bytes: 0,
        tcp_flags: 0,
        ..record
    };
    let flow = flows.entry(key).or_insert(empty);
    flow.packets += record.packets;
    flow.ip_bytes += record.ip_bytes;
    flow.first_ns = flow.first_ns.min(record.first_ns);
    flow.last_ns = flow.last_ns.max(record.last_ns);
    flow.tcp_flags |= record.tcp_flags;
    flow.min_ip_length = flow.min_ip_length.min(record.min_ip_length);
    flow.max_ip_length = flow.max_ip_length.max(record.max_ip_length);
}

/// What a capture gives when it is metered one way.
fn meter(mut file: CaptureFile, way: Way) -> (Flows, Ledger, Counters) {
    let config = way.config();
    let layout = config.compile().unwrap();
    let sums = Arc::new(Mutex::new(Sums::new(layout.schema())));
    let mut meter = Meter::new(&config, |_shard| {
        let sums = Arc::clone(&sums);
        Box::new(move |batch| {
            sums.lock().unwrap().add(batch);
            batch.clear();
        })
    })
    .unwrap();
    // Damage ends the file: what came before counts, as it does for tshark.
    while let Ok(Some(batch)) = file.next_batch(1_024) {
        meter.frames(batch.frames());
    }
    let ledger = meter.finish().ledger;
    let flows = std::mem::take(&mut sums.lock().unwrap().flows);
    (flows, ledger, file.counters())
}

#[derive(Default)]
struct Report {
    files: u64,
    runs: u64,
    rows: u64,
    packets: u64,
    rows_left_out: BTreeMap<String, u64>,
    packets_left_out: BTreeMap<String, u64>,
    files_left_out: BTreeMap<String, u64>,
    differences: Vec<String>,
}

/// What the truth says of a capture.
struct Truth {
    rows: Vec<(Key, Totals)>,
    /// Keys of stacks that are not read: what is metered of them is not compared.
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
                *self.files_left_out.entry(link).or_default() += 1;
                return;
            }
            Err(error) => return self.differences.push(error.to_string()),
        }
        let truth = self.truth(csv);
        self.files += 1;
        self.rows += truth.rows.len() as u64;
        for way in Way::all() {
            let (flows, ledger, counters) = meter(open().unwrap(), way);
            self.runs += 1;
            self.packets += ledger.packets_received;
            let found = differences(capture, &truth, flows, &ledger, counters);
            let found = found
                .into_iter()
                .map(|what| format!("{name}, {way:?}: {what}"));
            self.differences.extend(found.take(5));
        }
    }

    fn conclude(&self) {
        eprintln!(
            "{} captures, {} runs, {} rows, {} packets metered",
            self.files, self.runs, self.rows, self.packets
        );
        eprintln!("files left out by link type: {:?}", self.files_left_out);
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
    // Where some stack or link type is not read, its frames are counted elsewhere than in tshark.
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

/// The captures of the workplace, where they are.
fn captures() -> Option<PathBuf> {
    let folder = project().join("../shared/captures");
    if folder.join("truth").is_dir() {
        return Some(folder);
    }
    eprintln!(
        "SKIPPED: no captures at {}: only the project's samples were compared",
        folder.display()
    );
    None
}

#[test]
fn samples_equal_their_truth_any_way_they_are_metered() {
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
fn every_capture_equals_its_truth_any_way_it_is_metered() {
    let Some(folder) = captures() else { return };
    let mut report = Report::default();
    for (capture, csv) in pairs(&folder) {
        report.compare(&capture, &csv);
    }
    report.conclude();
}

/// Every so many-th capture goes through the program itself.
const SAMPLED: usize = 12;

#[test]
fn the_program_writes_what_the_truth_says() {
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
    if let Some(folder) = captures() {
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

/// The flows that `turboflow record` writes; `None` where it does not read the link type.
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
        Some(1) => assert!(!said.is_empty(), "exit 1 says why"),
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
