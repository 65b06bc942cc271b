// SPDX-License-Identifier: Apache-2.0
//! `turboflow bridge`: two ports, and rules that decide which flows pass.

mod rules_file;
mod told;

use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Command};
use turboflow_bridge::Rules;
use turboflow_formats::table::{Align, Table};
use turboflow_run::BridgeConfig;

use crate::engines;
use crate::exit::{Outcome, print};
use crate::keys::Key;
use crate::log::say;
use crate::record::{self, RecordArgs};
use crate::units::counted;
pub(crate) use rules_file::RulesFile;
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub(crate) use told::begin;
pub(crate) use told::{RuleCount, Told, told};

/// Follows the options in `-h`, which is one screen.
const SHORT: &str = "--help has all options, examples, signals and exit codes.";

const EXAMPLES: &str = "\
Examples:
  Are the rules valid, what do they do, and can the ports be bridged?
    turboflow bridge --check --rules rules.toml --in eth0 --out eth1
  Which names can rules have?
    turboflow applications
  Forward everything, and see what the rules would drop
    turboflow bridge --in eth0 --out eth1 --rules rules.toml --dry-run -w flows.parquet
    turboflow show flows.parquet --group-by application
  Apply the rules: drop what they say
    turboflow bridge --in eth0 --out eth1 --rules rules.toml -w flows-%H.parquet --rotate 1h

Rules (docs/bridge.md has all keys): the first that matches decides.
  default = \"pass\"               # a flow that no rule matches
  fail = \"open\"                  # what forwards when the process is gone: open, frozen or closed
  [[rule]]
  name = \"no-netflix\"
  application = [\"NetFlix\"]      # or category, server_name, protocol, port, src, dst, risk
  except = { src = [\"10.0.5.0/24\"] }
  action = \"drop\"

Signals:
  SIGTERM, SIGINT  writes everything and exits; a second one aborts
  SIGHUP           reads the rules again, all of them or none, and decides open flows again

Exit codes: 0 all well; 1 it ran, but frames or records were lost; 2 the rules are wrong or cannot
be read, or the ports cannot be bridged; 130 aborted by a second Ctrl-C.";

/// Flags of `turboflow record` that make no sense for a bridge. Flags of other engines are hidden
/// too.
const NO_USE: [&str; 17] = [
    "read",
    "interface",
    "cpu-port",
    "filter",
    "engine",
    "no-promiscuous",
    "biflow",
    "initiator",
    "decapsulate",
    "reassemble-flows",
    "icmp-ports",
    "int-dscp",
    "int-port",
    "int-report-port",
    "dpi",
    "snap-length",
    "readers",
];

/// Flags that `-h` shows.
const MOST_USED: [&str; 15] = [
    "in",
    "out",
    "rules",
    "dry-run",
    "check",
    "write",
    "format",
    "ledger",
    "rotate",
    "quiet",
    "duration",
    "definition",
    "metrics",
    "idle-timeout",
    "active-timeout",
];

/// Bridge two ports, and pass or drop flows by their application.
#[derive(Debug, Args)]
#[command(about = "Bridge two ports, and pass or drop flows by their application")]
#[command(long_about = "\
Bridge two ports, and pass or drop flows by their application.

Frames go from each port to the other in the Linux kernel. Copies of the first packets of flows are
inspected, and as soon as a flow's application is known, a rule says whether the flow passes or is
dropped. Flow records have the verdict, the rule, and the packets and bytes that were dropped. After
the process has ended, `fail` in the rules says what forwards.")]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct BridgeArgs {
    /// One port of the bridge
    #[arg(long = "in", value_name = "IFACE", help_heading = "Bridge")]
    first: Option<String>,

    /// The other port
    #[arg(long = "out", value_name = "IFACE", help_heading = "Bridge")]
    second: Option<String>,

    /// The file of rules (TOML); SIGHUP reads it again
    #[arg(long, value_name = "FILE", help_heading = "Bridge")]
    rules: PathBuf,

    /// Forward everything, and count what the rules would drop
    #[arg(long, help_heading = "Bridge")]
    dry_run: bool,

    /// Check the rules, and the ports if they are named; print what each rule does, and exit
    #[arg(long, help_heading = "Bridge", conflicts_with = "dry_run")]
    check: bool,

    #[command(flatten)]
    record: RecordArgs,
}

/// Hides flags that make no sense for a bridge. `-h` shows only the most used ones.
pub(crate) fn hide_other_flags(command: Command) -> Command {
    let mut hidden = engines::flags_of_others(engines::bridge::below());
    hidden.extend(NO_USE.into_iter().chain(engines::bridge::UNUSED));
    engines::show_flags(command, &hidden, &MOST_USED)
}

pub(crate) fn run(args: BridgeArgs) -> anyhow::Result<Outcome> {
    if args.check {
        return check(&args);
    }
    let log_format = args.record.log_format;
    let is_printed = args.record.print_config;
    // Like a run over interfaces, a bridge may rotate its files.
    let mut record = args.record;
    if !record.interface.is_empty() {
        return Err(engines::bridge::other_interfaces());
    }
    record.interface = args.first.iter().chain(&args.second).cloned().collect();
    let mut run = record.into_run()?;
    run.bridge = BridgeConfig {
        first: args.first,
        second: args.second,
        rules: Some(args.rules),
        dry_run: args.dry_run,
    };
    if run.flow.biflow {
        bail!(
            "a bridge records each direction of a flow: leave out {}",
            Key::Biflow
        );
    }
    engines::bridge::settle(&mut run)?;
    if is_printed {
        print(&run.to_toml()?)?;
        return Ok(Outcome::Well);
    }
    record::bridge(&run, log_format)
}

fn check(args: &BridgeArgs) -> anyhow::Result<Outcome> {
    let file = RulesFile::with_inspector(&args.rules)?;
    let rules = file.read(None)?;
    let name = file.name();
    for warning in rules.warnings() {
        say!(Warning RulesDoubtful; "{name}, {warning}");
    }
    let mut text = in_words(&rules, &name.to_string());
    match (&args.first, &args.second) {
        (Some(first), Some(second)) => text += &check_ports(first, second, &rules)?,
        (None, None) => {}
        (Some(_), None) => bail!("a bridge has two ports: add --out, or leave out --in"),
        (None, Some(_)) => bail!("a bridge has two ports: add --in, or leave out --out"),
    }
    print(&text)?;
    Ok(Outcome::Well)
}

#[cfg(target_os = "linux")]
fn check_ports(first: &str, second: &str, rules: &Rules) -> anyhow::Result<String> {
    let [first, second] = turboflow_bridge::ports::checked(first, second, rules.fail())?;
    Ok(format!(
        "\n{} and {} can be bridged\n",
        first.link.name, second.link.name
    ))
}

#[cfg(not(target_os = "linux"))]
fn check_ports(_first: &str, _second: &str, _rules: &Rules) -> anyhow::Result<String> {
    bail!("ports can be bridged only on Linux: leave out --in and --out")
}

/// A description of the rules as parsed.
fn in_words(rules: &Rules, name: &str) -> String {
    let count = counted(rules.rules().len() as u64, "rule");
    let mut text = format!("{name} is valid: {count}\n");
    if !rules.rules().is_empty() {
        let columns = [
            ("number", Align::Right),
            ("rule", Align::Left),
            ("what it does", Align::Left),
        ];
        let mut table = Table::new(columns);
        for rule in rules.rules() {
            let number = rule.id().number().to_string();
            table.push(vec![number, rule.name().to_owned(), rule.to_string()]);
        }
        text += &format!("\n{}", table.render(None));
    }
    let mut table = Table::new([("setting", Align::Left), ("value", Align::Left)]);
    for (about, is) in rules.settings() {
        table.push(vec![about.to_owned(), is]);
    }
    text + &format!("\n{}", table.render(None))
}
