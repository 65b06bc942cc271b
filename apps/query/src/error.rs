// SPDX-License-Identifier: Apache-2.0
//! What can be wrong with a question or its files.

use std::fmt;

use thiserror::Error;
use turboflow_formats::ReadError;

/// Why a question has no answer.
#[derive(Debug, Error)]
pub enum QueryError {
    /// The question cannot be understood.
    #[error("{0}")]
    Question(Box<Misread>),
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Two files do not have the same columns.
    #[error("{place} does not fit {first}: {difference}; ask them one at a time")]
    Schema {
        /// The file that differs.
        place: String,
        /// The file it was compared with.
        first: String,
        /// The first column that differs, and how.
        difference: String,
    },
    /// A file has other columns than when the question was understood.
    #[error("{place} has changed while it waited to be read: {difference}; ask again")]
    Changed {
        /// The file.
        place: String,
        /// The first column that differs, and how.
        difference: String,
    },
    /// The groups do not fit the memory allowed.
    #[error(
        "more than {limit} groups: group by fewer fields or wider buckets (src_addr/24, time:5m), \
         or filter first"
    )]
    Groups {
        /// How many are allowed.
        limit: usize,
    },
    /// The records span more stretches of time than an answer may have.
    #[error(
        "from {from} to {to} are more than {limit} buckets of {width}: choose a wider one in \
         --group-by, or a part of the time: --where 'first_ns >= 2024-03-01T12:00Z'"
    )]
    Buckets {
        /// Where the first one begins, as a text.
        from: String,
        /// Where the last one begins, as a text.
        to: String,
        /// How wide they are, as a text.
        width: String,
        /// How many are allowed.
        limit: u64,
    },
    /// A column adds up to more than a number holds.
    #[error(
        "{column} of these records adds up to 2^64 or more: ask for fewer of them with --where, \
         or look with --by {column} --top 10 whether its largest values can be right"
    )]
    Sum {
        /// The column.
        column: String,
    },
    /// The records to sort do not fit the memory allowed.
    #[error("more than {limit} records match: ask for the first ones with --top, or filter")]
    Records {
        /// How many are allowed.
        limit: usize,
    },
}

/// A part of a question that cannot be understood, and where it stands.
#[derive(Debug)]
pub struct Misread {
    /// What the text is: `--where`, `--group-by`, ...
    pub(crate) option: &'static str,
    /// The whole text.
    pub(crate) text: String,
    /// Where the part starts and ends, in bytes.
    pub(crate) span: (usize, usize),
    /// What is wrong and what would be right.
    pub(crate) reason: String,
}

impl fmt::Display for Misread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tabs and line ends would move the text away from the mark under it.
        let plain = |text: &str| text.replace(|c: char| c.is_control(), " ");
        let (start, end) = self.span;
        let before = self.text.get(..start).unwrap_or_default().chars().count();
        let marked = self
            .text
            .get(start..end)
            .unwrap_or_default()
            .chars()
            .count()
            .max(1);
        writeln!(formatter, "{}: {}", self.option, self.reason)?;
        writeln!(formatter, "  {}", plain(&self.text))?;
        write!(formatter, "  {}{}", " ".repeat(before), "^".repeat(marked))
    }
}

impl QueryError {
    #[cold]
    pub(crate) fn misread(
        option: &'static str,
        text: &str,
        span: (usize, usize),
        reason: String,
    ) -> Self {
        Self::Question(Box::new(Misread {
            option,
            text: text.to_owned(),
            span,
            reason,
        }))
    }
}
