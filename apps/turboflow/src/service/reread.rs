// SPDX-License-Identifier: Apache-2.0
//! The configuration read anew at SIGHUP: what concerns outputs changes, everything else waits for
//! the next start.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::config::{self, Config};
use crate::exit::in_words;
use crate::log::say;
use crate::record::{self, Apply, FilesRead, RecordArgs};

/// Keys that take effect while packets are metered. Those of the meter would change what a record
/// means in the middle of one, those of interfaces need rights that are given up.
const TAKES_EFFECT: [&str; 14] = [
    "enterprise-number",
    "export-mtu",
    "export-rate",
    "export-time",
    "format",
    "no-export-options",
    "observation-domain",
    "rotate",
    "rotate-size",
    "template-interval",
    "tls-ca",
    "tls-cert",
    "tls-key",
    "write",
];

/// The configuration of a service, and where it is read anew.
pub(super) struct Rereading {
    path: PathBuf,
    now: Config,
    /// What was read at the start: the right to read it again may be gone.
    files: FilesRead,
}

/// A configuration that was read, its options, and the files that they name. Those that were read before are not read again.
pub(super) fn read(
    path: &Path,
    before: Option<&FilesRead>,
) -> anyhow::Result<(Config, RecordArgs, FilesRead)> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the configuration {name}"))?;
    let config = config::parse(&text).map_err(|wrong| wrong.in_file(path))?;
    let options = config.options().map_err(|wrong| wrong.in_file(path))?;
    let files = record::check(&options, before).with_context(|| name.to_string())?;
    Ok((config, options, files))
}

impl Rereading {
    pub(super) fn new(path: &Path, now: Config, files: FilesRead) -> Self {
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
        let (config, waits) = self.now.joined(&read, |key| TAKES_EFFECT.contains(&key));
        if !waits.is_empty() {
            let keys = waits.join(", ");
            say!(Warning NeedsRestart, keys = waits;
                "{}: {keys}: takes effect at the next start", self.path.display());
        }
        if config != self.now {
            apply(
                config
                    .options()
                    .map_err(|wrong| wrong.in_file(&self.path))?,
            )?;
            self.now = config;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::keys::{key_of, record_command};

    #[test]
    fn what_takes_effect_are_keys() {
        let command = record_command();
        for key in TAKES_EFFECT {
            assert!(
                command.get_arguments().any(|arg| key_of(arg) == Some(key)),
                "{key}"
            );
        }
    }
}
