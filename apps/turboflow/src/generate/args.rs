// SPDX-License-Identifier: Apache-2.0
//! The command line of `turboflow generate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};
use turboflow_workload::traffic::FrameSizes;

use crate::units::{count, duration, seed};

/// Follows the options in `-h`, which is one screen.
const SHORT: &str = "--help has all options, examples, what each workload is, and exit codes.";

const EXAMPLES: &str = "\
Workloads (what each is calibrated to: docs/workloads.md):
  internet        a 10 Gb/s link between core routers; --packets-per-second, --births-per-second
  dc-tor          all traffic across a top-of-rack switch of 1,280 Gb/s; --load
  dc-aggregation  all traffic across an aggregation switch of 1,440 Gb/s; --load
  probe-stress    each packet belongs to a random active flow; --flows, --births-per-second, --size
                  and --packets-per-second can be set independently
  adversarial     traffic made to overload a meter: --attack all-at-once, collisions or
                  single-packets
  site            a company's day at two routers (--seen-at), with a scan, an exfiltration and a
                  line that loses packets; --births-per-second
  telemetry       a network whose nodes write INT, INT reports and IOAM (--carrier), with an incast
                  and a loop

Examples:
  Ten seconds of the Internet link in the paper's figures
    turboflow generate -w link.pcap --workload internet --duration 10s --snap-length 64
  Ten seconds of that link with twice the packets and four times the flows
    turboflow generate -w busy.pcap --workload internet --packets-per-second 900k \\
      --births-per-second 36.4k --duration 10s --snap-length 64
  Does the switch workload have the rates of the paper? Print the rates, write no packets
    turboflow generate --to-memory --workload dc-tor --duration 100ms
  Send a million packets a second out of an interface, for ten seconds
    sudo turboflow generate -i eth1 --packets-per-second 1M --flows 100k --duration 10s
  A probe at its limit: 20 million flows, 2 million new ones a second, 10 M packets a second
    turboflow generate -w - --workload probe-stress --flows 20M --duration 1s |
      turboflow record -r -
  Keys that collide in the table of a meter whose seed is known, and how the meter copes
    turboflow generate -w bad.pcap --workload adversarial --attack collisions --meter-seed 7
    turboflow record -r bad.pcap --seed 7 --microflow-slots 32768 --ledger ledger.json
  A router of 64 links, each with the traffic of a capture
    turboflow generate -w router.pcap --links 64 -r link.pcap
  A company's day as its headquarters sees it, with an incident to find (docs/first-incident.md)
    turboflow generate -w - --workload site --seen-at headquarters --snap-length 64 |
      turboflow record -r - --identity --exporter headquarters -w headquarters.parquet
  In-band telemetry without a switch, and its flow records (docs/telemetry.md)
    turboflow generate -w network.pcap --workload telemetry
    turboflow record -r network.pcap --int-port 5000 --int-report-port 5001 \\
      --definition samples/definitions/paper-table-2-network.toml -w flows.parquet
  Ten million small packets of 300,000 flows with Internet-like skew
    turboflow generate -w zipf.pcap --packets 10M --flows 300k --traffic zipf --snap-length 64
  A mixed link: packet sizes of the simple IMIX, a third IPv6, a tenth tagged, two fifths UDP
    turboflow generate -w mixed.pcap --sizes imix --ipv6-share 0.33 --vlan-share 0.1 --udp-share 0.4
  Straight into the meter, without a file
    turboflow generate -w - --packets 10M | turboflow record -r - -w flows.parquet

Equal options and an equal seed give the same file, byte for byte.

Exit codes: 0 all well; 1 interrupted, or the interface took the packets more than 1 % too slowly;
2 the options contradict each other, the file cannot be written, or packets cannot be sent.";

/// Generate traffic with given rates, sizes and skew, or from published measurements.
///
/// Writes classic pcap with nanosecond times, Ethernet, or sends out of an interface. Standard
/// error shows the requested and the generated rates.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
#[command(group = ArgGroup::new("where").required(true).args(["write", "interface", "to_memory"]))]
pub(crate) struct GenerateArgs {
    /// The capture file; `-` is standard output
    #[arg(short, long = "write", value_name = "FILE.pcap")]
    pub(super) write: Option<PathBuf>,

    /// Interface to send the packets out of, each at its own time (Linux)
    #[arg(short, long, value_name = "INTERFACE", conflicts_with = "snap_length")]
    pub(super) interface: Option<String>,

    /// How fast the traffic's time passes with -i: twice as fast with 2, or `max`. Default 1
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    #[arg(hide_short_help = true)]
    pub(super) speed: Option<Speed>,

    /// Write nothing: make the frames in memory and report rates
    #[arg(long)]
    pub(super) to_memory: bool,

    /// Predefined traffic, listed in --help; without it, other options define the traffic
    #[arg(long, value_enum, value_name = "WORKLOAD", help_heading = "What")]
    pub(super) workload: Option<WorkloadName>,

    /// Capture of one link, to copy for each of --links
    #[arg(
        short,
        long = "read",
        value_name = "FILE",
        requires = "links",
        help_heading = "What"
    )]
    pub(super) read: Option<PathBuf>,

    /// A router of N links: copies of the capture with distinct addresses, merged by time, each
    /// with its link number, 1 to N, as the outermost 802.1Q tag
    #[arg(long, value_name = "N", value_parser = count, requires = "read", help_heading = "What")]
    #[arg(conflicts_with_all = ["workload", "duration", "snap_length"])]
    pub(super) links: Option<u64>,

    /// Packets in all. Counts may have k, M or G. Default 1M; site one day; telemetry
    /// all it has
    #[arg(long, value_name = "N", value_parser = count, conflicts_with = "duration")]
    #[arg(help_heading = "How much")]
    pub(super) packets: Option<u64>,

    /// Duration in the traffic's own time, such as 10s or 100ms
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "How much")]
    pub(super) duration: Option<Duration>,

    /// Flows active at any time. Default 10k; --attack all-at-once 100k, collisions 1k
    #[arg(long, value_name = "N", value_parser = count, help_heading = "How much")]
    pub(super) flows: Option<u64>,

    /// Packets per second of the traffic's own time. Default 1M; internet 450k, probe-stress and
    /// adversarial 10M
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "How much")]
    pub(super) packets_per_second: Option<f64>,

    /// New flows per second of the traffic's own time. Default 0; internet 9.1k; probe-stress a
    /// tenth of the flows; site 4
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "How much")]
    pub(super) births_per_second: Option<f64>,

    /// dc-tor, dc-aggregation: share of every host's link that is used, 0.01 to 0.95. Default 0.6
    #[arg(long, value_name = "SHARE", help_heading = "How much")]
    #[arg(hide_short_help = true)]
    pub(super) load: Option<f64>,

    /// site: the router that sees the packets. Default headquarters
    #[arg(long, value_enum, value_name = "ROUTER", help_heading = "What")]
    #[arg(hide_short_help = true)]
    pub(super) seen_at: Option<RouterName>,

    /// telemetry: carrier of all of it. Default: it differs by flow
    #[arg(long, value_enum, value_name = "CARRIER", help_heading = "What")]
    #[arg(hide_short_help = true)]
    pub(super) carrier: Option<CarrierName>,

    /// adversarial: the kind of attack
    #[arg(long, value_enum, value_name = "ATTACK", help_heading = "Attack")]
    pub(super) attack: Option<AttackName>,

    /// collisions: the seed of the attacked meter (`record --seed`). Without it, keys collide under
    /// CRC-32, the hash of switches
    #[arg(long, value_name = "N", value_parser = seed, help_heading = "Attack")]
    #[arg(hide_short_help = true)]
    pub(super) meter_seed: Option<u64>,

    /// collisions: slots of the attacked table. Default 32768
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Attack")]
    #[arg(hide_short_help = true)]
    pub(super) table_slots: Option<u64>,

    /// collisions: slots that all flows fall into. Default 16
    #[arg(long, value_name = "N", value_parser = count, help_heading = "Attack")]
    #[arg(hide_short_help = true)]
    pub(super) into_slots: Option<u64>,

    /// How packets spread over flows. Default uniform
    #[arg(long, value_enum, value_name = "SPREAD", help_heading = "Skew")]
    pub(super) traffic: Option<Spread>,

    /// Zipf: the k-th heaviest flow's share is proportional to k^-EXPONENT, 0 to 8. Default 1.05
    #[arg(long, value_name = "EXPONENT", help_heading = "Skew")]
    #[arg(hide_short_help = true)]
    pub(super) zipf_exponent: Option<f64>,

    /// Zipf: mean number of packets a flow sends in a row, at least 1. Default 10
    #[arg(long, value_name = "PACKETS", help_heading = "Skew")]
    #[arg(hide_short_help = true)]
    pub(super) train_length: Option<f64>,

    /// Size of every frame in bytes without FCS, 64 to 9000. Default 64
    #[arg(long, value_name = "BYTES", conflicts_with = "sizes")]
    #[arg(help_heading = "Frames")]
    pub(super) size: Option<u32>,

    /// A mix of sizes: `imix` (7 of 64, 4 of 594, 1 of 1518 bytes), or SIZE:WEIGHT,...
    #[arg(long, value_name = "MIX", value_parser = sizes, help_heading = "Frames")]
    pub(super) sizes: Option<FrameSizes>,

    /// Share of the flows that are IPv6, 0 to 1. Default 0
    #[arg(long, value_name = "SHARE", help_heading = "Frames")]
    #[arg(hide_short_help = true)]
    pub(super) ipv6_share: Option<f64>,

    /// Share of the flows with an 802.1Q tag, 0 to 1. Default 0
    #[arg(long, value_name = "SHARE", help_heading = "Frames")]
    #[arg(hide_short_help = true)]
    pub(super) vlan_share: Option<f64>,

    /// Share of the flows that are UDP, 0 to 1; the others are TCP. Default 0
    #[arg(long, value_name = "SHARE", help_heading = "Frames")]
    #[arg(hide_short_help = true)]
    pub(super) udp_share: Option<f64>,

    /// Bytes captured of every frame, at least 64. Default: all
    #[arg(long, value_name = "BYTES", help_heading = "Frames")]
    pub(super) snap_length: Option<u32>,

    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed)]
    pub(super) seed: u64,

    /// Say nothing on standard error
    #[arg(short, long)]
    #[arg(hide_short_help = true)]
    pub(super) quiet: bool,
}

/// Predefined traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum WorkloadName {
    /// A 10 Gb/s link between core routers of the Internet
    Internet,
    /// All traffic across a data centre's top-of-rack switch
    DcTor,
    /// All traffic across a data centre's aggregation switch
    DcAggregation,
    /// Active and new flows, packet size and rate, set independently
    ProbeStress,
    /// Packets to overload a meter: see --attack
    Adversarial,
    /// A company's day, with an incident to find: see --seen-at
    Site,
    /// A network with in-band telemetry, an incast and a loop: see --carrier
    Telemetry,
}

/// The routers of a company.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RouterName {
    /// Sees everything
    Headquarters,
    /// Sees its own clients, in front of the line to the headquarters
    Branch,
}

/// How in-band telemetry travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum CarrierName {
    /// INT-MD behind TCP and UDP, marked by DSCP 23
    IntDscp,
    /// INT-MD in UDP to port 5000
    IntPort,
    /// INT reports to UDP port 5001
    Report,
    /// IOAM traces, all in IPv6
    Ioam,
}

/// The kinds of attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AttackName {
    /// All flows send in turn, so that none has two packets close together
    AllAtOnce,
    /// Flows that fall into few slots of a microflow table, so that every packet evicts
    Collisions,
    /// Every packet is a flow of its own
    SinglePackets,
}

impl WorkloadName {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Internet => "internet",
            Self::DcTor => "dc-tor",
            Self::DcAggregation => "dc-aggregation",
            Self::ProbeStress => "probe-stress",
            Self::Adversarial => "adversarial",
            Self::Site => "site",
            Self::Telemetry => "telemetry",
        }
    }
}

/// How packets spread over flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Spread {
    /// Each packet belongs to a flow chosen at random
    Uniform,
    /// Internet-like: few heavy flows, packets in trains
    Zipf,
}

/// The speed of sending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Speed {
    /// As fast as the interface accepts frames.
    Max,
    /// This many times the speed of the traffic's own clock.
    Times(f64),
}

fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let factor = text.parse().ok();
    let usable = |factor: &f64| factor.is_finite() && *factor > 0.0;
    let factor = factor.filter(usable);
    factor
        .map(Speed::Times)
        .ok_or_else(|| "write `max`, or a number above 0 such as 1, 0.5 or 10".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    let wrong = || "write a number such as 5000, 0.5, 9.1k or 10M".to_owned();
    let (number, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1e3),
        Some(b'M') => (&text[..text.len() - 1], 1e6),
        Some(b'G') => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let number: f64 = number.replace('_', "").parse().map_err(|_| wrong())?;
    Ok(number * factor)
}

fn sizes(text: &str) -> Result<FrameSizes, String> {
    if text == "imix" {
        return Ok(FrameSizes::Imix);
    }
    let wrong =
        |part: &str| format!("`{part}`: write imix, or SIZE:WEIGHT,... such as 64:7,1518:1");
    let pair = |part: &str| {
        let (size, weight) = part.split_once(':')?;
        Some((size.trim().parse().ok()?, weight.trim().parse().ok()?))
    };
    let pairs = text
        .split(',')
        .map(|part| pair(part).ok_or_else(|| wrong(part)));
    pairs.collect::<Result<_, _>>().map(FrameSizes::Mix)
}
