// SPDX-License-Identifier: Apache-2.0
//! What a benchmark says.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::Options;

/// One measurement: what was run, on what, and how fast.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Which benchmark: `aggregate`, `pipeline`, `features`, ...
    pub bench: &'static str,
    /// What was measured: `turboflow`, `paper`, `hashbrown`, `std`, `redis`, ...
    pub design: String,
    /// Flows in the traffic.
    pub flows: u64,
    /// How packets spread over flows: `uniform` or `zipf`, or the name of a workload.
    pub traffic: &'static str,
    /// Items (microflow records or packets) a second, of all cores together.
    pub items_per_s: f64,
    /// Nanoseconds an item.
    pub ns_per_item: f64,
    /// Memory of the design's table for each flow, in bytes; absent where it is not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_flow: Option<f64>,
    /// Microflow records for each packet; absent where packets were not metered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microflows_per_packet: Option<f64>,
    /// Cores that worked at the same time; absent where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
}

impl Row {
    /// A row from a number of items and the time they took.
    #[must_use]
    pub fn new(
        bench: &'static str,
        design: impl Into<String>,
        flows: u64,
        traffic: &'static str,
        items: u64,
        took: Duration,
    ) -> Self {
        let seconds = took.as_secs_f64().max(1e-9);
        Self {
            bench,
            design: design.into(),
            flows,
            traffic,
            items_per_s: items as f64 / seconds,
            ns_per_item: seconds * 1e9 / items.max(1) as f64,
            bytes_per_flow: None,
            microflows_per_packet: None,
            cores: None,
        }
    }
}

/// A design being measured.
pub(crate) trait Measured {
    /// Works on that many items more, and keeps how long it took.
    fn round(&mut self, items: u64);
    /// The round in the middle.
    fn finish(self: Box<Self>) -> Row;
}

/// Measures designs side by side: every round runs each in turn, so that a busy minute of the
/// machine hits all of them.
pub(crate) fn in_turn(
    mut designs: Vec<Box<dyn Measured + '_>>,
    options: &Options,
    row: &mut dyn FnMut(Row),
) {
    for _ in 0..options.repetitions {
        for design in &mut designs {
            design.round(options.items);
        }
    }
    designs.into_iter().for_each(|design| row(design.finish()));
}

/// The run in the middle of several.
pub(crate) fn median(mut runs: Vec<Row>) -> Row {
    runs.sort_by(|a, b| a.ns_per_item.total_cmp(&b.ns_per_item));
    let middle = (runs.len() - 1) / 2;
    runs.swap_remove(middle)
}

/// Adds up time over many short stretches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer {
    total: Duration,
}

impl Timer {
    /// Runs `work` and adds its time.
    #[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
    #[inline(always)]
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let outcome = work();
        self.total += start.elapsed();
        outcome
    }

    /// The time so far.
    #[must_use]
    pub const fn total(&self) -> Duration {
        self.total
    }
}
