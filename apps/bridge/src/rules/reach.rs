// SPDX-License-Identifier: Apache-2.0
//! Finds rules that no flow can reach.

use super::Rule;
use super::conditions::Conditions;
use super::decision::Action;
use super::fault::RulesWarning;

pub(super) const DROPS_UNDECIDED: &str = "undecided = \"drop\" drops the first packets of every \
    flow that a rule may match later, so no TCP connection of such a flow can begin; write \
    undecided = \"pass\"";

/// Warns of rules that can never match, as far as a rule alone, or together with one before it,
/// shows.
pub(super) fn never_matching(rules: &[Rule]) -> Vec<RulesWarning> {
    let warning = |(place, rule): (usize, &Rule)| {
        let before = || rules[..place].iter().find(|other| other.covers(rule));
        let why = if let Some(why) = rule.when.contradiction() {
            format!("{why}; remove the rule, or one of the conditions")
        } else if rule.is_all_exceptions() {
            "its exceptions cover all that it matches; remove the rule, or `except`".to_owned()
        } else if let Some(other) = before() {
            format!(
                "rule `{}` in line {} comes first and matches all flows of this rule; move this \
                 rule before that one, or remove this rule",
                other.name, other.line
            )
        } else if let Some(other) = rules[..place].iter().find(|it| it.takes_sure(rule)) {
            return Some(RulesWarning {
                line: rule.line,
                what: format!(
                    "rule `{}` matches only flows that are recognised with less than \
                     `min_confidence`: rule `{}` in line {} comes first and drops the others; move \
                     this rule before that one",
                    rule.name, other.name, other.line
                ),
            });
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
    /// Whether this rule matches everything that the other one matches. If this rule drops by
    /// application and the other passes, the other also matches with less confidence, so it is not
    /// covered.
    fn covers(&self, other: &Self) -> bool {
        self.covers_if_sure(other) && !self.asks_for_more_than(other)
    }

    /// Whether this rule matches everything that the other one matches, if confidence is ignored.
    fn covers_if_sure(&self, other: &Self) -> bool {
        self.except.is_none() && self.when.cover(&other.when)
    }

    /// Whether this rule leaves the other only flows recognised with too little confidence,
    /// although the other names a subset of its flows. It was probably meant as an exception that
    /// comes first. A rule with the same names may be intended for exactly these flows.
    fn takes_sure(&self, other: &Self) -> bool {
        self.covers_if_sure(other) && !other.when.cover(&self.when)
    }

    fn asks_for_more_than(&self, other: &Self) -> bool {
        self.action == Action::Drop && other.action == Action::Pass && self.when.ask_for_names()
    }

    /// Whether the exceptions cover all that the rule matches. In a rule that passes, an exception
    /// by application needs confidence, so some flows remain.
    fn is_all_exceptions(&self) -> bool {
        let is_all = |except: &Conditions| {
            let asks_for_more = self.action == Action::Pass && except.ask_for_names();
            !asks_for_more && except.cover(&self.when)
        };
        self.except.as_ref().is_some_and(is_all)
    }
}
