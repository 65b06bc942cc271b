// SPDX-License-Identifier: Apache-2.0
//! `turboflow top` as typed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use turboflow_packet::TunnelSet;
use turboflow_run::{
    BridgeConfig, Count, FlowConfig, MeterConfig, RunConfig, ServiceConfig, Size, SnapLength,
    SourceConfig, Timeout, TimeoutsConfig,
};
use turboflow_top::{AVERAGE_BINS, BIN_NS, Sort, View};

use crate::engines::EngineArgs;
use crate::record::{joined_filter, separate_filter};
use crate::units::{count_above_zero, duration};

/// Follows the options in `-h`, which is one screen.
const SHORT: &str = "--help has all options, examples, the keys of the screen and exit codes.";

const EXAMPLES: &str = "\
Examples:
  Watch an interface
    turboflow top -i eth0
  Filter packets in the language of tcpdump, and flows in the language of `turboflow show`
    turboflow top -i eth0 'not port 22'
    turboflow top -i eth0 --where 'bps > 1M'
  Replay a capture at its own speed or ten times as fast, or show its end
    turboflow top -r office.pcap
    turboflow top -r office.pcap --speed 10
    turboflow top -r office.pcap --speed max
  Without a terminal: three screens as text
    turboflow top -i eth0 --batch 3 --view hosts

Keys: 1 to 4 (5 with --dpi) and Tab views, s sort, r reverse, / filter, p pause, + - interval,
? help, q quit.

Exit codes: those of `turboflow record`; leaving the screen early is not a failure.";

/// Watch interfaces or a capture: flows and hosts by rate, protocols, the meter's health.
///
/// Nothing is sampled: rates are exact sums of packets. Every open flow is updated twice a second,
/// so a long flow shows its rate while it lasts.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// Capture files, shown at the pace of their packets; `-` is standard input
    ///
    /// Several files are shown one after the other.
    #[arg(short, long = "read", value_name = "FILE", num_args = 1..)]
    #[arg(help_heading = "Input")]
    read: Vec<PathBuf>,

    /// Interface to capture from; repeat for more
    ///
    /// Capturing needs the capability CAP_NET_RAW.
    #[arg(short, long, value_name = "IFACE", conflicts_with = "read")]
    #[arg(help_heading = "Input")]
    interface: Vec<String>,

    /// Only packets that match, in tcpdump's filter language
    ///
    /// `man pcap-filter` describes the language; libpcap must be installed.
    #[arg(value_name = "FILTER", help_heading = "Input")]
    filter: Vec<String>,

    /// Speed at which a capture is shown, relative to its timestamps, such as 10, 0.5 or `max`
    ///
    /// `max` is as fast as the capture can be read. Gaps that would last more than 10 s on the
    /// screen are skipped. Default: 1; with --batch: max.
    #[arg(long, value_name = "X", value_parser = speed, conflicts_with = "interface")]
    #[arg(help_heading = "Input")]
    speed: Option<Speed>,

    /// Time between screens, over which rates are computed
    ///
    /// 500ms to 10s, in steps of 500ms.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    #[arg(help_heading = "Screen")]
    pub(super) interval: u64,

    /// View to start with
    #[arg(
        long,
        value_name = "VIEW",
        default_value = "flows",
        help_heading = "Screen"
    )]
    pub(super) view: ViewName,

    /// Sort order to start with
    #[arg(
        long,
        value_name = "SORT",
        default_value = "bits",
        help_heading = "Screen"
    )]
    pub(super) sort: SortName,

    /// Only flows that match, as in `turboflow show`; also bps > 1M, pps > 100
    #[arg(long = "where", value_name = "EXPR", help_heading = "Screen")]
    pub(super) filter_flows: Option<String>,

    /// Print this many screens as text, and exit; no terminal is needed
    ///
    /// The screens are one interval apart. A capture that ends earlier gives fewer screens, and the
    /// last one shows its end; --speed 10 reads it more slowly.
    #[arg(long, value_name = "N", value_parser = count_above_zero, help_heading = "Screen")]
    pub(super) batch: Option<u64>,

    /// Maximum rows of a screen of --batch
    #[arg(long, value_name = "N", default_value_t = 50, requires = "batch")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=10_000), help_heading = "Screen")]
    #[arg(hide_short_help = true)]
    pub(super) rows: u16,

    #[command(flatten)]
    engine: EngineArgs,

    /// Bytes kept of a packet. Default: all
    ///
    /// 128 or more are enough for the headers of most packets.
    #[arg(
        long,
        value_name = "BYTES",
        conflicts_with = "read",
        help_heading = "Interfaces"
    )]
    #[arg(value_parser = str::parse::<SnapLength>, hide_short_help = true)]
    snap_length: Option<SnapLength>,

    /// Capture only frames for this host, not all that the interface sees
    #[arg(
        long,
        conflicts_with = "read",
        help_heading = "Interfaces",
        hide_short_help = true
    )]
    no_promiscuous: bool,

    /// Size of the ring in which the kernel keeps packets of one interface until they are read
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = str::parse::<Size>)]
    #[arg(
        conflicts_with = "read",
        help_heading = "Interfaces",
        hide_short_help = true
    )]
    ring_size: Size,

    /// Switch to this user once the interfaces are open: a name or UID:GID
    ///
    /// Requires a start as root.
    #[arg(
        long,
        value_name = "USER",
        conflicts_with = "read",
        help_heading = "Interfaces"
    )]
    #[arg(hide_short_help = true)]
    user: Option<String>,

    /// Meter the packets inside tunnels, as in `turboflow record`
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "all", help_heading = "Metering")]
    decapsulate: Option<TunnelSet>,

    /// Metering threads per reader
    ///
    /// More than 1 adds a thread that reads and parses.
    #[arg(long, value_name = "N", default_value = "1", value_parser = str::parse::<Count>)]
    #[arg(help_heading = "Metering")]
    threads: Count,

    /// Threads that read the interfaces, each with its own rings and its own --threads
    ///
    /// As in `turboflow record`. It cannot be combined with --decapsulate.
    #[arg(long, value_name = "N", default_value = "1", value_parser = str::parse::<Count>)]
    #[arg(
        conflicts_with = "read",
        help_heading = "Metering",
        hide_short_help = true
    )]
    readers: Count,

    /// Find the applications of flows in their first packets: adds view 5, a column of flows, and
    /// `application` in filters
    ///
    /// As in `turboflow record`.
    #[arg(long, help_heading = "Metering")]
    pub(super) dpi: bool,

    /// Maximum number of flows under inspection, with --dpi
    #[arg(long, value_name = "N", default_value = "65536", value_parser = str::parse::<Count>)]
    #[arg(help_heading = "Metering", hide_short_help = true)]
    dpi_flows: Count,

    /// Maximum number of open flows, over all threads
    #[arg(long, value_name = "N", default_value = "10M", value_parser = str::parse::<Count>)]
    #[arg(help_heading = "Metering", hide_short_help = true)]
    max_flows: Count,
}

/// The speed of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Speed {
    /// As fast as the file can be read.
    Max,
    /// A factor of the original speed.
    Times(f64),
}

fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let times = text
        .parse()
        .ok()
        .filter(|times| (0.001..=1e6).contains(times));
    times.map(Speed::Times).ok_or_else(|| {
        "write a number from 0.001 to 1000000 such as 10 or 0.5, or `max`".to_owned()
    })
}

/// An interval in bins.
fn interval(text: &str) -> Result<u64, String> {
    let ns = duration(text)?.as_nanos();
    let bins = ns / u128::from(BIN_NS);
    let fits = ns.is_multiple_of(u128::from(BIN_NS)) && bins <= u128::from(AVERAGE_BINS);
    match fits {
        true => Ok(bins as u64),
        false => Err("write a time from 500ms to 10s, in steps of 500ms".to_owned()),
    }
}

/// Names of the views.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ViewName {
    /// Flows
    Flows,
    /// Hosts
    Hosts,
    /// Protocols and ports
    Protocols,
    /// The meter
    Health,
    /// Applications, with --dpi
    Applications,
}

impl From<ViewName> for View {
    fn from(name: ViewName) -> Self {
        match name {
            ViewName::Flows => Self::Flows,
            ViewName::Hosts => Self::Hosts,
            ViewName::Protocols => Self::Protocols,
            ViewName::Health => Self::Health,
            ViewName::Applications => Self::Applications,
        }
    }
}

/// Names of the sort orders.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum SortName {
    /// Bits per second in the last interval
    Bits,
    /// Packets per second in the last interval
    Packets,
    /// Bits per second in the last 10 s
    Average,
    /// Bytes in all
    Total,
    /// Address and port, protocol
    Name,
}

impl From<SortName> for Sort {
    fn from(name: SortName) -> Self {
        match name {
            SortName::Bits => Self::Bits,
            SortName::Packets => Self::Packets,
            SortName::Average => Self::Average,
            SortName::Total => Self::Total,
            SortName::Name => Self::Name,
        }
    }
}

impl TopArgs {
    /// The speed at which captures are shown; `None`: as fast as possible.
    pub(super) fn speed(&self) -> Option<f64> {
        match (self.speed, self.batch) {
            (Some(Speed::Times(times)), _) => Some(times),
            (Some(Speed::Max), _) | (None, Some(_)) => None,
            (None, None) => Some(1.0),
        }
    }

    /// The run that meters the packets, with records cut at the bins of the screen.
    pub(super) fn to_run(&self) -> anyhow::Result<RunConfig> {
        let (mut files, mut filter) = (self.read.clone(), self.filter.clone());
        separate_filter(&mut files, &mut filter, self.decapsulate.as_ref())?;
        let run = RunConfig {
            bridge: BridgeConfig::default(),
            source: SourceConfig {
                files,
                interfaces: self.interface.clone(),
                filter: joined_filter(&filter),
                snap_length: self.snap_length,
                promiscuous: !self.no_promiscuous,
                ring_size: self.ring_size,
                readers: self.readers,
                ..SourceConfig::default()
            },
            engine: self.engine.clone().into_config(None)?,
            flow: FlowConfig {
                decapsulate: self.decapsulate.unwrap_or_default(),
                ..FlowConfig::default()
            },
            timeouts: TimeoutsConfig {
                active: Timeout(Some(BIN_NS)),
                ..TimeoutsConfig::default()
            },
            meter: MeterConfig {
                threads: Some(self.threads),
                max_flows: self.max_flows,
                dpi: self.dpi,
                dpi_flows: self.dpi_flows,
                ..MeterConfig::default()
            },
            service: ServiceConfig {
                user: self.user.clone(),
                ..ServiceConfig::default()
            },
            outputs: Vec::new(),
        };
        Ok(run)
    }
}
