// SPDX-License-Identifier: Apache-2.0
//! The records of a flow, merged, equal one pass over its packets.

use std::collections::HashMap;

use turboflow_engine::MicroflowBatch;
use turboflow_engine_xdp::{KernelConfig, KernelCounters, KernelEngine, Tested, TestedProgram};
use turboflow_merge::Base;
use turboflow_packet::{Parser, ParserConfig, Rejected};
use turboflow_record::TCP_ACK;

use crate::support::{
    DESIGNS, Record, SECOND_NS, captures, collect, config, finish, frame, frames_of, is_runnable,
    load, meter, records, root, tcp, wall_ns,
};

type Totals = HashMap<[u64; 5], Base>;

/// The result of parsing the frames in user space; times are 0.
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

/// Totals per key, without times.
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

/// The records of a flow follow each other, and each lies within the run and one cell.
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
    assert_eq!(counters.received(), frames as u64);
    let rejected_bytes: u64 = counters.rejected_bytes.iter().sum();
    assert_eq!(
        counters.in_common().frame_bytes_metered() + rejected_bytes,
        expected.frame_bytes
    );
    assert_eq!(counters.packets_metered, expected.packets);
    assert_eq!(counters.bytes_metered, expected.bytes);
    assert_eq!(counters.rejected_packets, expected.rejected);
    let rejected: u64 = counters.rejected_packets.iter().sum();
    assert_eq!(counters.received(), counters.packets_metered + rejected);
}

/// Collected records. Checks that none arrives after a report that all earlier ones had arrived.
#[derive(Default)]
struct Collected {
    records: Vec<Record>,
    complete_ns: u64,
}

impl Collected {
    fn collect(&mut self, engine: &mut KernelEngine) {
        loop {
            let mut batch = MicroflowBatch::default();
            let collected = engine.collect(&mut batch).unwrap();
            let records = records(&batch);
            assert!(
                records
                    .iter()
                    .all(|record| record.base.first_ns >= self.complete_ns)
            );
            self.records.extend(records);
            self.complete_ns = collected.complete_ns.unwrap_or(self.complete_ns);
            if !collected.has_more {
                return;
            }
        }
    }
}

/// Runs all frames, and compares everything with user space.
fn compare(frames: &[Vec<u8>], config: &KernelConfig) -> Option<()> {
    let mut engine = load(config)?;
    let expected = Expected::of(frames);
    let mut collected = Collected::default();
    let start = wall_ns();
    for chunk in frames.chunks(10_000) {
        chunk.iter().for_each(|bytes| meter(&engine, bytes));
        collected.collect(&mut engine);
    }
    let run = start..=wall_ns();
    engine.finish().unwrap();
    collected.collect(&mut engine);
    let counters = engine.counters().unwrap();
    let records = collected.records;
    check_ledger(&expected, &counters, frames.len());
    assert_eq!(counters.microflows_dropped, 0);
    assert_eq!(counters.in_common().evicted.total(), records.len() as u64);
    check_times(&records, config.cell_ns, run);
    assert!(
        totals_of(&records) == expected.totals,
        "slots {}",
        config.slots
    );
    eprintln!(
        "{:?}, {} slots: {} packets of {} flows in {} microflow records",
        config.tables,
        config.slots,
        expected.packets,
        expected.totals.len(),
        records.len()
    );
    Some(())
}

/// Compares with both designs, with few slots and many.
fn compare_all(frames: &[Vec<u8>]) {
    for tables in DESIGNS {
        for slots in [1, 7, 1_024, 65_536] {
            let config = KernelConfig {
                tables,
                ..config(slots)
            };
            if compare(frames, &config).is_none() {
                return;
            }
        }
    }
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
    compare_all(&frames);
}

#[test]
fn totals_of_all_captures_one_after_another() {
    let frames: Vec<_> = captures().iter().flat_map(|path| frames_of(path)).collect();
    let frames = runnable(frames);
    compare_all(&frames);
}

/// Cells so short that the runs span thousands.
#[test]
fn totals_in_short_cells() {
    let frames = runnable(frames_of(&root().join("samples/office.pcap")));
    let short = KernelConfig {
        cell_ns: 50_000,
        ..config(1_024)
    };
    let _ = compare(&frames, &short);
}

/// 64 records fit, and 10,000 arrive before the ring is read: losses are counted to the byte.
#[test]
fn a_full_ring_loses_what_is_counted() {
    let tiny = KernelConfig {
        ring_bytes: 4_096,
        ..config(1)
    };
    let Some(mut engine) = load(&tiny) else {
        return;
    };
    let mut batch = MicroflowBatch::default();
    let mut delivered = 0;
    for number in 0..10_000_u16 {
        // Trains of three packets, so that the numbers of packets and records differ.
        meter(&engine, &tcp(number / 3, 0x10));
        if number % 2_500 == 2_499 {
            collect(&mut engine, &mut batch);
            delivered = batch.len() as u64;
        }
    }
    let counters = finish(engine, &mut batch);
    let packets: u64 = batch.v4::<0>().map(|record| record.base.packets).sum();
    let bytes: u64 = batch.v4::<0>().map(|record| record.base.bytes).sum();
    assert_eq!(counters.packets_metered, 10_000);
    assert!(
        counters.microflows_dropped > 3_000 && delivered > 100,
        "{counters:?}"
    );
    assert_eq!(
        batch.len() as u64 + counters.microflows_dropped,
        counters.in_common().evicted.total()
    );
    assert_eq!(packets + counters.packets_dropped, counters.packets_metered);
    assert_eq!(bytes + counters.bytes_dropped, counters.bytes_metered);
    assert!(counters.evicted_flush <= 1);
}

/// A single packet, followed by no other: its record arrives when its cell has ended.
#[test]
fn a_packet_leaves_on_time_without_another_one() {
    for tables in DESIGNS {
        let config = KernelConfig {
            tables,
            cell_ns: SECOND_NS / 20,
            ..config(1_024)
        };
        let Some(mut engine) = load(&config) else {
            return;
        };
        let before = wall_ns();
        meter(&engine, &tcp(7, 0x10));
        let after = wall_ns();
        let mut batch = MicroflowBatch::default();
        let mut complete_ns = 0;
        while complete_ns <= after {
            let collected = collect(&mut engine, &mut batch);
            complete_ns = collected.unwrap_or(complete_ns);
            assert!(wall_ns() < after + 10 * SECOND_NS, "it never came");
        }
        let records = records(&batch);
        assert_eq!(records.len(), 1);
        assert!((before..=after).contains(&records[0].base.first_ns));
        let counters = finish(engine, &mut batch);
        assert_eq!((counters.evicted_age, counters.evicted_flush), (1, 0));
    }
}

/// Frames with one buffer, frames that may have more, and frames that have several.
#[test]
fn frames_count_with_all_their_bytes() {
    let Some(engine) = load(&config(8)) else {
        return;
    };
    let sizes = [60, 1_023, 1_024, 1_514, 3_000, 9_014, 20_000];
    for size in sizes {
        let mut frame = tcp(1, TCP_ACK as u8);
        frame.resize(size, 0);
        meter(&engine, &frame);
    }
    let counters = finish(engine, &mut MicroflowBatch::default());
    let bytes = sizes.iter().sum::<usize>() as u64;
    assert_eq!(counters.bytes_received[0], bytes);
    assert_eq!(counters.in_common().frame_bytes_metered(), bytes);
}

/// Records of the next cell are held until the current one is complete; the ring is still read.
#[test]
fn the_ring_is_read_while_nothing_is_due() {
    const CELL_NS: u64 = SECOND_NS / 20;
    let config = KernelConfig {
        ring_bytes: 1 << 18,
        cell_ns: CELL_NS,
        tested: Some(Tested {
            flows: 1 << 20,
            ..Tested::default()
        }),
        ..config(1)
    };
    let Some(mut engine) = load(&config) else {
        return;
    };
    while wall_ns() < engine.started_ns() + CELL_NS + CELL_NS / 10 {
        meter(&engine, &tcp(1, 0x10));
    }
    let mut records = 0;
    for _ in 0..2 {
        // Each packet evicts a record. The ring has room for the records of one run and a few more.
        let (tester, frame) = (engine.tester(), tcp(1, 0x10));
        tester.run(TestedProgram::Fire, &frame, 3_000).unwrap();
        let mut batch = MicroflowBatch::default();
        collect(&mut engine, &mut batch);
        records += batch.len() as u64;
    }
    let mut batch = MicroflowBatch::default();
    let counters = finish(engine, &mut batch);
    assert_eq!(counters.microflows_dropped, 0);
    assert_eq!(
        records + batch.len() as u64,
        counters.in_common().evicted.total()
    );
}
