// SPDX-License-Identifier: Apache-2.0
//! How the numbers of several records are combined.

use turboflow_record::{Definition, Feature, KeyField, Op};

/// How the numbers of two records are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// The sum. Sums can be spread over time.
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

    /// The fold for the feature of this column, in either direction of a biflow.
    ///
    /// # Errors
    /// [`NoFold::Never`] for values of single packets and for means.
    pub(crate) fn by_definition(column: &str, definition: &Definition) -> Result<Self, NoFold> {
        let mut features = definition.features.iter();
        let Some(feature) = features.find(|feature| is_of(feature, column)) else {
            // A key column, or one that every record has.
            return Self::by_name(column);
        };
        match feature.op {
            Op::Count | Op::Sum | Op::Duration => Ok(Self::Sum),
            Op::Min | Op::GapMin => Ok(Self::Min),
            Op::Max | Op::GapMax => Ok(Self::Max),
            Op::BitOr => Ok(Self::Or),
            Op::First | Op::Last | Op::Nth { .. } | Op::List { .. } | Op::Histogram { .. } => {
                Err(NoFold::Never)
            }
            Op::CommunityId => Err(NoFold::Never),
            Op::Mean | Op::Variance | Op::GapMean | Op::GapVariance | Op::Rate => {
                Err(NoFold::Never)
            }
        }
    }

    /// The fold according to the column's name, which is all that a text file provides: columns of
    /// the default definition, and names that tell their meaning. Adding up maxima would give a
    /// wrong answer, so a name without a known meaning is refused.
    ///
    /// # Errors
    /// [`NoFold`].
    pub(crate) fn by_name(column: &str) -> Result<Self, NoFold> {
        let name = column.trim_start_matches("reverse_");
        // A key may contain this column too; its values are flags there as well.
        if name == "tcp_flags" {
            return Ok(Self::Or);
        }
        let is_key = || KeyField::all().any(|key| key.column_name() == name);
        if matches!(name, "end_reason" | "tos") || is_key() {
            return Err(NoFold::Never);
        }
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default();
        let last = words.next_back().unwrap_or(first);
        let says = |known: &[&str]| known.contains(&first) || known.contains(&last);
        // The order matters: `max_bytes` is a maximum, not an amount.
        if says(&["min"]) {
            Ok(Self::Min)
        } else if says(&["max"]) {
            Ok(Self::Max)
        } else if says(&SINGLE) {
            Err(NoFold::Never)
        } else if says(&AMOUNTS) {
            Ok(Self::Sum)
        } else {
            Err(NoFold::Unknown)
        }
    }

    /// The fold named by the word in `max(COLUMN)`.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        match word {
            "sum" => Some(Self::Sum),
            "min" => Some(Self::Min),
            "max" => Some(Self::Max),
            "or" => Some(Self::Or),
            _ => None,
        }
    }
}

/// Why numbers of several records cannot be combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoFold {
    /// The value of a single packet, or a mean: a group's value cannot be computed from it.
    Never,
    /// Neither the file nor the column's name tells the meaning of the numbers.
    Unknown,
}

/// First or last words in the names of amounts.
const AMOUNTS: [&str; 8] = [
    "bytes", "count", "duration", "octets", "packets", "records", "sum", "total",
];

/// First or last words in the names of values of single packets or of distributions.
const SINGLE: [&str; 9] = [
    "avg", "first", "last", "mean", "median", "nth", "rate", "second", "variance",
];

/// Whether the column belongs to the feature, in either direction of a biflow.
pub(crate) fn is_of(feature: &Feature, column: &str) -> bool {
    column == feature.name || column.strip_prefix("reverse_") == Some(&feature.name)
}
