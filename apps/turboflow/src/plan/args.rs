// SPDX-License-Identifier: Apache-2.0
//! The command line of `turboflow plan`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{anyhow, bail};
use clap::Args;
use turboflow_packet::TunnelSet;
use turboflow_plan::{Assumption, Assumptions, Impossible, SimulationConfig, Target, Traffic};
use turboflow_run::{FlowConfig, RunConfig, Size, SourceConfig};

use crate::record::{joined_filter, separate_filter};
use crate::units::{count, duration, seed, size_bytes};

/// Follows the options in `-h`, which is one screen.
const SHORT: &str =
    "--help has all options, examples and exit codes; docs/planning.md explains the model.";

const EXAMPLES: &str = "\
Examples:
  What does it take to meter 40 links like the one in this capture?
    turboflow plan -r office.pcap --links 40
  What does the link at this interface take, watched for a minute? Needs the right to capture
    turboflow plan -i eth0 --for 1m
  What does a link take if I have no capture, but know the rates?
    turboflow plan --packets-per-second 500k --flows-per-second 20k --active-flows 800k
  The capture is of a quiet link: what if 10 Gb/s links like it were 30 % full?
    turboflow plan -r office.pcap --utilization 0.3
  I have 1 MB of table memory and 4 cores: how many such links can they carry?
    turboflow plan -r office.pcap --table-memory 1MB --cores 4
  How large must the table be, if one core is to aggregate for 200 links?
    turboflow plan -r office.pcap --links 200 --cores 1
  What would a network card with a flow table save?
    turboflow plan -r office.pcap --links 40 --offload napatech
  What changes with microflow records of 24 bytes, cheaper servers and this machine's cores?
    turboflow plan -r office.pcap --assume microflow_record_bytes=24 \\
        --assume server_cost_usd=2000 --measure
  Compute the tables of the TurboFlow paper from its inputs, beside the printed values
    turboflow plan --paper

Exit codes: 0 all well; 1 a capture was damaged, or packets were dropped: the answer covers only
the rest; 2 the question cannot be answered: an input is impossible, or two contradict each other.";

/// Plan before you deploy: table memory, cores, bandwidth, capacity, cost.
///
/// Traffic comes from captures or an interface, on which tables of many sizes are simulated, or
/// from stated rates. The answer is a sentence and tables. It lists all assumptions, and --assume
/// changes one. docs/planning.md explains the model.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct PlanArgs {
    /// Capture files of one link, read as one stream; `-` is standard input
    #[arg(short, long = "read", value_name = "FILE", num_args = 1..)]
    #[arg(help_heading = "Traffic of one link")]
    read: Vec<PathBuf>,

    /// Interface to watch; repeat if one link has several. Needs the right to capture
    /// (CAP_NET_RAW)
    #[arg(short, long, value_name = "IFACE", conflicts_with = "read")]
    #[arg(help_heading = "Traffic of one link")]
    interface: Vec<String>,

    /// Only packets that match this tcpdump filter; needs libpcap
    #[arg(value_name = "FILTER", help_heading = "Traffic of one link")]
    filter: Vec<String>,

    /// How long to watch the interface. Default 60s
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    #[arg(help_heading = "Traffic of one link")]
    lasts: Option<Duration>,

    /// Packets a second, if no packets are read. Numbers may have k, M or G
    #[arg(long, value_name = "RATE", value_parser = number, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["read", "interface"], help_heading = "Traffic of one link")]
    #[arg(requires_all = ["flows_per_second", "active_flows"])]
    packets_per_second: Option<f64>,

    /// New flows a second
    #[arg(long, value_name = "RATE", value_parser = number, allow_negative_numbers = true)]
    #[arg(requires = "packets_per_second", help_heading = "Traffic of one link")]
    flows_per_second: Option<f64>,

    /// Peak of active flows, which have a packet within the idle timeout; at least those new in it
    #[arg(long, value_name = "N", value_parser = number, allow_negative_numbers = true)]
    #[arg(requires = "packets_per_second", help_heading = "Traffic of one link")]
    active_flows: Option<f64>,

    /// Mean size of packets on the wire; without it the load of the links is not shown
    #[arg(long, value_name = "BYTES", value_parser = number, allow_negative_numbers = true)]
    #[arg(requires = "packets_per_second", help_heading = "Traffic of one link")]
    #[arg(hide_short_help = true)]
    mean_packet_bytes: Option<f64>,

    /// Fill each link to this share of its capacity, with independent copies of its traffic: for
    /// captures of links with less load than those planned for. Default: the traffic as it is
    #[arg(long, value_name = "SHARE", value_parser = number, allow_negative_numbers = true)]
    #[arg(help_heading = "Question")]
    pub(super) utilization: Option<f64>,

    /// Such links, each with its own traffic and share of the table. Default 1
    #[arg(long, value_name = "N", value_parser = count)]
    #[arg(help_heading = "Question")]
    links: Option<u64>,

    /// Target for the table: packets per microflow record. Default: 10, or four fifths of packets
    /// per flow if that is less
    #[arg(long, value_name = "PACKETS", value_parser = number, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["target_rate", "cores", "table_memory"], help_heading = "Question")]
    target_ratio: Option<f64>,

    /// Target for the table: at most this many microflow records a second, over all links
    #[arg(long, value_name = "RATE", value_parser = number, allow_negative_numbers = true)]
    #[arg(conflicts_with_all = ["cores", "table_memory"], help_heading = "Question")]
    #[arg(hide_short_help = true)]
    target_rate: Option<f64>,

    /// Target for the table: records that this many cores can merge; with --table-memory: show
    /// the links they carry
    #[arg(long, value_name = "N", value_parser = number, allow_negative_numbers = true)]
    #[arg(help_heading = "Question")]
    cores: Option<f64>,

    /// Memory of the table for all links, such as 1MB or 512KiB: show its effect
    #[arg(long, value_name = "SIZE", value_parser = size_bytes, help_heading = "Question")]
    table_memory: Option<u64>,

    /// Flow table to offload to: kernel, napatech, or a TOML file
    ///
    /// Show how full the table is, which packets still reach the host, and which limit is reached
    /// first.
    #[arg(long, value_name = "CARD", help_heading = "Question")]
    pub(super) offload: Option<String>,

    /// Change an assumption, such as server_cost_usd=2000; repeat for more.
    /// --assumptions lists them
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Assumptions")]
    assume: Vec<String>,

    /// Measure how many records a second a core of this machine merges, instead of assuming it.
    /// Takes some seconds, in which the machine should be idle
    #[arg(long, help_heading = "Assumptions")]
    pub(super) measure: bool,

    /// A flow ends after this long without packets; its next packet begins a new flow. Default 30s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    #[arg(help_heading = "Assumptions")]
    #[arg(hide_short_help = true)]
    idle_timeout: Option<Duration>,

    /// Enter tunnels, as `turboflow record` does: all, or those listed
    #[arg(long, value_name = "LIST", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "all", help_heading = "Assumptions")]
    #[arg(hide_short_help = true)]
    decapsulate: Option<TunnelSet>,

    /// Memory in which the kernel keeps packets of an interface until they are read. Default 64MiB
    #[arg(long, value_name = "SIZE", value_parser = size_bytes, help_heading = "Assumptions")]
    #[arg(hide_short_help = true)]
    ring_size: Option<u64>,

    /// Seed of the hash function that chooses slots. Default 1
    #[arg(long, value_name = "N", value_parser = seed, help_heading = "Assumptions")]
    #[arg(hide_short_help = true)]
    seed: Option<u64>,

    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,

    /// List the assumptions, with defaults and sources
    #[arg(long, conflicts_with_all = ["read", "interface"], help_heading = "Output")]
    pub(super) assumptions: bool,

    /// Compute Tables 5 and 10 to 13 of the TurboFlow paper from its inputs, beside those printed
    #[arg(long, conflicts_with_all = ["read", "interface"])]
    #[arg(help_heading = "Output")]
    pub(super) paper: bool,
}

/// What an option affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OptionScope {
    /// Every answer.
    Any,
    /// Assumptions.
    Assumed,
    /// Traffic watched at an interface.
    Interface,
    /// Packets of captures or interfaces.
    Packets,
}

/// A number such as `0.5`, `40k` or `1.5M`. The caller checks its range.
fn number(text: &str) -> Result<f64, String> {
    let plain = text.replace('_', "");
    let (digits, factor) = match plain.as_bytes().last() {
        Some(b'k' | b'K') => (&plain[..plain.len() - 1], 1e3),
        Some(b'M') => (&plain[..plain.len() - 1], 1e6),
        Some(b'G') => (&plain[..plain.len() - 1], 1e9),
        _ => (plain.as_str(), 1.0),
    };
    let number: f64 = digits
        .parse()
        .map_err(|_| "write a number such as 1000, 0.5, 40k or 1.5M".to_owned())?;
    Ok(number * factor)
}

/// The error for an impossible argument, in terms of the command line.
pub(super) fn refused(error: &Impossible) -> anyhow::Error {
    let Impossible { argument, mend, .. } = error;
    let value = error.written();
    if Assumption::named(argument).is_some() {
        return anyhow!("--assume {argument}={value}: {mend}");
    }
    match *argument {
        "observed_seconds" => anyhow!("{mend}"),
        "idle_timeout_ns" => anyhow!("--idle-timeout is {value}: {mend}"),
        argument => anyhow!("--{} is {value}: {mend}", argument.replace('_', "-")),
    }
}

impl PlanArgs {
    /// The stated traffic, if any.
    pub(super) fn stated(&self) -> Option<Traffic> {
        Some(Traffic {
            packets_per_second: self.packets_per_second?,
            flows_per_second: self.flows_per_second?,
            active_flows: self.active_flows?,
            mean_packet_bytes: self.mean_packet_bytes,
        })
    }

    /// Whether packets are read from captures or interfaces.
    pub(super) const fn has_source(&self) -> bool {
        !self.read.is_empty() || !self.interface.is_empty()
    }

    pub(super) const fn target(&self) -> Target {
        let table_bytes = match self.table_memory {
            Some(bytes) => Some(bytes as f64),
            None => None,
        };
        match (self.target_ratio, self.target_rate, self.cores, table_bytes) {
            (_, _, Some(cores), Some(table_bytes)) => Target::Machine { table_bytes, cores },
            (_, _, None, Some(table_bytes)) => Target::TableBytes(table_bytes),
            (_, _, Some(cores), None) => Target::Cores(cores),
            (_, Some(rate), None, None) => Target::MicroflowsPerSecond(rate),
            (Some(ratio), None, None, None) => Target::PacketsPerMicroflow(ratio),
            (None, None, None, None) => Target::Default,
        }
    }

    /// The number of copies that fill a link to the requested utilization.
    pub(super) fn copies(
        &self,
        traffic: &Traffic,
        assumptions: &Assumptions,
    ) -> anyhow::Result<f64> {
        let Some(share) = self.utilization else {
            return Ok(1.0);
        };
        if !(share > 0.0 && share <= 1.0) {
            bail!("--utilization is {share}: a share above 0 and up to 1 is needed");
        }
        let Some(load) = traffic.bits_per_second() else {
            bail!("--utilization needs the size of packets: add --mean-packet-bytes");
        };
        Ok(share * assumptions.get(Assumption::LinkBitsPerSecond) / load)
    }

    /// How long the interface is watched.
    pub(super) fn lasts(&self) -> Duration {
        self.lasts.unwrap_or(Duration::from_secs(60))
    }

    pub(super) fn links(&self) -> u64 {
        self.links.unwrap_or(1)
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// The idle timeout.
    pub(super) fn idle_timeout(&self) -> Duration {
        self.idle_timeout.unwrap_or(Duration::from_secs(30))
    }

    /// The packet filter; empty if there is none.
    pub(super) fn filter(&self) -> String {
        self.filter.join(" ")
    }

    /// The configuration of the simulation.
    pub(super) fn simulation(&self, assumptions: &Assumptions) -> SimulationConfig {
        let active_timeout_seconds = assumptions.get(Assumption::ActiveTimeoutSeconds);
        SimulationConfig {
            idle_timeout_ns: u64::try_from(self.idle_timeout().as_nanos()).unwrap_or(u64::MAX),
            active_timeout_ns: (active_timeout_seconds * 1e9) as u64,
            ..SimulationConfig::default()
        }
    }

    /// An option without effect on the answer is an error, because it would be ignored.
    pub(super) fn refuse_unused_options(&self) -> anyhow::Result<()> {
        let find = |of: &[OptionScope]| {
            let given = self.options().into_iter();
            let mut found = given.filter(|(_, is_given, its)| *is_given && of.contains(its));
            found.next().map(|(option, ..)| option)
        };
        let all = &[
            OptionScope::Any,
            OptionScope::Assumed,
            OptionScope::Interface,
            OptionScope::Packets,
        ];
        let (option, why) = if self.paper {
            (find(all), "with --paper, which has the paper's own inputs")
        } else if self.assumptions {
            let others = &[
                OptionScope::Any,
                OptionScope::Interface,
                OptionScope::Packets,
            ];
            (find(others), "with --assumptions, which lists them alone")
        } else if self.packets_per_second.is_some() {
            let others = &[OptionScope::Interface, OptionScope::Packets];
            (
                find(others),
                "with --packets-per-second, where no packets are read",
            )
        } else if !self.read.is_empty() {
            (find(&[OptionScope::Interface]), "without -i")
        } else {
            (None, "")
        };
        if let Some(option) = option {
            bail!("{option} is of no use {why}: leave it out");
        }
        if self.links.is_some() && matches!(self.target(), Target::Machine { .. }) {
            bail!(
                "--links is of no use with --table-memory and --cores, which ask how many links those \
                 carry: leave out one of the three"
            );
        }
        self.refuse_offload_alone()?;
        let per_core = Assumption::AggregatorRecordsPerSecondPerCore.name();
        let assumed = self.assume.iter().find(|text| text.starts_with(per_core));
        if let Some(text) = assumed.filter(|_| self.measure) {
            bail!("--assume {text} and --measure contradict each other: leave one out");
        }
        Ok(())
    }

    /// Refuses assumptions about flow offload without an offload card.
    fn refuse_offload_alone(&self) -> anyhow::Result<()> {
        if self.offload.is_some() || self.assumptions {
            return Ok(());
        }
        let is_of_offload = |text: &&String| {
            let name = text.split('=').next().unwrap_or_default().trim();
            Assumption::named(name).is_some_and(Assumption::is_of_offload)
        };
        match self.assume.iter().find(is_of_offload) {
            Some(text) => {
                bail!("--assume {text} is of no use without --offload: add it, or leave this out")
            }
            None => Ok(()),
        }
    }

    /// Options that may be without effect: name, whether given, and what they affect.
    fn options(&self) -> [(&'static str, bool, OptionScope); 17] {
        [
            ("FILTER", !self.filter.is_empty(), OptionScope::Packets),
            ("--for", self.lasts.is_some(), OptionScope::Interface),
            (
                "--packets-per-second",
                self.packets_per_second.is_some(),
                OptionScope::Any,
            ),
            (
                "--utilization",
                self.utilization.is_some(),
                OptionScope::Any,
            ),
            ("--links", self.links.is_some(), OptionScope::Any),
            (
                "--target-ratio",
                self.target_ratio.is_some(),
                OptionScope::Any,
            ),
            (
                "--target-rate",
                self.target_rate.is_some(),
                OptionScope::Any,
            ),
            ("--cores", self.cores.is_some(), OptionScope::Any),
            (
                "--table-memory",
                self.table_memory.is_some(),
                OptionScope::Any,
            ),
            ("--offload", self.offload.is_some(), OptionScope::Any),
            ("--assume", !self.assume.is_empty(), OptionScope::Assumed),
            ("--measure", self.measure, OptionScope::Any),
            (
                "--idle-timeout",
                self.idle_timeout.is_some(),
                OptionScope::Any,
            ),
            (
                "--decapsulate",
                self.decapsulate.is_some(),
                OptionScope::Packets,
            ),
            (
                "--ring-size",
                self.ring_size.is_some(),
                OptionScope::Interface,
            ),
            ("--seed", self.seed.is_some(), OptionScope::Packets),
            ("--assumptions", self.assumptions, OptionScope::Assumed),
        ]
    }

    pub(super) fn assumed(&self) -> anyhow::Result<Assumptions> {
        let mut assumptions = Assumptions::default();
        for text in &self.assume {
            let Some((name, value)) = text.split_once('=') else {
                bail!("--assume {text}: write NAME=VALUE, such as server_cost_usd=2000");
            };
            let Some(assumption) = Assumption::named(name.trim()) else {
                bail!("--assume {text}: there is no assumption {name}; --assumptions lists them");
            };
            if !assumptions.is_default(assumption) {
                bail!("--assume {text}: {name} is assumed twice; leave one out");
            }
            let value = number(value.trim()).map_err(|mend| anyhow!("--assume {text}: {mend}"))?;
            let set = assumptions.set(assumption, value, "--assume");
            set.map_err(|error| refused(&error))?;
        }
        Ok(assumptions)
    }

    /// The configuration of the run that reads the packets.
    pub(super) fn to_run(&self) -> anyhow::Result<RunConfig> {
        let (mut files, mut filter) = (self.read.clone(), self.filter.clone());
        separate_filter(&mut files, &mut filter, self.decapsulate.as_ref())?;
        let default = SourceConfig::default();
        Ok(RunConfig {
            source: SourceConfig {
                files,
                interfaces: self.interface.clone(),
                filter: joined_filter(&filter),
                ring_size: self.ring_size.map_or(default.ring_size, Size),
                ..default
            },
            flow: FlowConfig {
                decapsulate: self.decapsulate.unwrap_or_default(),
                ..FlowConfig::default()
            },
            ..RunConfig::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parsed_without_a_range_check() {
        for (text, value) in [
            ("7", 7.0),
            ("0.5", 0.5),
            ("1_000", 1e3),
            ("40k", 40e3),
            ("1.5M", 1.5e6),
            ("2G", 2e9),
            ("-1", -1.0),
        ] {
            assert_eq!(number(text), Ok(value));
        }
        assert!(number("NaN").is_ok_and(f64::is_nan));
        for text in ["", "k", "1.2.3", "ten", "1m"] {
            assert!(number(text).is_err(), "{text}");
        }
    }
}
