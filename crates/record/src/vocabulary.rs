// SPDX-License-Identifier: Apache-2.0
//! Descriptions and constraints of ops and key fields; those of inputs are in `input/table.rs`.
//! `turboflow definition --list` prints both.

use crate::input::Meaning;
use crate::{Input, KeyField, Op};

impl KeyField {
    /// A one-line description.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::SourceAddress => "source address, IPv4 or IPv6",
            Self::DestinationAddress => "destination address, IPv4 or IPv6",
            Self::SourcePort => "source port; 0 where the protocol has none",
            Self::DestinationPort => "destination port; 0 where the protocol has none",
            Self::Protocol => "IP protocol number",
            Self::OuterSourceAddress => "source address of the outermost tunnel entered",
            Self::OuterDestinationAddress => "destination address of the outermost tunnel entered",
            Self::Input(input) => input.describe(),
        }
    }

    /// Every field, in the order of listings.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::PLAIN
            .into_iter()
            .chain(Self::INPUTS.into_iter().map(Self::Input))
    }

    /// The input of the field, unless it is part of the 5-tuple or an outer address.
    #[must_use]
    pub const fn input(self) -> Option<Input> {
        match self {
            Self::Input(input) => Some(input),
            _ => None,
        }
    }
}

/// Whether an op takes an `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Mandatory.
    Needed,
    /// Optional.
    Optional,
    /// Not allowed: the op always uses the same input.
    Needless,
}

impl Op {
    /// The names of all ops, in the order of listings. The positions up to `rate` are used in the
    /// numbers of information elements (`elements/enterprise.rs`), so new ops are appended.
    pub const NAMES: [&'static str; 19] = [
        "count",
        "sum",
        "min",
        "max",
        "first",
        "last",
        "nth",
        "bit_or",
        "mean",
        "variance",
        "gap_min",
        "gap_max",
        "gap_mean",
        "gap_variance",
        "histogram",
        "list",
        "duration",
        "rate",
        "community_id",
    ];

    /// The name in a definition file.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::First => "first",
            Self::Last => "last",
            Self::Nth { .. } => "nth",
            Self::BitOr => "bit_or",
            Self::Mean => "mean",
            Self::Variance => "variance",
            Self::GapMin => "gap_min",
            Self::GapMax => "gap_max",
            Self::GapMean => "gap_mean",
            Self::GapVariance => "gap_variance",
            Self::Histogram { .. } => "histogram",
            Self::List { .. } => "list",
            Self::Duration => "duration",
            Self::Rate => "rate",
            Self::CommunityId => "community_id",
        }
    }

    /// The op with this name. If it has a `k`, that is 1; if it has edges, there are none.
    #[must_use]
    pub fn with_name(name: &str) -> Option<Self> {
        Some(match name {
            "count" => Self::Count,
            "sum" => Self::Sum,
            "min" => Self::Min,
            "max" => Self::Max,
            "first" => Self::First,
            "last" => Self::Last,
            "nth" => Self::Nth { k: 1 },
            "bit_or" => Self::BitOr,
            "mean" => Self::Mean,
            "variance" => Self::Variance,
            "gap_min" => Self::GapMin,
            "gap_max" => Self::GapMax,
            "gap_mean" => Self::GapMean,
            "gap_variance" => Self::GapVariance,
            "histogram" => Self::Histogram { edges: Vec::new() },
            "list" => Self::List { k: 1 },
            "duration" => Self::Duration,
            "rate" => Self::Rate,
            "community_id" => Self::CommunityId,
            _ => return None,
        })
    }

    /// A one-line description of the op with this name; `None` if there is no such op.
    #[must_use]
    pub fn describe(name: &str) -> Option<&'static str> {
        Some(match name {
            "count" => "packets; with `of`, the packets that carry the input",
            "sum" => "sum of the input",
            "min" => "smallest value",
            "max" => "largest value",
            "first" => "value of the first packet that carries the input",
            "last" => "value of the last packet that carries the input",
            "nth" => "value of the k-th packet that carries the input; needs `k`",
            "bit_or" => "OR of the values",
            "mean" => "arithmetic mean",
            "variance" => "population variance",
            "gap_min" => "smallest gap between consecutive packets, in ns",
            "gap_max" => "largest gap between consecutive packets, in ns",
            "gap_mean" => "mean gap between consecutive packets, in ns",
            "gap_variance" => "population variance of the gaps, in ns squared",
            "histogram" => "counts of values between `edges`, which rise",
            "list" => "the first k values; needs `k`",
            "duration" => "last less first time, in ns",
            "rate" => "packets, or with `of` the sum of the input, per second of duration",
            "community_id" => "Community ID of the 5-tuple, as Zeek and Suricata write it",
            _ => return None,
        })
    }

    /// The op without its `gap_` prefix, if it has one.
    #[must_use]
    pub const fn over_gaps(&self) -> Option<Self> {
        match self {
            Self::GapMin => Some(Self::Min),
            Self::GapMax => Some(Self::Max),
            Self::GapMean => Some(Self::Mean),
            Self::GapVariance => Some(Self::Variance),
            _ => None,
        }
    }

    /// Whether the op needs an `of`.
    #[must_use]
    pub const fn operand(&self) -> Operand {
        match self {
            Self::Count | Self::Rate => Operand::Optional,
            Self::GapMin | Self::GapMax | Self::GapMean | Self::GapVariance => Operand::Needless,
            Self::Duration | Self::CommunityId => Operand::Needless,
            _ => Operand::Needed,
        }
    }

    /// Whether the op makes sense for values of this meaning.
    pub(crate) const fn suits(&self, meaning: Meaning) -> bool {
        match self {
            Self::Sum | Self::Mean | Self::Variance | Self::Rate => {
                matches!(meaning, Meaning::Amount)
            }
            Self::BitOr => matches!(meaning, Meaning::Amount | Meaning::Label),
            Self::First | Self::Last => true,
            Self::Nth { .. } | Self::List { .. } => {
                !matches!(meaning, Meaning::Inspected | Meaning::Decided)
            }
            _ => !matches!(
                meaning,
                Meaning::Direction | Meaning::Inspected | Meaning::Decided
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_is_described() {
        for name in Op::NAMES {
            assert!(Op::describe(name).is_some());
            assert_eq!(Op::with_name(name).map(|op| op.name()), Some(name));
        }
        assert_eq!(Op::describe("summ"), None);
    }

    #[test]
    fn descriptions_fit_a_line() {
        assert!(
            Input::ALL
                .into_iter()
                .all(|input| input.describe().len() <= 64)
        );
        assert!(KeyField::all().all(|field| field.describe().len() <= 64));
    }
}
