// SPDX-License-Identifier: Apache-2.0
//! `--engine xdp` in a program that was built without it.

use anyhow::bail;
use turboflow_merge::Layout;
use turboflow_run::{LiveOutputs, Output, PipelineConfig, RunConfig, Snapshots};

use super::Settings;
use super::progress::ProgressBar;
use super::report::Report;
use crate::beside::Beside;
use crate::engines::XdpOptions;

/// What is missing, and the mend.
const WITHOUT_KERNEL: &str = "this turboflow was built without the engine in the kernel \
    (Linux; cargo build --features kernel, with clang, libelf-dev and zlib1g-dev); `engine.name=software` works";

/// There is none.
pub(super) enum Engine {}

pub(super) fn open(
    _run: &RunConfig,
    _xdp: &XdpOptions,
    _settings: &Settings,
) -> anyhow::Result<Engine> {
    bail!(WITHOUT_KERNEL)
}

pub(super) fn has_room(_layout: &Layout) -> anyhow::Result<()> {
    Ok(())
}

pub(super) fn check(
    _run: &RunConfig,
    _xdp: &XdpOptions,
    _settings: &Settings,
) -> anyhow::Result<()> {
    bail!(WITHOUT_KERNEL)
}

pub(super) fn record(
    _run: &RunConfig,
    _settings: &Settings,
    engine: Engine,
    _outputs: LiveOutputs,
    _unparsed: Option<Beside>,
    _bar: &mut ProgressBar,
) -> anyhow::Result<Report> {
    match engine {}
}

pub(super) fn watch(
    _config: &PipelineConfig,
    engine: Engine,
    _output: Output,
    _snapshots: &Snapshots,
) -> anyhow::Result<Report> {
    match engine {}
}
