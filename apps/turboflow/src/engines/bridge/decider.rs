// SPDX-License-Identifier: Apache-2.0
//! Decides flows by rules: at the first packet if headers are enough, otherwise by inspection.
//! Decides again when the application changes or when new rules come into force.

use std::sync::Arc;
use std::time::{Duration, Instant};

use turboflow_bridge::{
    Action, Application, Decision as Ruled, Learned, Policy, RuleId, Rules, Why,
};
use turboflow_engine_offload::{Decider, DeciderGone, Decision, FlowKey, Tapped, Verdict};
use turboflow_inspect::{FlowKey as InspectedKey, InspectError, Text, Verdict as Found};
use turboflow_packet::{Parser, ParserConfig};
use turboflow_record::{FiveTuple, TCP_ACK, TCP_SYN, Texts};
use turboflow_run::InspectionConfig;

use super::control::Control;
use crate::engines::offload::inspects::{Inspecting, TAP_BYTES, frame_of, in_its_vlan};
use crate::log::say;
use crate::units::{counted, grouped};

/// Decides flows by rules.
pub(super) struct Polices {
    policy: Policy<FlowKey>,
    inspector: Option<Inspector>,
    parser: Parser,
    control: Arc<Control>,
    /// Decisions changed by new rules, still to be sent to the table.
    changed: Vec<(FlowKey, Ruled)>,
    /// Rules of decided flows, still to be counted.
    decided: Vec<u16>,
    /// New rules, until all rows of the table follow them.
    reloaded: Option<Reloaded>,
}

/// Reread rules, and how much they changed.
struct Reloaded {
    rules: Arc<Rules>,
    start: Instant,
    decided_in: Duration,
    flows: usize,
    changed: usize,
}

/// The inspection, and the texts of the names that it found.
struct Inspector {
    inspecting: Inspecting,
    texts: Arc<Texts>,
}

impl Polices {
    /// Starts the inspector's process, if `inspection` is given. Remembers at most `flows` flows.
    pub(super) fn start(
        rules: Arc<Rules>,
        inspection: Option<&InspectionConfig>,
        control: Arc<Control>,
        flows: usize,
    ) -> Result<Self, InspectError> {
        Ok(Self {
            policy: Policy::new(rules, flows),
            inspector: inspection.map(Inspector::start).transpose()?,
            parser: Parser::new(ParserConfig::default()),
            control,
            changed: Vec::new(),
            decided: Vec::new(),
            reloaded: None,
        })
    }

    /// The answer for the table. A flow that no rule decides stays under inspection while there is
    /// more to learn for its records, provided that undecided packets pass anyway.
    fn answer(&self, ruled: Ruled, is_looked_at: bool) -> Decision {
        let is_passed_undecided = self.policy.rules().undecided() == Action::Pass;
        let waits = is_looked_at && is_passed_undecided && is_passing(ruled);
        if waits || ruled.why == Why::Undecided {
            return Decision::Undecided;
        }
        let verdict = verdict(ruled);
        match ruled.why {
            Why::Unknown => Decision::GaveUp(verdict),
            _ => Decision::Decided(verdict),
        }
    }

    /// Counts a flow for which this decision is now in force.
    fn count(&mut self, ruled: Ruled) {
        self.decided.extend(ruled.rule.map(RuleId::number));
    }

    /// Without inspection, only headers can decide.
    fn decide_by_headers(&mut self, tapped: &Tapped<'_>) -> Decision {
        let words = tapped.key.directed(tapped.is_reversed);
        let Some(tuple) = FiveTuple::of_words(words) else {
            return Decision::Undecided;
        };
        let before = self.policy.decision(&tapped.key);
        let ruled = self.policy.begin(tapped.key, tuple, false);
        if before != Some(ruled) {
            self.count(ruled);
        }
        self.answer(ruled, false)
    }

    /// Takes over new rules, if there are any, and decides all known flows again.
    fn take_rules(&mut self) {
        let Some(rules) = self.control.take_next() else {
            return;
        };
        #[allow(clippy::disallowed_methods, reason = "how long it takes is told")]
        let start = Instant::now();
        // Flows that no rule decides may have no row. They need one if undecided flows are dropped.
        let is_strict = rules.undecided() == Action::Drop;
        let was_strict = self.policy.rules().undecided() == Action::Drop;
        let (changed, mut others) = (&mut self.changed, 0);
        let flows = self
            .policy
            .replace(Arc::clone(&rules), |key, ruled, is_other| {
                others += usize::from(is_other);
                if is_other || (is_strict && !was_strict && is_passing(ruled)) {
                    changed.push((key, ruled));
                }
            });
        if !is_strict {
            self.control.act_by(&rules);
        }
        self.reloaded = Some(Reloaded {
            rules,
            start,
            decided_in: start.elapsed(),
            flows,
            changed: others,
        });
    }

    /// Ends a change of rules, when all rows follow the new ones.
    fn end_reload(&mut self) {
        let Some(reloaded) = self.reloaded.take() else {
            return;
        };
        self.control.act_by(&reloaded.rules);
        let ms = |took: Duration| took.as_secs_f64() * 1e3;
        let took = ms(reloaded.start.elapsed());
        say!(Info RulesInForce, flows = reloaded.flows, changed = reloaded.changed, took_ms = took;
            "the new rules are in force: {} decided again in {:.1} ms, {} with another result; all \
             changes were in the table after {took:.1} ms",
            counted(reloaded.flows as u64, "open flow"),
            ms(reloaded.decided_in),
            grouped(reloaded.changed as u64));
    }

    /// Warns when a problem with the traffic begins.
    fn look_at_ports(&self, now_ns: u64) {
        let Some(seen) = self.control.look(now_ns) else {
            return;
        };
        let ports = self.control.port_names();
        for lost in seen.lost {
            say!(Warning FramesLost, frames = lost.frames();
                "{}; {}", lost.in_words(&ports), lost.mend(&ports));
        }
        if let Some(frames) = seen.echoes {
            say!(Warning FramesComeBack, frames = frames;
                "{} came in at both ports within a second: there is a path beside the bridge, so \
                 these frames loop; look for a second link between the two sides of the bridge",
                counted(frames, "broadcast or multicast frame"));
        }
    }

    /// Passes on what inspection has found since the last call.
    fn tell_found(&mut self, tell: &mut dyn FnMut(FlowKey, Decision)) {
        let Some(mut inspector) = self.inspector.take() else {
            return;
        };
        for (key, found) in inspector.inspecting.inspection.take_told() {
            let Some(flow) = inspector.inspecting.pending.get(&key) else {
                continue;
            };
            if let Some(ruled) = self.policy.learn(flow, inspector.learned(&found)) {
                self.count(ruled);
                tell(*flow, self.answer(ruled, true));
            }
        }
        for (flow, _) in inspector.inspecting.take_ended() {
            let changed = self.policy.inspection_ended(&flow);
            changed.into_iter().for_each(|ruled| self.count(ruled));
            // A flow that waited only for its names gets its decision now.
            let waited = |ruled: &Ruled| self.answer(*ruled, true) == Decision::Undecided;
            if let Some(ruled) = changed.or_else(|| self.policy.decision(&flow).filter(waited)) {
                tell(flow, self.answer(ruled, false));
            }
        }
        self.inspector = Some(inspector);
    }
}

/// Whether a flow passes because no rule decides it.
fn is_passing(ruled: Ruled) -> bool {
    ruled.action == Action::Pass && ruled.rule.is_none() && ruled.why != Why::Undecided
}

/// The verdict for the table. In a dry run, the kernel's program drops nothing.
fn verdict(ruled: Ruled) -> Verdict {
    Verdict {
        action: match ruled.action {
            Action::Drop => turboflow_engine_offload::Action::Drop,
            Action::Pass => turboflow_engine_offload::Action::Redirect,
        },
        rule: ruled.rule_number(),
    }
}

impl Inspector {
    fn start(config: &InspectionConfig) -> Result<Self, InspectError> {
        Ok(Self {
            inspecting: Inspecting::start(config, true)?,
            texts: Arc::clone(&config.texts),
        })
    }

    fn learned(&self, found: &Found) -> Learned {
        let name = found.text(Text::ServerName);
        Learned {
            progress: found.progress,
            application: Some(Application {
                number: found.application,
                category: found.category,
                confidence: found.confidence,
            }),
            server_name: name.and_then(|name| self.texts.resolve(name)),
            risk: found.risk,
        }
    }
}

impl Decider for Polices {
    fn snap_bytes(&self) -> u32 {
        match self.inspector {
            Some(_) => TAP_BYTES,
            None => 0,
        }
    }

    fn decide(&mut self, tapped: &Tapped<'_>) -> Result<Decision, DeciderGone> {
        if self.inspector.is_none() {
            return Ok(self.decide_by_headers(tapped));
        }
        let frame = frame_of(tapped);
        let Ok(packet) = self.parser.parse(&frame) else {
            return Ok(Decision::Undecided);
        };
        let packet = in_its_vlan(packet, tapped.key);
        let parser = &self.parser;
        // Later fragments have no transport header to inspect.
        let has_payload = parser.ip_datagram(&frame).is_some();
        let key = tapped.key;
        let is_inspected = has_payload;
        let before = self.policy.decision(&key);
        let is_decided = before.is_some_and(|ruled| ruled.why != Why::Undecided);
        if is_decided && packet.tcp_flags & (TCP_SYN | TCP_ACK) == TCP_SYN {
            // The row is gone: this is a new connection, and the old one's end was not seen.
            self.policy.connection_ended(&key);
        }
        let mut ruled = self.policy.begin(key, packet.tuple, is_inspected);
        let mut is_looked_at = false;
        // If a rule has decided by headers, nothing is left to inspect.
        if ruled.why != Why::Rule
            && is_inspected
            && let Some(inspector) = &mut self.inspector
        {
            let Inspecting {
                inspection,
                pending,
                ..
            } = &mut inspector.inspecting;
            inspection.offer(&packet, || parser.ip_datagram(&frame));
            let (inspected, _) = InspectedKey::of(&packet.tuple);
            match inspection.is_over(&inspected) {
                Some(false) => {
                    is_looked_at = true;
                    pending.insert(inspected, key);
                }
                // The inspection of this flow had ended before.
                Some(true) => {
                    pending.remove(&inspected);
                    let found = inspection.verdict(&packet.tuple, packet.timestamp_ns);
                    let learned = found.map(|found| inspector.learned(&found));
                    let changed = learned.and_then(|its| self.policy.learn(&key, its));
                    let ended = self.policy.inspection_ended(&key);
                    ruled = ended.or(changed).unwrap_or(ruled);
                }
                None => ruled = self.policy.inspection_ended(&key).unwrap_or(ruled),
            }
        }
        if before != Some(ruled) {
            self.count(ruled);
        }
        Ok(self.answer(ruled, is_looked_at))
    }

    fn decided_since(
        &mut self,
        now_ns: u64,
        tell: &mut dyn FnMut(FlowKey, Decision),
    ) -> Result<(), DeciderGone> {
        self.look_at_ports(now_ns);
        self.take_rules();
        for (key, ruled) in std::mem::take(&mut self.changed) {
            self.count(ruled);
            tell(
                key,
                match self.answer(ruled, false) {
                    Decision::Undecided => Decision::Undecided,
                    _ => Decision::Changed(verdict(ruled)),
                },
            );
        }
        if let Some(inspector) = &mut self.inspector {
            inspector.inspecting.poll(now_ns);
            inspector.inspecting.count();
            let is_gone = inspector.inspecting.inspection.process_id().is_none();
            self.control.inspector_is_gone(is_gone);
        }
        self.tell_found(tell);
        if !self.decided.is_empty() {
            self.control.count_flows(self.decided.drain(..));
        }
        Ok(())
    }

    fn carried_out(&mut self) {
        self.end_reload();
    }

    fn connection_ended(&mut self, key: FlowKey, time_ns: u64) {
        self.policy.connection_ended(&key);
        if let Some(inspector) = &mut self.inspector {
            inspector.inspecting.connection_ended(key, time_ns);
        }
    }

    fn row_ended(&mut self, key: FlowKey) {
        self.policy.end(&key);
    }

    fn finish(&mut self, now_ns: u64) {
        if let Some(inspector) = &mut self.inspector {
            inspector.inspecting.finish(now_ns);
        }
    }
}
