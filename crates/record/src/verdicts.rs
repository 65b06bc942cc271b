// SPDX-License-Identifier: Apache-2.0
//! Names of what a bridge does with packets, and of the rules that decide it.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use crate::text_table::{clean, shortened};

/// Too little of the packet's flow was seen to decide. The packet was handled as the rules say for
/// `undecided`.
pub const UNDECIDED: u64 = 0;
/// The packet was forwarded.
pub const PASSED: u64 = 1;
/// The packet was dropped.
pub const DROPPED: u64 = 2;
/// The packet was forwarded in a dry run, and would have been dropped.
pub const WOULD_DROP: u64 = 3;

const NAMES: [&str; 4] = ["undecided", "passed", "dropped", "would_drop"];

/// The name of a verdict.
#[must_use]
pub fn verdict_name(verdict: u64) -> &'static str {
    let place = usize::try_from(verdict).unwrap_or(usize::MAX);
    NAMES.get(place).copied().unwrap_or("unknown")
}

/// The names of a bridge's rules by their numbers. Rules may be added while the bridge runs, but
/// the name of a number never changes.
#[derive(Debug, Default)]
pub struct RuleNames {
    names: RwLock<BTreeMap<u16, String>>,
}

impl RuleNames {
    /// Names a rule.
    pub fn set(&self, number: u16, name: &str) {
        let name = shortened(clean(name)).0.into_owned();
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        names.entry(number).or_insert(name);
    }

    /// Calls `take` with the name of each of these rules. Number 0 means no rule and has no name. A
    /// number without a name is shown as itself.
    pub fn each(
        &self,
        numbers: impl Iterator<Item = Option<u64>>,
        mut take: impl FnMut(Option<&str>),
    ) {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        for number in numbers {
            let name = |number: u64| u16::try_from(number).ok().and_then(|it| names.get(&it));
            match number.filter(|number| *number != 0) {
                None => take(None),
                Some(number) => match name(number) {
                    Some(name) => take(Some(name)),
                    None => take(Some(&number.to_string())),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_names() {
        for (verdict, name) in [
            (UNDECIDED, "undecided"),
            (PASSED, "passed"),
            (DROPPED, "dropped"),
            (WOULD_DROP, "would_drop"),
        ] {
            assert_eq!(verdict_name(verdict), name);
        }
        assert_eq!(verdict_name(4), "unknown");
    }

    #[test]
    fn a_rule_keeps_its_first_name() {
        let rules = RuleNames::default();
        rules.set(1, "no-netflix");
        rules.set(1, "another");
        rules.set(2, "a\x1bb");
        let mut named = Vec::new();
        let numbers = [Some(0), Some(1), None, Some(2), Some(9), Some(1 << 20)];
        rules.each(numbers.into_iter(), |name| {
            named.push(name.map(str::to_owned))
        });
        let named: Vec<_> = named.iter().map(Option::as_deref).collect();
        let none = None;
        assert_eq!(
            named,
            [
                none,
                Some("no-netflix"),
                none,
                Some("a\\x1bb"),
                Some("9"),
                Some("1048576")
            ]
        );
    }
}
