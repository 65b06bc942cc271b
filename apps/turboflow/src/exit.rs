// SPDX-License-Identifier: Apache-2.0
//! Exit codes, and output on standard output.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use anyhow::Context;
use rustix::termios::tcgetwinsize;

/// How a command that could run has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Well,
    /// It ran, but something was damaged or lost and has been reported.
    Lossy,
}

/// Exit code of a command that could not run.
pub(crate) const COULD_NOT_RUN: u8 = 2;
/// Exit code after an abort by a signal: 128 + SIGINT.
pub(crate) const ABORTED: u8 = 130;

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Well => Self::SUCCESS,
            Outcome::Lossy => Self::from(1),
        }
    }
}

/// Writes text to standard output. A reader that closed its pipe (`| head`) is not an error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    match write(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.context("cannot write standard output"),
    }
}

/// Columns of the terminal on standard output; `None` if it is not a terminal or the width is
/// unknown (serial lines and containers may report 0).
pub(crate) fn terminal_width() -> Option<usize> {
    let size = tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// An error with its causes, without those that its own message repeats.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if cause.starts_with(&words) {
            words = cause;
        } else if !words.contains(&cause) {
            words = format!("{words}: {cause}");
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_not_repeated() {
        let full = anyhow::anyhow!("no space").context("cannot write a.csv");
        assert_eq!(in_words(&full), "cannot write a.csv: no space");
        let twice = anyhow::anyhow!("cannot write a.csv: there is no directory");
        let twice = twice.context("cannot write a.csv");
        assert_eq!(
            in_words(&twice),
            "cannot write a.csv: there is no directory"
        );
        let within = anyhow::anyhow!("no space").context("a.csv: no space on the disk");
        assert_eq!(in_words(&within), "a.csv: no space on the disk");
    }
}
