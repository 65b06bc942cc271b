// SPDX-License-Identifier: Apache-2.0
//! What the threads of a bridge share: the rules in force, those that replace them, and what each
//! rule did.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turboflow_bridge::{Action, RuleId, Rules};
use turboflow_engine_xdp::{BridgeAction, BridgeActions, RuleCounter};
use turboflow_record::RuleNames;

use super::watch::{Seen, Watch};
use crate::bridge::RuleCount;

/// Shared by the thread that decides, the one that counts, and the one that reads rules again.
#[derive(Default)]
pub(crate) struct Control {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rules: Option<Arc<Rules>>,
    /// Rules that the thread that decides has not taken yet.
    next: Option<Arc<Rules>>,
    is_dry_run: bool,
    /// Whether the inspector's process is gone, and waits to be started again.
    is_inspector_gone: bool,
    /// Flows by number of rule.
    flows: BTreeMap<u16, u64>,
    /// Counts the packets of a rule.
    packets: Option<RuleCounter>,
    /// What becomes of packets without a verdict.
    actions: Option<BridgeActions>,
    watch: Watch,
    ports: [String; 2],
    /// What forwards when the bridge has ended, in words.
    afterwards: String,
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

    /// Whether the inspector's process is gone.
    pub(super) fn is_inspector_gone(&self) -> bool {
        self.lock().is_inspector_gone
    }

    /// The inspector's process is gone, or there again.
    pub(super) fn inspector_is_gone(&self, is_gone: bool) {
        self.lock().is_inspector_gone = is_gone;
    }

    /// Packets are counted there.
    pub(super) fn count_packets_by(&self, counter: RuleCounter) {
        self.lock().packets = Some(counter);
    }

    /// What becomes of packets without a verdict is written there.
    pub(super) fn actions_are(&self, actions: BridgeActions) {
        self.lock().actions = Some(actions);
    }

    /// Packets without a verdict are treated as these rules say, from now on.
    pub(super) fn act_by(&self, rules: &Rules) {
        if let Some(actions) = &self.lock().actions {
            let [undecided, other] = actions_of(rules);
            actions.set(undecided, other);
        }
    }

    /// Looks at the ports' counters once a second. Gives what to warn of.
    pub(super) fn look(&self, now_ns: u64) -> Option<Seen> {
        let packets = {
            let mut state = self.lock();
            let is_due = state.watch.is_due(now_ns);
            is_due.then(|| state.packets.clone()).flatten()?
        };
        // Without the lock, as in `by_rule`.
        let ports = packets.ports().ok()?;
        self.lock().watch.look(&ports)
    }

    /// The names of the ports, and what forwards when the bridge has ended.
    pub(super) fn ports_are(&self, ports: [String; 2], afterwards: String) {
        let mut state = self.lock();
        (state.ports, state.afterwards) = (ports, afterwards);
    }

    /// The names of the ports.
    pub(super) fn port_names(&self) -> [String; 2] {
        self.lock().ports.clone()
    }

    /// What forwards when the bridge has ended, in words.
    pub(super) fn afterwards(&self) -> String {
        self.lock().afterwards.clone()
    }

    /// What is wrong with the traffic just now, in words.
    pub(super) fn troubles(&self) -> Vec<String> {
        self.lock().watch.troubles()
    }

    /// Flows were decided by the rules of these numbers.
    pub(super) fn count_flows(&self, by: impl Iterator<Item = u16>) {
        let mut state = self.lock();
        by.for_each(|rule| *state.flows.entry(rule).or_default() += 1);
    }

    /// What each rule did, in the order of the rules; those that are gone last. Rules that did
    /// nothing are there, too.
    pub(crate) fn by_rule(&self) -> Vec<RuleCount> {
        let (rules, flows, packets, is_dry_run) = {
            let state = self.lock();
            let Some(rules) = &state.rules else {
                return Vec::new();
            };
            let flows = state.flows.clone();
            (
                Arc::clone(rules),
                flows,
                state.packets.clone(),
                state.is_dry_run,
            )
        };
        // The kernel is asked without the lock, which other threads need meanwhile.
        let counted = |name: &str, id: RuleId, action: Action| RuleCount {
            rule: name.to_owned(),
            action: match action {
                Action::Pass => "pass",
                Action::Drop if is_dry_run => "would_drop",
                Action::Drop => "drop",
            },
            flows: flows.get(&id.number()).copied().unwrap_or(0),
            packets: packets
                .as_ref()
                .and_then(|counter| packets_of(counter, id.number(), action)),
        };
        let all = rules.rules().iter();
        let mut lines: Vec<_> = all
            .map(|rule| counted(rule.name(), rule.id(), rule.action()))
            .collect();
        let is_gone = |id: RuleId| rules.rules().iter().all(|rule| rule.id() != id);
        let gone = rules.names().filter(|(id, _)| is_gone(*id));
        // Of one that is gone, what it dropped is what is missing.
        lines.extend(gone.map(|(id, name)| RuleCount {
            action: "gone",
            ..counted(name, id, Action::Drop)
        }));
        lines
    }
}

/// Packets and IP bytes that a rule passed or dropped; `None` if the kernel does not tell.
fn packets_of(counter: &RuleCounter, rule: u16, action: Action) -> Option<(u64, u64)> {
    let count = counter.count(rule).ok()?;
    Some(match action {
        Action::Pass => (count.packets_passed, count.bytes_passed),
        Action::Drop => (count.packets_dropped, count.bytes_dropped),
    })
}

/// What the program does without a verdict: about TCP and UDP flows, and about all else.
pub(super) fn actions_of(rules: &Rules) -> [BridgeAction; 2] {
    [rules.undecided(), rules.other()].map(|action| match action {
        Action::Pass => BridgeAction::Pass,
        Action::Drop => BridgeAction::Drop,
    })
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
        control.count_flows([1, 2, 1, 9, 2, 1].into_iter());
        let line = |rule: &str, action, flows| RuleCount {
            rule: rule.to_owned(),
            action,
            flows,
            packets: None,
        };
        assert_eq!(
            control.by_rule(),
            [line("web", "would_drop", 3), line("dns", "pass", 2)]
        );
        assert!(control.take_next().is_none());
        let next = Arc::new(Rules::parse(ONE, None, Some(&first)).unwrap());
        control.replace(next, &names);
        assert_eq!(
            control.by_rule(),
            [line("dns", "would_drop", 2), line("web", "gone", 3)]
        );
        assert!(control.take_next().is_some() && control.take_next().is_none());
        assert_eq!(control.rules().unwrap().rules().len(), 1);
    }
}
