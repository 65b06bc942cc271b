// SPDX-License-Identifier: Apache-2.0
//! Decides flows by inspecting their first packets: a flow passes as soon as its application and
//! names are known, or nothing more can be learned. A bridge uses the same inspection in addition
//! to its rules.

use std::collections::HashMap;
use std::sync::Arc;

use turboflow_engine_offload::{Decider, DeciderGone, Decision, FlowKey, Tapped, Verdict};
use turboflow_engine_xdp::MAX_TAP_BYTES;
use turboflow_inspect::{FlowKey as InspectedKey, InspectConfig, InspectError, Inspection};
use turboflow_packet::{Frame, LinkType, Parser, ParserConfig};
use turboflow_record::{FiveTuple, Packet, TCP_RST};
use turboflow_run::{InspectedElsewhere, InspectionConfig};

/// Bytes of a frame that are copied for inspection.
pub(in crate::engines) const TAP_BYTES: u32 = MAX_TAP_BYTES;
/// Interval at which the inspector is asked for guesses about undecided flows, in nanoseconds, so
/// that records of short flows have an application.
const SETTLE_NS: u64 = 50_000_000;

type Intern = Box<dyn Fn(&[u8]) -> u64 + Send>;

/// The inspection, and the flows under inspection.
pub(in crate::engines) struct Inspecting {
    pub(in crate::engines) inspection: Inspection<Intern>,
    /// The key in the kernel's table of each flow under inspection.
    pub(in crate::engines) pending: HashMap<InspectedKey, FlowKey>,
    shared: Arc<InspectedElsewhere>,
    settled_ns: u64,
}

impl Inspecting {
    /// Starts the inspector's process. It reports when an inspection ends, and with
    /// `tells_verdicts` also what it finds before the end.
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

    /// Processes the inspector's messages.
    pub(in crate::engines) fn poll(&mut self, now_ns: u64) {
        if now_ns.abs_diff(self.settled_ns) >= SETTLE_NS {
            self.settled_ns = now_ns;
            self.inspection.settle(now_ns);
        } else {
            self.inspection.poll(now_ns);
        }
    }

    /// Publishes the counters to the run.
    pub(in crate::engines) fn count(&self) {
        self.shared.count(self.inspection.counters());
    }

    /// Takes the flows whose inspection has ended, each with whether it was named.
    pub(in crate::engines) fn take_ended(&mut self) -> Vec<(FlowKey, bool)> {
        let mut ended = Vec::new();
        for (key, is_named) in self.inspection.take_ended() {
            // Another flow may use this key by now.
            if self.inspection.is_over(&key) == Some(false) {
                continue;
            }
            ended.extend(self.pending.remove(&key).map(|flow| (flow, is_named)));
        }
        ended
    }

    /// Ends the inspection of a flow whose connection ended. A SYN then begins another flow.
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
        // The packet has no payload.
        self.inspection.offer(&packet, || None);
    }

    /// Ends all inspections, because no more packets follow.
    pub(in crate::engines) fn finish(&mut self, now_ns: u64) {
        self.inspection.finish(now_ns);
        self.count();
    }
}

/// The packet, parsed from its copy, with the VLAN that its key has.
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

/// Decides flows by inspection alone.
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
            // Later fragments have no transport header to inspect.
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
            // The end of a flow that is not under inspection is not reported.
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
