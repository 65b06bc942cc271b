// SPDX-License-Identifier: Apache-2.0
//! `turboflow-lab bench`: the benchmarks of `lab/bench`, as a table or as JSON.

#[cfg(all(target_os = "linux", feature = "kernel"))]
use anyhow::anyhow;
use anyhow::bail;
use clap::{Args, ValueEnum};
use turboflow_bench::{BENCHES, Options, Row};

use crate::stdout::print_or_end;

const EXAMPLES: &str = "\
Every design of a benchmark runs on the same traffic, in one run, on one core; only `cores` uses
more. Compare rows of one run, never numbers of different runs or machines. Leave the machine idle
meanwhile.

Benchmarks:
  aggregate  merging microflow records: ours, the paper's method, hashbrown, std, Redis
  classify   flow records to applications: a tree, a forest of ten, a linear model
  cores      the aggregator on one core, two, ... all: std, flat table, integer keys, the paper's,
             ours, Redis
  pipeline   frames in memory to open flows, by stage, with and without a microflow table
  features   what four more features cost the aggregator
  plan       a definition's compiled plan against the same work written by hand
  export     flow records into messages: IPFIX, NetFlow v9 and v5, without the socket
  flood      50 million distinct keys against a full flow cache
  generate   making traffic: packets, frames in memory, a capture file in the temporary directory
  sweep      frames in memory to flow records, with a tenth of the active flows replaced every
             second

  with --engine xdp: the cost of a packet in the kernel, beyond a program that does nothing

Examples:
  turboflow-lab bench
      all benchmarks: about half an hour and 6 GB
  turboflow-lab bench aggregate --flows 100K,1M --json
      one benchmark with two numbers of flows, a JSON object a row
  turboflow-lab bench pipeline --flows 1M --items 5M
      a shorter run
  turboflow-lab bench --engine xdp --flows 16K,1M
      the engine in the kernel (root)
  turboflow-lab bench --engine xdp --send veth0 --flows 1M --items 10M
      measure nothing: send packets to a meter on the other end of a veth pair";

/// `turboflow-lab bench`, as typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// Which benchmarks to run; all by default
    #[arg(value_name = "BENCH", value_parser = BENCHES.map(|(name, _)| name))]
    benches: Vec<String>,
    /// Numbers of flows, for aggregate, cores, features, pipeline and --engine xdp. Default
    /// 10K,100K,1M,10M,20M
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        value_parser = number,
        allow_hyphen_values = true
    )]
    flows: Vec<u64>,
    /// Items measured for each row and repetition. Default 20M
    #[arg(long, value_name = "N", value_parser = number, allow_hyphen_values = true)]
    items: Option<u64>,
    /// Repetitions of each row; the median counts. Default 3
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[arg(allow_hyphen_values = true)]
    repetitions: Option<u32>,
    /// Address of a Redis server; its rows are left out if none answers, or if its database 15,
    /// which is written to and emptied, is not empty. Default 127.0.0.1:6379
    #[arg(long, value_name = "HOST:PORT")]
    redis: Option<String>,
    /// The engine measured: software, with the benchmarks above, or xdp
    #[arg(long, value_enum, default_value_t = Engine::Software, conflicts_with = "benches")]
    #[arg(hide_possible_values = true)]
    engine: Engine,
    /// Send packets from this interface, as fast as the kernel can: --items packets,
    /// Internet-like, of the first number of --flows. The other end of a veth pair receives them
    #[arg(long, value_name = "IFACE")]
    send: Option<String>,
    /// Print one JSON object a row
    #[arg(long)]
    json: bool,
}

/// The engine measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// In user space, with everything behind it.
    Software,
    /// In the kernel.
    Xdp,
}

/// A positive whole number, optionally with the suffix K or M.
fn number(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1_000_000),
        _ => (text, 1),
    };
    let number = digits
        .parse::<u64>()
        .ok()
        .and_then(|digits| digits.checked_mul(factor));
    match number {
        Some(number @ 1..=100_000_000) => Ok(number),
        _ => Err("use a whole number from 1 to 100M, like 50000, 10K or 20M".to_owned()),
    }
}

/// Benchmarks that use the given numbers of flows.
const OF_FLOWS: [&str; 4] = ["aggregate", "cores", "features", "pipeline"];
/// Benchmarks with a row for Redis.
const OF_REDIS: [&str; 2] = ["aggregate", "cores"];
/// The benchmark whose traffic and length are fixed.
const FIXED: &str = "flood";

impl BenchArgs {
    /// Options that none of the selected benchmarks uses are errors, because they would be ignored.
    fn refuse_unused_options(&self) -> anyhow::Result<()> {
        let in_kernel = self.engine == Engine::Xdp;
        if self.send.is_some() && !in_kernel {
            bail!("--send is of no use without --engine xdp: add that, or leave it out");
        }
        if in_kernel && self.redis.is_some() {
            bail!("--redis is of no use with --engine xdp: leave it out");
        }
        if in_kernel || self.benches.is_empty() {
            return Ok(());
        }
        let names = self.benches.join(", ");
        let any = |fits: &dyn Fn(&str) -> bool| self.benches.iter().any(|name| fits(name));
        for (option, is_given, is_used) in [
            (
                "--flows",
                !self.flows.is_empty(),
                any(&|name| OF_FLOWS.contains(&name)),
            ),
            ("--items", self.items.is_some(), any(&|name| name != FIXED)),
            (
                "--repetitions",
                self.repetitions.is_some(),
                any(&|name| name != FIXED),
            ),
            (
                "--redis",
                self.redis.is_some(),
                any(&|name| OF_REDIS.contains(&name)),
            ),
        ] {
            if is_given && !is_used {
                bail!("{option} is of no use with {names}: leave it out");
            }
        }
        Ok(())
    }

    fn options(&self) -> Options {
        let usual = Options::default();
        Options {
            flows: match self.flows.is_empty() {
                true => usual.flows,
                false => self.flows.clone(),
            },
            items: self.items.unwrap_or(usual.items),
            repetitions: self.repetitions.unwrap_or(usual.repetitions),
            redis: self.redis.clone().unwrap_or(usual.redis),
        }
    }
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    args.refuse_unused_options()?;
    let options = args.options();
    if let (Engine::Xdp, Some(interface)) = (args.engine, &args.send) {
        return send(interface, &options, args.json);
    }
    let all = BENCHES.map(|(name, _)| name.to_owned());
    let benches = if args.benches.is_empty() {
        &all[..]
    } else {
        &args.benches
    };
    if !args.json {
        let head = format!(
            "{:<10} {:<14} {:>10} {:<14} {:>10} {:>9} {:>10} {:>12}\n",
            "bench",
            "design",
            "flows",
            "traffic",
            "M items/s",
            "ns/item",
            "bytes/flow",
            "records/pkt"
        );
        print_or_end(&head);
    }
    if args.engine == Engine::Xdp {
        return in_kernel(&options, args.json);
    }
    for bench in benches {
        turboflow_bench::run(bench, &options, &mut |row| print(&row, args.json))?;
    }
    Ok(())
}

#[cfg(all(target_os = "linux", feature = "kernel"))]
fn in_kernel(options: &Options, json: bool) -> anyhow::Result<()> {
    // The error's message names its cause.
    turboflow_bench::kernel::run(options, &mut |row| print(&row, json))
        .map_err(|error| anyhow!("{error}"))
}

#[cfg(all(target_os = "linux", feature = "kernel"))]
fn send(interface: &str, options: &Options, json: bool) -> anyhow::Result<()> {
    let flows = options.flows.first().copied().unwrap_or(1);
    let row = turboflow_bench::kernel::send(interface, u32::try_from(flows)?, options.items)
        .map_err(|error| anyhow!("{error}"))?;
    print(&row, json);
    Ok(())
}

/// What is missing, and how to get it.
#[cfg(not(all(target_os = "linux", feature = "kernel")))]
const WITHOUT_KERNEL: &str = "this turboflow-lab was built without the engine in the kernel \
    (Linux; cargo build --features kernel, with clang, libelf-dev and zlib1g-dev); --engine software works";

#[cfg(not(all(target_os = "linux", feature = "kernel")))]
fn in_kernel(_options: &Options, _json: bool) -> anyhow::Result<()> {
    bail!(WITHOUT_KERNEL)
}

#[cfg(not(all(target_os = "linux", feature = "kernel")))]
fn send(_interface: &str, _options: &Options, _json: bool) -> anyhow::Result<()> {
    bail!(WITHOUT_KERNEL)
}

/// Prints each row at once, even if standard output is a file.
fn print(row: &Row, json: bool) {
    if json {
        let row = serde_json::to_string(row).expect("a row of numbers and names is JSON");
        return print_or_end(&(row + "\n"));
    }
    let optional = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    let row = format!(
        "{:<10} {:<14} {:>10} {:<14} {:>10.1} {:>9.2} {:>10} {:>12}\n",
        row.bench,
        row.design,
        row.flows,
        row.traffic,
        row.items_per_s / 1e6,
        row.ns_per_item,
        optional(row.bytes_per_flow, 1),
        optional(row.microflows_per_packet, 4),
    );
    print_or_end(&row);
}
