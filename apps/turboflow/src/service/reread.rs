// SPDX-License-Identifier: Apache-2.0
//! The configuration read anew at SIGHUP: what concerns outputs changes, everything else waits for
//! the next start.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use turboflow_run::{Count, MetricsAt, RunConfig};

use super::file;
use crate::exit::in_words;
use crate::keys::Key;
use crate::log::say;
use crate::record::{self, Apply, FilesRead};

/// Where a service serves metrics unless told otherwise.
const METRICS: &str = "127.0.0.1:9414";

/// The configuration of a service, and where it is read anew.
pub(super) struct Rereading {
    path: PathBuf,
    now: RunConfig,
    /// What was read at the start: the right to read it again may be gone.
    files: FilesRead,
}

/// What a service is told by this text: checked as far as the text alone allows.
pub(super) fn parse(path: &Path, text: &str) -> anyhow::Result<RunConfig> {
    let read = file::parse(text).map_err(|wrong| wrong.in_file(path))?;
    let name = path.display();
    for (line, what) in read.renamed {
        say!(Warning KeyRenamed, line = line; "{name}:{line}: {what}");
    }
    if !read.run.source.files.is_empty() {
        bail!(
            "{name}: {}: a service meters interfaces; captures are for `turboflow record -r`",
            Key::Files
        );
    }
    Ok(with_defaults(read.run))
}

/// A service's own defaults, where `turboflow record` has others.
fn with_defaults(mut run: RunConfig) -> RunConfig {
    let metrics = METRICS.parse().unwrap_or(MetricsAt(None));
    run.service.metrics.get_or_insert(metrics);
    // What it is of interfaces, and a service has no other sources.
    run.meter.threads.get_or_insert(Count(1));
    run
}

/// A configuration that was read, and the files that it names. Those that were read before are not
/// read again.
pub(super) fn read(
    path: &Path,
    before: Option<&FilesRead>,
) -> anyhow::Result<(RunConfig, FilesRead)> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the configuration {name}"))?;
    let run = parse(path, &text)?;
    let files = record::check(&run, before).with_context(|| name.to_string())?;
    Ok((run, files))
}

impl Rereading {
    pub(super) fn new(path: &Path, now: RunConfig, files: FilesRead) -> Self {
        // The program may be started in one directory and asked in another.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path, now, files }
    }

    /// Applies what is meant from now on. Says what is wrong, and what waits.
    pub(super) fn reread(&mut self, apply: &mut Apply<'_>) {
        if let Err(error) = self.read_and_apply(apply) {
            say!(Error ReloadRefused; "{}; everything stays as it was", in_words(&error));
        }
    }

    fn read_and_apply(&mut self, apply: &mut Apply<'_>) -> anyhow::Result<()> {
        let (read, ..) = read(&self.path, Some(&self.files))?;
        let (next, waits) = followed(&self.now, &read);
        if !waits.is_empty() {
            let keys = waits.join(", ");
            say!(Warning NeedsRestart, keys = waits;
                "{}: {keys}: takes effect at the next start", self.path.display());
        }
        if next != self.now {
            apply(next.clone())?;
            self.now = next;
        }
        Ok(())
    }
}

/// The run with the outputs that were read, and the other keys that differ. Those of the meter
/// would change what a record means in the middle of one; those of interfaces need rights that are
/// gone.
fn followed(now: &RunConfig, read: &RunConfig) -> (RunConfig, Vec<String>) {
    let next = RunConfig {
        outputs: read.outputs.clone(),
        ..now.clone()
    };
    let waits = next.keys_that_differ(read);
    (next, waits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(more: &str) -> RunConfig {
        let text = format!("[source]\ninterfaces = [\"eth0\"]\n{more}");
        parse(Path::new("turboflow.toml"), &text).unwrap()
    }

    #[test]
    fn outputs_follow_and_other_keys_wait() {
        let before = read(
            "[meter]\nthreads = 2\n[service]\nquiet = true\n[[output]]\nto = \"a-%s.csv\"\nrotate = \"5m\"\n",
        );
        let after = read(
            "[timeouts]\nlinger = \"1s\"\n[service]\nquiet = true\n[[output]]\nto = \"c.csv\"\n",
        );
        let (next, waits) = followed(&before, &after);
        assert_eq!(waits, ["timeouts.linger", "meter.threads"]);
        assert_eq!(next.outputs, after.outputs);
        assert_eq!(next.meter, before.meter);
        // What is written as it is by default is no change.
        let written = read(
            "[flow]\nbiflow = false\n[timeouts]\nlinger = \"2000ms\"\n[meter]\nthreads = 2\n\
             [service]\nquiet = true\n[[output]]\nto = \"c.csv\"\nmtu = 1400\n",
        );
        assert_eq!(followed(&next, &written), (next.clone(), Vec::new()));
        let one = "[[output]]\nto = \"a.csv\"\n[meter]\nthreads = 1\n";
        assert_eq!(read("[[output]]\nto = \"a.csv\"\n"), read(one));
    }
}
