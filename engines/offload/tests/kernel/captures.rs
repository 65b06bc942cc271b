// SPDX-License-Identifier: Apache-2.0
//! Every capture, with tables of 1, 100 and a million rows. The records of each flow add up to one
//! pass over its packets, and every frame that is not a packet is counted.

use std::collections::HashMap;

use turboflow_engine::{MicroflowBatch, RemoteEngine};
use turboflow_engine_offload::FlowKey;
use turboflow_engine_xdp::TestedProgram;
use turboflow_merge::Base;
use turboflow_packet::{Parser, ParserConfig, Rejected};

use crate::run::{DropsHalf, TIMES, by_name, fired, is_dropped, over};
use crate::support::{captures, frame, frames_of, is_runnable, load, records};

type Totals = HashMap<[u64; 5], Base>;

fn merge(totals: &mut Totals, key: [u64; 5], base: Base) {
    let base = Base {
        first_ns: 0,
        last_ns: 0,
        ..base
    };
    totals
        .entry(key)
        .and_modify(|total| total.merge(&base))
        .or_insert(base);
}

/// Taps are read while frames arrive, so that flows get verdicts.
const LOOK_EVERY: usize = 64;

fn hold(rows: u32) {
    let config = fired(rows, 0);
    let Some(kernel) = load(&config) else {
        return;
    };
    let mut engine = over(kernel, &config, Box::new(DropsHalf), TIMES);
    let tester = engine.kernel().tester();
    let (mut parser, mut batch) = (
        Parser::new(ParserConfig::default()),
        MicroflowBatch::default(),
    );
    let (mut expected, mut found) = (Totals::new(), Totals::new());
    let (mut rejected, mut packets, mut given) = ([0; Rejected::COUNT], 0, 0);
    let mut dropped_at_most = 0;
    let mut collect = |engine: &mut turboflow_engine_offload::OffloadEngine, found: &mut Totals| {
        while engine.collect(&mut batch).unwrap().has_more {}
        for record in records(&batch) {
            merge(found, record.key, record.base);
        }
        batch.clear();
    };
    for bytes in captures().iter().flat_map(|path| frames_of(path)) {
        if !is_runnable(&bytes) {
            continue;
        }
        match parser.parse(&frame(&bytes)) {
            Ok(packet) => {
                packets += 1;
                let key = *packet.tuple.raw_words();
                let (flow, _) = FlowKey::of(&packet.tuple);
                dropped_at_most += u64::from(is_dropped(flow.words()));
                merge(&mut expected, key, Base::of_packet(&packet, false));
            }
            Err(reason) => rejected[reason.index()] += 1,
        }
        tester.run(TestedProgram::Microflows, &bytes, 1).unwrap();
        given += 1;
        if given % LOOK_EVERY == 0 {
            collect(&mut engine, &mut found);
        }
    }
    engine.finish().unwrap();
    collect(&mut engine, &mut found);
    let own = by_name(engine.own_counts().unwrap());
    eprintln!("{rows} rows: {given} frames, {own:?}");
    assert!(packets > 10_000, "{packets} packets");
    assert_eq!(
        engine.kernel().counters().unwrap().rejected_packets,
        rejected
    );
    assert_eq!(own["offload_hits"] + own["offload_misses"], packets);
    // No flow was dropped unless its verdict said so.
    assert!(own["offload_packets_dropped"] <= dropped_at_most);
    assert!(own["offload_rows_begun"] >= u64::from(rows.min(100)));
    // In a table of one row, that flow may have ended before it got the row.
    assert!(rows == 1 || own["offload_hits"] > 0);
    assert_eq!(found.len(), expected.len());
    for (key, base) in expected {
        assert_eq!(found.get(&key), Some(&base), "{key:x?}");
    }
}

#[test]
fn every_capture_is_exact_with_a_table_of_one_row() {
    hold(1);
}

#[test]
fn every_capture_is_exact_with_a_table_of_a_hundred_rows() {
    hold(100);
}

#[test]
fn every_capture_is_exact_with_a_table_of_a_million_rows() {
    hold(1_000_000);
}
