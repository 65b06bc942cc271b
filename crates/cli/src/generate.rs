// SPDX-License-Identifier: Apache-2.0
//! `turboflow generate`: traffic of stated rates, sizes and skew, as a capture file.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use turboflow_capture::write::PcapWriter;
use turboflow_export::table;
use turboflow_packet::LinkType;
use turboflow_workload::traffic::{
    FrameBuffer, FrameSizes, Skew, Statistics, Traffic, TrafficConfig,
};

use crate::beside::Beside;
use crate::exit::Outcome;
use crate::log::say;
use crate::signals::{self, STOP};
use crate::units::{count, counted, grouped};

const EXAMPLES: &str = "\
Examples:
  Ten million small packets of 300,000 flows with Internet-like skew
    turboflow generate -w zipf.pcap --packets 10M --flows 300k --traffic zipf --snap-length 64
  A mixed link: packet sizes of the simple IMIX, a third IPv6, a tenth tagged, UDP in between
    turboflow generate -w mixed.pcap --sizes imix --ipv6-share 0.33 --vlan-share 0.1 --udp-share 0.4
  Many short flows: 5,000 new ones a second among 10,000
    turboflow generate -w churn.pcap --births-per-second 5000 --packets-per-second 100k
  Straight into the meter
    turboflow generate -w - --packets 10M | turboflow record -r - -w flows.parquet

The same options and seed give the same file, byte for byte.

Exit codes: 0 all well; 1 interrupted; 2 the options contradict each other, or the file cannot be
written.";

/// Generate traffic of stated rates, sizes and skew into a capture file.
///
/// Writes classic pcap with nanosecond times, Ethernet. What was asked for and what came out is
/// said on standard error.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GenerateArgs {
    /// The capture file; `-` is standard output
    #[arg(short, long = "write", value_name = "FILE.pcap")]
    write: PathBuf,

    /// Packets in all. Counts may have k, M or G
    #[arg(long, value_name = "N", default_value = "1M", value_parser = count)]
    #[arg(help_heading = "How much")]
    packets: u64,

    /// Flows active at any time
    #[arg(long, value_name = "N", default_value = "10k", value_parser = count)]
    #[arg(help_heading = "How much")]
    flows: u64,

    /// Packets per second of the capture's own time, evenly spaced
    #[arg(long, value_name = "RATE", default_value = "1M", value_parser = rate)]
    #[arg(help_heading = "How much")]
    packets_per_second: f64,

    /// New flows per second of the capture's own time; each takes the place of an old one
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = rate)]
    #[arg(help_heading = "How much")]
    births_per_second: f64,

    /// How packets spread over flows
    #[arg(long, value_enum, default_value_t = Spread::Uniform, help_heading = "Skew")]
    traffic: Spread,

    /// Zipf: the k-th heaviest flow has a share that goes as k^-EXPONENT, 0 to 8. Default 1.05
    #[arg(long, value_name = "EXPONENT", help_heading = "Skew")]
    zipf_exponent: Option<f64>,

    /// Zipf: mean number of packets a flow sends in one go, at least 1. Default 10
    #[arg(long, value_name = "PACKETS", help_heading = "Skew")]
    train_length: Option<f64>,

    /// Size of every frame in bytes without FCS, 64 to 9000. Default 64
    #[arg(
        long,
        value_name = "BYTES",
        conflicts_with = "sizes",
        help_heading = "Frames"
    )]
    size: Option<u32>,

    /// A mix of sizes: `imix` (7 of 64, 4 of 594, 1 of 1518 bytes), or SIZE:WEIGHT,...
    #[arg(long, value_name = "MIX", value_parser = sizes, help_heading = "Frames")]
    sizes: Option<FrameSizes>,

    /// Share of the flows that are IPv6, 0 to 1
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.0,
        help_heading = "Frames"
    )]
    ipv6_share: f64,

    /// Share of the flows with an 802.1Q tag, 0 to 1
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.0,
        help_heading = "Frames"
    )]
    vlan_share: f64,

    /// Share of the flows that are UDP, 0 to 1; the others are TCP
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.0,
        help_heading = "Frames"
    )]
    udp_share: f64,

    /// Bytes captured of every frame, at least 64. Default: all
    #[arg(long, value_name = "BYTES", help_heading = "Frames")]
    snap_length: Option<u32>,

    /// Everything random comes from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Say nothing on standard error
    #[arg(short, long)]
    quiet: bool,
}

/// How packets spread over flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Spread {
    /// Every packet of any flow with the same probability
    Uniform,
    /// Internet-like: few heavy flows, packets in trains
    Zipf,
}

fn rate(text: &str) -> Result<f64, String> {
    let wrong = || "write a number such as 5000, 0.5 or 100k".to_owned();
    count(text)
        .map(|whole| whole as f64)
        .or_else(|_| text.parse().map_err(|_| wrong()))
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

/// Frames made at a time: their bytes stay in the second-level cache.
const FRAMES_AT_ONCE: usize = 1_024;

pub(crate) fn run(args: &GenerateArgs) -> anyhow::Result<Outcome> {
    let mut traffic = Traffic::new(args.config()?)?;
    signals::listen("stopping: the capture is not kept", false, None)?;
    let to_stdout = args.write.as_os_str() == "-";
    let written = if to_stdout {
        if io::stdout().is_terminal() {
            bail!("a capture is no text for a terminal: redirect standard output");
        }
        let stdout = io::stdout().as_fd().try_clone_to_owned();
        write(
            &mut traffic,
            File::from(stdout.context("cannot write standard output")?),
        )
        .map(drop)
    } else {
        let file = Beside::create(&args.write)?;
        write(&mut traffic, file).and_then(|file| match STOP.asked() {
            true => Ok(()),
            false => file.complete(),
        })
    };
    match written {
        Err(error) if to_stdout && error.kind() == ErrorKind::BrokenPipe => {}
        written => written.with_context(|| format!("cannot write {}", args.write.display()))?,
    }
    if STOP.asked() {
        say!(Error Stopped; "stopped by a signal: the capture is not complete");
        return Ok(Outcome::Lossy);
    }
    if !args.quiet {
        let achieved = achieved(traffic.config(), &traffic.statistics());
        say!(Info Generated; "{achieved}");
    }
    Ok(Outcome::Well)
}

fn write<W: Write>(traffic: &mut Traffic, file: W) -> io::Result<W> {
    let mut writer = PcapWriter::new(file, LinkType::Ethernet)?;
    let mut buffer = FrameBuffer::with_capacity(FRAMES_AT_ONCE, 64);
    while traffic.fill(&mut buffer, FRAMES_AT_ONCE) > 0 && !STOP.asked() {
        for frame in buffer.frames() {
            writer.write_frame(&frame)?;
        }
    }
    writer.finish()
}

impl GenerateArgs {
    fn config(&self) -> anyhow::Result<TrafficConfig> {
        let skew = match self.traffic {
            Spread::Uniform => {
                let given = [
                    ("--zipf-exponent", self.zipf_exponent.is_some()),
                    ("--train-length", self.train_length.is_some()),
                ];
                if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
                    bail!(
                        "{option} is of no use without --traffic zipf: add that, or leave it out"
                    );
                }
                Skew::Uniform
            }
            Spread::Zipf => Skew::Zipf {
                exponent: self.zipf_exponent.unwrap_or(1.05),
                mean_train_length: self.train_length.unwrap_or(10.0),
            },
        };
        let one_size = FrameSizes::Fixed(self.size.unwrap_or(64));
        Ok(TrafficConfig {
            packets: self.packets,
            flows: self.flows,
            births_per_second: self.births_per_second,
            packets_per_second: self.packets_per_second,
            frame_sizes: self.sizes.clone().unwrap_or(one_size),
            skew,
            ipv6_share: self.ipv6_share,
            vlan_share: self.vlan_share,
            udp_share: self.udp_share,
            snap_length_bytes: self.snap_length,
            seed: self.seed,
            ..TrafficConfig::default()
        })
    }
}

/// What was asked for, and what came out.
fn achieved(config: &TrafficConfig, statistics: &Statistics) -> String {
    let packets = statistics.packets.max(1) as f64;
    let share = |part: u64| 100.0 * part as f64 / packets;
    let seconds = statistics.last_ns.saturating_sub(config.start_ns) as f64 / 1e9;
    let weights = config.frame_sizes.weighted();
    let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
    let mean: f64 = weights
        .iter()
        .map(|(bytes, weight)| f64::from(*bytes) * weight / total)
        .sum();
    let births = config.births_per_second * seconds;
    let mut lines = vec![
        format!(
            "{} in {seconds:.3} s of the capture's time ({}/s), {} on the wire, {} captured; seed {}",
            counted(statistics.packets, "packet"),
            table::count((packets / seconds.max(1e-9)) as u64),
            table::bytes(statistics.wire_bytes),
            table::bytes(statistics.captured_bytes),
            config.seed,
        ),
        format!(
            "flows: {} at any time, {} born (asked for {births:.0}), {} ended",
            grouped(config.flows),
            grouped(statistics.births),
            grouped(statistics.deaths),
        ),
        format!(
            "mean frame {:.1} bytes (asked for {mean:.1}; none is shorter than its headers)",
            statistics.wire_bytes as f64 / packets
        ),
    ];
    let shares = [
        ("IPv6", statistics.ipv6_packets, config.ipv6_share),
        ("VLAN", statistics.vlan_packets, config.vlan_share),
        ("UDP", statistics.udp_packets, config.udp_share),
    ];
    let shares = shares.map(|(name, packets, asked)| {
        format!(
            "{name} {:.1} % (asked for {:.1} % of the flows)",
            share(packets),
            asked * 100.0
        )
    });
    lines.push(format!("packets: {}", shares.join(", ")));
    if let Skew::Zipf {
        exponent,
        mean_train_length,
    } = config.skew
    {
        let length = packets / statistics.trains.max(1) as f64;
        lines.push(format!(
            "Zipf exponent {exponent}; {} trains of {length:.1} packets (asked for \
             {mean_train_length})",
            grouped(statistics.trains),
        ));
    }
    lines.join("\n")
}
