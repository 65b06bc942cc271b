// SPDX-License-Identifier: Apache-2.0
//! The options of `turboflow record` that identify in-band telemetry.

use clap::Args;
use turboflow_packet::DscpMark;

/// What marks packets with in-band telemetry.
#[derive(Clone, Debug, PartialEq, Args)]
pub(super) struct TelemetryArgs {
    /// DSCP that marks packets with INT after TCP or UDP, or bits and their mask; `none`: no DSCP
    ///
    /// Used only if the definition has an input of in-band telemetry: egress_interface,
    /// queue_depth, hop_latency, path or hop_count.
    #[arg(long, value_name = "DSCP", default_value = "23", value_parser = str::parse::<DscpMark>)]
    #[arg(help_heading = "What a flow is", hide_short_help = true)]
    pub(super) int_dscp: DscpMark,

    /// UDP destination port of packets with INT, which belong to their original flow. Default: none
    #[arg(
        long,
        value_name = "PORT",
        help_heading = "What a flow is",
        hide_short_help = true
    )]
    pub(super) int_port: Option<u16>,

    /// UDP destination port of INT reports, metered as the packets in them. Default: none
    #[arg(
        long,
        value_name = "PORT",
        help_heading = "What a flow is",
        hide_short_help = true
    )]
    pub(super) int_report_port: Option<u16>,
}
