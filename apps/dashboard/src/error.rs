// SPDX-License-Identifier: Apache-2.0
//! Why there is no dashboard, and why a request was not answered.

use axum::http::StatusCode;
use serde_json::{Value, json};
use thiserror::Error;
use turboflow_query::{Part, QueryError};

/// Why there is no dashboard.
#[derive(Debug, Error)]
pub enum DashboardError {
    /// The records cannot be read.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A pipe or device among the files: they are read again and again.
    #[error("{place} is no file or folder: a dashboard reads its files again for every question")]
    NoFile {
        /// What was given.
        place: String,
    },
    /// Nothing to show.
    #[error("no files of flow records and no running program to follow: name one of both")]
    Nothing,
    /// Others could read the records.
    #[error(
        "{address} can be reached from other machines: a token is needed there, which clients have \
         to know"
    )]
    Open {
        /// The address to listen at.
        address: String,
    },
    /// The token is easily guessed.
    #[error("{place}: a token has 16 to 256 letters, digits and -._~+/= in its first line")]
    Token {
        /// The file.
        place: String,
    },
    /// A file cannot be read or written.
    #[error("{place}: {reason}")]
    File {
        /// The file.
        place: String,
        /// The error of the system.
        reason: String,
    },
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {reason}")]
    Listen {
        /// The address.
        address: String,
        /// The error of the system.
        reason: String,
    },
    /// A question of the report could not be answered.
    #[error("{0}")]
    Report(String),
}

/// Why a request was not answered.
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

    /// The reason alone.
    pub(crate) fn error(&self) -> Value {
        self.body["error"].clone()
    }
}

impl From<QueryError> for Refusal {
    /// With the place of the invalid words in the part of the question, in characters of UTF-16, as
    /// the page counts them.
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

/// What a part is called in questions to the server.
fn name(part: Part) -> &'static str {
    match part {
        Part::Filter => "where",
        Part::Time => "within",
        Part::Groups => "group_by",
        Part::Order => "by",
        Part::Columns => "select",
    }
}
