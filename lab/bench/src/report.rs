// SPDX-License-Identifier: Apache-2.0
//! The result of a benchmark.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::Options;

/// One measurement: design, traffic and speed.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The benchmark: `aggregate`, `pipeline`, `features`, ...
    pub bench: &'static str,
    /// The measured design: `turboflow`, `paper`, `hashbrown`, `std`, `redis`, ...
    pub design: String,
    /// Flows in the traffic.
    pub flows: u64,
    /// How packets spread over flows (`uniform` or `zipf`), or the name of a workload.
    pub traffic: &'static str,
    /// Items (microflow records or packets) per second, over all cores.
    pub items_per_s: f64,
    /// Nanoseconds per item.
    pub ns_per_item: f64,
    /// Memory of the design's table per flow, in bytes; absent if not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_flow: Option<f64>,
    /// Microflow records per packet; absent if no packets were metered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub microflows_per_packet: Option<f64>,
    /// Cores at work; absent if one.
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

/// A design that is being measured.
pub(crate) trait Measured {
    /// Works on `items` more items, and adds a run.
    fn round(&mut self, items: u64);
    /// The median run.
    fn finish(self: Box<Self>) -> Row;
}

/// Measures designs side by side. Each round runs every design in turn, so that other load on the
/// machine affects all of them.
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

/// The median of several runs.
pub(crate) fn median(mut runs: Vec<Row>) -> Row {
    runs.sort_by(|a, b| a.ns_per_item.total_cmp(&b.ns_per_item));
    let middle = (runs.len() - 1) / 2;
    runs.swap_remove(middle)
}

/// Adds up the time of many short pieces of work.
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

    /// The total so far.
    #[must_use]
    pub const fn total(&self) -> Duration {
        self.total
    }
}
