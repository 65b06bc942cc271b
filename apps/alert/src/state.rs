// SPDX-License-Identifier: Apache-2.0
//! What rules about change remember from one file to the next.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// When each group of a rule was last seen, in nanoseconds since 1970.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct State {
    rules: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Maximum number of groups that a rule remembers. Beyond it, those that have been silent longest
/// are forgotten.
const GROUPS_MAX: usize = 1 << 20;

impl State {
    /// Parses the text of a state file.
    ///
    /// # Errors
    /// If the text was not written by [`State::to_text`].
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// The text of a state file.
    ///
    /// # Panics
    /// Never: texts and numbers are JSON.
    #[must_use]
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers are JSON")
    }

    /// The groups of a rule, and whether it has been asked before.
    pub(crate) fn of(&mut self, rule: &str) -> (&mut BTreeMap<String, u64>, bool) {
        let is_known = self.rules.contains_key(rule);
        (self.rules.entry(rule.to_owned()).or_default(), is_known)
    }
}

/// Removes the groups that have been silent longest, if there are more than [`GROUPS_MAX`].
pub(crate) fn forget(groups: &mut BTreeMap<String, u64>) {
    if groups.len() <= GROUPS_MAX {
        return;
    }
    let mut times: Vec<u64> = groups.values().copied().collect();
    let kept = times.len() - GROUPS_MAX;
    let (_, oldest, _) = times.select_nth_unstable(kept);
    let oldest = *oldest;
    groups.retain(|_, seen| *seen >= oldest);
}
