// SPDX-License-Identifier: Apache-2.0
//! How CSV and JSON lines write times, and numbers that have names.

use std::fmt;
use std::str::FromStr;

use turboflow_record::{Column, ColumnKind, END_REASON, KeyField};

/// How times and named numbers are written. The readers of this crate understand every form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// The form of times.
    pub time: TimeForm,
    /// Whether protocols and end reasons are written as names, if they have one.
    pub names: bool,
}

/// How times are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeForm {
    /// `first_ns`: nanoseconds since 1970.
    #[default]
    Nanoseconds,
    /// `first_s`: seconds since 1970, with nine decimals.
    Seconds,
    /// `first_iso`: ISO 8601 in UTC.
    Iso,
}

impl TimeForm {
    /// All forms with their names.
    pub const NAMES: [(&str, Self); 3] = [
        ("ns", Self::Nanoseconds),
        ("s", Self::Seconds),
        ("iso", Self::Iso),
    ];
}

impl FromStr for TimeForm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        let found = found.map(|(_, form)| *form);
        found.ok_or_else(|| "write ns, s or iso".to_owned())
    }
}

impl fmt::Display for TimeForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::NAMES.iter().find(|(_, form)| form == self);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

/// How the values of a column are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Addresses, floats, lists and texts, which have one form only.
    AsItIs,
    Number,
    Mac,
    Seconds,
    Iso,
    Protocol,
    EndReason,
}

impl Written {
    pub(crate) fn of(column: &Column, options: TextOptions) -> Self {
        match (column.kind, options.time) {
            (ColumnKind::TimestampNs, TimeForm::Seconds) => Self::Seconds,
            (ColumnKind::TimestampNs, TimeForm::Iso) => Self::Iso,
            (ColumnKind::Mac, _) => Self::Mac,
            (ColumnKind::Unsigned { bits: 8 }, _) if options.names => match &*column.name {
                name if name == KeyField::Protocol.column_name() => Self::Protocol,
                END_REASON => Self::EndReason,
                _ => Self::Number,
            },
            (ColumnKind::Unsigned { .. } | ColumnKind::TimestampNs, _) => Self::Number,
            (ColumnKind::Address | ColumnKind::Float, _) => Self::AsItIs,
            (ColumnKind::List | ColumnKind::Text, _) => Self::AsItIs,
        }
    }

    /// The name of the column, whose suffix says the form of its times.
    pub(crate) fn name(self, column: &Column) -> String {
        let name = |end: &str| {
            let plain = column.name.strip_suffix("_ns");
            plain.map_or_else(|| column.name.clone(), |plain| format!("{plain}{end}"))
        };
        match self {
            Self::Seconds => name("_s"),
            Self::Iso => name("_iso"),
            _ => column.name.clone(),
        }
    }

    /// Whether JSON writes the value in quotes.
    pub(crate) const fn is_quoted(self) -> bool {
        matches!(
            self,
            Self::Mac | Self::Iso | Self::Protocol | Self::EndReason
        )
    }
}
