// SPDX-License-Identifier: Apache-2.0
//! Packets past the last representable time.

use std::sync::{Arc, Mutex};

use turboflow_record::{Definition, Feature, FlowBatch, LAST_TIME_NS, Op, Value};
use turboflow_run::{Meter, PipelineConfig};
use turboflow_workload::sequences::{SequenceShape, random_packets};

#[test]
fn timestamps_are_clamped_to_the_last_time() {
    let mut definition = Definition::default();
    definition.features.push(Feature {
        name: "longest_gap".to_owned(),
        op: Op::GapMax,
        of: None,
        per_biflow: false,
    });
    let config = PipelineConfig {
        definition,
        ..PipelineConfig::default()
    };
    let layout = config.compile().expect("a gap compiles");
    let mut names = layout.schema().iter().map(|column| &column.name);
    let gap_at = names.position(|name| name == "longest_gap");
    let gap_at = gap_at.expect("it is in the definition");
    let gaps = Arc::new(Mutex::new(Vec::new()));
    let meter = Meter::new(&config, |_shard| {
        let gaps = Arc::clone(&gaps);
        Box::new(move |batch: &mut FlowBatch| {
            for row in 0..batch.rows() {
                let gap_ns = match batch.value(row, gap_at) {
                    Value::Unsigned(gap_ns) => Some(gap_ns),
                    _ => None,
                };
                gaps.lock().expect("no panic").push(gap_ns);
            }
        })
    });
    let mut meter = meter.expect("a gap compiles");
    let (mut packet, values) = random_packets(1, &SequenceShape::random(1, 1)).remove(0);
    packet.tcp_flags = 0;
    for timestamp_ns in [LAST_TIME_NS - 4, u64::MAX] {
        packet.timestamp_ns = timestamp_ns;
        meter.packet(&packet, &values);
    }
    assert_eq!(meter.finish().ledger.imbalances(), []);
    assert_eq!(*gaps.lock().unwrap(), [Some(4)]);
}
