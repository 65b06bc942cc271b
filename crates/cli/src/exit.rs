// SPDX-License-Identifier: Apache-2.0
//! How the program ends, and what it prints.

use std::process::ExitCode;

/// How a command ended, where it could run at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything is well.
    Well,
    /// It ran, and something was damaged or lost; what it was has been said.
    Lossy,
}

/// The exit code of a command that could not run.
pub(crate) const COULD_NOT_RUN: u8 = 2;
/// The exit code of a program that a signal aborted: 128 + SIGINT.
pub(crate) const ABORTED: u8 = 130;

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Well => Self::SUCCESS,
            Outcome::Lossy => Self::from(1),
        }
    }
}

/// Writes text to standard output; a reader that went away (`| head`) has what it wanted.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    use anyhow::Context;
    use std::io::{ErrorKind, Write};
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.context("cannot write standard output"),
    }
}

/// An error with its causes; those that its own words repeat are left out.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}
