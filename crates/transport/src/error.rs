// SPDX-License-Identifier: Apache-2.0
//! Why a collector cannot be used as a target.

use std::path::PathBuf;

use thiserror::Error;
use turboflow_formats::ExportError;

use crate::TlsPart;

/// Why sending cannot start. Later failures are [`ExportError`]s.
#[derive(Debug, Error)]
pub enum TransportError {
    /// The format cannot hold the records.
    #[error(transparent)]
    Format(#[from] ExportError),
    /// A collector's address is invalid, unknown or unreachable.
    #[error("cannot send to {given:?}: {reason}")]
    Target {
        /// The address as given.
        given: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A TLS file cannot be used.
    #[error("{} as {part}: {reason}", describe_tls_source(path.as_ref()))]
    Tls {
        /// The purpose of the file.
        part: TlsPart,
        /// The file; `None` for the system's trust store.
        path: Option<PathBuf>,
        /// What is wrong with it.
        reason: String,
    },
}

fn describe_tls_source(path: Option<&PathBuf>) -> String {
    let file = |path: &PathBuf| format!("cannot use {}", path.display());
    path.map_or_else(|| "cannot use the system's list".to_owned(), file)
}
