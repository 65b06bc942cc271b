// SPDX-License-Identifier: Apache-2.0
//! Why a definition cannot be laid out.

use thiserror::Error;

use super::{STATE_WORDS, counterpart};
use crate::{Feature, Input, InvalidDefinition, KeyField};

/// The most state a record may have, in words.
const MAX_WORDS: usize = STATE_WORDS[STATE_WORDS.len() - 1];

/// Why a definition cannot be laid out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// It makes no sense, whatever the layout.
    #[error(transparent)]
    Definition(#[from] InvalidDefinition),
    /// Directions exist in biflows only.
    #[error("feature `{feature}`: `direction` exists in biflows only; add --biflow or remove it")]
    DirectionOfUniflow {
        /// The feature.
        feature: String,
    },
    /// A biflow's key needs both ends.
    #[error(
        "key: a biflow joins two ends, but `{has}` is in the key without `{lacks}`; add it, or leave out --biflow"
    )]
    HalfPair {
        /// The field of one end.
        has: &'static str,
        /// The field of the other.
        lacks: &'static str,
    },
    /// A biflow's key needs ends.
    #[error(
        "key: a biflow joins two ends, but the key has none; add source_address and destination_address, or leave out --biflow"
    )]
    NoPair,
    /// The features need more than a record has.
    #[error(
        "the features need {needed} words of state, {over} more than a record has ({MAX_WORDS}); keep fewer or shorter lists and histograms"
    )]
    TooLarge {
        /// Words needed.
        needed: usize,
        /// Words too many.
        over: usize,
    },
}

/// Whether the key of a biflow has both ends of what it has.
pub(super) fn check_pairs(key: &[KeyField]) -> Result<(), LayoutError> {
    let mut ends = 0;
    for field in key {
        let Some(other) = counterpart(*field) else {
            continue;
        };
        if !key.contains(&other) {
            return Err(LayoutError::HalfPair {
                has: field.name(),
                lacks: other.name(),
            });
        }
        ends += 1;
    }
    if ends == 0 {
        Err(LayoutError::NoPair)
    } else {
        Ok(())
    }
}

/// Whether no feature asks for directions, which a record of one direction lacks.
pub(super) fn check_directions(features: &[Feature]) -> Result<(), LayoutError> {
    match features
        .iter()
        .find(|feature| feature.of == Some(Input::Direction))
    {
        Some(feature) => Err(LayoutError::DirectionOfUniflow {
            feature: feature.name.clone(),
        }),
        None => Ok(()),
    }
}

/// The smallest record that holds `needed` words of state.
pub(super) fn check_size(needed: usize) -> Result<usize, LayoutError> {
    let sizes = STATE_WORDS.into_iter();
    let over = needed.saturating_sub(MAX_WORDS);
    sizes
        .into_iter()
        .find(|size| *size >= needed)
        .ok_or(LayoutError::TooLarge { needed, over })
}
