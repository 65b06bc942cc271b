// SPDX-License-Identifier: Apache-2.0
//! A layout as data, for engines with their own code: how they must process a packet to get the
//! records of [`Layout::open`](super::Layout::open) and [`Plan`](super::Plan).

use super::key::{FAMILY_SHIFT, KeyPlan, KeySlot, MARKER};
use super::words::{Class, StateContent, Words};
use turboflow_record::{Input, KeyField};

/// How a packet is folded into a state. The contents may be folded in any order. The words of a
/// fresh state are zero, except for smallest values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Number of words, including unused ones in between.
    pub words: usize,
    /// The words whose bits are all set in a fresh state.
    pub ones: std::ops::Range<usize>,
    /// The contents and their words.
    pub state: Vec<StateStep>,
    /// The word with the arrival time of the last packet, plus 1, from which gaps are measured.
    /// `None` if there are no gaps.
    pub last_arrival: Option<usize>,
    /// How the key is created.
    pub key: KeySteps,
}

/// One content of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateStep {
    /// What is stored.
    pub what: StateContent,
    /// The input that is folded. `None` counts packets.
    pub of: Option<Input>,
    /// The first word.
    pub word: usize,
}

/// How a key is created from a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySteps {
    /// The words of the [`FiveTuple`](turboflow_record::FiveTuple).
    FiveTuple,
    /// Fields at fixed positions in a wide key.
    Wide {
        /// Number of words up to the last one in use.
        words: usize,
        /// The constant bits of the first word.
        header: u64,
        /// Position of the IP version in the first word, if the key has addresses.
        family_shift: Option<u8>,
        /// The fields.
        fields: Vec<KeySlot>,
    },
}

impl Steps {
    pub(super) fn new(words: &Words, key: &KeyPlan) -> Self {
        let contents = words.contents().iter();
        let state: Vec<StateStep> = contents
            .map(|content| StateStep {
                what: content.what.clone(),
                of: content.of,
                word: content.start,
            })
            .collect();
        let folds_gaps = state.iter().any(|step| step.of == Some(Input::Gap));
        let last_arrival = state
            .iter()
            .find(|step| step.of == Some(Input::Timestamp) && step.what == StateContent::Last);
        Self {
            words: words.count(),
            ones: words.end_of(Class::Add)..words.end_of(Class::Min),
            last_arrival: last_arrival.map(|step| step.word).filter(|_| folds_gaps),
            state,
            key: KeySteps::new(key),
        }
    }
}

impl KeySteps {
    fn new(key: &KeyPlan) -> Self {
        let KeyPlan::Wide(wide) = key else {
            return Self::FiveTuple;
        };
        let end = |key_slot: &KeySlot| {
            usize::from(key_slot.word) + if key_slot.bits > 64 { 2 } else { 1 }
        };
        let has = |field| {
            wide.key_slots
                .iter()
                .any(|key_slot| key_slot.field == field)
        };
        let has_addresses = has(KeyField::SourceAddress) || has(KeyField::DestinationAddress);
        Self::Wide {
            words: wide.key_slots.iter().map(end).max().unwrap_or(1).max(1),
            header: MARKER,
            family_shift: has_addresses.then_some(FAMILY_SHIFT),
            fields: wide.key_slots.clone(),
        }
    }
}
