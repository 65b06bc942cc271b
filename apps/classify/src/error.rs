// SPDX-License-Identifier: Apache-2.0
//! Why a model cannot be used.

use thiserror::Error;

/// Why a model cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ModelError {
    /// The file is no model, or a line of it contradicts others.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, and what should stand there.
        reason: String,
    },
    /// The records have not what the model looks at.
    #[error("the model looks at {feature:?}, and {reason}")]
    Records {
        /// The feature, as the model writes it.
        feature: String,
        /// What is missing, and how records get it.
        reason: String,
    },
}

impl ModelError {
    pub(crate) fn line(line: usize, reason: impl Into<String>) -> Self {
        Self::Line {
            line,
            reason: reason.into(),
        }
    }
}
