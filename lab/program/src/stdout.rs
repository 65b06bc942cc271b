// SPDX-License-Identifier: Apache-2.0
//! Standard output of a program that runs for minutes and has nothing to tidy up.

use std::io::{ErrorKind, Write};

use crate::COULD_NOT_RUN;

/// Writes and flushes text. If the reader has closed its end (`| head`), the program exits with
/// success.
pub(crate) fn print_or_end(text: &str) {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes());
    let Err(error) = written.and_then(|()| stdout.flush()) else {
        return;
    };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    eprintln!("turboflow-lab: cannot write standard output: {error}");
    std::process::exit(COULD_NOT_RUN.into());
}
