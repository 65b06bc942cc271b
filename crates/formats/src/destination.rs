// SPDX-License-Identifier: Apache-2.0
//! Where a file format is written: to a file that gets its final name when it is complete, or to a
//! stream. Outputs that are no files implement [`crate::FlowWriter`] themselves.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::unfinished::refuse_link;
use crate::{ExportError, FileOptions, UnfinishedFile, WriteProgress};

/// Counts the bytes written to a file or a stream.
pub(crate) struct Destination {
    sink: Sink,
    place: String,
    /// Shared with the writer that ends a file when it reaches a certain size.
    written_bytes: Arc<AtomicU64>,
}

enum Sink {
    /// A file under a temporary name, renamed at the end.
    File(UnfinishedFile),
    /// Standard output, a device, a named pipe.
    Stream(Box<dyn Write + Send>),
}

/// A write that ended early.
pub(crate) struct Interrupted {
    /// Number of bytes accepted.
    pub(crate) accepted_bytes: usize,
    /// Why it ended.
    pub(crate) source: io::Error,
}

impl Destination {
    /// A file that replaces `path` when it is complete; if `path` is a device or a named pipe,
    /// `path` itself.
    pub(crate) fn create(path: &Path, options: FileOptions) -> Result<Self, ExportError> {
        let place = path.display().to_string();
        let source_of = |source| ExportError::Create {
            path: path.to_owned(),
            source,
        };
        refuse_link(path, options)?;
        let sink = match fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
                let device = OpenOptions::new().write(true).open(path);
                Sink::Stream(Box::new(device.map_err(source_of)?))
            }
            _ => Sink::File(UnfinishedFile::create(path, options)?),
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

    /// Whether this is a file, which is renamed when it is complete, and not a stream.
    pub(crate) const fn is_file(&self) -> bool {
        matches!(self.sink, Sink::File(_))
    }

    /// The target's name in errors.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Progress after `accepted` records were accepted: those in an unfinished file may still be
    /// lost.
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
                Sink::File(file) => file.write(rest),
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

    /// Completes the output: a file gets its final name.
    pub(crate) fn complete(self) -> io::Result<()> {
        match self.sink {
            Sink::File(file) => file.complete(),
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
            Sink::File(file) => file.keep(keep.length_bytes, keep.tail).ok(),
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

/// The part of an output to keep after a failed write.
pub(crate) struct Keep<'a> {
    /// Number of complete records in the part.
    pub(crate) records: u64,
    /// Length of the part, from the start.
    pub(crate) length_bytes: u64,
    /// Bytes to append to make a complete file.
    pub(crate) tail: &'a [u8],
    /// Whether a reader of the stream can use the records before the failure.
    pub(crate) counts_in_streams: bool,
}
