// SPDX-License-Identifier: Apache-2.0
//! A flood of new keys: the cache stays within the announced memory, old flows expire early with
//! flowEndReason 5, and no packet is lost.

use turboflow_packet::Frame;
use turboflow_run::{Meter, PipelineConfig};
use turboflow_workload::traffic::{FrameBuffer, Skew, Traffic, TrafficConfig};

use crate::{Options, Row, Timer};

/// Distinct flow keys.
const KEYS: u64 = 50_000_000;
/// Flow limit of the cache.
const MAX_FLOWS: usize = 1_000_000;
const FRAMES: usize = 1 << 14;

pub(crate) fn run(_options: &Options, row: &mut dyn FnMut(Row)) {
    let config = PipelineConfig {
        max_flows: MAX_FLOWS,
        seed: 1,
        ..PipelineConfig::default()
    };
    let mut meter = Meter::new(&config, |_shard| Box::new(|_records| {}))
        .expect("the default configuration compiles");
    // Every packet starts a new flow, so the birth rate equals the packet rate.
    let mut traffic = Traffic::new(TrafficConfig {
        packets: KEYS,
        flows: KEYS,
        packets_per_second: 10e6,
        skew: Skew::Uniform,
        ..TrafficConfig::default()
    })
    .expect("the benchmark's traffic is in range");
    let mut buffer = FrameBuffer::with_capacity(FRAMES, 64);
    let mut timer = Timer::default();
    while traffic.fill(&mut buffer, FRAMES) > 0 {
        let frames: Vec<Frame<'_>> = buffer.frames().collect();
        timer.time(|| meter.frames(&frames));
    }
    let ledger = meter.finish().ledger;
    assert_eq!(ledger.imbalances(), []);
    assert_eq!(ledger.packets_recorded, KEYS);
    assert!(ledger.flows_exported.lack_of_resources > 0);
    assert!(ledger.flows_peak <= MAX_FLOWS as u64 + 1);
    let mut result = Row::new("flood", "turboflow", KEYS, "uniform", KEYS, timer.total());
    result.microflows_per_packet = Some(ledger.microflows_merged as f64 / KEYS as f64);
    row(result);
}
