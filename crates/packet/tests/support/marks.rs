// SPDX-License-Identifier: Apache-2.0
//! The marks of telemetry in generated frames.

use turboflow_packet::TelemetryConfig;

use super::generate::{INT_PORT, REPORT_PORT};

/// A DSCP that every IPv4 packet has, and two ports.
pub(crate) fn telemetry() -> TelemetryConfig {
    TelemetryConfig {
        int_dscp: "46".parse().unwrap(),
        int_port: Some(INT_PORT),
        int_report_port: Some(REPORT_PORT),
    }
}
