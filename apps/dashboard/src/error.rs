// SPDX-License-Identifier: Apache-2.0
//! Why the dashboard cannot start, and why a request is refused.

use axum::http::StatusCode;
use serde_json::{Value, json};
use thiserror::Error;
use turboflow_query::{Part, QueryError};

/// Why the dashboard cannot start.
#[derive(Debug, Error)]
pub enum DashboardError {
    /// The records cannot be read.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// One of the files is a pipe or device. Files are read repeatedly, which these do not allow.
    #[error(
        "{place} is not a file or folder: a dashboard reads its files again for every question"
    )]
    NoFile {
        /// The path that was given.
        place: String,
    },
    /// There is nothing to show.
    #[error("no files of flow records and no running program to follow: name one of the two")]
    Nothing,
    /// Anyone on the network could read the records.
    #[error(
        "{address} can be reached from other machines: a token is needed, which clients have to \
         know"
    )]
    Open {
        /// The address to listen on.
        address: String,
    },
    /// The token is too easy to guess.
    #[error("{place}: a token has 16 to 256 letters, digits and -._~+/= in its first line")]
    Token {
        /// The file that holds it.
        place: String,
    },
    /// A file cannot be read or written.
    #[error("{place}: {reason}")]
    File {
        /// The file.
        place: String,
        /// The operating system's error.
        reason: String,
    },
    /// Listening on the address failed.
    #[error("cannot listen at {address}: {reason}")]
    Listen {
        /// The address.
        address: String,
        /// The operating system's error.
        reason: String,
    },
    /// A question of the report could not be answered.
    #[error("{0}")]
    Report(String),
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

impl Refusal {
    /// A refusal with its reason.
    #[cold]
    pub(crate) fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        let reason: String = reason.into();
        Self {
            status,
            body: json!({ "error": { "reason": reason } }),
        }
    }

    #[cold]
    pub(crate) fn bad(reason: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    /// The reason as JSON, without the status.
    pub(crate) fn error(&self) -> Value {
        self.body["error"].clone()
    }
}

impl From<QueryError> for Refusal {
    /// Includes the position of the invalid words in the part of the question, counted in UTF-16
    /// code units, as JavaScript does.
    fn from(error: QueryError) -> Self {
        let QueryError::Question(misread) = &error else {
            let status = match error {
                QueryError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
                QueryError::Groups { .. } | QueryError::Buckets { .. } => StatusCode::BAD_REQUEST,
                QueryError::Records { .. } | QueryError::Sum { .. } => StatusCode::BAD_REQUEST,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            return Self::new(status, error.to_string());
        };
        let place = |at| {
            misread
                .text()
                .get(..at)
                .map(|before| before.encode_utf16().count())
        };
        let (start, end) = misread.span();
        Self {
            status: StatusCode::BAD_REQUEST,
            body: json!({ "error": {
                "reason": misread.reason(),
                "part": name(misread.part()),
                "start": place(start),
                "end": place(end),
            }}),
        }
    }
}

/// The name of a part in requests.
fn name(part: Part) -> &'static str {
    match part {
        Part::Filter => "where",
        Part::Time => "within",
        Part::Groups => "group_by",
        Part::Order => "by",
        Part::Columns => "select",
    }
}
