// SPDX-License-Identifier: Apache-2.0
//! A layout as data: what an engine that has code of its own must do with a packet, so that its records are those that
//! [`Layout::open`](super::Layout::open) and [`Plan`](super::Plan) make.

use super::key::{FAMILY_SHIFT, KeyPlan, KeySlot, MARKER};
use super::words::{Class, StateContent, Words};
use turboflow_record::{Input, KeyField};

/// How a packet goes into the state of its record: content by content, in any order. A fresh state is zeros, but for the words of
/// smallest values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// How many words there are, those in between that nothing is in included.
    pub words: usize,
    /// From which word to which all bits are set in a fresh state.
    pub ones: std::ops::Range<usize>,
    /// What goes where.
    pub state: Vec<StateStep>,
    /// The word with the time of the packet that came last, plus one, if gaps are folded: a gap is measured from there.
    pub last_arrival: Option<usize>,
    /// How the key is made.
    pub key: KeySteps,
}

/// One content of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateStep {
    /// What is held.
    pub what: StateContent,
    /// Of which input; `None` counts packets.
    pub of: Option<Input>,
    /// Its first word.
    pub word: usize,
}

/// How a packet becomes a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySteps {
    /// The words of the [`FiveTuple`](turboflow_record::FiveTuple).
    FiveTuple,
    /// Fields in words of their own.
    Wide {
        /// Words from the first to the last that has anything.
        words: usize,
        /// What the first word of every key has.
        header: u64,
        /// Where the first word has the number of the IP version, if the key has addresses.
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
