// SPDX-License-Identifier: Apache-2.0
//! `--engine records`: microflow records from files give the flow records of the packets.

use turboflow_capture::CaptureFile;
use turboflow_engine::wire::Encoder;
use turboflow_engine::{EngineCounters, MicroflowBatch};
use turboflow_merge::{Layout, MicroflowRecord};
use turboflow_packet::{Frame, Parser, ParserConfig};
use turboflow_record::{Definition, Family};

use crate::support::{Folder, office, pcap_header, pcap_packet, turboflow};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// An engine that evicts every packet at once, and encodes its records.
pub(crate) struct Writer {
    encoder: Encoder,
    parser: Parser,
    batch: MicroflowBatch,
    counters: EngineCounters,
    pub(crate) messages: Vec<Vec<u8>>,
}

impl Writer {
    pub(crate) fn new(engine_id: u32, definition: &Definition) -> Self {
        let layout = Layout::compile(definition, false).unwrap();
        Self {
            encoder: Encoder::new(&layout, engine_id, 1_400),
            parser: Parser::new(ParserConfig::default()),
            batch: MicroflowBatch::default(),
            counters: EngineCounters::default(),
            messages: Vec::new(),
        }
    }

    pub(crate) fn frame(&mut self, frame: &Frame<'_>) {
        let counters = &mut self.counters;
        counters.packets_received += 1;
        counters.bytes_received += u64::from(frame.wire_length_bytes);
        match self.parser.parse(frame) {
            Ok(packet) => {
                counters.packets_metered += 1;
                counters.bytes_metered += u64::from(packet.ip_length_bytes);
                counters.evicted.collision += 1;
                match packet.tuple.family() {
                    Family::V4 => {
                        let record = MicroflowRecord::of_v4(&packet);
                        self.batch.plain_v4.push_record(record);
                    }
                    Family::V6 => {
                        let record = MicroflowRecord::of_v6(&packet);
                        self.batch.plain_v6.push_record(record);
                    }
                }
            }
            Err(rejected) => {
                counters.rejected_packets[rejected.index()] += 1;
                counters.rejected_bytes[rejected.index()] += u64::from(frame.wire_length_bytes);
            }
        }
    }

    /// Ends a cell of time.
    pub(crate) fn complete(&mut self, watermark_ns: u64, is_end: bool) {
        let Self {
            encoder,
            batch,
            counters,
            messages,
            ..
        } = self;
        encoder.records(batch, |message| messages.push(message.to_vec()));
        encoder.counters(counters, watermark_ns, is_end, |message| {
            messages.push(message.to_vec());
        });
        batch.clear();
    }
}

/// The messages of an engine that sees all packets of the sample.
fn messages() -> Vec<Vec<u8>> {
    divided(usize::MAX).0
}

/// The messages of an engine that passes on one of `one_in` frames of the sample unprocessed, and a
/// capture of these frames.
fn divided(one_in: usize) -> (Vec<Vec<u8>>, Vec<u8>) {
    const ETHERNET: u32 = 1;
    let (mut whole, mut seen) = (pcap_header(ETHERNET), 0);
    let mut writer = Writer::new(1, &Definition::default());
    let mut file = CaptureFile::open(office().as_ref()).unwrap();
    let mut second = 0;
    while let Some(batch) = file.next_batch(1_024).unwrap() {
        for frame in batch.frames() {
            let now = frame.timestamp_ns / SECOND_NS;
            if now > second && second > 0 {
                writer.complete(now * SECOND_NS, false);
            }
            second = second.max(now);
            seen += 1;
            if seen % one_in == 0 {
                whole.extend(pcap_packet(frame.timestamp_ns / 1_000, frame.bytes));
                continue;
            }
            writer.frame(frame);
        }
    }
    // The end of a capture, without a watermark: no flow may become idle after the last packet.
    writer.complete(0, true);
    (writer.messages, whole)
}

pub(crate) fn sorted(csv: &str) -> Vec<&str> {
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

/// A card passes on frames that its parser cannot read. The run's flows are those of all frames,
/// and its ledger counts all of them.
#[test]
fn frames_that_came_whole_join_the_records_of_the_same_run() {
    let folder = Folder::new();
    let (messages, whole) = divided(7);
    let records = folder.write("card.records", messages.concat());
    let whole = folder.write("whole.pcap", whole);
    let (ledger, of_all) = (folder.file("ledger.json"), folder.file("all.json"));
    let both = ["--records-from", &records, "--frames-from", &whole];
    let record = [
        "record", "--engine", "records", "-w", "-", "--format", "csv",
    ];
    let joined = turboflow(record.iter().chain(&both).chain(&["--ledger", &ledger])).exits(0);
    let read = [
        "record",
        "-r",
        &office(),
        "-w",
        "-",
        "--format",
        "csv",
        "--ledger",
        &of_all,
    ];
    let read = turboflow(read).exits(0);
    assert!(read.stdout.lines().count() > 700);
    assert_eq!(sorted(&joined.stdout), sorted(&read.stdout));
    let [ledger, of_all] = ["ledger.json", "all.json"]
        .map(|name| -> serde_json::Value { serde_json::from_str(&folder.read(name)).unwrap() });
    assert_eq!(ledger["balanced"], true, "{ledger:#}");
    for sum in ["packets_recorded", "bytes_recorded"] {
        assert!(ledger[sum].as_u64() > Some(0), "{ledger:#}");
        assert_eq!(ledger[sum], of_all[sum], "{sum}");
    }
}

/// Packets before the damage are metered, and the damage is reported.
#[test]
fn a_capture_of_whole_frames_that_is_cut_is_said() {
    let folder = Folder::new();
    let (messages, whole) = divided(7);
    let records = folder.write("card.records", messages.concat());
    let cut = folder.write("cut.pcap", &whole[..whole.len() - 5]);
    let ledger = folder.file("ledger.json");
    let both = ["--records-from", &records, "--frames-from", &cut];
    let to = ["-w", &folder.file("out.csv"), "--ledger", &ledger];
    turboflow(
        ["record", "--engine", "records"]
            .iter()
            .chain(&both)
            .chain(&to),
    )
    .exits(1)
    .says(&["cut.pcap"]);
    let ledger: serde_json::Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    assert_eq!(ledger["balanced"], true, "{ledger:#}");
    // The truncated frame still has its headers.
    assert_eq!(ledger["packets_recorded"], 13_004, "{ledger:#}");
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
        "were lost on the way to this process",
        "they did not arrive",
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
            "has a source of its own (--records-from, --frames-from): leave out --read",
        ),
        (&from[..], "is for engine `records`: add --engine records"),
    ] {
        turboflow([&["record"][..], options].concat())
            .exits(2)
            .says(&[words]);
    }
    // Records of another definition are refused, and an existing output is kept.
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
