// SPDX-License-Identifier: Apache-2.0
//! Interfaces on systems other than Linux: they cannot be captured.

use anyhow::bail;
use turboflow_run::RunConfig;

pub(crate) fn check_names(_run: &RunConfig) -> anyhow::Result<()> {
    Ok(())
}

pub(crate) fn check_rings(_run: &RunConfig) -> anyhow::Result<()> {
    bail!(
        "interfaces (-i) can be captured on Linux only; elsewhere, pipe the packets in: \
         `tcpdump -w - | turboflow record -r -`"
    )
}

pub(crate) fn absent(run: &RunConfig) -> Vec<&str> {
    run.source.interfaces.iter().map(String::as_str).collect()
}

pub(crate) fn with_kernel_names(run: &RunConfig) -> RunConfig {
    run.clone()
}

pub(crate) fn index(_name: &str) -> Option<u32> {
    None
}
