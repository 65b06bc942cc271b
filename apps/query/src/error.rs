// SPDX-License-Identifier: Apache-2.0
//! Errors of questions and their files.

use std::fmt;

use thiserror::Error;
use turboflow_formats::ReadError;

/// Why a question cannot be answered.
#[derive(Debug, Error)]
pub enum QueryError {
    /// The question is invalid.
    #[error("{0}")]
    Question(Box<Misread>),
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Two files do not have the same columns.
    #[error("{place} does not fit {first}: {difference}; query them one at a time")]
    Schema {
        /// The file that differs.
        place: String,
        /// The file it was compared with.
        first: String,
        /// The first column that differs, and how.
        difference: String,
    },
    /// The columns of a file changed after the question was bound to them.
    #[error("{place} changed before it was read: {difference}; ask again")]
    Changed {
        /// The file.
        place: String,
        /// The first column that differs, and how.
        difference: String,
    },
    /// A folder has no files of flow records, or none matches a pattern.
    #[error(
        "{place}: no file of flow records found (.csv, .jsonl, .parquet, .ipfix; .csv.zst, ...; \
         a .json file is read only if it is named)"
    )]
    NoFiles {
        /// The folder or pattern.
        place: String,
    },
    /// A folder has no files of the requested kind, or none matches a pattern.
    #[error("{place}: no file found")]
    Empty {
        /// The folder or pattern.
        place: String,
    },
    /// A folder cannot be read.
    #[error("cannot read the folder {place}: {reason}")]
    Folder {
        /// The folder.
        place: String,
        /// The operating system's error.
        reason: String,
    },
    /// A pattern of file names is invalid.
    #[error("{place} is not a pattern of file names: {reason}")]
    Pattern {
        /// The pattern.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// A file of names, networks, autonomous systems or countries cannot be read, or one of its
    /// lines is invalid.
    #[error("{place}: {reason}")]
    Enrichment {
        /// The file, and the line where there is one.
        place: String,
        /// What is wrong, and what would be valid.
        reason: String,
    },
    /// The groups exceed the memory limit.
    #[error(
        "more than {limit} groups: group by fewer fields or wider buckets (src_addr/24, time:5m), \
         or filter first"
    )]
    Groups {
        /// The limit.
        limit: usize,
    },
    /// The records span more time buckets than the limit.
    #[error(
        "from {from} to {to} are more than {limit} buckets of {width}: choose wider ones, or a part \
         of the time"
    )]
    Buckets {
        /// Start of the first bucket, as text.
        from: String,
        /// Start of the last bucket, as text.
        to: String,
        /// Width of the buckets, as text.
        width: String,
        /// The limit.
        limit: u64,
    },
    /// The sum of a column exceeds 64 bits.
    #[error(
        "{column} of these records adds up to 2^64 or more: select fewer of them with a filter, or \
         check whether the records with the largest values can be right"
    )]
    Sum {
        /// The column.
        column: String,
    },
    /// The question was abandoned because the flag of
    /// [`Input::stop_where`](crate::Input::stop_where) was set.
    #[error("the question was given up")]
    Stopped,
    /// The records to sort exceed the memory limit.
    #[error("more than {limit} records match: ask for the first ones, or filter")]
    Records {
        /// The limit.
        limit: usize,
    },
}

/// A part of a question that is written as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The filter that selects records.
    Filter,
    /// The requested range of time.
    Time,
    /// The fields by which records are grouped.
    Groups,
    /// The field by which rows are sorted.
    Order,
    /// The columns of the answer.
    Columns,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Time => "time",
            Self::Groups => "groups",
            Self::Order => "order",
            Self::Columns => "columns",
        }
    }
}

/// An invalid part of a question, and its position.
#[derive(Debug)]
pub struct Misread {
    /// The part that is invalid.
    pub(crate) part: Part,
    /// Its whole text.
    pub(crate) text: String,
    /// Start and end of the invalid part, in bytes.
    pub(crate) span: (usize, usize),
    /// What is wrong, and what would be valid.
    pub(crate) reason: String,
}

impl Misread {
    /// The invalid part.
    #[must_use]
    pub const fn part(&self) -> Part {
        self.part
    }

    /// The whole text of that part.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Start and end of the invalid words within that text, in bytes.
    #[must_use]
    pub const fn span(&self) -> (usize, usize) {
        self.span
    }

    /// What is wrong, and what would be valid.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Three lines: the reason, after the name under which the user knows the part; the text of the
    /// part; and marks under the invalid words.
    #[must_use]
    pub fn named(&self, part: &str) -> String {
        // Tabs and line ends would shift the text relative to the marks below it.
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
        format!(
            "{part}: {}\n  {}\n  {}{}",
            self.reason,
            plain(&self.text),
            " ".repeat(before),
            "^".repeat(marked)
        )
    }
}

impl fmt::Display for Misread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.named(self.part.name()))
    }
}

impl QueryError {
    #[cold]
    pub(crate) fn misread(part: Part, text: &str, span: (usize, usize), reason: String) -> Self {
        Self::Question(Box::new(Misread {
            part,
            text: text.to_owned(),
            span,
            reason,
        }))
    }
}
