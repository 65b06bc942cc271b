// SPDX-License-Identifier: Apache-2.0
//! Files other than flow records (ledgers, generated captures). Like flow records, they are written
//! under a temporary name beside the target, and renamed when complete. Also reports temporary
//! files that earlier runs left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use turboflow_formats::{FileOptions, UnfinishedFile as UnfinishedRegular, left_over, refuse_link};

use crate::log::say;
use crate::pipe;

/// A file under a temporary name, or a device or pipe. A file is removed if it is dropped before
/// [`UnfinishedFile::complete`].
#[derive(Debug)]
pub(crate) enum UnfinishedFile {
    Regular(UnfinishedRegular),
    Stream(File),
}

impl UnfinishedFile {
    /// `pipe_patience`: how long to wait for the reader of a named pipe.
    pub(crate) fn create(
        path: &Path,
        options: FileOptions,
        pipe_patience: Option<Duration>,
    ) -> anyhow::Result<Self> {
        refuse_link(path, options)?;
        if pipe::is_pipe(path) {
            return Ok(Self::Stream(pipe::open_to_write(path, pipe_patience)?));
        }
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            let device = OpenOptions::new().append(true).open(path);
            let device = device.with_context(|| format!("cannot write {}", path.display()))?;
            return Ok(Self::Stream(device));
        }
        let target = file_identity(path);
        say_left_over(&target);
        Ok(Self::Regular(UnfinishedRegular::create(path, options)?))
    }

    /// Completes the output: renames a file to its target, or flushes a device or pipe.
    pub(crate) fn complete(self) -> io::Result<()> {
        match self {
            Self::Regular(file) => file.complete(),
            Self::Stream(mut stream) => stream.flush(),
        }
    }
}

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Regular(file) => file.write(bytes),
            Self::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Regular(file) => file.flush(),
            Self::Stream(stream) => stream.flush(),
        }
    }
}

/// Logs the unfinished files of a target that an earlier run left when it was killed.
pub(crate) fn say_left_over(target: &Path) {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    say_each_left_over(&left_over(&directory_of(target), |its| its == name));
}

/// Logs unfinished files that an earlier run left.
pub(crate) fn say_each_left_over(paths: &[PathBuf]) {
    for path in paths {
        let bytes = path.metadata().map_or(0, |metadata| metadata.len());
        let name = path.display().to_string();
        let target = path.with_extension("").with_extension("");
        let is_packed = target
            .extension()
            .is_some_and(|extension| extension == "gz" || extension == "zst");
        let whole = match target.extension() {
            _ if bytes == 0 => "it is empty; remove it",
            Some(extension) if extension == "parquet" => {
                "Parquet cannot be read without its end, which was not written; remove it"
            }
            Some(extension) if extension == "ipfix" => {
                "its whole messages can be read: rename it, or remove it"
            }
            _ if is_packed => "what was compressed can be read: rename it, or remove it",
            _ => "its whole lines can be read: rename it, or remove it",
        };
        say!(Warning LeftOver, file = name.as_str(), bytes = bytes;
            "{name} is left over from a run that was killed, or lost its power: {bytes} bytes; \
             {whole}");
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
pub(crate) fn file_identity(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    let directory = directory_of(path);
    let directory = fs::canonicalize(&directory).unwrap_or(directory);
    path.file_name()
        .map_or_else(|| path.to_owned(), |name| directory.join(name))
}
