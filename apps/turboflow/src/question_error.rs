// SPDX-License-Identifier: Apache-2.0
//! Errors of questions, in terms of the options of `turboflow show` and `turboflow replay`.

use anyhow::anyhow;
use turboflow_query::{Part, QueryError};

/// The error in terms of the options that asked the question, with those that help.
pub(crate) fn in_options(error: QueryError) -> anyhow::Error {
    match error {
        QueryError::Question(misread) => anyhow!("{}", misread.named(option(misread.part()))),
        QueryError::Buckets { .. } => anyhow!("{error} (--group-by, --within)"),
        QueryError::Sum { ref column } => anyhow!("{error} (--where, --by {column} --top 10)"),
        QueryError::Records { .. } => anyhow!("{error} (--top, --where)"),
        error => error.into(),
    }
}

fn option(part: Part) -> &'static str {
    match part {
        Part::Filter => "--where",
        Part::Time => "--within",
        Part::Groups => "--group-by",
        Part::Order => "--by",
        Part::Columns => "--select",
    }
}
