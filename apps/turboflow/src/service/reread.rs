// SPDX-License-Identifier: Apache-2.0
//! Rereads the configuration at SIGHUP. Changes to outputs apply at once, all others at the next
//! start.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use turboflow_run::{Count, MetricsAt, RunConfig};

use super::file;
use crate::engines;
use crate::exit::in_words;
use crate::keys::Key;
use crate::log::say;
use crate::record::{self, Apply, FilesRead};

/// Default address of metrics in a service.
const METRICS: &str = "127.0.0.1:9414";

/// The configuration of a service, and the file to reread.
pub(super) struct Rereading {
    path: PathBuf,
    now: RunConfig,
    /// Files read at the start, which may no longer be readable without root.
    files: FilesRead,
}

/// Parses a configuration, and checks it as far as the text alone allows.
pub(super) fn parse(path: &Path, text: &str) -> anyhow::Result<RunConfig> {
    let read = file::parse(text).map_err(|wrong| wrong.in_file(path))?;
    let name = path.display();
    for (line, what) in read.renamed {
        say!(Warning KeyRenamed, line = line; "{name}:{line}: {what}");
    }
    let of_engine = engines::given_files(&read.run.engine).map(Key::Of);
    let of_captures = (!read.run.source.files.is_empty()).then_some(Key::Files);
    if let Some(key) = of_captures.or(of_engine) {
        bail!(
            "{name}: {key}: a service does not read input files; use `turboflow record` or \
             `turboflow collect` for them"
        );
    }
    Ok(with_defaults(read.run))
}

/// Applies the defaults of a service, which differ from those of `turboflow record`.
fn with_defaults(mut run: RunConfig) -> RunConfig {
    let metrics = METRICS.parse().unwrap_or(MetricsAt(None));
    run.service.metrics.get_or_insert(metrics);
    // The default of `turboflow record` for interfaces. No source of a service ever ends.
    run.meter.threads.get_or_insert(Count(1));
    run.service.sync.get_or_insert(true);
    run
}

/// Reads a configuration and the files that it names, except files that were read before.
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
        // The working directory may change after the start.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path, now, files }
    }

    /// Rereads the configuration and applies it. Logs errors, and keys that take effect only at the
    /// next start.
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

/// The run with the new outputs, and the other keys that differ. Changing the meter would affect
/// records in progress, and changing interfaces would need root, which has been dropped.
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
    fn outputs_change_and_other_keys_wait() {
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
        // Writing out a default value is not a change.
        let written = read(
            "[flow]\nbiflow = false\n[timeouts]\nlinger = \"2000ms\"\n[meter]\nthreads = 2\n\
             [service]\nquiet = true\n[[output]]\nto = \"c.csv\"\nmtu = 1400\n",
        );
        assert_eq!(followed(&next, &written), (next.clone(), Vec::new()));
        let one = "[[output]]\nto = \"a.csv\"\n[meter]\nthreads = 1\n";
        assert_eq!(read("[[output]]\nto = \"a.csv\"\n"), read(one));
    }
}
