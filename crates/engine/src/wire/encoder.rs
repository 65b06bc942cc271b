// SPDX-License-Identifier: Apache-2.0
//! Encodes batches of records and counters as messages.

use turboflow_merge::Layout;

use super::counters::Entries;
use super::record::{self, KeyForm};
use super::{HEADER_BYTES, Header, Kind, MAX_MESSAGE_BYTES, counters, layout_id};
use crate::{EngineCounters, MicroflowBatch, RecordShape};

/// Encodes the messages of one engine.
#[derive(Clone, Debug)]
pub struct Encoder {
    shape: RecordShape,
    layout_id: u64,
    engine_id: u32,
    message_bytes: usize,
    /// Number of records sent so far.
    sequence: u32,
    /// Number of counter messages sent so far.
    told: u64,
    /// In nanoseconds since 1970; 0 if unknown.
    started_ns: u64,
    message: Vec<u8>,
}

impl Encoder {
    /// An encoder for records of `layout`. A message has at most `message_bytes` bytes, but always
    /// has room for one record.
    #[must_use]
    pub fn new(layout: &Layout, engine_id: u32, message_bytes: usize) -> Self {
        Self {
            shape: RecordShape::of(layout),
            layout_id: layout_id(layout),
            engine_id,
            message_bytes: message_bytes.min(MAX_MESSAGE_BYTES),
            sequence: 0,
            told: 0,
            started_ns: 0,
            message: Vec::new(),
        }
    }

    /// An encoder for an engine that has counted before. Its first counter message is marked as a
    /// later one, because its counters include what came before this encoder.
    #[must_use]
    pub fn begun_before(mut self) -> Self {
        self.told = 1;
        self
    }

    /// Tells receivers when the engine started, in nanoseconds since 1970.
    #[must_use]
    pub fn started_at(mut self, started_ns: u64) -> Self {
        self.started_ns = started_ns;
        self
    }

    /// Encodes the records of a batch. Each kind of records keeps its order.
    pub fn records(&mut self, batch: &MicroflowBatch, mut emit: impl FnMut(&[u8])) {
        let wide = self.shape.wide_key_words.is_some();
        for (kind, form) in [
            (Kind::RecordsV4, KeyForm::V4),
            (
                Kind::RecordsV6,
                if wide { KeyForm::Wide } else { KeyForm::V6 },
            ),
        ] {
            let kind = if form == KeyForm::Wide {
                Kind::RecordsWide
            } else {
                kind
            };
            self.message.clear();
            batch.for_each_row(form == KeyForm::V4, |row| {
                self.push(row, kind, form, &mut emit);
            });
            self.end_message(kind, form, &mut emit);
        }
    }

    fn push(&mut self, row: &[u64], kind: Kind, form: KeyForm, emit: &mut impl FnMut(&[u8])) {
        let record_bytes = form.bytes(self.shape);
        if self.message.len() > HEADER_BYTES
            && self.message.len() + record_bytes > self.message_bytes
        {
            self.end_message(kind, form, emit);
        }
        if self.message.is_empty() {
            self.message.resize(HEADER_BYTES, 0);
        }
        record::put(row, form, self.shape, &mut self.message);
    }

    fn end_message(&mut self, kind: Kind, form: KeyForm, emit: &mut impl FnMut(&[u8])) {
        if self.message.len() > HEADER_BYTES {
            let records = (self.message.len() - HEADER_BYTES) / form.bytes(self.shape);
            self.emit(kind, 0, emit);
            self.sequence = self.sequence.wrapping_add(records as u32);
        }
        self.message.clear();
    }

    /// Encodes counters and a watermark: the records of all packets before that time have been
    /// encoded. A watermark of 0 means none. `is_end` marks the engine's last message.
    pub fn counters(
        &mut self,
        counters: &EngineCounters,
        watermark_ns: u64,
        is_end: bool,
        mut emit: impl FnMut(&[u8]),
    ) {
        self.message.clear();
        self.message.resize(HEADER_BYTES, 0);
        let entries = Entries {
            counters: *counters,
            told_before: self.told,
            started_ns: self.started_ns,
        };
        counters::put(&entries, &mut self.message);
        self.told += 1;
        let kind = if is_end { Kind::End } else { Kind::Counters };
        self.emit(kind, watermark_ns, &mut emit);
        self.message.clear();
    }

    fn emit(&mut self, kind: Kind, watermark_ns: u64, emit: &mut impl FnMut(&[u8])) {
        let header = Header {
            kind,
            length_bytes: self.message.len() as u32,
            layout_id: self.layout_id,
            engine_id: self.engine_id,
            sequence: self.sequence,
            watermark_ns,
        };
        self.message[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        emit(&self.message);
    }
}
