// SPDX-License-Identifier: Apache-2.0
//! Benchmarks for `turboflow-lab bench`. All designs of a benchmark run in one harness, on the same
//! traffic, in one run, and on one core unless stated otherwise.
//!
//! Only designs within one run can be compared. Numbers of different runs or machines cannot.

mod aggregate;
mod classify;
mod export;
mod features;
mod flood;
mod generate;
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub mod kernel;
mod microflows;
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub mod offload;
mod pipeline;
mod plan;
mod report;
mod sweep;

pub use report::{Row, Timer};
use turboflow_workload::traffic::Skew;

/// The name of each benchmark, with a description.
pub const BENCHES: [(&str, &str); 10] = [
    (
        "aggregate",
        "merging microflow records: ours, the paper's method, hashbrown, std, Redis",
    ),
    (
        "classify",
        "flow records to applications: a tree, a forest of ten, a linear model",
    ),
    (
        "cores",
        "the aggregator on 1 to all cores: std, flat, integer keys, the paper's method, ours, Redis",
    ),
    (
        "pipeline",
        "frames in memory to open flows, by stage, with and without microflow table",
    ),
    ("features", "what four more features cost the aggregator"),
    (
        "plan",
        "a definition's compiled plan against the same work by hand",
    ),
    (
        "export",
        "flow records into messages: IPFIX, NetFlow v9 and v5, without the socket",
    ),
    (
        "flood",
        "50 million distinct keys against a full flow cache: memory, speed, conservation",
    ),
    (
        "generate",
        "traffic itself: packets, frames in memory, a capture file",
    ),
    (
        "sweep",
        "active flows of which a tenth is replaced every second, frames in memory to flow records",
    ),
];

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Numbers of flows.
    pub flows: Vec<u64>,
    /// Items (microflow records or packets) per row, not counting the warm-up.
    pub items: u64,
    /// Runs per row; the median is reported.
    pub repetitions: u32,
    /// Address of a Redis server, `host:port`. Its rows are left out if none answers.
    pub redis: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            flows: vec![10_000, 100_000, 1_000_000, 10_000_000, 20_000_000],
            items: 20_000_000,
            repetitions: 3,
            redis: "127.0.0.1:6379".to_owned(),
        }
    }
}

/// How the packets of the traffic spread over its flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spread {
    Uniform,
    Zipf,
}

impl Spread {
    const ALL: [Self; 2] = [Self::Uniform, Self::Zipf];

    const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
        }
    }

    /// Zipf as on the paper's links: exponent 1.05, trains of five packets.
    const fn skew(self) -> Skew {
        match self {
            Self::Uniform => Skew::Uniform,
            Self::Zipf => Skew::Zipf {
                exponent: 1.05,
                mean_train_length: 5.0,
            },
        }
    }
}

/// Runs one benchmark, and passes each row to `row` as soon as it is measured.
///
/// # Errors
/// If there is no benchmark with that name.
pub fn run(bench: &str, options: &Options, row: &mut dyn FnMut(Row)) -> Result<(), UnknownBench> {
    match bench {
        "aggregate" => aggregate::run(options, row),
        "classify" => classify::run(options, row),
        "cores" => aggregate::cores::run(options, row),
        "export" => export::run(options, row),
        "features" => features::run(options, row),
        "flood" => flood::run(options, row),
        "generate" => generate::run(options, row),
        "pipeline" => pipeline::run(options, row),
        "plan" => plan::run(options, row),
        "sweep" => sweep::run(options, row),
        _ => return Err(UnknownBench(bench.to_owned())),
    }
    Ok(())
}

/// There is no benchmark with that name.
#[derive(Debug)]
pub struct UnknownBench(String);

impl std::fmt::Display for UnknownBench {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = BENCHES.map(|(name, _)| name).join(", ");
        write!(
            formatter,
            "unknown benchmark {:?}: use one of {names}",
            self.0
        )
    }
}

impl std::error::Error for UnknownBench {}
