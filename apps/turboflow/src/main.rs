// SPDX-License-Identifier: Apache-2.0
//! The `turboflow` program: parses the command line, connects the crates, and reports.

#![forbid(unsafe_code)]

mod alert;
mod anonymize;
mod application_list;
mod applications;
mod args;
mod bridge;
mod classify;
mod collect;
mod config_error;
mod definition;
mod engines;
mod enrich;
mod enrich_args;
mod exit;
mod file_args;
mod generate;
#[cfg_attr(not(target_os = "linux"), path = "interfaces_elsewhere.rs")]
mod interfaces;
mod keys;
mod log;
#[cfg_attr(not(target_os = "linux"), path = "metrics_elsewhere.rs")]
mod metrics;
mod p4;
mod pipe;
mod plan;
#[cfg(target_os = "linux")]
mod privileges;
mod question_error;
mod record;
mod replay;
mod service;
mod shell;
mod show;
mod signals;
mod sql;
#[cfg(target_os = "linux")]
mod systemd;
mod top;
mod unfinished_file;
mod units;

use std::process::ExitCode;

use args::{Args, Command};
use log::say;

fn main() -> ExitCode {
    if turboflow_inspect::is_child() {
        return turboflow_inspect::child_main();
    }
    let outcome = match Args::understand().command {
        Command::Record(args) => record::run(*args),
        Command::Collect(args) => collect::run(*args),
        Command::Run(args) => service::run(&args),
        Command::Show(args) => show::run(&args),
        Command::Sql(_) => sql::run("sql").map(|never| match never {}),
        Command::Dashboard(_) => sql::run("dashboard").map(|never| match never {}),
        Command::Report(_) => sql::run("report").map(|never| match never {}),
        Command::Alert(args) => alert::run(&args),
        Command::Classify(args) => classify::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Generate(args) => generate::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::P4(args) => p4::run(&args),
        Command::Applications(args) => application_list::run(&args),
        Command::Bridge(args) => bridge::run(*args),
        Command::Definition(args) => definition::run(&args),
        Command::Completions(args) => shell::completions(&args, Args::program()),
        Command::Man(args) => shell::man(&args, Args::program()),
    };
    match outcome {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            say!(Error CouldNotRun; "{}", exit::in_words(&error));
            ExitCode::from(exit::COULD_NOT_RUN)
        }
    }
}
