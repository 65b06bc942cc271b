// SPDX-License-Identifier: Apache-2.0
//! `turboflow completions` and `turboflow man`: completion scripts and manual pages, generated from
//! the command line's definition.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::exit::{Outcome, print};

const EXAMPLES: &str = "\
Examples:
  turboflow completions bash > /etc/bash_completion.d/turboflow
  turboflow completions zsh > ~/.zfunc/_turboflow      with `fpath+=~/.zfunc` in ~/.zshrc
  turboflow completions fish > ~/.config/fish/completions/turboflow.fish

Exit codes: 0 all well; 2 it could not run.";

const MAN_EXAMPLES: &str = "\
Examples:
  turboflow man /usr/local/share/man/man1     then: man turboflow-record

Exit codes: 0 all well; 2 it could not run.";

/// The manual page of the program, which refers to those of its commands.
const PAGE: &str = include_str!("../../../packaging/turboflow.1");

#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the completion script of a shell.
pub(crate) fn completions(args: &CompletionsArgs, mut program: Command) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "turboflow", &mut script);
    print(&String::from_utf8(script).context("the script is not text")?)?;
    Ok(Outcome::Well)
}

#[derive(Clone, Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// The folder for the pages, such as /usr/local/share/man/man1
    folder: PathBuf,
}

/// Writes a manual page for every command.
pub(crate) fn man(args: &ManArgs, mut program: Command) -> anyhow::Result<Outcome> {
    let folder = &args.folder;
    if !folder.is_dir() {
        bail!("folder {} is missing; create it first", folder.display());
    }
    write(folder, "turboflow", PAGE.as_bytes())?;
    program.build();
    for command in program.get_subcommands().filter(|one| !one.is_hide_set()) {
        if command.get_name() != "help" {
            write_page(folder, command.clone())?;
        }
    }
    Ok(Outcome::Well)
}

fn write_page(folder: &Path, command: Command) -> anyhow::Result<()> {
    let name = format!("turboflow-{}", command.get_name());
    let mut text = Vec::new();
    Man::new(command).manual("TurboFlow").render(&mut text)?;
    write(folder, &name, &text)
}

fn write(folder: &Path, name: &str, text: &[u8]) -> anyhow::Result<()> {
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
