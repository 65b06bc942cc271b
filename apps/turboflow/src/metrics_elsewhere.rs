// SPDX-License-Identifier: Apache-2.0
//! Metrics on systems other than Linux, which have no live captures.

use std::net::SocketAddr;

use anyhow::bail;
use turboflow_run::Snapshots;

/// Requests for snapshots, which no run here answers.
pub(crate) static SNAPSHOTS: Snapshots = Snapshots::new();

pub(crate) fn serve(address: SocketAddr) -> anyhow::Result<SocketAddr> {
    bail!("cannot serve metrics at {address}: only Linux has interfaces to capture")
}
