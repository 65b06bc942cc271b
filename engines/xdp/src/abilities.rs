// SPDX-License-Identifier: Apache-2.0
//! The abilities of this engine, also available in programs built without it.

use turboflow_engine::{Abilities, KeyAbility};
use turboflow_packet::PARSED_INPUTS;
use turboflow_record::{Input, InputSet};

/// The inputs that the program provides: those of frames, and those of the interface and its
/// driver.
pub const INPUTS: InputSet = PARSED_INPUTS
    .with(Input::ReceiveQueue)
    .with(Input::HardwareTimestamp);

/// Maximum words of state of a record.
pub(crate) const MAX_WORDS: usize = 120;

/// The abilities of this engine. With a table per CPU, a flow whose packets arrive on several CPUs
/// has a record on each of them, and these records overlap in time.
pub const ABILITIES: Abilities = Abilities {
    inputs: INPUTS,
    keys: KeyAbility::Any,
    state_words: MAX_WORDS,
    cuts_on_gap: true,
    evicts_on_end: true,
    ordered: false,
    ..Abilities::none("xdp")
};
