// SPDX-License-Identifier: Apache-2.0
//! The `turboflow-lab` program: measures this machine and runs the papers' evaluation again.

#![forbid(unsafe_code)]

mod bench;
mod evaluation;
mod stdout;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

const AFTER_HELP: &str = "\
Exit codes: 0 all well; 1 a part of the evaluation failed; 2 it could not run.
`turboflow-lab help COMMAND` explains each command.";

/// The laboratory of TurboFlow: benchmarks, and the papers' evaluation run again.
#[derive(Debug, Parser)]
#[command(name = "turboflow-lab", version, after_help = AFTER_HELP)]
#[command(arg_required_else_help = true, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure this machine: every design side by side in one run
    Bench(bench::BenchArgs),
    /// Run the papers' evaluation again: measure, keep the data, write plots and tables
    #[command(subcommand)]
    Evaluation(evaluation::Command),
}

/// The exit code of a command that could not be run.
const COULD_NOT_RUN: u8 = 2;

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Bench(args) => bench::run(&args).map(|()| ExitCode::SUCCESS),
        Command::Evaluation(command) => evaluation::run(command),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("turboflow-lab: {error:#}");
        ExitCode::from(COULD_NOT_RUN)
    })
}
