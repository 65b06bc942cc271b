// SPDX-License-Identifier: Apache-2.0
//! State that the threads of a bridge share: the rules in force, the rules to replace them, and the
//! counters of each rule.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turboflow_bridge::{Action, RuleId, Rules};
use turboflow_engine_xdp::{BridgeAction, BridgeActions, RuleCounter};
use turboflow_record::RuleNames;

use super::watch::{Seen, Watch};
use crate::bridge::RuleCount;

/// Shared by three threads: one decides, one counts, and one rereads the rules.
#[derive(Default)]
pub(crate) struct Control {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rules: Option<Arc<Rules>>,
    /// Rules that the deciding thread has not taken over yet.
    next: Option<Arc<Rules>>,
    is_dry_run: bool,
    /// Whether the inspector's process has died and waits for its restart.
    is_inspector_gone: bool,
    /// Decided flows, by rule number.
    flows: BTreeMap<u16, u64>,
    /// Reads the packet counters of a rule.
    packets: Option<RuleCounter>,
    /// Sets the actions for packets without a verdict.
    actions: Option<BridgeActions>,
    watch: Watch,
    ports: [String; 2],
    /// What forwards after the bridge has ended, in words.
    afterwards: String,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is consistent wherever a panic could occur.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the rules that are in force from the start.
    pub(super) fn begin(&self, rules: Arc<Rules>, names: &RuleNames, is_dry_run: bool) {
        name_all(&rules, names);
        let mut state = self.lock();
        state.rules = Some(rules);
        state.is_dry_run = is_dry_run;
    }

    /// The newest rules, even if they are not in force yet.
    pub(super) fn rules(&self) -> Option<Arc<Rules>> {
        self.lock().rules.clone()
    }

    /// Schedules rules to replace those in force.
    pub(super) fn replace(&self, rules: Arc<Rules>, names: &RuleNames) {
        // Records may contain the new numbers as soon as the rules are in force.
        name_all(&rules, names);
        let mut state = self.lock();
        state.rules = Some(Arc::clone(&rules));
        state.next = Some(rules);
    }

    /// Takes the rules that are now to replace those in force, if there are any.
    pub(super) fn take_next(&self) -> Option<Arc<Rules>> {
        self.lock().next.take()
    }

    /// Whether the inspector's process has died.
    pub(super) fn is_inspector_gone(&self) -> bool {
        self.lock().is_inspector_gone
    }

    /// Notes whether the inspector's process has died.
    pub(super) fn inspector_is_gone(&self, is_gone: bool) {
        self.lock().is_inspector_gone = is_gone;
    }

    /// Sets the source of packet counters.
    pub(super) fn count_packets_by(&self, counter: RuleCounter) {
        self.lock().packets = Some(counter);
    }

    /// Sets where the actions for packets without a verdict are written.
    pub(super) fn actions_are(&self, actions: BridgeActions) {
        self.lock().actions = Some(actions);
    }

    /// Applies these rules' actions to packets without a verdict, from now on.
    pub(super) fn act_by(&self, rules: &Rules) {
        if let Some(actions) = &self.lock().actions {
            let [undecided, other] = actions_of(rules);
            actions.set(undecided, other);
        }
    }

    /// Checks the ports' counters once a second. Returns what to warn of.
    pub(super) fn look(&self, now_ns: u64) -> Option<Seen> {
        let packets = {
            let mut state = self.lock();
            let is_due = state.watch.is_due(now_ns);
            is_due.then(|| state.packets.clone()).flatten()?
        };
        // Read the counters without the lock, as in `by_rule`.
        let ports = packets.ports().ok()?;
        self.lock().watch.look(&ports)
    }

    /// Sets the names of the ports, and the words for what forwards after the bridge has ended.
    pub(super) fn ports_are(&self, ports: [String; 2], afterwards: String) {
        let mut state = self.lock();
        (state.ports, state.afterwards) = (ports, afterwards);
    }

    /// The names of the ports.
    pub(super) fn port_names(&self) -> [String; 2] {
        self.lock().ports.clone()
    }

    /// What forwards after the bridge has ended, in words.
    pub(super) fn afterwards(&self) -> String {
        self.lock().afterwards.clone()
    }

    /// Current problems of the traffic, in words.
    pub(super) fn troubles(&self) -> Vec<String> {
        self.lock().watch.troubles()
    }

    /// Counts flows by the numbers of the rules that decided them.
    pub(super) fn count_flows(&self, by: impl Iterator<Item = u16>) {
        let mut state = self.lock();
        by.for_each(|rule| *state.flows.entry(rule).or_default() += 1);
    }

    /// The counters of each rule, in the order of the rules; removed rules come last. Rules that
    /// did nothing are included.
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
        // Query the kernel without holding the lock, which other threads need meanwhile.
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
        // Of a removed rule, report the packets that it dropped: they are the missing ones.
        lines.extend(gone.map(|(id, name)| RuleCount {
            action: "gone",
            ..counted(name, id, Action::Drop)
        }));
        lines
    }
}

/// Packets and IP bytes that a rule passed or dropped; `None` if the counter cannot be read.
fn packets_of(counter: &RuleCounter, rule: u16, action: Action) -> Option<(u64, u64)> {
    let count = counter.count(rule).ok()?;
    Some(match action {
        Action::Pass => (count.packets_passed, count.bytes_passed),
        Action::Drop => (count.packets_dropped, count.bytes_dropped),
    })
}

/// The actions for packets without a verdict: of TCP and UDP flows, and of all others.
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
