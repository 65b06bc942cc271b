// SPDX-License-Identifier: Apache-2.0
//! Interfaces on systems other than Linux: they cannot be captured.

use std::time::Duration;

use anyhow::bail;
use turboflow_packet::Frame;
use turboflow_run::{LiveOutputs, Output, PipelineConfig, RunConfig, Snapshots};

use super::Settings;
use super::frames::NotGiven;
use super::progress::ProgressBar;
use super::report::Report;
use crate::engines::Engine;

/// There is none.
pub(super) enum Interface {}

pub(super) fn open_all(_run: &RunConfig) -> anyhow::Result<Vec<Vec<Interface>>> {
    bail!(
        "interfaces (-i) can be captured on Linux only; elsewhere, pipe the packets in: \
         `tcpdump -w - | turboflow record -r -`"
    )
}

pub(super) fn check(_run: &RunConfig, _engine: &Engine) -> anyhow::Result<()> {
    Ok(())
}

pub(super) fn absent(run: &RunConfig) -> Vec<&str> {
    run.source.interfaces.iter().map(String::as_str).collect()
}

pub(super) fn record(
    _run: &RunConfig,
    _settings: &Settings,
    readers: Vec<Vec<Interface>>,
    _outputs: LiveOutputs,
    _bar: &mut ProgressBar,
) -> anyhow::Result<Report> {
    bail!("{} interfaces cannot be captured", readers.len())
}

pub(super) fn watch(
    _config: &PipelineConfig,
    readers: Vec<Vec<Interface>>,
    _output: Output,
    _snapshots: &Snapshots,
) -> anyhow::Result<Report> {
    bail!("{} interfaces cannot be captured", readers.len())
}

pub(super) fn give(
    readers: Vec<Vec<Interface>>,
    _lasts: Duration,
    _take: impl FnMut(&[Frame<'_>]),
) -> anyhow::Result<NotGiven> {
    bail!("{} interfaces cannot be captured", readers.len())
}
