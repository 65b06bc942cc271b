// SPDX-License-Identifier: Apache-2.0
//! The program `turboflow-query`: SQL on files of flow records, with DataFusion, and the dashboard.
//!
//! `turboflow sql`, `turboflow dashboard` and `turboflow report` run it with their own arguments.
//! That way the meter, which runs with privileges, links neither a query engine nor a server.

#![forbid(unsafe_code)]

mod answer;
mod args;
mod dashboard;
mod dashboard_args;
mod differences;
/// The options of `turboflow show`.
#[path = "../../turboflow/src/enrich_args.rs"]
mod enrich_args;
mod functions;
mod rows;
mod scan;
mod statement;
mod tables;
mod wrong;

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use args::SqlArgs;
use dashboard_args::{DashboardArgs, ReportArgs};

/// Stack size of each thread. Long conditions become deep trees, both in planning and in
/// evaluation. Only the part that is used takes memory.
const STACK_BYTES: usize = 64 << 20;

/// How long a query may take to end after a signal.
const PATIENCE: Duration = Duration::from_millis(500);

/// Exit code of a query that could not be answered.
const COULD_NOT_RUN: u8 = 2;
/// Exit code after a signal: 128 + SIGINT.
const ABORTED: u8 = 130;

/// SQL on files of flow records, and the dashboard. Run it as `turboflow sql` and so on.
#[derive(Debug, Parser)]
#[command(name = "turboflow-query", bin_name = "turboflow", version)]
#[command(arg_required_else_help = true, max_term_width = 100)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

/// Each command's text is at its arguments: a text here would replace all of it.
#[derive(Debug, Subcommand)]
enum Command {
    Sql(Box<SqlArgs>),
    Dashboard(DashboardArgs),
    Report(ReportArgs),
}

/// Writes a line to standard error.
fn say(text: &str) {
    eprintln!("turboflow: {text}");
}

fn main() -> ExitCode {
    let outcome = match Program::parse().command {
        Command::Sql(args) => answered(*args),
        Command::Dashboard(args) => dashboard::serve(args),
        Command::Report(args) => dashboard::report(&args),
    };
    outcome.unwrap_or_else(|error| {
        say(&format!("{error:#}"));
        ExitCode::from(COULD_NOT_RUN)
    })
}

/// Waits for the answer or a signal. The query runs in its own thread, because it may block while
/// it reads or writes a pipe.
fn answered(args: SqlArgs) -> anyhow::Result<ExitCode> {
    let (stop, stopped) = oneshot::channel();
    let (ended, end) = oneshot::channel();
    let query = move || {
        // After a signal, no one receives it.
        let _ = ended.send(run(&args, stopped));
    };
    thread::Builder::new()
        .name("query".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(query)
        .context("cannot start a thread")?;
    let waiting = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot wait for signals")?;
    waiting.block_on(async {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut ends = signal(SignalKind::terminate())?;
        let mut end = end;
        tokio::select! {
            outcome = &mut end => return outcome.context("the query was given up")?,
            _ = interrupts.recv() => {}
            _ = ends.recv() => {}
        }
        // The query removes its temporary files when it ends.
        drop(stop);
        let _ = tokio::time::timeout(PATIENCE, end).await;
        Ok(ExitCode::from(ABORTED))
    })
}

fn run(args: &SqlArgs, stopped: oneshot::Receiver<()>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(answer::threads(args))
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let outcome = runtime.block_on(async {
        tokio::select! {
            outcome = answer::answer(args) => outcome.map(|is_whole| match is_whole {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(1),
            }),
            _ = stopped => Ok(ExitCode::from(ABORTED)),
        }
    });
    // Does not wait for a thread that reads a pipe.
    runtime.shutdown_background();
    outcome
}
