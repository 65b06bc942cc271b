// SPDX-License-Identifier: Apache-2.0
//! Writes the results of inspection into microflow records.
//!
//! No packet carries these results, so engines leave their words empty. They are filled when a
//! record passes from the engine to the aggregator, with what is known of its flow by then. From
//! there on they merge like any other words: the first annotated record decides `first`, the last
//! one `last`.

use turboflow_record::Input;

use super::words::{StateContent, Words};

/// A value for each of [`Input::INSPECTED`], in that order; `None` where the value is not known.
pub type InspectedValues = [Option<u64>; Input::INSPECTED.len()];

/// Where a layout's records hold results of inspection. Empty for definitions that use none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotation {
    steps: Box<[Step]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    /// Place in [`Input::INSPECTED`].
    value: u16,
    word: u16,
    /// Whether an existing value is kept.
    keeps_first: bool,
}

impl Annotation {
    pub(super) fn new(words: &Words) -> Self {
        let contents = words.contents().iter();
        let steps = contents.filter_map(|content| {
            let of = content.of?;
            let value = Input::INSPECTED.iter().position(|input| *input == of)?;
            Some(Step {
                value: value as u16,
                word: content.start as u16,
                keeps_first: content.what == StateContent::First,
            })
        });
        Self {
            steps: steps.collect(),
        }
    }

    /// The index of each value in [`Input::INSPECTED`], and its word.
    #[cfg(test)]
    pub(super) fn words(&self) -> impl Iterator<Item = (usize, usize)> {
        let steps = self.steps.iter();
        steps.map(|step| (usize::from(step.value), usize::from(step.word)))
    }

    /// Whether records hold no results of inspection, so that no flow has to be inspected.
    #[inline(always)]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Writes what is known of a record's flow into the record's state. Values that are not known
    /// leave their words as they are.
    #[inline(always)]
    pub fn write<const N: usize>(&self, state: &mut [u64; N], values: &InspectedValues) {
        for step in &self.steps {
            let Some(value) = values[usize::from(step.value)] else {
                continue;
            };
            let Some(word) = state.get_mut(usize::from(step.word)) else {
                debug_assert!(false, "records must have the layout of the annotation");
                continue;
            };
            if *word == 0 || !step.keeps_first {
                // Words hold values plus one. If all 64 risk bits are set, bit 0 is lost.
                *word = value.saturating_add(1);
            }
        }
    }
}
