// SPDX-License-Identifier: Apache-2.0
//! A live source that falls silent. Flows are exported on time although no packet arrives.

use std::sync::{Arc, Mutex};

use turboflow_record::{FlowBatch, InputValues, Packet, Value};
use turboflow_run::{Meter, PipelineConfig};
use turboflow_workload::sequences::{SequenceShape, random_packets};

const SECOND_NS: u64 = 1_000_000_000;
const START_NS: u64 = 1_700_000_000 * SECOND_NS;

/// A packet without FIN or RST.
fn packet(timestamp_ns: u64) -> (Packet, InputValues) {
    let (mut packet, values) = random_packets(1, &SequenceShape::random(1, 1)).remove(0);
    packet.timestamp_ns = timestamp_ns;
    packet.tcp_flags = 0;
    (packet, values)
}

/// End reasons of the records delivered so far.
type Reasons = Arc<Mutex<Vec<u64>>>;

fn live_meter(threads: usize) -> (Meter, Reasons) {
    let reasons = Reasons::default();
    let config = PipelineConfig {
        threads,
        ..PipelineConfig::default()
    };
    let layout = config.compile().expect("the defaults compile");
    let reason_at = layout
        .schema()
        .iter()
        .position(|column| column.name == "end_reason");
    let reason_at = reason_at.expect("the default definition has an end reason");
    let meter = Meter::new(&config.live(), |_shard| {
        let reasons = Arc::clone(&reasons);
        Box::new(move |batch: &mut FlowBatch| {
            for row in 0..batch.rows() {
                let Value::Unsigned(reason) = batch.value(row, reason_at) else {
                    panic!("a reason is a number");
                };
                reasons.lock().expect("no panic").push(reason);
            }
        })
    });
    (meter.expect("the defaults compile"), reasons)
}

#[test]
fn an_idle_flow_leaves_on_time() {
    let (mut meter, reasons) = live_meter(1);
    let (packet, values) = packet(START_NS);
    meter.packet(&packet, &values);
    for second in 0..=30 {
        meter.advance(START_NS + second * SECOND_NS);
        assert!(reasons.lock().unwrap().is_empty(), "early, at {second} s");
    }
    // The flow is due in the first cell that begins more than the idle timeout after the packet.
    meter.advance(START_NS + 31 * SECOND_NS);
    assert_eq!(*reasons.lock().unwrap(), [1]);
    let ledger = meter.finish().ledger;
    assert_eq!(ledger.imbalances(), []);
    assert_eq!((ledger.packets_received, ledger.packets_recorded), (1, 1));
}

#[test]
fn a_time_behind_the_packets_changes_nothing() {
    let (mut meter, reasons) = live_meter(2);
    let (packet, values) = packet(START_NS);
    meter.packet(&packet, &values);
    for tenth in 0..90 {
        meter.advance(START_NS - tenth * SECOND_NS / 10);
    }
    let ledger = meter.finish().ledger;
    assert_eq!(ledger.clock_steps, 0);
    assert_eq!(*reasons.lock().unwrap(), [4]);
}

#[test]
fn a_wall_clock_set_back_an_hour_ends_open_flows() {
    let (mut meter, reasons) = live_meter(1);
    let (first, values) = packet(START_NS);
    meter.packet(&first, &values);
    meter.advance(START_NS - 3_600 * SECOND_NS);
    assert_eq!(*reasons.lock().unwrap(), [4]);
    let (later, values) = packet(START_NS - 3_599 * SECOND_NS);
    meter.packet(&later, &values);
    let ledger = meter.finish().ledger;
    assert_eq!(ledger.imbalances(), []);
    assert_eq!((ledger.packets_recorded, ledger.clock_steps), (2, 1));
}
