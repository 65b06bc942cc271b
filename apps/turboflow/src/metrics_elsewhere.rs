// SPDX-License-Identifier: Apache-2.0
//! Metrics of running captures on systems other than Linux: there are no such captures.

use std::net::SocketAddr;

use anyhow::bail;

/// Where metrics are served; `None` where they are switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetricsAt(pub(crate) Option<SocketAddr>);

pub(crate) fn metrics_at(_text: &str) -> Result<MetricsAt, String> {
    Err("metrics are those of interfaces, which can be captured on Linux only".to_owned())
}

pub(crate) fn serve(address: SocketAddr) -> anyhow::Result<SocketAddr> {
    bail!("cannot serve metrics at {address}: only Linux has interfaces to capture")
}
