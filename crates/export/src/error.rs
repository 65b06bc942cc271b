// SPDX-License-Identifier: Apache-2.0
//! What can go wrong when flow records are written.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why flow records could not be written.
#[derive(Debug, Error)]
pub enum ExportError {
    /// No format of that name or file extension.
    #[error(
        "unknown format of {given:?}: use csv, jsonl or parquet, or a file name that ends in \
         .csv, .jsonl, .ndjson, .json or .parquet"
    )]
    UnknownFormat {
        /// The name or path given.
        given: String,
    },
    /// The target is a directory.
    #[error("cannot write {path}: it is a directory; name a file in it")]
    IsDirectory {
        /// The target.
        path: PathBuf,
    },
    /// The directory of the target does not exist.
    #[error("cannot write {path}: there is no directory {directory}; create it first")]
    NoDirectory {
        /// The target.
        path: PathBuf,
        /// Its directory.
        directory: PathBuf,
    },
    /// The target, or the file beside it, cannot be created.
    #[error("cannot write {path}: {source}")]
    Create {
        /// The target.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Writing failed on the way: the disk is full, for example.
    #[error("cannot write {place}: {source}; {}", what_is_left(*.records, .kept.as_ref()))]
    Write {
        /// The target, or "standard output".
        place: String,
        /// How many records are whole in what was written.
        records: u64,
        /// Where they are; `None` where the target is a stream or they could not be kept.
        kept: Option<PathBuf>,
        /// What the system said.
        source: io::Error,
    },
    /// The reader of the stream went away, which ends a pipe like `turboflow ... | head`.
    #[error("the reader of the output went away")]
    BrokenPipe,
    /// The format cannot hold the records as asked.
    #[error("cannot write {place} as {format}: {reason}")]
    Encode {
        /// The target, or "standard output".
        place: String,
        /// The format's name.
        format: &'static str,
        /// What does not fit.
        reason: String,
    },
}

impl ExportError {
    /// The output could not be flushed or renamed.
    pub(crate) fn unfinished(place: String, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Write {
                place,
                records: 0,
                kept: None,
                source,
            },
        }
    }
}

fn what_is_left(records: u64, kept: Option<&PathBuf>) -> String {
    match kept {
        Some(path) => format!("the first {records} records are in {}", path.display()),
        None if records == 0 => "no record was written".to_owned(),
        None => format!("{records} records were written before"),
    }
}
