// SPDX-License-Identifier: Apache-2.0
//! What can go wrong when flow records are read.

use std::io;

use thiserror::Error;

/// Why a file of flow records could not be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file cannot be opened.
    #[error("cannot open {place}: {source}")]
    Open {
        /// The file.
        place: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system failed to read on.
    #[error("cannot read {place} past byte {offset_bytes}: {source}")]
    Read {
        /// The file or "standard input".
        place: String,
        /// How much was read before.
        offset_bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// It is something else than a file of flow records.
    #[error("{place} is {what}; {mend}")]
    Foreign {
        /// The file or "standard input".
        place: String,
        /// What it is.
        what: String,
        /// What to do about it.
        mend: &'static str,
    },
    /// A line of a text file is not what its header or its first lines promise.
    #[error("{place}, line {line}{}: {reason}", column.as_ref().map(|name| format!(", column {name}")).unwrap_or_default())]
    Line {
        /// The file or "standard input".
        place: String,
        /// Counted from 1.
        line: u64,
        /// The column.
        column: Option<String>,
        /// What is wrong.
        reason: String,
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
