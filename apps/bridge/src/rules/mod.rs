// SPDX-License-Identifier: Apache-2.0
//! Decides which flows pass and which are dropped.
//!
//! Rules are ordered, and the first one that matches decides. If a rule depends on something that
//! is not known yet, it is *open*. A rule after an open one cannot decide: the flow stays undecided
//! until more is known, or until inspection is complete and no rule is open any more.

mod conditions;
mod decision;
mod facts;
mod fault;
mod file;
mod index;
mod reach;
mod read;
mod resolve;
mod sets;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use turboflow_inspect::Confidence;
use turboflow_record::ApplicationNames;

use conditions::Conditions;
pub use decision::{Action, Decision, FailMode, RuleId, Why};
use facts::Truth;
pub use facts::{Application, Facts};
pub use fault::{MAX_NAME_BYTES, MAX_RULES, RulesError, RulesFault, RulesWarning};
use index::Index;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    id: RuleId,
    name: String,
    action: Action,
    when: Conditions,
    except: Option<Conditions>,
    line: usize,
}

impl Rule {
    /// Its number.
    #[must_use]
    pub const fn id(&self) -> RuleId {
        self.id
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What happens to flows that it matches.
    #[must_use]
    pub const fn action(&self) -> Action {
        self.action
    }

    /// Its line in the file, counted from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Whether the rule matches. An application that was recognised with too little confidence must
    /// not lead to a drop: neither by a condition of a rule that drops, nor by an exception from a
    /// rule that passes.
    fn matches(&self, facts: &Facts<'_>, floor: Confidence) -> Truth {
        let (when_floor, except_floor) = match self.action {
            Action::Drop => (floor, Confidence::Unknown),
            Action::Pass => (Confidence::Unknown, floor),
        };
        let when = self.when.hold(facts, when_floor);
        match &self.except {
            Some(except) if when != Truth::No => {
                when.min(except.hold(facts, except_floor).opposite())
            }
            _ => when,
        }
    }
}

/// The rules of a file.
#[derive(Clone, Debug)]
pub struct Rules {
    default: Action,
    undecided: Action,
    other: Action,
    min_confidence: Confidence,
    fail: FailMode,
    rules: Vec<Rule>,
    index: Index,
    /// The numbers of all rule names so far, including removed rules, because records refer to
    /// them.
    numbers: BTreeMap<String, RuleId>,
    warnings: Vec<RulesWarning>,
}

impl Rules {
    /// Parses rules. `names` are those of inspection; without them, rules can use only packet
    /// headers and server names. `before` are the rules that these replace: a rule that keeps its
    /// name keeps its number.
    ///
    /// # Errors
    /// The first error in the file, with its line and what to write instead.
    pub fn parse(
        text: &str,
        names: Option<&ApplicationNames>,
        before: Option<&Self>,
    ) -> Result<Self, RulesError> {
        read::read(text, names, before)
    }

    /// Decides about a flow, as far as is known now. Call it again when more is known: while the
    /// decision is [`Why::Undecided`], and later whenever the application changes.
    #[must_use]
    pub fn decide(&self, facts: &Facts<'_>) -> Decision {
        let candidates = self.index.candidates(facts);
        self.first_of(candidates.map(|place| &self.rules[place]), facts)
    }

    fn first_of<'r>(&self, rules: impl Iterator<Item = &'r Rule>, facts: &Facts<'_>) -> Decision {
        for rule in rules {
            match rule.matches(facts, self.min_confidence) {
                Truth::No => {}
                Truth::Open => return Decision::without_rule(self.undecided, Why::Undecided),
                Truth::Yes => return Decision::by_rule(rule.action, rule.id),
            }
        }
        let is_unknown = facts.is_complete() && facts.application().number == 0;
        match facts.tuple.protocol() {
            TCP | UDP if is_unknown => Decision::without_rule(self.default, Why::Unknown),
            TCP | UDP => Decision::without_rule(self.default, Why::Default),
            _ => Decision::without_rule(self.other, Why::Other),
        }
    }

    /// Decides open flows again after the rules were reloaded. Each flow comes with what is known
    /// about it and the decision in force. Yields the flows whose decision has changed.
    pub fn redecide<'f, K>(
        &self,
        flows: impl IntoIterator<Item = (K, Facts<'f>, Decision)>,
    ) -> impl Iterator<Item = (K, Decision)> {
        flows.into_iter().filter_map(|(flow, facts, in_force)| {
            let decision = self.decide(&facts);
            (decision != in_force).then_some((flow, decision))
        })
    }

    /// The rules in order.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The names and numbers of all rules so far, including rules of earlier files.
    pub fn names(&self) -> impl Iterator<Item = (RuleId, &str)> {
        let numbers = self.numbers.iter();
        numbers.map(|(name, number)| (*number, name.as_str()))
    }

    /// The name of a rule, which may be of an earlier file.
    #[must_use]
    pub fn name(&self, rule: RuleId) -> Option<&str> {
        let mut numbers = self.numbers.iter();
        let found = numbers.find(|(_, its)| **its == rule);
        found.map(|(name, _)| name.as_str())
    }

    /// What happens to packets of flows that are not decided yet.
    #[must_use]
    pub const fn undecided(&self) -> Action {
        self.undecided
    }

    /// What happens to frames that belong to no flow: ARP, LLDP, other non-IP and malformed frames.
    #[must_use]
    pub const fn other(&self) -> Action {
        self.other
    }

    /// What forwards frames after the process has ended.
    #[must_use]
    pub const fn fail(&self) -> FailMode {
        self.fail
    }

    /// Settings that are valid but probably not intended.
    #[must_use]
    pub fn warnings(&self) -> &[RulesWarning] {
        &self.warnings
    }

    /// Whether a rule depends on results of inspection.
    #[must_use]
    pub fn need_inspection(&self) -> bool {
        let mut all = self.rules.iter();
        all.any(|rule| {
            let conditions = [Some(&rule.when), rule.except.as_ref()];
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|it| it.ask_for_names() || it.risk != 0 || !it.server_name.is_empty())
        })
    }
}
