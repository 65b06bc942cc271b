// SPDX-License-Identifier: Apache-2.0
//! A line with its egress and registers: its messages contain what came in, however slow the
//! receiver is.

use std::collections::BTreeMap;

use turboflow_engine::wire::{Decoder, message_bytes};
use turboflow_engine::{EngineCounters, MicroflowBatch};
use turboflow_engine_rtl::{Build, Counter, LineConfig, Step, VerilatedMeter};
use turboflow_merge::{Base, KeyHasher, Layout};
use turboflow_record::Definition;

use crate::traffic::{Mix, Shape, Traffic};

const CELL_NS: u64 = 200_000;
const ENGINE_ID: u32 = 0x0102_0304;

/// The content of messages.
struct Said {
    /// Every record with its key's words, in the order of messages.
    records: Vec<(Vec<u64>, Base)>,
    /// The watermark under which each record came.
    watermarks: Vec<u64>,
    /// The counters of the last message.
    counters: EngineCounters,
}

fn decoded(bytes: &[u8]) -> Said {
    let layout = Layout::compile(&Definition::default(), false).unwrap();
    let (mut decoder, mut batch) = (Decoder::new(&layout), MicroflowBatch::default());
    let (mut at, mut records, mut watermarks) = (0, Vec::new(), Vec::new());
    let mut end = None;
    while at < bytes.len() {
        assert_eq!(end, None, "nothing comes behind the last message");
        let length = message_bytes(&bytes[at..]).unwrap().unwrap();
        batch.clear();
        let decoded = decoder.decode(&bytes[at..at + length], &mut batch).unwrap();
        assert_eq!(decoded.engine_id, ENGINE_ID);
        for row in batch.v4::<0>() {
            records.push((row.key.to_vec(), row.base));
        }
        for row in batch.v6::<0>() {
            records.push((row.key.to_vec(), row.base));
        }
        watermarks.resize(records.len(), decoded.watermark_ns.unwrap_or(0));
        if decoded.is_end {
            end = decoded.counters;
        }
        at += length;
    }
    assert_eq!((decoder.lost(), decoder.repeated()), (0, 0));
    Said {
        records,
        watermarks,
        counters: end.expect("the last message has counters"),
    }
}

/// Runs a meter in consecutive cells, and compares.
fn holds(build: Build, ready_of_256: u32, strange: bool) {
    let config = LineConfig::new(build, build.size(), KeyHasher::new(5));
    let mut meter = VerilatedMeter::new(&config, ENGINE_ID, ready_of_256);
    let shape = Shape {
        mix: Mix::Trains,
        flows: 1_500,
        key_bits: build.key_bits,
        cell_ns: CELL_NS,
        strange,
    };
    let (mut traffic, mut cell_ns) = (Traffic::new(shape, 3), None);
    let (mut steps, mut bytes) = (Vec::new(), Vec::new());
    let mut expected: BTreeMap<[u64; 5], (u64, u64)> = BTreeMap::new();
    let (mut packets, mut length_bytes) = (0, 0);
    for _ in 0..20_000 {
        let packet = traffic.packet();
        if cell_ns != Some(traffic.cell_ns()) {
            cell_ns = Some(traffic.cell_ns());
            steps.push(Step::Cell(traffic.cell_ns()));
        }
        let flow = expected.entry(packet.key).or_default();
        flow.0 += 1;
        flow.1 += u64::from(packet.length_bytes);
        packets += 1;
        length_bytes += u64::from(packet.length_bytes);
        steps.push(Step::Packet(packet));
    }
    meter.give(&steps, &mut bytes);
    meter.end(traffic.cell_ns() + CELL_NS, &mut bytes);
    assert_eq!(meter.resident(), 0);

    let Said {
        records,
        watermarks,
        counters,
    } = decoded(&bytes);
    let mut found: BTreeMap<[u64; 5], (u64, u64)> = BTreeMap::new();
    for (key, base) in &records {
        let mut own = [0; 5];
        own[..key.len()].copy_from_slice(key);
        own[key.len() - 1] &= (1 << 40) - 1;
        let flow = found.entry(own).or_default();
        flow.0 += base.packets;
        flow.1 += base.bytes;
    }
    assert!(found == expected, "packets and bytes of a flow differ");
    for ((_, base), watermark_ns) in records.iter().zip(&watermarks) {
        // Packets from before their cell are also late for the watermark.
        assert!(
            strange || base.first_ns >= *watermark_ns,
            "{base:?} is late"
        );
        assert!(base.packets == 1 || base.last_ns / CELL_NS == base.first_ns / CELL_NS);
    }
    assert!(watermarks.last() >= Some(&(traffic.cell_ns() - CELL_NS)));
    assert_eq!(counters.packets_metered, packets);
    assert_eq!(counters.bytes_metered, length_bytes);
    let evicted = [
        (Counter::EvictedCollision, counters.evicted.collision),
        (Counter::EvictedAge, counters.evicted.age),
        (Counter::EvictedCut, counters.evicted.cut),
        (Counter::Microflows, records.len() as u64),
        (Counter::PacketsMetered, packets),
        (Counter::BytesMetered, length_bytes),
    ];
    for (counter, value) in evicted {
        assert_eq!(meter.counter(counter), value, "{counter:?}");
    }
    assert_eq!(counters.evicted.total(), records.len() as u64);
    // A receiver that is too slow makes descriptors wait, with no other effect.
    assert!(ready_of_256 > 30 || meter.counter(Counter::ClocksWaited) > 20_000);
}

#[test]
fn messages_have_every_packet_however_slow_the_receiver_is() {
    for build in [Build::METER_V4, Build::METER_V6] {
        for ready_of_256 in [256, 100, 10] {
            holds(build, ready_of_256, false);
        }
        holds(build, 128, true);
    }
}
