// SPDX-License-Identifier: Apache-2.0
//! The evaluation of the TurboFlow paper, and what the offload paper and the sketches' papers
//! claim, run again: `make evaluation`.
//!
//! Every part is measured in a process of its own, so that one that fails does not take the others
//! with it and leaves no memory behind. What is measured is kept line by line; a run that was
//! interrupted goes on where it stopped.

mod facts;
mod machine;
mod parts;
mod redis;
mod report;
mod results;
mod run;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use parts::Scale;

/// Runs the papers' evaluation again: measures, keeps the data, writes plots and tables.
#[derive(Debug, Parser)]
#[command(name = "turboflow-evaluation", arg_required_else_help = true)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure all parts that are not in the run yet, and write the report
    Run(RunArgs),
    /// Write the report of a run anew from what it kept, without measuring
    Report {
        /// Folder of the run
        #[arg(value_name = "DIRECTORY")]
        run: PathBuf,
        /// Folder of the report; that of the run by default
        #[arg(long, value_name = "DIRECTORY")]
        report: Option<PathBuf>,
    },
    /// Make the table of results in a document anew from the run that it names
    Results {
        /// The document, such as docs/evaluation.md
        #[arg(value_name = "FILE")]
        document: PathBuf,
        /// Change nothing; fail where the table is not that of its run
        #[arg(long)]
        check: bool,
    },
    /// Measure one part and print its facts, a JSON object a line
    Measure {
        /// Which one, as `run --parts` names them
        part: String,
        #[command(flatten)]
        scale: ScaleArgs,
    },
}

/// How much to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct ScaleArgs {
    /// Little of everything: to see that it works, not to rely on
    #[arg(long)]
    quick: bool,
    /// Where a Redis server listens; one is started meanwhile if none is named and it is installed
    #[arg(long, value_name = "HOST:PORT")]
    redis: Option<String>,
    /// Folder of captures of real traffic, for Figure 14; left out where there is none
    #[arg(
        long,
        value_name = "DIRECTORY",
        default_value = "../shared/captures/large"
    )]
    captures: PathBuf,
}

/// `turboflow-evaluation run`, as typed.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    scale: ScaleArgs,
    /// Folder of the run; bench/runs/DATE-MACHINE-evaluation by default
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Folder of the report; that of the run by default
    #[arg(long, value_name = "DIRECTORY")]
    report: Option<PathBuf>,
    /// What else machine.md should say, such as who used the machine meanwhile
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Only these parts; all by default
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    parts: Vec<String>,
}

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Report { run, report } => run::report(&run, report.as_deref()),
        Command::Results { document, check } => {
            results::update(&document, check).map(|()| ExitCode::SUCCESS)
        }
        Command::Measure { part, scale } => measure(&part, &scale),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("evaluation: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn measure(part: &str, args: &ScaleArgs) -> anyhow::Result<ExitCode> {
    let scale = Scale {
        quick: args.quick,
        redis: args.redis.clone().unwrap_or_default(),
        captures: args.captures.clone(),
    };
    let mut out = std::io::stdout().lock();
    let mut broken = None;
    (parts::part(part)?.measure)(&scale, &mut |fact| {
        let line = serde_json::to_string(&fact).expect("names and numbers are JSON");
        // Whoever reads takes each line when it is there.
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        broken = written.err().or(broken.take());
    })?;
    match broken {
        Some(error) => Err(error.into()),
        None => Ok(ExitCode::SUCCESS),
    }
}
