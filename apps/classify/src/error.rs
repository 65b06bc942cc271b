// SPDX-License-Identifier: Apache-2.0
//! Why a model cannot be used.

use thiserror::Error;

/// Why a model cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ModelError {
    /// The file is not a model, or one of its lines contradicts others.
    #[error("line {line}: {reason}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong, and what is expected.
        reason: String,
    },
    /// The records lack a feature of the model.
    #[error("the model uses {feature:?}, but {reason}")]
    Records {
        /// The feature, as the model writes it.
        feature: String,
        /// What is missing, and how to get it into records.
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
