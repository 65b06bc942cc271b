// SPDX-License-Identifier: Apache-2.0
//! Decides about flows by inspection of their first packets: a flow passes as soon as its
//! application and names are known, or no more is to be learned. A bridge has the same inspection
//! behind its rules.

use std::collections::HashMap;
use std::sync::Arc;

use turboflow_engine_offload::{Decider, DeciderGone, Decision, FlowKey, Tapped, Verdict};
use turboflow_engine_xdp::MAX_TAP_BYTES;
use turboflow_inspect::{FlowKey as InspectedKey, InspectConfig, InspectError, Inspection};
use turboflow_packet::{Frame, LinkType, Parser, ParserConfig};
use turboflow_record::{FiveTuple, Packet, TCP_RST};
use turboflow_run::{InspectedElsewhere, InspectionConfig};

/// Bytes of a frame that are looked at.
pub(in crate::engines) const TAP_BYTES: u32 = MAX_TAP_BYTES;
/// How often guesses about undecided flows are asked for: records of short flows leave with them.
const SETTLE_NS: u64 = 50_000_000;

type Intern = Box<dyn Fn(&[u8]) -> u64 + Send>;

/// The inspection, and the flows that are under it.
pub(in crate::engines) struct Inspecting {
    pub(in crate::engines) inspection: Inspection<Intern>,
    /// Their keys in the table.
    pub(in crate::engines) pending: HashMap<InspectedKey, FlowKey>,
    shared: Arc<InspectedElsewhere>,
    settled_ns: u64,
}

impl Inspecting {
    /// Starts the inspector's process. The ends of inspections are told, and what is found out
    /// before them if `tells_verdicts`.
    pub(in crate::engines) fn start(
        config: &InspectionConfig,
        tells_verdicts: bool,
    ) -> Result<Self, InspectError> {
        let texts = Arc::clone(&config.texts);
        let intern: Intern = Box::new(move |text| texts.intern_bytes(text));
        let limits = InspectConfig {
            tells_ends: true,
            tells_verdicts,
            ..config.limits.clone()
        };
        let inspection = Inspection::start(limits, intern)?;
        config.elsewhere.begin(inspection.verdicts());
        Ok(Self {
            inspection,
            pending: HashMap::new(),
            shared: Arc::clone(&config.elsewhere),
            settled_ns: 0,
        })
    }

    /// Takes what the inspector has said.
    pub(in crate::engines) fn poll(&mut self, now_ns: u64) {
        if now_ns.abs_diff(self.settled_ns) >= SETTLE_NS {
            self.settled_ns = now_ns;
            self.inspection.settle(now_ns);
        } else {
            self.inspection.poll(now_ns);
        }
    }

    /// Shows the counters to the run.
    pub(in crate::engines) fn count(&self) {
        self.shared.count(self.inspection.counters());
    }

    /// The flows whose inspection ended, and whether they were named.
    pub(in crate::engines) fn take_ended(&mut self) -> Vec<(FlowKey, bool)> {
        let mut ended = Vec::new();
        for (key, is_named) in self.inspection.take_ended() {
            // Another flow may have this key by now.
            if self.inspection.is_over(&key) == Some(false) {
                continue;
            }
            ended.extend(self.pending.remove(&key).map(|flow| (flow, is_named)));
        }
        ended
    }

    /// The connection of a flow ended: a SYN begins another flow.
    pub(in crate::engines) fn connection_ended(&mut self, key: FlowKey, time_ns: u64) {
        let Some(tuple) = FiveTuple::of_words(key.words()) else {
            return;
        };
        let packet = Packet {
            tuple,
            timestamp_ns: time_ns,
            ip_length_bytes: 0,
            frame_length_bytes: 0,
            tcp_flags: TCP_RST,
            ttl: 0,
            tos: 0,
            is_echo_reply: false,
        };
        // Nothing to look at.
        self.inspection.offer(&packet, || None);
    }

    /// No packet follows.
    pub(in crate::engines) fn finish(&mut self, now_ns: u64) {
        self.inspection.finish(now_ns);
        self.count();
    }
}

/// A packet that was parsed again from its copy, in the VLAN that its key has.
pub(in crate::engines) fn in_its_vlan(packet: Packet, key: FlowKey) -> Packet {
    let vlan = FiveTuple::of_words(key.words()).map_or(0, |tuple| tuple.vlan());
    Packet {
        tuple: packet.tuple.in_vlan(vlan),
        ..packet
    }
}

/// The frame of a tapped packet.
pub(in crate::engines) fn frame_of<'a>(tapped: &Tapped<'a>) -> Frame<'a> {
    Frame {
        bytes: tapped.frame,
        timestamp_ns: tapped.time_ns,
        wire_length_bytes: tapped.frame_bytes,
        link_type: LinkType::Ethernet,
        interface: 0,
    }
}

/// Flows are decided by an inspection.
pub(super) struct Inspects {
    inspecting: Inspecting,
    parser: Parser,
}

impl Inspects {
    /// Starts the inspector's process.
    pub(super) fn start(config: &InspectionConfig) -> Result<Self, InspectError> {
        Ok(Self {
            inspecting: Inspecting::start(config, false)?,
            parser: Parser::new(ParserConfig::default()),
        })
    }
}

impl Decider for Inspects {
    fn snap_bytes(&self) -> u32 {
        TAP_BYTES
    }

    fn decide(&mut self, tapped: &Tapped<'_>) -> Result<Decision, DeciderGone> {
        let frame = frame_of(tapped);
        let Ok(packet) = self.parser.parse(&frame) else {
            return Ok(Decision::Undecided);
        };
        let packet = in_its_vlan(packet, tapped.key);
        let parser = &self.parser;
        if parser.ip_datagram(&frame).is_none() {
            // A later fragment has nothing to look at.
            return Ok(Decision::Undecided);
        }
        let Inspecting {
            inspection,
            pending,
            ..
        } = &mut self.inspecting;
        inspection.offer(&packet, || parser.ip_datagram(&frame));
        let (key, _) = InspectedKey::of(&packet.tuple);
        match inspection.is_over(&key) {
            Some(true) => {
                pending.remove(&key);
                return Ok(Decision::Decided(Verdict::PASS));
            }
            Some(false) => {
                pending.insert(key, tapped.key);
            }
            // Of a flow that is not under inspection, no end is told.
            None => {}
        }
        Ok(Decision::Undecided)
    }

    fn decided_since(
        &mut self,
        now_ns: u64,
        tell: &mut dyn FnMut(FlowKey, Decision),
    ) -> Result<(), DeciderGone> {
        self.inspecting.poll(now_ns);
        for (flow, is_named) in self.inspecting.take_ended() {
            let decision = match is_named {
                true => Decision::Decided(Verdict::PASS),
                false => Decision::GaveUp(Verdict::PASS),
            };
            tell(flow, decision);
        }
        self.inspecting.count();
        Ok(())
    }

    fn connection_ended(&mut self, key: FlowKey, time_ns: u64) {
        self.inspecting.connection_ended(key, time_ns);
    }

    fn finish(&mut self, now_ns: u64) {
        self.inspecting.finish(now_ns);
    }
}
