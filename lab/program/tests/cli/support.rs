// SPDX-License-Identifier: Apache-2.0
//! Running the program.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// The outcome of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Asserts the exit code. On failure, shows all output.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    /// Asserts that standard error contains all the words.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            let said = &self.stderr;
            assert!(said.contains(word), "{word:?} is missing in {said}");
        }
        self
    }
}

/// The program, ready to start.
pub(crate) fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_turboflow-lab"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub(crate) fn lab<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    let output = command(args).output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
