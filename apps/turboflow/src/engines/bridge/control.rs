// SPDX-License-Identifier: Apache-2.0
//! What the threads of a bridge share: the rules in force, those that replace them, and what each
//! rule did.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turboflow_bridge::{Action, RuleId, Rules};
use turboflow_record::RuleNames;

/// What a rule did; number 0 is what no rule matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleCount {
    /// Its name; empty for none.
    pub(crate) rule: String,
    /// `pass`, `drop` or, in a dry run, `would_drop`.
    pub(crate) action: &'static str,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// Shared by the thread that decides, the one that counts, and the one that reads rules again.
#[derive(Debug, Default)]
pub(crate) struct Control {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rules: Option<Arc<Rules>>,
    /// Rules that the thread that decides has not taken yet.
    next: Option<Arc<Rules>>,
    is_dry_run: bool,
    /// Packets and bytes by number of rule and by what became of them.
    counts: Vec<CountOfRule>,
}

/// What the engine counted of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CountOfRule {
    pub(crate) number: u16,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole at every moment at which a panic could occur.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rules are in force from the start.
    pub(super) fn begin(&self, rules: Arc<Rules>, names: &RuleNames, is_dry_run: bool) {
        name_all(&rules, names);
        let mut state = self.lock();
        state.rules = Some(rules);
        state.is_dry_run = is_dry_run;
    }

    /// The rules in force, also those that are to be.
    pub(super) fn rules(&self) -> Option<Arc<Rules>> {
        self.lock().rules.clone()
    }

    /// Other rules are to be in force.
    pub(super) fn replace(&self, rules: Arc<Rules>, names: &RuleNames) {
        // Records may have their numbers as soon as they are in force.
        name_all(&rules, names);
        let mut state = self.lock();
        state.rules = Some(Arc::clone(&rules));
        state.next = Some(rules);
    }

    /// The rules that are to be in force from now on, if there are others.
    pub(super) fn take_next(&self) -> Option<Arc<Rules>> {
        self.lock().next.take()
    }

    /// Whether everything is forwarded.
    pub(super) fn is_dry_run(&self) -> bool {
        self.lock().is_dry_run
    }

    /// What the engine has counted of each rule so far.
    pub(super) fn count(&self, counts: Vec<CountOfRule>) {
        self.lock().counts = counts;
    }

    /// What each rule did, in the order of the rules; those that are gone last. Rules that did
    /// nothing are there, too.
    pub(crate) fn by_rule(&self) -> Vec<RuleCount> {
        let state = self.lock();
        let Some(rules) = &state.rules else {
            return Vec::new();
        };
        let drops = match state.is_dry_run {
            true => "would_drop",
            false => "drop",
        };
        let of = |number: u16| {
            let found = state.counts.iter().find(|count| count.number == number);
            found.copied().unwrap_or_default()
        };
        let counted = |name: &str, id: RuleId, action: Action| {
            let CountOfRule { packets, bytes, .. } = of(id.number());
            RuleCount {
                rule: name.to_owned(),
                action: match action {
                    Action::Pass => "pass",
                    Action::Drop => drops,
                },
                packets,
                bytes,
            }
        };
        let all = rules.rules().iter();
        let mut lines: Vec<_> = all
            .map(|rule| counted(rule.name(), rule.id(), rule.action()))
            .collect();
        let is_gone = |id: RuleId| rules.rules().iter().all(|rule| rule.id() != id);
        let gone = rules.names().filter(|(id, _)| is_gone(*id));
        lines.extend(gone.map(|(id, name)| RuleCount {
            action: "gone",
            ..counted(name, id, Action::Pass)
        }));
        lines
    }
}

fn name_all(rules: &Rules, names: &RuleNames) {
    for (id, name) in rules.names() {
        names.set(id.number(), name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "[[rule]]\nname = \"web\"\nport = [80]\naction = \"drop\"\n\
        [[rule]]\nname = \"dns\"\nport = [53]\naction = \"pass\"\n";
    const ONE: &str = "[[rule]]\nname = \"dns\"\nport = [53]\naction = \"drop\"\n";

    #[test]
    fn counts_stay_with_their_rules_when_others_replace_them() {
        let (control, names) = (Control::default(), RuleNames::default());
        assert_eq!(control.by_rule(), []);
        let first = Arc::new(Rules::parse(TWO, None, None).unwrap());
        control.begin(Arc::clone(&first), &names, true);
        let of = |number, packets| CountOfRule {
            number,
            packets,
            bytes: packets * 100,
        };
        control.count(vec![of(1, 7), of(2, 3), of(9, 1)]);
        let line = |rule: &str, action, packets| RuleCount {
            rule: rule.to_owned(),
            action,
            packets,
            bytes: packets * 100,
        };
        assert_eq!(
            control.by_rule(),
            [line("web", "would_drop", 7), line("dns", "pass", 3)]
        );
        assert!(control.take_next().is_none());
        let next = Arc::new(Rules::parse(ONE, None, Some(&first)).unwrap());
        control.replace(next, &names);
        assert_eq!(
            control.by_rule(),
            [line("dns", "would_drop", 3), line("web", "gone", 7)]
        );
        assert!(control.take_next().is_some() && control.take_next().is_none());
        assert_eq!(control.rules().unwrap().rules().len(), 1);
        assert!(control.is_dry_run());
    }
}
