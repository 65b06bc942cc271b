// SPDX-License-Identifier: Apache-2.0
//! Decides about flows by inspection of their first packets: a flow passes as soon as its
//! application and names are known, or no more is to be learned.

use std::collections::HashMap;
use std::sync::Arc;

use turboflow_engine_offload::{Decider, DeciderGone, Decision, FlowKey, Tapped, Verdict};
use turboflow_engine_xdp::MAX_TAP_BYTES;
use turboflow_inspect::{FlowKey as InspectedKey, InspectConfig, InspectError, Inspection};
use turboflow_packet::{Frame, LinkType, Parser, ParserConfig};
use turboflow_record::{FiveTuple, Packet, TCP_RST};
use turboflow_run::{InspectedElsewhere, InspectionConfig};

/// Bytes of a frame that are looked at.
pub(super) const TAP_BYTES: u32 = MAX_TAP_BYTES;
/// How often guesses about undecided flows are asked for: records of short flows leave with them.
const SETTLE_NS: u64 = 50_000_000;

type Intern = Box<dyn Fn(&[u8]) -> u64 + Send>;

/// Flows are decided by an inspection.
pub(super) struct Inspects {
    inspection: Inspection<Intern>,
    parser: Parser,
    /// Flows under inspection, and their keys in the table.
    pending: HashMap<InspectedKey, FlowKey>,
    shared: Arc<InspectedElsewhere>,
    settled_ns: u64,
}

impl Inspects {
    /// Starts the inspector's process.
    pub(super) fn start(config: &InspectionConfig) -> Result<Self, InspectError> {
        let texts = Arc::clone(&config.texts);
        let intern: Intern = Box::new(move |text| texts.intern_bytes(text));
        let limits = InspectConfig {
            tells_ends: true,
            ..config.limits.clone()
        };
        let inspection = Inspection::start(limits, intern)?;
        config.elsewhere.begin(inspection.verdicts());
        Ok(Self {
            inspection,
            parser: Parser::new(ParserConfig::default()),
            pending: HashMap::new(),
            shared: Arc::clone(&config.elsewhere),
            settled_ns: 0,
        })
    }

    /// Tells the flows whose inspection ended.
    fn tell_ended(&mut self, tell: &mut dyn FnMut(FlowKey, Decision)) {
        for (key, is_named) in self.inspection.take_ended() {
            // Another flow may have this key by now.
            if self.inspection.is_over(&key) == Some(false) {
                continue;
            }
            if let Some(flow) = self.pending.remove(&key) {
                tell(
                    flow,
                    match is_named {
                        true => Decision::Decided(Verdict::PASS),
                        false => Decision::GaveUp(Verdict::PASS),
                    },
                );
            }
        }
    }
}

impl Decider for Inspects {
    fn snap_bytes(&self) -> u32 {
        TAP_BYTES
    }

    fn decide(&mut self, tapped: &Tapped<'_>) -> Result<Decision, DeciderGone> {
        let frame = Frame {
            bytes: tapped.frame,
            timestamp_ns: tapped.time_ns,
            wire_length_bytes: tapped.frame_bytes,
            link_type: LinkType::Ethernet,
            interface: 0,
        };
        let Ok(packet) = self.parser.parse(&frame) else {
            return Ok(Decision::Undecided);
        };
        let parser = &self.parser;
        if parser.ip_datagram(&frame).is_none() {
            // A later fragment has nothing to look at.
            return Ok(Decision::Undecided);
        }
        self.inspection
            .offer(&packet, || parser.ip_datagram(&frame));
        let (key, _) = InspectedKey::of(&packet.tuple);
        match self.inspection.is_over(&key) {
            Some(true) => {
                self.pending.remove(&key);
                return Ok(Decision::Decided(Verdict::PASS));
            }
            Some(false) => {
                self.pending.insert(key, tapped.key);
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
        if now_ns.abs_diff(self.settled_ns) >= SETTLE_NS {
            self.settled_ns = now_ns;
            self.inspection.settle(now_ns);
        } else {
            self.inspection.poll(now_ns);
        }
        self.tell_ended(tell);
        self.shared.count(self.inspection.counters());
        Ok(())
    }

    fn connection_ended(&mut self, key: FlowKey, time_ns: u64) {
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
        // Nothing to look at: the inspection learns that a SYN begins another flow.
        self.inspection.offer(&packet, || None);
    }

    fn finish(&mut self, now_ns: u64) {
        self.inspection.finish(now_ns);
        self.shared.count(self.inspection.counters());
    }
}
