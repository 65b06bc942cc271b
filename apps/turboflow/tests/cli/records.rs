// SPDX-License-Identifier: Apache-2.0
//! `--engine records`: microflow records that came by way of a file give the flow records of the
//! packets.

use turboflow_capture::CaptureFile;
use turboflow_engine::wire::Encoder;
use turboflow_engine::{EngineCounters, MicroflowBatch};
use turboflow_merge::{Layout, MicroflowRecord};
use turboflow_packet::{Parser, ParserConfig};
use turboflow_record::{Definition, Family};

use crate::support::{Folder, office, turboflow};

const SECOND_NS: u64 = 1_000_000_000;

/// An engine that evicts every packet at once, and writes its records to a file.
struct Writer {
    encoder: Encoder,
    batch: MicroflowBatch,
    counters: EngineCounters,
    messages: Vec<Vec<u8>>,
}

impl Writer {
    /// Ends a cell of the clock.
    fn complete(&mut self, watermark_ns: u64, is_end: bool) {
        let Self {
            encoder,
            batch,
            counters,
            messages,
        } = self;
        encoder.records(batch, |message| messages.push(message.to_vec()));
        encoder.counters(counters, watermark_ns, is_end, |message| {
            messages.push(message.to_vec());
        });
        batch.clear();
    }
}

/// The messages of an engine that sees the packets of the sample.
fn messages() -> Vec<Vec<u8>> {
    let layout = Layout::compile(&Definition::default(), false).unwrap();
    let mut writer = Writer {
        encoder: Encoder::new(&layout, 1, 1_400),
        batch: MicroflowBatch::default(),
        counters: EngineCounters::default(),
        messages: Vec::new(),
    };
    let mut parser = Parser::new(ParserConfig::default());
    let mut file = CaptureFile::open(office().as_ref()).unwrap();
    let mut second = 0;
    while let Some(batch) = file.next_batch(1_024).unwrap() {
        for frame in batch.frames() {
            let now = frame.timestamp_ns / SECOND_NS;
            if now > second && second > 0 {
                writer.complete(now * SECOND_NS, false);
            }
            second = second.max(now);
            let counters = &mut writer.counters;
            counters.packets_received += 1;
            counters.bytes_received += u64::from(frame.wire_length_bytes);
            match parser.parse(frame) {
                Ok(packet) => {
                    counters.packets_metered += 1;
                    counters.bytes_metered += u64::from(packet.ip_length_bytes);
                    counters.evicted.collision += 1;
                    match packet.tuple.family() {
                        Family::V4 => {
                            let record = MicroflowRecord::of_v4(&packet);
                            writer.batch.plain_v4.push_record(record);
                        }
                        Family::V6 => {
                            let record = MicroflowRecord::of_v6(&packet);
                            writer.batch.plain_v6.push_record(record);
                        }
                    }
                }
                Err(rejected) => {
                    counters.rejected_packets[rejected.index()] += 1;
                    counters.rejected_bytes[rejected.index()] += u64::from(frame.wire_length_bytes);
                }
            }
        }
    }
    // Without a watermark, as a capture ends: flows are not idle for longer than to its last
    // packet.
    writer.complete(0, true);
    writer.messages
}

fn sorted(csv: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = csv.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn flow_records_are_those_of_the_packets() {
    let folder = Folder::new();
    let path = folder.write("microflows.records", messages().concat());
    let (replayed, read) = (folder.file("replayed.csv"), folder.file("read.csv"));
    let ledger = folder.file("ledger.json");
    let replay = ["record", "--engine", "records", "--records-from", &path];
    turboflow(replay.iter().chain(&["-w", &replayed, "--ledger", &ledger]))
        .exits(0)
        .says(&["every packet is accounted for"]);
    turboflow(["record", "-r", &office(), "-w", &read]).exits(0);
    let (replayed, read) = (folder.read("replayed.csv"), folder.read("read.csv"));
    assert!(read.lines().count() > 700);
    let (replayed, read) = (sorted(&replayed), sorted(&read));
    let other = |lines: &[&str], others: &[&str]| -> Vec<String> {
        let other = lines.iter().filter(|line| !others.contains(line));
        other.map(|line| (*line).to_owned()).collect()
    };
    let (only_replayed, only_read) = (other(&replayed, &read), other(&read, &replayed));
    assert_eq!((only_replayed, only_read), (vec![], vec![]));
    assert_eq!(replayed.len(), read.len());
}

#[test]
fn a_message_that_is_missing_is_a_loss_that_is_said() {
    let folder = Folder::new();
    let mut messages = messages();
    messages.remove(1);
    let path = folder.write("microflows.records", messages.concat());
    let out = folder.file("out.csv");
    let replay = [
        "record",
        "--engine",
        "records",
        "--records-from",
        &path,
        "-w",
        &out,
    ];
    turboflow(replay).exits(1).says(&[
        "were lost between the engine and here",
        "on their way",
        "every other packet is accounted for",
    ]);
}

#[test]
fn a_damaged_file_does_not_keep_others_from_being_merged() {
    let folder = Folder::new();
    let whole = messages().concat();
    let half = folder.write("half.records", &whole[..whole.len() / 2]);
    let other = folder.write("whole.records", &whole);
    let ledger = folder.file("ledger.json");
    let out = folder.file("out.csv");
    let replay = [
        "record",
        "--engine",
        "records",
        "--records-from",
        &half,
        &other,
    ];
    turboflow(replay.iter().chain(&["-w", &out, "--ledger", &ledger]))
        .exits(1)
        .says(&["half.records, at byte "]);
    let ledger: serde_json::Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    assert_eq!(ledger["balanced"], true, "{ledger:#}");
    assert!(ledger["packets_recorded"].as_u64().unwrap() > 13_004);
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_written() {
    let folder = Folder::new();
    let path = folder.write("microflows.records", messages().concat());
    let definition = "[[feature]]\nname = \"l\"\nop = \"list\"\nk = 4\nof = \"ip_length\"\n";
    let definition = folder.write("d.toml", definition);
    let records = ["--engine", "records"];
    let from = ["--records-from", path.as_str()];
    for (options, words) in [
        (&records[..], "needs a file: add --records-from FILE"),
        (
            &[&records[..], &["--records-from", "/nonexistent"]].concat(),
            "/nonexistent",
        ),
        (
            &[&records[..], &from, &["--decapsulate"]].concat(),
            "does not support --decapsulate",
        ),
        (
            &[&records[..], &from, &["-r", "a.pcap"]].concat(),
            "has a source of its own: leave out --read",
        ),
        (&from[..], "is for engine `records`: add --engine records"),
    ] {
        turboflow([&["record"][..], options].concat())
            .exits(2)
            .says(&[words]);
    }
    // Records of another definition: an output that exists stays.
    let out = folder.write("keep.csv", "kept");
    let other = ["--definition", &definition, "-w", &out];
    turboflow([&["record"][..], &records, &from, &other].concat())
        .exits(2)
        .says(&["microflows.records, at byte 0", "layout"]);
    assert_eq!(folder.read("keep.csv"), "kept");
    turboflow([&["top", "--batch", "1"][..], &records, &from].concat())
        .exits(2)
        .says(&["is for `turboflow record`"]);
}
