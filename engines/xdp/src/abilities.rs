// SPDX-License-Identifier: Apache-2.0
//! What this engine can do, in a program that was built without it too.

use turboflow_engine::{Abilities, KeyAbility};
use turboflow_packet::PARSED_INPUTS;
use turboflow_record::{Input, InputSet};

/// The inputs that the program sees: those of frames, and what the interface and its driver know of them.
pub const INPUTS: InputSet = PARSED_INPUTS
    .with(Input::ReceiveQueue)
    .with(Input::HardwareTimestamp);

/// Words of state that a record has at most.
pub(crate) const MAX_WORDS: usize = 120;

/// What this engine can do. With a table on every CPU, a flow whose packets arrive on several CPUs has a record
/// on each of them, which overlap in time.
pub const ABILITIES: Abilities = Abilities {
    inputs: INPUTS,
    keys: KeyAbility::Any,
    state_words: MAX_WORDS,
    cuts_on_gap: true,
    evicts_on_end: true,
    ordered: false,
    ..Abilities::none("xdp")
};
