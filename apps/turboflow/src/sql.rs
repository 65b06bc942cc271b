// SPDX-License-Identifier: Apache-2.0
//! `turboflow sql`, `turboflow dashboard` and `turboflow report`: delegates to the program
//! `turboflow-query`, because a query engine and a server do not belong in a program that runs with
//! privileges.

use std::convert::Infallible;
use std::env;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use rustix::fs::{Access, access};

/// The arguments, for help, completions and manual pages. The other program parses them again.
#[path = "../../sql/src/args.rs"]
#[allow(dead_code, reason = "the other program reads the values")]
mod args;

#[path = "../../sql/src/dashboard_args.rs"]
#[allow(dead_code, reason = "the other program reads the values")]
mod dashboard_args;

pub(crate) use args::SqlArgs;
pub(crate) use dashboard_args::{DashboardArgs, ReportArgs};

const PROGRAM: &str = "turboflow-query";

/// Replaces this process by the other program, with the same arguments.
pub(crate) fn run(command: &str) -> anyhow::Result<Infallible> {
    let Some(program) = found() else {
        bail!(
            "turboflow {command} is answered by the program {PROGRAM}, which is neither beside \
             turboflow nor in PATH: install the package {PROGRAM}, or build it in a checkout (`make query`)"
        );
    };
    let error = Command::new(&program).args(env::args_os().skip(1)).exec();
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}

/// The program beside this one, or else the first in `PATH`.
fn found() -> Option<PathBuf> {
    let own = env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.to_owned()));
    let path = env::var_os("PATH").unwrap_or_default();
    // An empty part of `PATH` means the current folder.
    let in_path = env::split_paths(&path).filter(|folder| folder.is_absolute());
    let mut programs = beside
        .into_iter()
        .chain(in_path)
        .map(|folder| folder.join(PROGRAM));
    programs.find(|program| program.is_file() && access(program, Access::EXEC_OK).is_ok())
}
