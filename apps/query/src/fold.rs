// SPDX-License-Identifier: Apache-2.0
//! How the numbers of several records are combined.

use turboflow_record::{Definition, Feature, KeyField, Op};

/// How the numbers of two records are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// The sum; it can be spread over time.
    Sum,
    Min,
    Max,
    /// Bitwise OR of flags.
    Or,
}

impl Fold {
    /// The result for no records.
    pub(crate) const fn neutral(self) -> Option<u64> {
        match self {
            Self::Sum => Some(0),
            _ => None,
        }
    }

    /// The fold for the feature of this column, in either direction. `None` where numbers cannot be
    /// combined: values of single packets, and means.
    pub(crate) fn by_definition(column: &str, definition: &Definition) -> Option<Self> {
        let mut features = definition.features.iter();
        let Some(feature) = features.find(|feature| is_of(feature, column)) else {
            // A column of the key, or one that every record has.
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

    /// The fold by the column's name, which is all that a text file provides: columns of the
    /// default definition, and columns with similar names. A value of a record's first or last
    /// packet cannot be combined.
    pub(crate) fn by_name(column: &str) -> Option<Self> {
        let name = column.trim_start_matches("reverse_");
        let begins = |prefix| name.starts_with(prefix);
        match name {
            // This column may also be in a key; its values are flags there too.
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

/// Whether the column belongs to the feature: the initiator's, or the responder's with `reverse_`.
fn is_of(feature: &Feature, column: &str) -> bool {
    column == feature.name || column.strip_prefix("reverse_") == Some(&feature.name)
}
