// SPDX-License-Identifier: Apache-2.0
//! What the table hands over, merged per flow, is what one pass over the flow's packets gives.

use std::collections::HashMap;

use turboflow_engine_xdp::{Batch, KernelConfig, KernelCounters};
use turboflow_packet::{Parser, ParserConfig, Rejected};
use turboflow_record::Base;

use crate::support::{
    Record, captures, config, frame, frames_of, is_runnable, load, meter, monotonic_ns, records,
    root, tcp,
};

type Totals = HashMap<[u64; 5], Base>;

/// What user space makes of the frames; times are zero.
#[derive(Default)]
struct Expected {
    totals: Totals,
    packets: u64,
    bytes: u64,
    frame_bytes: u64,
    rejected: [u64; Rejected::COUNT],
}

impl Expected {
    fn of(frames: &[Vec<u8>]) -> Self {
        let mut expected = Self::default();
        let mut parser = Parser::new(ParserConfig::default());
        for bytes in frames {
            expected.frame_bytes += bytes.len() as u64;
            match parser.parse(&frame(bytes)) {
                Ok(packet) => {
                    expected.packets += 1;
                    expected.bytes += u64::from(packet.ip_length_bytes);
                    let base = Base::of_packet(&packet, false);
                    merge(&mut expected.totals, *packet.tuple.raw_words(), base);
                }
                Err(reason) => expected.rejected[reason.index()] += 1,
            }
        }
        expected
    }
}

fn merge(totals: &mut Totals, key: [u64; 5], base: Base) {
    totals
        .entry(key)
        .and_modify(|total| total.merge(&base))
        .or_insert(base);
}

/// Per key, without times.
fn totals_of(records: &[Record]) -> Totals {
    let mut totals = Totals::new();
    for record in records {
        let base = Base {
            first_ns: 0,
            last_ns: 0,
            ..record.base
        };
        merge(&mut totals, record.key, base);
    }
    totals
}

/// The records of a flow follow each other, and lie within the run and one cell each.
fn check_times(records: &[Record], cell_ns: u64, run: std::ops::RangeInclusive<u64>) {
    let mut last: HashMap<[u64; 5], u64> = HashMap::new();
    for record in records {
        let (first_ns, last_ns) = (record.base.first_ns, record.base.last_ns);
        assert!(first_ns <= last_ns);
        assert!(run.contains(&first_ns) && run.contains(&last_ns));
        assert_eq!(first_ns / cell_ns, last_ns / cell_ns, "one cell");
        let before = last.insert(record.key, last_ns).unwrap_or(0);
        assert!(before <= first_ns, "in the order of time");
    }
}

fn check_ledger(expected: &Expected, counters: &KernelCounters, frames: usize) {
    assert_eq!(counters.packets_received, frames as u64);
    assert_eq!(counters.bytes_received, expected.frame_bytes);
    assert_eq!(counters.packets_metered, expected.packets);
    assert_eq!(counters.bytes_metered, expected.bytes);
    assert_eq!(counters.rejected_packets, expected.rejected);
    let rejected: u64 = counters.rejected_packets.iter().sum();
    assert_eq!(
        counters.packets_received,
        counters.packets_metered + rejected
    );
}

/// Runs all frames, and holds everything against what user space says.
fn compare(frames: &[Vec<u8>], config: &KernelConfig) -> Option<()> {
    let mut engine = load(config)?;
    let expected = Expected::of(frames);
    let mut batch = Batch::default();
    let start = monotonic_ns();
    for chunk in frames.chunks(10_000) {
        chunk.iter().for_each(|bytes| meter(&engine, bytes));
        engine.drain(&mut batch).unwrap();
    }
    let run = start..=monotonic_ns();
    let evicted = batch.len() as u64;
    let finished = engine.finish(&mut batch).unwrap();
    let counters = finished.counters;
    check_ledger(&expected, &counters, frames.len());
    assert_eq!(counters.microflows_dropped, 0);
    assert_eq!(counters.evicted(), evicted);
    let records = records(&batch);
    assert_eq!(records.len() as u64, evicted + finished.evicted_flush);
    check_times(&records, config.cell_ns, run);
    assert!(
        totals_of(&records) == expected.totals,
        "slots {}",
        config.slots
    );
    eprintln!(
        "{} slots: {} packets of {} flows in {} microflow records, {evicted} of them evicted",
        config.slots,
        expected.packets,
        expected.totals.len(),
        records.len()
    );
    Some(())
}

fn runnable(frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut frames = frames;
    frames.retain(|bytes| is_runnable(bytes));
    frames
}

#[test]
fn totals_of_the_sample_at_any_size_of_the_table() {
    let frames = runnable(frames_of(&root().join("samples/office.pcap")));
    assert!(frames.len() > 100);
    for slots in [1, 7, 1_024, 65_536] {
        if compare(&frames, &config(slots)).is_none() {
            return;
        }
    }
}

#[test]
fn totals_of_all_captures_one_after_another() {
    let frames: Vec<_> = captures().iter().flat_map(|path| frames_of(path)).collect();
    let frames = runnable(frames);
    for slots in [1, 7, 1_024, 65_536] {
        if compare(&frames, &config(slots)).is_none() {
            return;
        }
    }
}

/// Cells so short that the runs cross thousands.
#[test]
fn totals_in_short_cells() {
    let frames = runnable(frames_of(&root().join("samples/office.pcap")));
    let short = KernelConfig {
        cell_ns: 50_000,
        ..config(1_024)
    };
    let _ = compare(&frames, &short);
}

/// 64 records fit, and 10,000 come before anybody reads: what is lost is counted to the byte.
#[test]
fn a_full_ring_loses_what_is_counted() {
    let tiny = KernelConfig {
        ring_bytes: 4_096,
        ..config(1)
    };
    let Some(mut engine) = load(&tiny) else {
        return;
    };
    let mut batch = Batch::default();
    for number in 0..10_000_u16 {
        // Trains of three, so that packets and records differ.
        meter(&engine, &tcp(number / 3, 0x10));
        if number % 2_500 == 2_499 {
            engine.drain(&mut batch).unwrap();
        }
    }
    let delivered = batch.len() as u64;
    let finished = engine.finish(&mut batch).unwrap();
    let counters = finished.counters;
    let packets: u64 = batch.v4.iter().map(|record| record.base.packets).sum();
    let bytes: u64 = batch.v4.iter().map(|record| record.base.bytes).sum();
    assert_eq!(counters.packets_metered, 10_000);
    assert!(
        counters.microflows_dropped > 3_000 && delivered > 100,
        "{counters:?}"
    );
    assert_eq!(delivered + counters.microflows_dropped, counters.evicted());
    assert_eq!(packets + counters.packets_dropped, counters.packets_metered);
    assert_eq!(bytes + counters.bytes_dropped, counters.bytes_metered);
    assert_eq!(finished.evicted_flush, 1);
}
