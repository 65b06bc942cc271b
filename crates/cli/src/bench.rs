// SPDX-License-Identifier: Apache-2.0
//! `turboflow bench`: not wired yet; `crates/bench` holds the benchmarks.
#![allow(dead_code, reason = "registered once crates/bench has its entry point")]

use clap::Args;

use crate::exit::Outcome;

/// `turboflow bench`, as typed.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Which benches to run; all by default
    #[arg(value_name = "BENCH")]
    benches: Vec<String>,
    /// Print one JSON object a row
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(_args: &BenchArgs) -> anyhow::Result<Outcome> {
    anyhow::bail!("`turboflow bench` is not wired yet")
}
