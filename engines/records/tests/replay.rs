// SPDX-License-Identifier: Apache-2.0
//! A replay hands over what was written: records, watermarks, counters and losses.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use tempfile::TempDir;
use turboflow_engine::wire::Encoder;
use turboflow_engine::{EngineCounters, MicroflowBatch, RemoteEngine};
use turboflow_engine_records::{RecordsEngine, RecordsError};
use turboflow_merge::{Base, Layout, MicroflowRecord};
use turboflow_record::{Definition, WORDS_V4};

const SECOND_NS: u64 = 1_000_000_000;

fn layout() -> Layout {
    Layout::compile(&Definition::default(), false).unwrap()
}

/// A batch of records in the given second, each of one packet of 100 bytes.
fn batch(second: u64, records: u64) -> MicroflowBatch {
    batch_at(second * SECOND_NS, records)
}

fn batch_at(begin_ns: u64, records: u64) -> MicroflowBatch {
    let mut batch = MicroflowBatch::default();
    for index in 0..records {
        let time_ns = begin_ns + index;
        let record: MicroflowRecord<WORDS_V4, 0> = MicroflowRecord {
            key: [index + 1, 6],
            base: Base {
                packets: 1,
                bytes: 100,
                first_ns: time_ns,
                last_ns: time_ns,
                ..Base::default()
            },
            state: [],
        };
        batch.plain_v4.push_record(record);
    }
    batch
}

/// The messages of an engine: for each second this number of records, then counters.
fn messages(engine_id: u32, seconds: &[(u64, u64)]) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(&layout(), engine_id, 1_400);
    let (mut messages, mut counters) = (Vec::new(), EngineCounters::default());
    for (place, &(second, records)) in seconds.iter().enumerate() {
        encoder.records(&batch(second, records), |message| {
            messages.push(message.to_vec());
        });
        counters.packets_received += records;
        counters.packets_metered += records;
        counters.bytes_metered += 100 * records;
        counters.evicted.age += records;
        let is_end = place + 1 == seconds.len();
        let watermark_ns = (second + 1) * SECOND_NS;
        encoder.counters(&counters, watermark_ns, is_end, |message| {
            messages.push(message.to_vec());
        });
    }
    messages
}

/// An engine over a file of these messages, after `begin`.
fn begun(
    folder: &TempDir,
    messages: impl IntoIterator<Item = Vec<u8>>,
) -> Result<RecordsEngine, RecordsError> {
    let path = folder.path().join("microflows.records");
    let bytes: Vec<u8> = messages.into_iter().flatten().collect();
    std::fs::write(&path, bytes).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let mut engine = RecordsEngine::new(path, Box::new(file), &layout());
    engine.begin().map(|has_begun| {
        assert!(has_begun, "a file has all that it will have");
        engine
    })
}

fn engine(folder: &TempDir, messages: impl IntoIterator<Item = Vec<u8>>) -> RecordsEngine {
    begun(folder, messages).unwrap()
}

/// What an engine hands over: the number of records before each watermark, and its error.
fn collected(engine: &mut RecordsEngine) -> (Vec<(u64, usize)>, Option<String>) {
    let (mut told, mut records) = (Vec::new(), 0);
    let error = loop {
        let mut batch = MicroflowBatch::default();
        let collected = match engine.collect(&mut batch) {
            Ok(collected) => collected,
            Err(error) => break Some(error.to_string()),
        };
        records += batch.len();
        match collected.complete_ns {
            Some(complete_ns) => told.push((complete_ns, std::mem::take(&mut records))),
            None if engine.has_ended() => break None,
            None => {}
        }
    };
    if records > 0 {
        told.push((u64::MAX, records));
    }
    (told, error)
}

#[test]
fn records_wait_until_the_clock_is_there() {
    let folder = TempDir::new().unwrap();
    let mut engine = engine(&folder, messages(7, &[(10, 3), (11, 5_000), (15, 1)]));
    assert_eq!(engine.started_ns(), 10 * SECOND_NS);
    // Nothing came between 12 s and 15 s: the clock advances there before the records do.
    let second = |(second, records): (u64, usize)| (second * SECOND_NS, records);
    let expected = [(11, 3), (12, 5_000), (15, 0), (16, 1)].map(second);
    assert_eq!(collected(&mut engine), (expected.to_vec(), None));
    let counters = engine.counters().unwrap();
    assert_eq!(counters.packets_metered, 5_004);
    assert_eq!(
        (counters.microflows_dropped, counters.packets_dropped),
        (0, 0)
    );
}

/// A sender with much to send passes on only the last of several watermarks.
#[test]
fn records_wait_for_their_cell_if_watermarks_are_missing() {
    const TENTH_NS: u64 = SECOND_NS / 10;
    let mut encoder = Encoder::new(&layout(), 7, 1_400);
    let mut bytes = Vec::new();
    let mut all = MicroflowBatch::default();
    for tenth in [109, 111, 119, 121] {
        all.append(&mut batch_at(tenth * TENTH_NS, 1));
    }
    let counters = EngineCounters {
        packets_received: 4,
        packets_metered: 4,
        ..EngineCounters::default()
    };
    encoder.records(&all, |message| bytes.push(message.to_vec()));
    encoder.counters(&counters, 13 * SECOND_NS, true, |message| {
        bytes.push(message.to_vec());
    });
    let folder = TempDir::new().unwrap();
    let tenths = |told: &[(u64, usize)]| -> Vec<(u64, usize)> {
        let told = told.iter();
        told.map(|&(tenth, records)| (tenth * TENTH_NS, records))
            .collect()
    };
    let mut in_seconds = engine(&folder, bytes.clone());
    let expected = tenths(&[(110, 1), (111, 0), (120, 2), (121, 0), (130, 1)]);
    assert_eq!(collected(&mut in_seconds), (expected, None));
    let mut in_halves = engine(&folder, bytes).in_cells_of(SECOND_NS / 2);
    let expected = tenths(&[
        (110, 1),
        (111, 0),
        (115, 1),
        (119, 0),
        (120, 1),
        (121, 0),
        (130, 1),
    ]);
    assert_eq!(collected(&mut in_halves), (expected, None));
}

/// A thread of the sender may be ahead of the one whose watermark counts.
#[test]
fn records_later_than_the_watermark_wait_for_the_next_one() {
    let mut encoder = Encoder::new(&layout(), 7, 1_400);
    let mut bytes = Vec::new();
    let mut counters = EngineCounters::default();
    for (seconds, watermark, is_end) in [(&[10, 11, 12][..], 11, false), (&[11], 13, true)] {
        for second in seconds {
            encoder.records(&batch(*second, 1), |message| bytes.push(message.to_vec()));
            counters.packets_received += 1;
            counters.packets_metered += 1;
        }
        let watermark_ns = watermark * SECOND_NS;
        encoder.counters(&counters, watermark_ns, is_end, |message| {
            bytes.push(message.to_vec());
        });
    }
    let folder = TempDir::new().unwrap();
    let second = |(second, records): (u64, usize)| (second * SECOND_NS, records);
    let expected = [(11, 1), (12, 2), (13, 1)].map(second);
    let (told, error) = collected(&mut engine(&folder, bytes));
    let told: Vec<_> = told
        .into_iter()
        .filter(|(_, records)| *records > 0)
        .collect();
    assert_eq!((told, error), (expected.to_vec(), None));
}

#[test]
fn a_sender_that_was_started_again_goes_on_in_its_file() {
    let folder = TempDir::new().unwrap();
    let both = [messages(7, &[(10, 5)]), messages(7, &[(100, 8)])].concat();
    let mut engine = engine(&folder, both);
    let (told, error) = collected(&mut engine);
    assert_eq!(error, None);
    assert_eq!(told.iter().map(|(_, count)| count).sum::<usize>(), 13);
    let counters = engine.counters().unwrap();
    assert_eq!(
        (counters.packets_metered, counters.packets_dropped),
        (13, 0)
    );
    assert_eq!(counters.evicted.total(), 13);
}

#[test]
fn a_missing_message_counts_as_lost_records_and_packets() {
    let folder = TempDir::new().unwrap();
    let mut sent = messages(7, &[(10, 100)]);
    sent.remove(1);
    let mut engine = engine(&folder, sent);
    let (told, error) = collected(&mut engine);
    assert_eq!(error, None);
    let arrived: usize = told.iter().map(|(_, count)| count).sum();
    let counters = engine.counters().unwrap();
    let lost = 100 - arrived as u64;
    assert!(lost > 0);
    assert_eq!(counters.microflows_dropped, lost);
    assert_eq!(counters.packets_dropped, lost);
    assert_eq!(counters.bytes_dropped, 100 * lost);
    assert_eq!(counters.packets_metered, 100);
}

#[test]
fn a_missing_first_message_is_a_loss_where_the_sender_counts() {
    let folder = TempDir::new().unwrap();
    let mut sent = messages(7, &[(10, 100)]);
    sent.remove(0);
    let mut engine = engine(&folder, sent);
    collected(&mut engine);
    let counters = engine.counters().unwrap();
    assert!(counters.packets_dropped > 0);
    assert_eq!(counters.packets_metered, 100);
}

#[test]
fn a_file_without_an_end_is_an_error_after_its_records() {
    let folder = TempDir::new().unwrap();
    let mut sent = messages(7, &[(10, 3), (11, 4)]);
    sent.pop();
    let mut engine = engine(&folder, sent);
    let (told, error) = collected(&mut engine);
    // The records of the last cell are handed over without a watermark.
    assert_eq!(told, [(11 * SECOND_NS, 3), (u64::MAX, 4)]);
    assert!(error.unwrap().contains("without the last message"));
    assert!(engine.has_ended());
    assert_eq!(engine.counters().unwrap().packets_metered, 7);
}

#[test]
fn streams_that_break_the_rules_are_reported_with_their_offset() {
    let folder = TempDir::new().unwrap();
    let one = messages(7, &[(10, 1), (11, 1)]);
    let cut = |count: usize| one[..count].to_vec();
    let garbage = b"not a message, and longer than the header of one".to_vec();
    let bytes = |messages: &[Vec<u8>]| messages.iter().map(Vec::len).sum::<usize>();
    for (sent, place, words) in [
        ([cut(2), vec![garbage]].concat(), bytes(&cut(2)), ""),
        (
            [cut(2), messages(8, &[(11, 1)])].concat(),
            bytes(&cut(2)),
            "another engine",
        ),
        (
            [cut(3), vec![one[0].clone()]].concat(),
            bytes(&cut(3)),
            "read before",
        ),
    ] {
        let mut engine = engine(&folder, sent);
        let (told, error) = collected(&mut engine);
        let error = error.unwrap();
        // Nothing from there on was handed over.
        let handed_over: usize = told.iter().map(|(_, count)| count).sum();
        let counted = engine.counters().unwrap().packets_metered;
        assert_eq!(handed_over as u64, counted, "{error}");
        assert!(error.contains(&format!("at byte {place}: ")), "{error}");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_file_of_something_else_does_not_begin() {
    let folder = TempDir::new().unwrap();
    for foreign in [Vec::new(), b"#!/usr/bin/env python3, and so on".to_vec()] {
        let refused = begun(&folder, [foreign]);
        assert!(refused.err().unwrap().to_string().contains("at byte 0"));
    }
}

#[test]
fn a_run_that_leaves_a_file_counts_what_it_read() {
    let folder = TempDir::new().unwrap();
    let mut engine = engine(&folder, messages(7, &[(10, 3), (11, 4)]));
    let mut batch = MicroflowBatch::default();
    engine.collect(&mut batch).unwrap();
    assert_eq!(batch.len(), 3);
    assert!(engine.ends_by_itself() && !engine.has_ended());
    engine.finish().unwrap();
    assert_eq!(collected(&mut engine), (Vec::new(), None));
    assert!(engine.has_ended());
    let counters = engine.counters().unwrap();
    assert_eq!((counters.packets_metered, counters.packets_dropped), (3, 0));
}

/// A pipe with nothing to read at every second attempt.
struct SlowPipe(Vec<u8>, bool);

impl std::io::Read for SlowPipe {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(std::io::ErrorKind::WouldBlock.into());
        }
        let count = self.0.len().min(buffer.len()).min(50);
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0.drain(..count);
        Ok(count)
    }
}

#[test]
fn a_pipe_is_never_waited_for() {
    let stream = messages(7, &[(10, 3), (11, 4)]).concat();
    let pipe = Box::new(SlowPipe(stream, false));
    let mut engine = RecordsEngine::new("pipe".into(), pipe, &layout());
    let mut attempts = 0;
    while !engine.begin().unwrap() {
        assert!(engine.longest_pause() > std::time::Duration::ZERO);
        attempts += 1;
    }
    assert!(attempts > 3, "{attempts}");
    let (told, error) = collected(&mut engine);
    assert_eq!((told.len(), error), (2, None));
}

#[test]
fn records_of_a_sender_without_watermarks_are_handed_over_in_their_order_of_time() {
    let folder = TempDir::new().unwrap();
    let mut encoder = Encoder::new(&layout(), 7, 1_400);
    let mut sent = Vec::new();
    for second in [10, 110, 210] {
        encoder.records(&batch(second, 2), |message| sent.push(message.to_vec()));
    }
    let counters = EngineCounters::default();
    encoder.counters(&counters, 0, true, |message| sent.push(message.to_vec()));
    let mut engine = engine(&folder, sent);
    let (told, error) = collected(&mut engine);
    let expected = [(11, 2), (110, 0), (111, 2), (210, 0)];
    let expected = expected.map(|(second, records): (u64, usize)| (second * SECOND_NS, records));
    assert_eq!(told[..4], expected);
    assert_eq!((told[4], error), ((u64::MAX, 2), None));
    assert_eq!(engine.counters().unwrap().packets_metered, 6);
}
