// SPDX-License-Identifier: Apache-2.0
//! Files other than flow records (ledgers, generated captures). Like flow records, they are written
//! under a temporary name beside their target, and renamed when they are complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use turboflow_formats::create_beside;

use crate::{pipe, signals};

/// A file under a temporary name. Removed if it is dropped before [`UnfinishedFile::complete`].
#[derive(Debug)]
pub(crate) struct UnfinishedFile {
    file: File,
    /// The temporary name. `None` for devices and pipes, and after completion.
    temporary: Option<PathBuf>,
    target: PathBuf,
}

impl UnfinishedFile {
    /// `pipe_patience`: how long to wait for the reader of a named pipe.
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
            // A rename would replace a write-protected file, so this checks the permission. It also
            // opens devices.
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

    /// Renames the file to its target.
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

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// The directory of a file.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The file that a path names, whether or not it exists yet. All paths of one file give equal
/// results.
pub(crate) fn identity(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    let directory = directory_of(path);
    let directory = fs::canonicalize(&directory).unwrap_or(directory);
    path.file_name()
        .map_or_else(|| path.to_owned(), |name| directory.join(name))
}
