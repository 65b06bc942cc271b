// SPDX-License-Identifier: Apache-2.0
//! Follows the log of a service, which announces when files are complete.

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::Value;

use super::Asking;
use crate::exit::Outcome;
use crate::log::say;

/// The meaning of a log line.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    /// This file is complete.
    Completed(PathBuf),
    /// Another JSON event.
    Other,
    /// Not a line of a JSON log.
    Strange,
    Nothing,
}

/// Maximum bytes of a line; a longer one is processed in parts.
const LINE_BYTES: u64 = 1 << 20;

/// Evaluates the rules on each file that the log announces as complete. Copies all other lines to
/// standard error.
pub(super) fn follow(asking: &mut Asking<'_>, mut log: impl BufRead) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::Well;
    let (mut is_json, mut is_told) = (false, false);
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = log.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line);
        if length.context("cannot read standard input")? == 0 {
            break;
        }
        let said = said(&line);
        is_json |= matches!(said, Said::Completed(_) | Said::Other);
        let Said::Completed(file) = said else {
            // There is no other place to report an error of standard error.
            let _ = io::stderr().write_all(&line);
            if said == Said::Strange && !is_json && !is_told {
                is_told = true;
                say!(Warning LogNotRead;
                    "standard input is not a JSON log, which would report complete files: run \
                     `record` with --log-format json, or the service with log-format = \"json\"");
            }
            continue;
        };
        match asking.ask(&[file]) {
            Ok(Outcome::Well) => {}
            Ok(lossy) => outcome = lossy,
            Err(error) => {
                // Continue with the next file.
                outcome = Outcome::Lossy;
                say!(Error CouldNotRun; "{}", crate::exit::in_words(&error));
            }
        }
    }
    if is_told && !is_json {
        bail!("no rule was applied, because no line was JSON");
    }
    Ok(outcome)
}

/// Classifies a line. Invalid UTF-8 is replaced, because file names may hold any bytes.
fn said(line: &[u8]) -> Said {
    match serde_json::from_str::<Value>(&String::from_utf8_lossy(line)) {
        Ok(Value::Object(event)) => {
            let is_it = event
                .get("event")
                .is_some_and(|its| its == "file_completed");
            let file = event.get("file").and_then(Value::as_str);
            match file.filter(|_| is_it) {
                Some(file) => Said::Completed(file.into()),
                None => Said::Other,
            }
        }
        _ if line.trim_ascii().is_empty() => Said::Nothing,
        _ => Said::Strange,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_meant() {
        let completed = br#"{"event":"file_completed","file":"a.parquet","records":1}"#;
        assert_eq!(said(completed), Said::Completed("a.parquet".into()));
        let bytes = b"{\"event\":\"file_completed\",\"file\":\"a\xff\"}\n";
        assert_eq!(said(bytes), Said::Completed("a\u{fffd}".into()));
        assert_eq!(said(b"{\"event\":\"started\"}\n"), Said::Other);
        assert_eq!(said(b"{\"event\":\"file_completed\"}\n"), Said::Other);
        assert_eq!(said(b"\n"), Said::Nothing);
        for strange in [&b"turboflow: a is complete\n"[..], b"7\n", b"\xff\n"] {
            assert_eq!(said(strange), Said::Strange);
        }
    }
}
