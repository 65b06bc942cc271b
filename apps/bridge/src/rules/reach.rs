// SPDX-License-Identifier: Apache-2.0
//! Rules that no flow reaches.

use super::Rule;
use super::conditions::Conditions;
use super::decision::Action;
use super::fault::RulesWarning;

pub(super) const DROPS_UNDECIDED: &str = "undecided = \"drop\" drops the first packets of every \
    flow that a rule may match later, so of such flows no TCP connection can begin; write \
    undecided = \"pass\"";

/// Rules that can never match, as far as that shows in one rule, or in a rule and one before.
pub(super) fn never_matching(rules: &[Rule]) -> Vec<RulesWarning> {
    let warning = |(place, rule): (usize, &Rule)| {
        let before = || rules[..place].iter().find(|other| other.covers(rule));
        let why = if let Some(why) = rule.when.contradiction() {
            format!("{why}; remove the rule, or one of the conditions")
        } else if rule.is_all_exceptions() {
            "its exceptions are all that it matches; remove the rule, or `except`".to_owned()
        } else if let Some(other) = before() {
            format!(
                "rule `{}` in line {} matches all of its flows before; put this rule in front of \
                 it, or remove it",
                other.name, other.line
            )
        } else {
            return None;
        };
        let what = format!("rule `{}` never matches: {why}", rule.name);
        Some(RulesWarning {
            line: rule.line,
            what,
        })
    };
    rules.iter().enumerate().filter_map(warning).collect()
}

impl Rule {
    /// Whether this rule matches whatever the other one matches. Where one that drops asks for a
    /// name, one that passes matches with less confidence.
    fn covers(&self, other: &Self) -> bool {
        let asks_for_more = self.action == Action::Drop
            && other.action == Action::Pass
            && self.when.ask_for_names();
        self.except.is_none() && !asks_for_more && self.when.cover(&other.when)
    }

    /// A rule that passes is left by a name that is trusted, and matches others of it.
    fn is_all_exceptions(&self) -> bool {
        let is_all = |except: &Conditions| {
            let asks_for_more = self.action == Action::Pass && except.ask_for_names();
            !asks_for_more && except.cover(&self.when)
        };
        self.except.as_ref().is_some_and(is_all)
    }
}
