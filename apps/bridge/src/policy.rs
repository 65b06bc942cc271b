// SPDX-License-Identifier: Apache-2.0
//! Applies rules to open flows. What is known about each flow is kept, so that the flow can be
//! decided again when more is learned and when the rules are reloaded.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use turboflow_inspect::Progress;
use turboflow_record::FiveTuple;

use crate::{Application, Decision, Facts, Rules};

/// What inspection has found out about a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// How far inspection has come.
    pub progress: Progress,
    /// The application, as far as it is known.
    pub application: Option<Application>,
    /// The server name, if it was seen.
    pub server_name: Option<Arc<str>>,
    /// The risks that were seen.
    pub risk: u64,
}

/// The open flows, by keys of the caller, and the rules that decide about them.
///
/// Memory is bounded: above a limit, the flow that began first is forgotten. The data path keeps
/// applying the last decision about it, but reloaded rules no longer reach it.
#[derive(Debug)]
pub struct Policy<K> {
    rules: Arc<Rules>,
    flows: HashMap<K, OpenFlow>,
    /// Flows in the order in which they began, including some that are over.
    order: VecDeque<(K, u64)>,
    limit: usize,
    next_number: u64,
    forgotten: u64,
}

#[derive(Debug)]
struct OpenFlow {
    number: u64,
    tuple: FiveTuple,
    learned: Learned,
    in_force: Decision,
    /// Whether its connection has ended, so that the next first packet belongs to another flow.
    has_ended: bool,
}

impl OpenFlow {
    fn facts(&self) -> Facts<'_> {
        Facts {
            tuple: self.tuple,
            progress: self.learned.progress,
            application: self.learned.application,
            server_name: self.learned.server_name.as_deref(),
            risk: self.learned.risk,
        }
    }

    /// Decides again, and returns the decision if it has changed.
    fn decide(&mut self, rules: &Rules) -> Option<Decision> {
        let decision = rules.decide(&self.facts());
        let is_other = decision != self.in_force;
        self.in_force = decision;
        is_other.then_some(decision)
    }
}

impl<K: Copy + Eq + Hash> Policy<K> {
    /// An empty policy for at most `limit` flows.
    #[must_use]
    pub fn new(rules: Arc<Rules>, limit: usize) -> Self {
        Self {
            rules,
            flows: HashMap::new(),
            order: VecDeque::new(),
            limit: limit.max(1),
            next_number: 0,
            forgotten: 0,
        }
    }

    /// The rules in force.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Number of flows that are currently known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether no flow is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Number of flows that were forgotten while still open, because the limit was reached.
    #[must_use]
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The decision in force about a flow.
    #[must_use]
    pub fn decision(&self, key: &K) -> Option<Decision> {
        self.flows.get(key).map(|flow| flow.in_force)
    }

    /// Takes the first packet of a flow, with the initiator's address as the source of the 5-tuple.
    /// If the flow is not inspected, nothing more will be learned about it. A flow that is already
    /// known keeps its state.
    pub fn begin(&mut self, key: K, tuple: FiveTuple, is_inspected: bool) -> Decision {
        if let Some(flow) = self.flows.get(&key).filter(|flow| !flow.has_ended) {
            return flow.in_force;
        }
        if self.flows.len() >= self.limit && !self.flows.contains_key(&key) {
            self.forget_oldest();
        }
        let learned = Learned {
            progress: match is_inspected {
                true => Progress::Undecided,
                false => Progress::Complete,
            },
            ..Learned::default()
        };
        let facts = Facts {
            tuple,
            progress: learned.progress,
            application: None,
            server_name: None,
            risk: 0,
        };
        let in_force = self.rules.decide(&facts);
        let number = self.next_number;
        self.next_number += 1;
        self.order.push_back((key, number));
        let flow = OpenFlow {
            number,
            tuple,
            learned,
            in_force,
            has_ended: false,
        };
        self.flows.insert(key, flow);
        in_force
    }

    /// Takes new knowledge about a flow. Returns the decision if it has changed.
    pub fn learn(&mut self, key: &K, learned: Learned) -> Option<Decision> {
        let flow = self.flows.get_mut(key)?;
        // Results may still arrive after inspection has ended; they must not reopen it.
        let progress = learned.progress.max(flow.learned.progress);
        flow.learned = Learned {
            progress,
            ..learned
        };
        flow.decide(&self.rules)
    }

    /// Nothing more will be learned about the flow. Returns the decision if it has changed.
    pub fn inspection_ended(&mut self, key: &K) -> Option<Decision> {
        let flow = self.flows.get_mut(key)?;
        flow.learned.progress = Progress::Complete;
        flow.decide(&self.rules)
    }

    /// The connection of the flow has ended. Its last packets are still decided about. The next
    /// [`begin`](Self::begin) with this key starts another flow.
    pub fn connection_ended(&mut self, key: &K) {
        if let Some(flow) = self.flows.get_mut(key) {
            flow.has_ended = true;
        }
    }

    /// The flow is over, and nothing more is decided about it.
    pub fn end(&mut self, key: &K) {
        self.flows.remove(key);
        // Entries of ended flows must not pile up behind a flow that stays open.
        if self.order.len() > 2 * self.flows.len().max(self.limit) {
            let flows = &self.flows;
            let is_open = |(key, number): &(K, u64)| {
                flows.get(key).is_some_and(|flow| flow.number == *number)
            };
            self.order.retain(is_open);
        }
    }

    fn forget_oldest(&mut self) {
        while let Some((key, number)) = self.order.pop_front() {
            if self.flows.get(&key).is_some_and(|it| it.number == number) {
                self.flows.remove(&key);
                self.forgotten += 1;
                return;
            }
        }
    }

    /// Puts other rules in force. Calls `tell` for each flow with its decision and whether the
    /// decision has changed. Returns the number of flows.
    pub fn replace(&mut self, rules: Arc<Rules>, mut tell: impl FnMut(K, Decision, bool)) -> usize {
        self.rules = rules;
        for (key, flow) in &mut self.flows {
            let is_other = flow.decide(&self.rules).is_some();
            tell(*key, flow.in_force, is_other);
        }
        self.flows.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Why};
    use std::net::IpAddr;
    use turboflow_inspect::Confidence;
    use turboflow_record::ApplicationNames;

    fn names() -> ApplicationNames {
        ApplicationNames {
            applications: vec![
                (0, "Unknown".to_owned(), 0),
                (91, "TLS".to_owned(), 5),
                (133, "NetFlix".to_owned(), 17),
            ],
            ..ApplicationNames::default()
        }
    }

    fn rules(text: &str, before: Option<&Rules>) -> Arc<Rules> {
        Arc::new(Rules::parse(text, Some(&names()), before).unwrap())
    }

    fn tuple(last: u8) -> FiveTuple {
        let [from, to] = [[10, 0, 0, last], [192, 0, 2, 1]].map(IpAddr::from);
        FiveTuple::new(from, to, 1000, 443, 6)
    }

    fn known(number: u32) -> Learned {
        Learned {
            progress: Progress::Known,
            application: Some(Application {
                number,
                category: 17,
                confidence: Confidence::Payload,
            }),
            ..Learned::default()
        }
    }

    const NO_NETFLIX: &str =
        "[[rule]]\nname = \"no-netflix\"\napplication = [\"NetFlix\"]\naction = \"drop\"\n";

    #[test]
    fn a_flow_is_decided_when_its_application_is_known_and_anew_when_it_changes() {
        let mut policy = Policy::new(rules(NO_NETFLIX, None), 8);
        assert_eq!(policy.begin(1, tuple(1), true).why, Why::Undecided);
        assert_eq!(policy.learn(&1, known(91)), None, "it may be NetFlix still");
        let decision = policy.learn(&1, known(91 << 16 | 133)).unwrap();
        assert_eq!((decision.action, decision.rule_number()), (Action::Drop, 1));
        assert_eq!(policy.begin(1, tuple(1), true), decision);
        assert_eq!(policy.learn(&1, known(91 << 16 | 133)), None);
        // The flow that was recognised as NetFlix turns out to be something else.
        let decision = policy.learn(&1, known(91 << 16 | 7)).unwrap();
        assert_eq!(
            (decision.action, decision.why),
            (Action::Pass, Why::Default)
        );
        assert_eq!(policy.begin(2, tuple(2), true).why, Why::Undecided);
        let decision = policy.inspection_ended(&2).unwrap();
        assert_eq!(decision.why, Why::Unknown);
        assert_eq!(policy.begin(3, tuple(3), false).why, Why::Unknown);
        assert_eq!(policy.learn(&9, known(133)), None);
    }

    #[test]
    fn other_rules_reach_every_open_flow() {
        let first = rules(NO_NETFLIX, None);
        let mut policy = Policy::new(Arc::clone(&first), 100);
        for key in 0..10 {
            policy.begin(key, tuple(key), true);
            policy.learn(&key, known(91 << 16 | if key < 4 { 133 } else { 7 }));
        }
        policy.end(&0);
        policy.connection_ended(&1);
        let next = rules(
            "[[rule]]\nname = \"host\"\nsrc = [\"10.0.0.7\"]\naction = \"drop\"\n",
            Some(&first),
        );
        let mut told = Vec::new();
        let decided = policy.replace(next, |key, decision, is_other| {
            told.extend(is_other.then_some((key, decision.action)));
        });
        told.sort_by_key(|(key, _)| *key);
        let (pass, drop) = (Action::Pass, Action::Drop);
        assert_eq!(told, [(1, pass), (2, pass), (3, pass), (7, drop)]);
        assert_eq!((decided, policy.len()), (9, 9));
        // Another connection with the same ports as one that ended.
        assert_eq!(policy.begin(1, tuple(7), true).action, drop);
        assert_eq!(policy.len(), 9);
    }

    #[test]
    fn memory_is_bounded() {
        let mut policy = Policy::new(rules(NO_NETFLIX, None), 4);
        for key in 0..100_u32 {
            policy.begin(key, tuple(key as u8), true);
            if key % 2 == 0 {
                policy.end(&key);
            }
        }
        assert!(policy.order.len() <= 8);
        assert_eq!((policy.len(), policy.forgotten()), (4, 46));
        assert!(policy.decision(&99).is_some() && policy.decision(&1).is_none());
        assert!(!policy.is_empty());
    }
}
