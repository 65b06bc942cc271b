// SPDX-License-Identifier: Apache-2.0
//! The sections of a configuration, except engines and outputs.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use turboflow_merge::Initiator;
use turboflow_packet::{DscpMark, TelemetryConfig, TunnelSet};

use super::text::{self, flag, list};
use super::{Count, CountAboveZero, Linger, Seed, Size, SnapLength, Time, Timeout, Window};

/// `[source]`: capture files or interfaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SourceConfig {
    /// Capture files, metered one after the other as one stream.
    #[serde(
        deserialize_with = "list::deserialize",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub files: Vec<PathBuf>,
    /// Interfaces to capture from.
    #[serde(
        deserialize_with = "list::deserialize",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub interfaces: Vec<String>,
    /// Interfaces to the CPU ports of pipelines outside this machine.
    #[serde(
        deserialize_with = "list::deserialize",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cpu_ports: Vec<String>,
    /// Only packets that match this filter, in the syntax of tcpdump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The run ends after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Time>,
    /// The run ends after this many packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<CountAboveZero>,
    /// Bytes kept of each packet. `None`: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snap_length: Option<SnapLength>,
    /// Whether interfaces capture all frames, not only those for this host.
    #[serde(deserialize_with = "flag::deserialize")]
    pub promiscuous: bool,
    /// Memory in which the kernel keeps packets until they are read, in bytes.
    pub ring_size: Size,
    /// Threads that read the interfaces.
    pub readers: Count,
}

impl Default for SourceConfig {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            interfaces: Vec::new(),
            cpu_ports: Vec::new(),
            filter: None,
            duration: None,
            packets: None,
            snap_length: None,
            promiscuous: true,
            ring_size: Size(64 << 20),
            readers: Count(1),
        }
    }
}

/// `[bridge]`: two ports, and the rules by which packets go from one to the other. Empty: there is
/// no bridge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct BridgeConfig {
    /// One port.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// The other port.
    #[serde(rename = "out", skip_serializing_if = "Option::is_none")]
    pub second: Option<String>,
    /// The file of rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<PathBuf>,
    /// Whether everything is forwarded, and only counted as the rules say.
    #[serde(deserialize_with = "flag::deserialize")]
    pub dry_run: bool,
}

/// `[flow]`: what a flow is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlowConfig {
    /// The file of the record definition. `None`: the default definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<PathBuf>,
    /// Whether the two directions of a conversation are one record.
    #[serde(deserialize_with = "flag::deserialize")]
    pub biflow: bool,
    /// Who is the initiator of a biflow.
    #[serde(with = "text")]
    pub initiator: Initiator,
    /// Tunnels whose inner packets are metered.
    #[serde(serialize_with = "text::serialize", deserialize_with = "tunnels")]
    pub decapsulate: TunnelSet,
    /// Whether later fragments get the ports of the first fragment.
    #[serde(deserialize_with = "flag::deserialize")]
    pub reassemble: bool,
    /// Whether ICMP type and code are the destination port.
    #[serde(deserialize_with = "flag::deserialize")]
    pub icmp_ports: bool,
    /// The DSCP of packets with INT.
    #[serde(with = "text")]
    pub int_dscp: DscpMark,
    /// The UDP destination port of packets with INT. `None`: there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub int_port: Option<u16>,
    /// The UDP destination port of INT reports, which are metered as the packets that they are
    /// about. `None`: they are packets like others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub int_report_port: Option<u16>,
}

impl FlowConfig {
    /// Where in-band telemetry is looked for.
    #[must_use]
    pub const fn telemetry(&self) -> TelemetryConfig {
        TelemetryConfig {
            int_dscp: self.int_dscp,
            int_port: self.int_port,
            int_report_port: self.int_report_port,
        }
    }
}

/// Reads tunnels from text, or from `true` for all and `false` for none.
fn tunnels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TunnelSet, D::Error> {
    struct Tunnels;
    impl Visitor<'_> for Tunnels {
        type Value = TunnelSet;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("text in quotes, true or false")
        }

        fn visit_bool<E: Error>(self, all: bool) -> Result<TunnelSet, E> {
            Ok(if all {
                TunnelSet::ALL
            } else {
                TunnelSet::EMPTY
            })
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<TunnelSet, E> {
            text.parse().map_err(E::custom)
        }
    }
    deserializer.deserialize_any(Tunnels)
}

/// `[timeouts]`: when flows end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TimeoutsConfig {
    /// A flow ends when it has no packet for this time.
    pub idle: Timeout,
    /// Maximum duration of a record.
    pub active: Timeout,
    /// How long a flow that saw FIN or RST waits for its last packets.
    pub linger: Linger,
    /// No record has packets of two windows of this length, counted from 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub align: Option<Window>,
}

impl Default for TimeoutsConfig {
    fn default() -> Self {
        Self {
            idle: Timeout(Some(30_000_000_000)),
            active: Timeout(Some(120_000_000_000)),
            linger: Linger(Some(2_000_000_000)),
            align: None,
        }
    }
}

/// `[meter]`: threads and memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MeterConfig {
    /// Metering threads per reader. `None`: one, in addition to the thread that reads files if
    /// there are two processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Count>,
    /// Maximum number of open flows, over all threads.
    pub max_flows: Count,
    /// Seed of the hash function. `None`: random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<Seed>,
    /// Whether payload is inspected for the applications of flows.
    #[serde(deserialize_with = "flag::deserialize")]
    pub dpi: bool,
    /// Maximum number of flows under inspection.
    pub dpi_flows: Count,
}

impl Default for MeterConfig {
    fn default() -> Self {
        Self {
            threads: None,
            max_flows: Count(10_000_000),
            seed: None,
            dpi: false,
            dpi_flows: Count(65_536),
        }
    }
}

/// `[service]`: the name, logs and metrics of the run, and the user that it runs as.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServiceConfig {
    /// Where metrics are served. `None`: the program's default.
    #[serde(with = "text::option", skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsAt>,
    /// The user to switch to once the interfaces are open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The name of this vantage point. `None`: the name of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exporter: Option<String>,
    /// The file for all counters of the run, written at its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<PathBuf>,
    /// Whether progress bar and summary are omitted.
    #[serde(deserialize_with = "flag::deserialize")]
    pub quiet: bool,
    /// Format of lines on standard error.
    #[serde(with = "text")]
    pub log_format: LogFormat,
    /// Whether files are on the disk before they get their names. `None`: the program's default.
    #[serde(
        deserialize_with = "flag::some",
        skip_serializing_if = "Option::is_none"
    )]
    pub sync: Option<bool>,
    /// Whether root writes through outputs that are symbolic links.
    #[serde(deserialize_with = "flag::deserialize")]
    pub follow_links: bool,
}

/// Format of lines on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Text, with a level prefix when systemd's journal reads it.
    #[default]
    Auto,
    /// One JSON object per line.
    Json,
    /// Text.
    Text,
}

impl LogFormat {
    /// Every format of the log by its name.
    pub const NAMES: [(&str, Self); 3] = [
        ("auto", Self::Auto),
        ("json", Self::Json),
        ("text", Self::Text),
    ];
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, format)| *format)
            .ok_or_else(|| "write auto, json or text".to_owned())
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::NAMES.iter().find(|(_, format)| format == self);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

/// Where metrics are served. `None`: disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricsAt(pub Option<SocketAddr>);

impl FromStr for MetricsAt {
    type Err = String;

    /// Accepts `127.0.0.1:9414`, `[::1]:9414`, or `none`.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        text.parse()
            .map(|address| Self(Some(address)))
            .map_err(|_| "write an address and a port such as 127.0.0.1:9414, or `none`".to_owned())
    }
}

impl fmt::Display for MetricsAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str("none"),
        }
    }
}
