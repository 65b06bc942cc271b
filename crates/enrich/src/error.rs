// SPDX-License-Identifier: Apache-2.0
//! Why a file cannot be used.

use thiserror::Error;

/// Why a file of names or networks cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EnrichError {
    /// A line of a text is wrong.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, and what should stand there.
        reason: String,
    },
    /// A database cannot be read, or is another one.
    #[error("{0}")]
    Database(String),
}
