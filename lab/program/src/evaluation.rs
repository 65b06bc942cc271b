// SPDX-License-Identifier: Apache-2.0
//! `turboflow-lab evaluation`: the papers' evaluation of `lab/evaluation`, each part in its own
//! process.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use turboflow_evaluation::{RunOptions, Scale};

/// The command line of `turboflow-lab evaluation`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure all parts that are not in the run yet, and write the report
    Run(RunArgs),
    /// Write the report of a run again from its stored data, without measuring
    Report {
        /// Folder of the run
        #[arg(value_name = "DIRECTORY")]
        run: PathBuf,
        /// Another run, which supplies parts that the run lacks; repeat for more
        #[arg(long, value_name = "DIRECTORY")]
        with: Vec<PathBuf>,
        /// Folder of the report; that of the run by default
        #[arg(long, value_name = "DIRECTORY")]
        report: Option<PathBuf>,
    },
    /// Make the table of results in a document again, from the run that the document names
    Results {
        /// The document, such as docs/evaluation.md
        #[arg(value_name = "FILE")]
        document: PathBuf,
        /// Change nothing; fail if the table differs from its run
        #[arg(long)]
        check: bool,
    },
    /// Measure one part and print its facts, a JSON object a line
    Measure {
        /// Name of the part, as in `run --parts`
        part: String,
        #[command(flatten)]
        scale: ScaleArgs,
    },
}

/// The amount of measuring.
#[derive(Debug, Args)]
pub(crate) struct ScaleArgs {
    /// Measure little of everything, to see that it works
    #[arg(long)]
    quick: bool,
    /// Address of a Redis server; without it, one is started for the run if Redis is installed
    #[arg(long, value_name = "HOST:PORT")]
    redis: Option<String>,
    /// Folder of captures of real traffic, for Figure 14; left out if it does not exist
    #[arg(
        long,
        value_name = "DIRECTORY",
        default_value = "../shared/captures/large"
    )]
    captures: PathBuf,
}

/// The command line of `turboflow-lab evaluation run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    scale: ScaleArgs,
    /// Folder of the run; bench/runs/DATE-MACHINE-evaluation by default
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
    /// Folder of the report; that of the run by default
    #[arg(long, value_name = "DIRECTORY")]
    report: Option<PathBuf>,
    /// A note for machine.md, such as who else used the machine meanwhile
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// Only these parts; all by default
    #[arg(long, value_name = "PART,...", value_delimiter = ',')]
    parts: Vec<String>,
}

impl From<ScaleArgs> for Scale {
    fn from(args: ScaleArgs) -> Self {
        Self {
            quick: args.quick,
            redis: args.redis,
            captures: args.captures,
        }
    }
}

impl From<RunArgs> for RunOptions {
    fn from(args: RunArgs) -> Self {
        Self {
            scale: args.scale.into(),
            out: args.out,
            report: args.report,
            note: args.note,
            parts: args.parts,
        }
    }
}

pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => {
            let failed = turboflow_evaluation::run(&args.into(), &measuring)?;
            Ok(match failed.is_empty() {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            })
        }
        Command::Report { run, with, report } => {
            turboflow_evaluation::redraw(&run, &with, report.as_deref())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Results { document, check } => {
            turboflow_evaluation::results(&document, check)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Measure { part, scale } => {
            let mut stdout = std::io::stdout().lock();
            turboflow_evaluation::measure(&part, &scale.into(), &mut stdout)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A command that runs this program to measure one part.
fn measuring(part: &str, scale: &Scale) -> anyhow::Result<std::process::Command> {
    let program = std::env::current_exe().context("finding this program")?;
    let mut command = std::process::Command::new(program);
    command.args(["evaluation", "measure", part]);
    command.arg("--captures").arg(&scale.captures);
    if scale.quick {
        command.arg("--quick");
    }
    if let Some(redis) = &scale.redis {
        command.args(["--redis", redis]);
    }
    Ok(command)
}
