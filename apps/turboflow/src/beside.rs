// SPDX-License-Identifier: Apache-2.0
//! Files that are not flow records (ledgers, generated captures), written as those are: beside
//! their name, which they get when they are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use turboflow_formats::create_beside;

use crate::{pipe, signals};

/// A file on its way. Dropped before [`Beside::complete`], it is removed.
#[derive(Debug)]
pub(crate) struct Beside {
    file: File,
    /// Where the bytes are now; `None` for devices and pipes, and once it is complete.
    temporary: Option<PathBuf>,
    target: PathBuf,
}

impl Beside {
    /// `pipe_patience`: how long the reader of a named pipe may take to come.
    pub(crate) fn create(path: &Path, pipe_patience: Option<Duration>) -> anyhow::Result<Self> {
        let cannot = || format!("cannot write {}", path.display());
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if target.is_dir() {
            bail!(
                "cannot write {}: it is a directory; name a file in it",
                path.display()
            );
        }
        if pipe::is_pipe(&target) {
            return Ok(Self {
                file: pipe::open_to_write(&target, pipe_patience)?,
                temporary: None,
                target,
            });
        }
        if target.exists() {
            // A rename would replace a file that its owner has protected; devices are written to.
            let file = OpenOptions::new()
                .append(true)
                .open(&target)
                .with_context(cannot)?;
            if !file.metadata().with_context(cannot)?.is_file() {
                return Ok(Self {
                    file,
                    temporary: None,
                    target,
                });
            }
        }
        let directory = directory_of(&target);
        if !directory.is_dir() {
            let directory = directory.display();
            bail!(
                "cannot write {}: there is no directory {directory}; create it first",
                path.display()
            );
        }
        let name = target.file_name().with_context(cannot)?.to_string_lossy();
        signals::will_write_in(directory.clone());
        let (file, temporary) = create_beside(&directory, &name).with_context(cannot)?;
        Ok(Self {
            file,
            temporary: Some(temporary),
            target,
        })
    }

    /// Gives the file its name.
    pub(crate) fn complete(mut self) -> io::Result<()> {
        if let Some(temporary) = self.temporary.take() {
            let renamed = fs::rename(&temporary, &self.target);
            if renamed.is_err() {
                self.temporary = Some(temporary);
            }
            return renamed;
        }
        Ok(())
    }
}

impl Write for Beside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// The directory that a file is in.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The file that a path names, whether or not it exists yet: two paths of one file are equal.
pub(crate) fn identity(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    let directory = directory_of(path);
    let directory = fs::canonicalize(&directory).unwrap_or(directory);
    path.file_name()
        .map_or_else(|| path.to_owned(), |name| directory.join(name))
}
