// SPDX-License-Identifier: Apache-2.0
//! How the numbers of several records become one.

use turboflow_record::{Definition, Feature, KeyField, Op};

/// How the numbers of two records become that of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// Added up, and spread over time.
    Sum,
    Min,
    Max,
    /// Flags that any has.
    Or,
}

impl Fold {
    /// The number of no record.
    pub(crate) const fn neutral(self) -> Option<u64> {
        match self {
            Self::Sum => Some(0),
            _ => None,
        }
    }

    /// Of the feature that has this column, in either direction. `None` where the numbers of several records make none: those of
    /// single packets, and means.
    pub(crate) fn by_definition(column: &str, definition: &Definition) -> Option<Self> {
        let mut features = definition.features.iter();
        let Some(feature) = features.find(|feature| is_of(feature, column)) else {
            // Of the key, or what every record has beside its features.
            return Self::by_name(column);
        };
        match feature.op {
            Op::Count | Op::Sum | Op::Duration => Some(Self::Sum),
            Op::Min | Op::GapMin => Some(Self::Min),
            Op::Max | Op::GapMax => Some(Self::Max),
            Op::BitOr => Some(Self::Or),
            Op::First | Op::Last | Op::Nth { .. } | Op::List { .. } | Op::Histogram { .. } => None,
            Op::Mean | Op::Variance | Op::GapMean | Op::GapVariance | Op::Rate => None,
        }
    }

    /// By the name of the column, for that is all that a text file says of it: those of the default definition, and
    /// others that are named like them. A value of a record's first or last packet is none of a group's.
    pub(crate) fn by_name(column: &str) -> Option<Self> {
        let name = column.trim_start_matches("reverse_");
        let begins = |prefix| name.starts_with(prefix);
        match name {
            // May be of a key too, and are flags there as well.
            "tcp_flags" => Some(Self::Or),
            "end_reason" | "tos" => None,
            _ if KeyField::all().any(|key| key.column_name() == name) => None,
            _ if begins("min_") => Some(Self::Min),
            _ if begins("max_") => Some(Self::Max),
            _ if begins("first_") || begins("last_") => None,
            _ => Some(Self::Sum),
        }
    }
}

/// Whether a column is that of a feature: of the initiator, or with `reverse_` before it of the other side.
fn is_of(feature: &Feature, column: &str) -> bool {
    column == feature.name || column.strip_prefix("reverse_") == Some(&feature.name)
}
