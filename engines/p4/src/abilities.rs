// SPDX-License-Identifier: Apache-2.0
//! The engine's abilities.

use turboflow_engine::{Abilities, KeyAbility};
use turboflow_merge::MOST_STATE_WORDS;

use crate::record::{INPUTS, QUEUE_INPUTS};

/// The abilities of a pipeline. If a definition needs more, [`P4Record::new`](crate::P4Record::new)
/// refuses it and names what is missing.
pub const ABILITIES: Abilities = Abilities {
    inputs: INPUTS.union(QUEUE_INPUTS),
    keys: KeyAbility::FiveTuple,
    state_words: MOST_STATE_WORDS,
    cuts_on_gap: true,
    evicts_on_end: true,
    ordered: true,
    instances: usize::MAX,
    ..Abilities::none("p4")
};
