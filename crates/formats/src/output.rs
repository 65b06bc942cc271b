// SPDX-License-Identifier: Apache-2.0
//! Destinations: a file that gets its name when it is complete, or a stream.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{ExportError, WriteProgress};

/// Counts the bytes written to a file or a stream.
pub(crate) struct Output {
    sink: Sink,
    place: String,
    /// Shared with the writer that ends a file at a certain size.
    written_bytes: Arc<AtomicU64>,
}

enum Sink {
    /// A file under a temporary name, renamed at the end.
    File(UnfinishedFile),
    /// Standard output, a device, a named pipe.
    Stream(Box<dyn Write + Send>),
}

/// A file under a temporary name beside its target. It is removed if dropped before
/// [`UnfinishedFile::complete`].
struct UnfinishedFile {
    file: File,
    path: Option<PathBuf>,
    target: PathBuf,
    sync: bool,
}

/// A write that ended early.
pub(crate) struct Interrupted {
    /// Number of bytes accepted.
    pub(crate) accepted_bytes: usize,
    /// Why it ended.
    pub(crate) source: io::Error,
}

impl Output {
    /// A file that replaces `path` when it is complete, or `path` itself where it is a device or a
    /// named pipe. With `sync`, the bytes are on the disk before the file is renamed.
    pub(crate) fn create(path: &Path, sync: bool) -> Result<Self, ExportError> {
        let place = path.display().to_string();
        let source_of = |source| ExportError::Create {
            path: path.to_owned(),
            source,
        };
        // A symbolic link stays: its target is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let existing = fs::metadata(&target).ok();
        let sink = match &existing {
            Some(metadata) if metadata.is_dir() => {
                return Err(ExportError::IsDirectory {
                    path: path.to_owned(),
                });
            }
            Some(metadata) if !metadata.is_file() => {
                let device = OpenOptions::new()
                    .write(true)
                    .open(&target)
                    .map_err(source_of)?;
                Sink::Stream(Box::new(device))
            }
            _ => Sink::File(UnfinishedFile::create(path, target, existing, sync)?),
        };
        Ok(Self {
            sink,
            place,
            written_bytes: Arc::default(),
        })
    }

    /// A stream; `place` is its name in errors.
    pub(crate) fn stream(stream: Box<dyn Write + Send>, place: &str) -> Self {
        Self {
            sink: Sink::Stream(stream),
            place: place.to_owned(),
            written_bytes: Arc::default(),
        }
    }

    /// The target's name in errors.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Progress of `accepted` records: those in an unfinished file may still be lost.
    pub(crate) fn progress(&self, accepted: u64) -> WriteProgress {
        let is_stream = matches!(self.sink, Sink::Stream(_));
        WriteProgress {
            records_written: if is_stream { accepted } else { 0 },
            records_dropped: 0,
        }
    }

    /// Bytes accepted so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// A counter of the accepted bytes, for other threads.
    pub(crate) fn byte_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.written_bytes)
    }

    /// Writes all of `bytes`; the error says how many were accepted.
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> Result<(), Interrupted> {
        let mut accepted_bytes = 0;
        while accepted_bytes < bytes.len() {
            let rest = &bytes[accepted_bytes..];
            let outcome = match &mut self.sink {
                Sink::File(beside) => beside.file.write(rest),
                Sink::Stream(stream) => stream.write(rest),
            };
            match outcome {
                Ok(0) => {
                    let source = io::ErrorKind::WriteZero.into();
                    return Err(Interrupted {
                        accepted_bytes,
                        source,
                    });
                }
                Ok(count) => {
                    accepted_bytes += count;
                    self.written_bytes
                        .fetch_add(count as u64, Ordering::Relaxed);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(Interrupted {
                        accepted_bytes,
                        source,
                    });
                }
            }
        }
        Ok(())
    }

    /// Completes the output: a file gets its name.
    pub(crate) fn complete(self) -> io::Result<()> {
        match self.sink {
            Sink::File(beside) => beside.complete(),
            Sink::Stream(mut stream) => stream.flush(),
        }
    }

    /// After a failed write: keeps the first `length_bytes` bytes, followed by `tail`, as
    /// `TARGET.part`, and returns an error that names that file.
    pub(crate) fn fail(self, keep: Keep<'_>, source: io::Error) -> ExportError {
        let kept = match self.sink {
            Sink::Stream(_) if source.kind() == io::ErrorKind::BrokenPipe => {
                return ExportError::BrokenPipe;
            }
            Sink::Stream(_) => None,
            Sink::File(_) if keep.records == 0 => None,
            Sink::File(beside) => beside.keep(&keep).ok(),
        };
        let is_stream_or_kept = kept.is_some() || keep.counts_in_streams;
        let records = if is_stream_or_kept { keep.records } else { 0 };
        ExportError::Write {
            place: self.place,
            records,
            kept,
            source,
        }
    }
}

/// Creates `.NAME.PID-N.tmp` in `directory`, with the first free number N. The process id alone is
/// not enough: in a container every process may have the same one, and a killed process leaves its
/// file behind.
///
/// # Errors
/// The error of the system.
pub fn create_beside(directory: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = directory.join(format!(".{name}.{}-{number}.tmp", process::id()));
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary);
        match file {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => return Ok((file?, temporary)),
        }
    }
}

/// The part of an output to keep after a failed write.
pub(crate) struct Keep<'a> {
    /// Number of complete records in it.
    pub(crate) records: u64,
    /// Length of the part, from the start.
    pub(crate) length_bytes: u64,
    /// Bytes to append to make a complete file.
    pub(crate) tail: &'a [u8],
    /// Whether a reader of the stream can use the records before the failure.
    pub(crate) counts_in_streams: bool,
}

impl UnfinishedFile {
    fn create(
        path: &Path,
        target: PathBuf,
        existing: Option<fs::Metadata>,
        sync: bool,
    ) -> Result<Self, ExportError> {
        let source_of = |source| ExportError::Create {
            path: path.to_owned(),
            source,
        };
        let name = target
            .file_name()
            .ok_or_else(|| source_of(io::ErrorKind::InvalidInput.into()))?;
        let directory = match target.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        if !directory.is_dir() {
            let directory = directory.to_owned();
            return Err(ExportError::NoDirectory {
                path: path.to_owned(),
                directory,
            });
        }
        if existing.is_some() {
            // A rename would also replace a write-protected file: check that it is writable.
            OpenOptions::new()
                .append(true)
                .open(&target)
                .map_err(source_of)?;
        }
        let created = create_beside(directory, &name.to_string_lossy());
        let (file, temporary) = created.map_err(source_of)?;
        let unfinished = Self {
            file,
            path: Some(temporary),
            target,
            sync,
        };
        if let Some(metadata) = existing {
            unfinished
                .file
                .set_permissions(metadata.permissions())
                .map_err(source_of)?;
        }
        Ok(unfinished)
    }

    fn complete(mut self) -> io::Result<()> {
        if self.sync {
            self.file.sync_all()?;
        }
        if let Some(path) = &self.path {
            fs::rename(path, &self.target)?;
        }
        self.path = None;
        Ok(())
    }

    fn keep(mut self, keep: &Keep<'_>) -> io::Result<PathBuf> {
        use std::io::{Seek, SeekFrom};
        self.file.set_len(keep.length_bytes)?;
        self.file.seek(SeekFrom::Start(keep.length_bytes))?;
        self.file.write_all(keep.tail)?;
        let mut name = self.target.clone().into_os_string();
        name.push(".part");
        let part = PathBuf::from(name);
        if let Some(path) = &self.path {
            fs::rename(path, &part)?;
        }
        self.path = None;
        Ok(part)
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // The error cannot be reported here. The file's name shows the process that left it.
            let _ = fs::remove_file(path);
        }
    }
}
