// SPDX-License-Identifier: Apache-2.0
//! Metrics of running captures on systems other than Linux: there are no such captures.

use std::net::SocketAddr;

use anyhow::bail;
use turboflow_run::Snapshots;

/// No run on such a system is asked.
pub(crate) static SNAPSHOTS: Snapshots = Snapshots::new();

pub(crate) fn serve(address: SocketAddr) -> anyhow::Result<SocketAddr> {
    bail!("cannot serve metrics at {address}: only Linux has interfaces to capture")
}
