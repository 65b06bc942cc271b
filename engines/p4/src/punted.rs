// SPDX-License-Identifier: Apache-2.0
//! Frames that the pipeline does not understand with certainty. Those that are packets become
//! microflow records of one packet here.

use turboflow_engine::{EngineCounters, MicroflowBatch, RecordShape};
use turboflow_merge::{Layout, MOST_STATE_WORDS, MicroflowRecord};
use turboflow_packet::{Frame, Parser, ParserConfig};
use turboflow_record::{Family, InputValues, Packet, WORDS_V4, WORDS_V6};

use crate::record::{KEY_BYTES, key_bytes};

/// The parser and the counters of these frames.
pub(crate) struct PuntedFrames {
    parser: Parser,
    layout: Layout,
    shape: RecordShape,
    values: InputValues,
    /// Frames, packets and bytes that were metered here.
    pub(crate) counters: EngineCounters,
}

/// The record of such a frame.
pub(crate) struct PuntedRecord {
    pub(crate) key: [u8; KEY_BYTES],
    pub(crate) first_ns: u64,
    pub(crate) batch: MicroflowBatch,
}

impl PuntedFrames {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            parser: Parser::new(ParserConfig {
                needs: layout.needs(),
                ..ParserConfig::default()
            }),
            layout: layout.clone(),
            shape: RecordShape::of(layout),
            values: InputValues::default(),
            counters: EngineCounters::default(),
        }
    }

    /// EtherTypes of frames that were rejected because of them, and the number of these frames.
    pub(crate) fn unread_ether_types(&self) -> Vec<(u16, u64)> {
        self.parser.unread_ether_types().commonest()
    }

    pub(crate) const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The record of a frame; `None` if the frame is not a packet.
    pub(crate) fn meter(&mut self, frame: &Frame<'_>) -> Option<PuntedRecord> {
        let wire_bytes = u64::from(frame.wire_length_bytes);
        self.counters.packets_received += 1;
        self.counters.bytes_received += wire_bytes;
        let packet = match self.parser.parse_with_inputs(frame, &mut self.values) {
            Ok(packet) => packet,
            Err(reason) => {
                self.counters.rejected_packets[reason.index()] += 1;
                self.counters.rejected_bytes[reason.index()] += wire_bytes;
                return None;
            }
        };
        self.counters.packets_longer_than_frame = self.parser.packets_longer_than_frame();
        self.counters.packets_metered += 1;
        self.counters.bytes_metered += u64::from(packet.ip_length_bytes);
        self.counters.evicted.bypass += 1;
        Some(PuntedRecord {
            key: key_bytes(&packet.tuple),
            first_ns: packet.timestamp_ns,
            batch: self.record_of(&packet),
        })
    }

    fn record_of(&self, packet: &Packet) -> MicroflowBatch {
        let mut batch = MicroflowBatch::default();
        match (packet.tuple.family(), self.shape.is_plain()) {
            (Family::V4, true) => batch.plain_v4.push_record(MicroflowRecord::of_v4(packet)),
            (Family::V6, true) => batch.plain_v6.push_record(MicroflowRecord::of_v6(packet)),
            (Family::V4, false) => self.append::<WORDS_V4>(packet, &mut batch),
            (Family::V6, false) => self.append::<WORDS_V6>(packet, &mut batch),
        }
        batch
    }

    fn append<const K: usize>(&self, packet: &Packet, batch: &mut MicroflowBatch) {
        let record: MicroflowRecord<K, MOST_STATE_WORDS> = self.layout.open(packet, &self.values);
        let mut row = record.base.words().to_vec();
        row.extend(&record.state[..self.shape.state_words]);
        row.extend(record.key);
        let is_record = batch.push_row(row.into_iter(), self.shape);
        debug_assert!(is_record, "rows have the shape of the layout");
    }
}
