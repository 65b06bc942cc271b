// SPDX-License-Identifier: Apache-2.0
//! Why a file cannot be used.

use thiserror::Error;

/// Why a file of names or networks cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EnrichError {
    /// A line of a text is invalid.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, and what is expected instead.
        reason: String,
    },
    /// A database cannot be read, or is of another type.
    #[error("{0}")]
    Database(String),
}
