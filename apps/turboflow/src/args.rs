// SPDX-License-Identifier: Apache-2.0
//! The command line as typed. Each subcommand converts its arguments into a configuration.

mod tips;

use std::io::Write;
use std::sync::LazyLock;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::alert::AlertArgs;
use crate::application_list::ApplicationsArgs;
use crate::bridge::{self, BridgeArgs};
use crate::classify::ClassifyArgs;
use crate::collect::{self, CollectArgs};
use crate::definition::DefinitionArgs;
use crate::engines;
use crate::generate::GenerateArgs;
use crate::log::escaped;
use crate::p4::P4Args;
use crate::plan::PlanArgs;
use crate::record::RecordArgs;
use crate::replay::ReplayArgs;
use crate::service::RunArgs;
use crate::shell::{CompletionsArgs, ManArgs};
use crate::show::ShowArgs;
use crate::sql::{DashboardArgs, ReportArgs, SqlArgs};
use crate::top::TopArgs;

const PICTURE: &str = "\
  captures ──▶ turboflow record ──▶ flow records ──▶ turboflow show ──▶ answers
  .pcap .pcapng  what a record holds:  .csv .jsonl .parquet
  .gz .zst       turboflow definition
  interfaces

Start here:
  turboflow record -r FILE.pcap                  look at a capture
  turboflow record -r FILE.pcap -w FLOWS.parquet keep its flow records
  turboflow record -i eth0                       meter an interface until Ctrl-C
  turboflow top -i eth0                          watch an interface
  turboflow show FLOWS.parquet --top 10          ask who talks most
  turboflow plan -r FILE.pcap --links 40         what it takes to meter 40 such links

Exit codes: 0 all well; 1 it ran, but something was damaged or lost (see standard error);
2 it could not run; 130 aborted by a second Ctrl-C.
`turboflow help COMMAND` explains each command with examples.";

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Packets in, exact flow records out: unsampled, with the features you define.
#[derive(Debug, Parser)]
#[command(name = "turboflow", version, after_help = PICTURE, styles = STYLES)]
#[command(arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Value names of numeric options.
const NUMBERS: [&str; 10] = [
    "BYTES", "EXPONENT", "FACTOR", "N", "N,...", "PACKETS", "RATE", "SHARE", "SIZE", "TIME",
];

/// Lets a numeric option take a leading minus, so that the error states the valid range instead of
/// reporting an unknown option.
fn with_minus(option: Arg) -> Arg {
    let names = option.get_value_names().unwrap_or_default();
    let is_number = names.iter().any(|name| NUMBERS.contains(&name.as_str()));
    if !is_number || option.is_positional() {
        return option;
    }
    // An option whose value is optional must not consume the next option.
    let may_lack = option
        .get_num_args()
        .is_some_and(|range| range.min_values() == 0);
    if may_lack {
        option.allow_negative_numbers(true)
    } else {
        option.allow_hyphen_values(true)
    }
}

/// The version, and what this program was built with.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let parts = [
        ("applications (--dpi)", cfg!(feature = "dpi")),
        ("Kafka (-w kafka://...)", cfg!(feature = "kafka")),
    ];
    let lines = [("with", true), ("without", false)].map(|(word, is_built)| {
        let engines = engines::all().filter(|engine| engine.is_built() == is_built);
        let engines = engines.map(|engine| format!("engine {}", engine.abilities().name));
        let parts = parts.iter().filter(|(_, built)| *built == is_built);
        let parts = parts.map(|(name, _)| (*name).to_owned());
        let parts: Vec<String> = engines.chain(parts).collect();
        match parts.is_empty() {
            true => String::new(),
            false => format!("\n{word}: {}", parts.join(", ")),
        }
    });
    format!("{}{}", env!("CARGO_PKG_VERSION"), lines.concat())
});

impl Args {
    /// The command line: all commands with their options.
    pub(crate) fn program() -> clap::Command {
        Self::command()
            .long_version(LONG_VERSION.as_str())
            .mut_subcommands(|command| command.mut_args(with_minus))
            .mut_subcommand("top", engines::hide_other_sources)
            .mut_subcommand("bridge", bridge::hide_other_flags)
            .mut_subcommand("collect", collect::hide_other_flags)
    }

    /// Parses the command line. Prints errors and exits.
    pub(crate) fn understand() -> Self {
        let program = Self::program();
        let words = std::env::args_os().skip(1);
        let typed: Vec<String> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let matches = program.clone().try_get_matches().unwrap_or_else(|error| {
            refuse(&tips::with_tip(error, &program, &typed), &typed);
        });
        Self::from_arg_matches(&matches).unwrap_or_else(|error| refuse(&error, &typed))
    }
}

/// Prints the error, or the requested help, and exits.
fn refuse(error: &clap::Error, typed: &[String]) -> ! {
    // The error repeats the arguments, and a terminal would obey control characters in them.
    // Without any, clap prints the error, with colours (which are control characters too).
    let is_odd = typed.iter().any(|word| word.contains(char::is_control));
    if !is_odd || !error.use_stderr() {
        error.exit();
    }
    let words = error.render().to_string();
    let words = format!("{}\n", escaped(words.trim_end()));
    // There is no other place to report that this cannot be written.
    let _ = std::io::stderr().write_all(words.as_bytes());
    std::process::exit(error.exit_code())
}

/// What to do. Each command's text is at its arguments: a text here would replace all of it.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Record(Box<RecordArgs>),
    Run(RunArgs),
    Collect(Box<CollectArgs>),
    Show(Box<ShowArgs>),
    Sql(Box<SqlArgs>),
    Alert(Box<AlertArgs>),
    Classify(Box<ClassifyArgs>),
    Dashboard(Box<DashboardArgs>),
    Report(ReportArgs),
    Replay(Box<ReplayArgs>),
    Top(Box<TopArgs>),
    Generate(Box<GenerateArgs>),
    Plan(Box<PlanArgs>),
    Applications(ApplicationsArgs),
    Bridge(Box<BridgeArgs>),
    Definition(DefinitionArgs),
    P4(P4Args),
    /// Print the completion script for a shell
    Completions(CompletionsArgs),
    /// Write a manual page for every command
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples are copied line by line.
    #[test]
    fn clap_breaks_no_line_below_the_options() {
        let (mut commands, mut long) = (vec![Args::program()], Vec::new());
        while let Some(command) = commands.pop() {
            let texts = [command.get_after_help(), command.get_after_long_help()];
            for text in texts.into_iter().flatten() {
                let text = text.to_string();
                let lines = text.lines().filter(|line| line.chars().count() > 100);
                long.extend(lines.map(str::to_owned));
            }
            commands.extend(command.get_subcommands().cloned());
        }
        assert!(long.is_empty(), "{}", long.join("\n"));
    }
}
