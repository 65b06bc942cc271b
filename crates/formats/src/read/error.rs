// SPDX-License-Identifier: Apache-2.0
//! Errors of reading flow records.

use std::io;

use thiserror::Error;

/// Why flow records could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file cannot be opened.
    #[error("cannot open {place}: {source}")]
    Open {
        /// The file.
        place: String,
        /// The underlying I/O error.
        source: io::Error,
    },
    /// There is no such file.
    #[error("{place} does not exist: check the path")]
    NoFile {
        /// The file.
        place: String,
    },
    /// A pipe ended before its first byte.
    #[error(
        "{place} is empty: the program that writes to the pipe failed, or it had no flow records"
    )]
    NothingCame {
        /// "standard input", or the pipe.
        place: String,
    },
    /// Reading failed after some bytes.
    #[error("cannot read {place} past byte {offset_bytes}: {source}")]
    Read {
        /// The file or "standard input".
        place: String,
        /// Number of bytes read before the failure.
        offset_bytes: u64,
        /// The underlying I/O error.
        source: io::Error,
    },
    /// The content is not flow records.
    #[error("{place} is {what}; {mend}")]
    Foreign {
        /// The file or "standard input".
        place: String,
        /// What it seems to be.
        what: String,
        /// What the user can do.
        mend: &'static str,
    },
    /// A line of a text file does not fit its header or its first lines.
    #[error("{place}, line {line}{}: {reason}", column.as_ref().map(|name| format!(", column {name}")).unwrap_or_default())]
    Line {
        /// The file or "standard input".
        place: String,
        /// Number of the line, counted from 1.
        line: u64,
        /// Name of the column.
        column: Option<String>,
        /// What is wrong.
        reason: String,
    },
    /// An IPFIX file is damaged.
    #[error("{place}, the message at byte {offset_bytes}: {reason}")]
    Ipfix {
        /// The file.
        place: String,
        /// Offset of the damaged message.
        offset_bytes: u64,
        /// What is wrong.
        reason: String,
    },
    /// A Parquet file lacks its end, without which nothing in it can be read.
    #[error(
        "{place} is a Parquet file that is not complete: its end is missing, without which nothing \
         of it can be read; its writer was stopped or is still writing, or it was cut when it was \
         copied: wait for it, copy it again, or make it anew"
    )]
    Incomplete {
        /// The file.
        place: String,
    },
    /// A Parquet file is damaged, or holds types that flow records do not have.
    #[error("cannot read {place} as Parquet: {reason}")]
    Parquet {
        /// The file.
        place: String,
        /// What is wrong.
        reason: String,
    },
}
