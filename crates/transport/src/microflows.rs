// SPDX-License-Identifier: Apache-2.0
//! Sends the microflow records of a probe in the wire form ([`turboflow_engine::wire`]) to the
//! collector that merges those of all probes.
//!
//! Records arrive as columns of words ([`WordColumns`]). Messages with counters are sent in
//! between: they say up to which time everything was sent, and what the probe saw, rejected and
//! lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use turboflow_engine::wire::{self, Encoder, SenderCounters, WordColumns};
use turboflow_engine::{EngineCounters, MicroflowBatch, RecordShape};
use turboflow_formats::Unexportable;
use turboflow_formats::wire::{DataRecords, Encode, Message, SessionCounters, Unit};
use turboflow_merge::Layout;
use turboflow_record::FlowBatch;

use super::session::Session;

/// How the microflow records of a probe are sent.
#[derive(Clone, Debug)]
pub struct Microflows {
    /// The layout of the records.
    pub layout: Layout,
    /// Distinguishes the probe from other probes on its host.
    pub engine_id: u32,
    /// When the probe began to send, in nanoseconds since 1970.
    pub started_ns: u64,
    /// Maximum bytes of a message over UDP.
    pub message_bytes: usize,
    /// The counters of the probe. They are final before the writer is finished.
    pub counters: Arc<SenderCounters>,
}

/// Encodes records as messages. Their sequence numbers are filled in when they are sent.
pub(super) struct RecordEncoder {
    columns: WordColumns,
    shape: RecordShape,
    encoder: Encoder,
    batch: MicroflowBatch,
}

impl RecordEncoder {
    pub(super) fn new(records: &Microflows, message_bytes: usize) -> Self {
        Self {
            columns: WordColumns::new(&records.layout),
            shape: RecordShape::of(&records.layout),
            encoder: Encoder::new(&records.layout, records.engine_id, message_bytes),
            batch: MicroflowBatch::default(),
        }
    }
}

impl Encode for RecordEncoder {
    fn encode(&mut self, batch: &FlowBatch, emit: &mut dyn FnMut(Unit)) {
        self.columns.read(batch, &mut self.batch);
        let shape = self.shape;
        self.encoder.records(&self.batch, |message| {
            let sums = wire::sums(message, shape).unwrap_or_default();
            emit(Unit::Data(DataRecords {
                bytes: message.to_vec(),
                records: sums.records,
                flows: sums.records,
                packets: sums.packets,
                octets: sums.bytes,
                ..DataRecords::default()
            }));
        });
        self.batch.clear();
    }

    fn flush(&mut self, _emit: &mut dyn FnMut(Unit)) {}

    fn unexportable(&self) -> Unexportable {
        Unexportable::default()
    }
}

/// Gives messages their sequence numbers, and adds messages with counters.
pub(super) struct ProbeSession {
    encoder: Encoder,
    told: Arc<SenderCounters>,
    /// Records that were discarded before they were encoded.
    overrun: Arc<AtomicU64>,
    sequence: u32,
    counters: SessionCounters,
}

impl ProbeSession {
    pub(super) fn new(records: &Microflows, overrun: Arc<AtomicU64>) -> Self {
        let encoder = Encoder::new(&records.layout, records.engine_id, records.message_bytes);
        // An output that a reload adds to a running probe gets no records from before the reload.
        let is_first = records.counters.get() == EngineCounters::default();
        Self {
            encoder: match is_first {
                true => encoder.started_at(records.started_ns),
                false => encoder.begun_before(),
            },
            told: Arc::clone(&records.counters),
            overrun,
            sequence: 0,
            counters: SessionCounters::default(),
        }
    }

    /// The counters of the probe, including the records that were not sent.
    fn told(&self) -> EngineCounters {
        let mut told = self.told.get();
        let overrun = self.overrun.load(Ordering::Relaxed);
        let not_sent = self.counters.flows_not_sent.saturating_add(overrun);
        told.microflows_dropped = told.microflows_dropped.saturating_add(not_sent);
        told.microflows_unnamed = told.microflows_unnamed.saturating_add(not_sent);
        told += &EngineCounters {
            packets_dropped: self.counters.packets_not_sent,
            bytes_dropped: self.counters.octets_not_sent,
            ..EngineCounters::default()
        };
        told
    }

    fn tell(&mut self, complete_ns: u64, is_end: bool, send: &mut dyn FnMut(Message)) {
        let told = self.told();
        self.encoder.counters(&told, complete_ns, is_end, |bytes| {
            let mut message = Message::default();
            message.bytes = bytes.to_vec();
            send(message);
        });
    }
}

impl Session for ProbeSession {
    fn restart(&mut self) {
        self.sequence = 0;
    }

    fn announce_anew(&mut self) {}

    fn number(&self, message: &mut Message) {
        wire::number(&mut message.bytes, self.sequence);
    }

    fn count_sent(&mut self, message: &Message) {
        self.sequence = self.sequence.wrapping_add(message.flows as u32);
        self.counters.messages += 1;
        self.counters.bytes += message.bytes.len() as u64;
        self.counters.flows += message.flows;
    }

    fn recount_lost(&mut self, flows: u64, packets: u64, octets: u64) {
        self.counters.flows -= flows.min(self.counters.flows);
        self.count_lost(flows, packets, octets);
    }

    fn count_lost(&mut self, flows: u64, packets: u64, octets: u64) {
        self.counters.flows_not_sent += flows;
        self.counters.packets_not_sent = self.counters.packets_not_sent.saturating_add(packets);
        self.counters.octets_not_sent = self.counters.octets_not_sent.saturating_add(octets);
    }

    fn counters(&self) -> &SessionCounters {
        &self.counters
    }

    fn due_ms(&self) -> Option<u64> {
        None
    }

    fn tick(&mut self, _now_ms: u64, _send: &mut dyn FnMut(Message)) {}

    fn unit(&mut self, unit: &Unit, _now_ms: u64, send: &mut dyn FnMut(Message)) {
        match unit {
            Unit::Data(data) => {
                let mut message = Message::default();
                message.bytes.clone_from(&data.bytes);
                message.flows = u64::from(data.flows);
                (message.packets, message.octets) = (data.packets, data.octets);
                send(message);
            }
            Unit::Complete(complete_ns) => self.tell(*complete_ns, false, send),
            Unit::Template(_) | Unit::Name(_) => {}
        }
    }

    fn finish(&mut self, _now_ms: u64, send: &mut dyn FnMut(Message)) {
        // Sends no watermark, as at the end of a capture: no flow counts as idle beyond its last
        // packet.
        self.tell(0, true, send);
    }
}
