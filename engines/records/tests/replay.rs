// SPDX-License-Identifier: Apache-2.0
//! A replay hands over what was written: records, watermarks, counters and losses.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the report")]

use std::path::PathBuf;

use tempfile::TempDir;
use turboflow_engine::wire::Encoder;
use turboflow_engine::{EngineCounters, MicroflowBatch, RemoteEngine};
use turboflow_engine_records::RecordsEngine;
use turboflow_merge::{Base, Layout, MicroflowRecord};
use turboflow_record::{Definition, WORDS_V4};

const SECOND_NS: u64 = 1_000_000_000;

fn layout() -> Layout {
    Layout::compile(&Definition::default(), false).unwrap()
}

/// A batch of records in the given second, each of one packet of 100 bytes.
fn batch(second: u64, records: u64) -> MicroflowBatch {
    let mut batch = MicroflowBatch::default();
    for index in 0..records {
        let time_ns = second * SECOND_NS + index;
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

/// The messages of an engine: for each second its number of records, then counters.
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

/// An engine that replays a file of these messages.
fn engine(folder: &TempDir, messages: impl IntoIterator<Item = Vec<u8>>) -> RecordsEngine {
    let path = folder.path().join("microflows.records");
    let bytes: Vec<u8> = messages.into_iter().flatten().collect();
    std::fs::write(&path, bytes).unwrap();
    RecordsEngine::open(&[path], &layout()).unwrap()
}

/// Everything that an engine hands over: watermarks, each with its number of records.
fn collected(engine: &mut RecordsEngine) -> Vec<(u64, usize)> {
    let (mut told, mut records) = (Vec::new(), 0);
    while !engine.has_ended() {
        let mut batch = MicroflowBatch::default();
        let collected = engine.collect(&mut batch).unwrap();
        records += batch.len();
        if let Some(complete_ns) = collected.complete_ns {
            told.push((complete_ns, std::mem::take(&mut records)));
        }
    }
    if records > 0 {
        told.push((u64::MAX, records));
    }
    told
}

#[test]
fn each_second_is_handed_over_with_its_watermark() {
    let folder = TempDir::new().unwrap();
    let mut engine = engine(&folder, messages(7, &[(10, 3), (11, 5_000), (15, 1)]));
    let told = collected(&mut engine);
    let expected = [(11, 3), (12, 5_000), (u64::MAX, 1)];
    let expected = expected.map(|(second, records): (u64, usize)| match second {
        u64::MAX => (second, records),
        second => (second * SECOND_NS, records),
    });
    assert_eq!(told, expected);
    let counters = engine.counters().unwrap();
    assert_eq!(counters.packets_metered, 5_004);
    assert_eq!(
        (counters.microflows_dropped, counters.packets_dropped),
        (0, 0)
    );
}

#[test]
fn the_clock_follows_the_slowest_of_several_senders() {
    let folder = TempDir::new().unwrap();
    let (fast, slow) = (
        messages(1, &[(10, 1), (20, 1)]),
        messages(2, &[(5, 1), (12, 1)]),
    );
    // First the counters of the fast sender, at 11 s, then those of the slow one, at 6 s.
    let order = [&fast[..2], &slow[..2], &fast[2..], &slow[2..]].concat();
    let mut engine = engine(&folder, order);
    let told: Vec<u64> = collected(&mut engine).iter().map(|(ns, _)| *ns).collect();
    assert!(told.contains(&(6 * SECOND_NS)), "{told:?}");
    assert_eq!(engine.counters().unwrap().packets_metered, 4);
}

#[test]
fn a_missing_message_counts_as_lost_records_and_packets() {
    let folder = TempDir::new().unwrap();
    let mut sent = messages(7, &[(10, 100)]);
    let whole = engine(&folder, sent.clone()).counters().unwrap();
    assert_eq!(whole.packets_metered, 0, "nothing was read yet");
    sent.remove(1);
    let mut engine = engine(&folder, sent);
    let arrived: usize = collected(&mut engine).iter().map(|(_, count)| count).sum();
    let counters = engine.counters().unwrap();
    let lost = 100 - arrived as u64;
    assert!(lost > 0);
    assert_eq!(counters.microflows_dropped, lost);
    assert_eq!(counters.packets_dropped, lost);
    assert_eq!(counters.bytes_dropped, 100 * lost);
    assert_eq!(counters.packets_metered, 100);
}

#[test]
fn an_invalid_message_is_reported_with_its_offset() {
    let folder = TempDir::new().unwrap();
    let mut sent = messages(7, &[(10, 1)]);
    let offset: usize = sent.iter().map(Vec::len).sum();
    sent.push(b"not a message, and longer than the header of one".to_vec());
    let mut engine = engine(&folder, sent);
    let mut batch = MicroflowBatch::default();
    let error = loop {
        match engine.collect(&mut batch) {
            Ok(_) => {}
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains(&format!("at byte {offset}")), "{error}");
    let other = PathBuf::from("/nonexistent.records");
    assert!(RecordsEngine::open(&[other], &layout()).is_err());
}
