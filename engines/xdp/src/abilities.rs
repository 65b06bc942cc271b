// SPDX-License-Identifier: Apache-2.0
//! What this engine can do.

use std::sync::LazyLock;

use turboflow_engine::{Abilities, KeyWidths};
use turboflow_record::InputSet;

use crate::plan::MAX_WORDS;

/// What this engine can do with a table on every CPU: a flow whose packets arrive on several CPUs has
/// a record on each of them, which overlap in time.
pub static ABILITIES: LazyLock<Abilities> = LazyLock::new(|| Abilities {
    inputs: InputSet::of_kernel_engine(),
    keys: KeyWidths::Any,
    state_words: MAX_WORDS,
    cuts_on_gap: true,
    evicts_on_end: true,
    ordered: false,
    ..Abilities::none("xdp")
});
