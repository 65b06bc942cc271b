// SPDX-License-Identifier: Apache-2.0
//! Decodes messages into batches of records and counters.

use std::collections::BTreeMap;

use thiserror::Error;
use turboflow_merge::Layout;

use super::received_numbers::Sequence;
use super::record::{self, KeyForm};
use super::{HEADER_BYTES, Header, Kind, counters, layout_id};
use crate::{EngineCounters, MicroflowBatch, RecordShape};

/// How many engines one decoder tracks.
const MAX_ENGINES: usize = 1_024;

/// Why a message is invalid, or not acceptable to this receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// An unknown counter.
    #[error("counter {number} is unknown to this version of turboflow")]
    Counter {
        /// The number of the counter.
        number: u16,
    },
    /// More engines than a decoder tracks.
    #[error("records of more than 1024 engines arrive; use fewer engine ids")]
    Engines,
    /// A kind of records that the key of this definition does not have.
    #[error("records of kind {found} do not go with the key of this definition")]
    Family {
        /// The kind of the message.
        found: u8,
    },
    /// An unknown kind of message.
    #[error("messages of kind {found} are unknown to this version of turboflow")]
    Kind {
        /// The kind found.
        found: u8,
    },
    /// Records of another definition.
    #[error(
        "its records are of another definition (layout id {found:016x}) than this run's ({expected:016x}); \
         give both the same one"
    )]
    Layout {
        /// The id found.
        found: u64,
        /// The id of this run's definition.
        expected: u64,
    },
    /// A length that no message has.
    #[error("a message of {found} bytes is shorter than its header or longer than 1 MiB")]
    Length {
        /// The length found.
        found: u32,
    },
    /// Not a message.
    #[error("it begins with {found:#06x}, where a message of microflow records begins with 0x7466")]
    Magic {
        /// The first two bytes.
        found: u16,
    },
    /// The body is not a whole number of records.
    #[error(
        "a body of {body_bytes} bytes is not a whole number of records of {record_bytes} bytes"
    )]
    PartialRecord {
        /// Size of the body.
        body_bytes: usize,
        /// Size of a record.
        record_bytes: usize,
    },
    /// An unknown reason for rejected frames.
    #[error("a reason why frames are in no flow is unknown to this version of turboflow")]
    Reason,
    /// A record that cannot result from packets.
    #[error("record {index} of the message has no packet, or ends before it begins")]
    Record {
        /// The index of the record in the message.
        index: usize,
    },
    /// The message is truncated.
    #[error("{needed} bytes are needed and {available} are there")]
    Truncated {
        /// Bytes required.
        needed: usize,
        /// Bytes present.
        available: usize,
    },
    /// An unknown version of the wire format.
    #[error("version {found} of the wire form; this turboflow reads version 1")]
    Version {
        /// The version found.
        found: u8,
    },
}

/// The most packets that one microflow record may have: two hours at 148 M packets a second.
const MAX_RECORD_PACKETS: u64 = 1 << 40;
/// The most bytes that one microflow record may have.
const MAX_RECORD_BYTES: u64 = 1 << 56;

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The engine that sent it.
    pub engine_id: u32,
    /// Number of records appended to the batch.
    pub records: usize,
    /// Packets in these records.
    pub packets: u64,
    /// Bytes in these records, according to the IP headers.
    pub bytes: u64,
    /// The watermark: the records of all packets before this time have been sent. `None` if the
    /// message has no watermark.
    pub watermark_ns: Option<u64>,
    /// The engine's counters, if the message contains them.
    pub counters: Option<EngineCounters>,
    /// How many counter messages the engine sent before this one.
    pub told_before: u64,
    /// When the engine started, in nanoseconds since 1970, if the message says so.
    pub started_ns: Option<u64>,
    /// Whether this is the engine's last message.
    pub is_end: bool,
}

/// Decodes the messages of several engines, whose records share one layout.
#[derive(Clone, Debug)]
pub struct Decoder {
    shape: RecordShape,
    layout_id: u64,
    engines: BTreeMap<u32, Sequence>,
}

impl Decoder {
    /// A decoder for records of `layout`.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        Self {
            shape: RecordShape::of(layout),
            layout_id: layout_id(layout),
            engines: BTreeMap::new(),
        }
    }

    /// Appends the records of a message to `batch`. Bytes after the message are ignored as padding.
    ///
    /// # Errors
    /// If the message is invalid, or has records of another layout. Nothing is appended then.
    pub fn decode(
        &mut self,
        message: &[u8],
        batch: &mut MicroflowBatch,
    ) -> Result<Decoded, WireError> {
        let header = Header::of(message)?;
        let needed = header.length_bytes as usize;
        let body = message
            .get(HEADER_BYTES..needed)
            .ok_or(WireError::Truncated {
                needed,
                available: message.len(),
            })?;
        if header.layout_id != self.layout_id {
            return Err(WireError::Layout {
                found: header.layout_id,
                expected: self.layout_id,
            });
        }
        let mut decoded = Decoded {
            engine_id: header.engine_id,
            records: 0,
            packets: 0,
            bytes: 0,
            watermark_ns: Some(header.watermark_ns).filter(|&ns| ns > 0),
            counters: None,
            told_before: 0,
            started_ns: None,
            is_end: header.kind == Kind::End,
        };
        let wide = self.shape.wide_key_words.is_some();
        let form = match (header.kind, wide) {
            (Kind::RecordsV4, false) => KeyForm::V4,
            (Kind::RecordsV6, false) => KeyForm::V6,
            (Kind::RecordsWide, true) => KeyForm::Wide,
            (Kind::Counters | Kind::End, _) => {
                let entries = counters::read(body)?;
                let sequence = self.sequence_of(header.engine_id)?;
                // An older message that arrives late says nothing new.
                if !sequence.accept(header.sequence, 0) {
                    decoded.watermark_ns = None;
                    decoded.is_end = false;
                    return Ok(decoded);
                }
                decoded.counters = Some(entries.counters);
                decoded.told_before = entries.told_before;
                decoded.started_ns = Some(entries.started_ns).filter(|&ns| ns > 0);
                return Ok(decoded);
            }
            (kind, _) => return Err(WireError::Family { found: kind as u8 }),
        };
        let (rows, packets, bytes) = self.rows(body, form)?;
        let count = rows.len() as u64;
        if self
            .sequence_of(header.engine_id)?
            .accept(header.sequence, count)
        {
            (decoded.records, decoded.packets, decoded.bytes) = (rows.len(), packets, bytes);
            rows.for_each(|bytes| self.append(bytes, form, batch));
        }
        Ok(decoded)
    }

    /// Checks every record of a body. Returns the records and the sums of their packets and bytes.
    fn rows<'a>(
        &self,
        body: &'a [u8],
        form: KeyForm,
    ) -> Result<(std::slice::ChunksExact<'a, u8>, u64, u64), WireError> {
        let record_bytes = form.bytes(self.shape);
        let rows = body.chunks_exact(record_bytes);
        if !rows.remainder().is_empty() {
            return Err(WireError::PartialRecord {
                body_bytes: body.len(),
                record_bytes,
            });
        }
        let (mut all_packets, mut all_bytes) = (0u64, 0u64);
        for (index, row) in rows.clone().enumerate() {
            let [packets, bytes, first_ns, last_ns] =
                std::array::from_fn(|at| super::u64_at(row, 8 * at));
            let is_possible = packets <= MAX_RECORD_PACKETS && bytes <= MAX_RECORD_BYTES;
            if packets == 0 || last_ns < first_ns || !is_possible {
                return Err(WireError::Record { index });
            }
            all_packets = all_packets.wrapping_add(packets);
            all_bytes = all_bytes.wrapping_add(bytes);
        }
        Ok((rows, all_packets, all_bytes))
    }

    fn append(&self, bytes: &[u8], form: KeyForm, batch: &mut MicroflowBatch) {
        let mut row = record::row(bytes, form, self.shape);
        match (form, self.shape.is_plain()) {
            (KeyForm::V4, true) => batch.plain_v4.push_row(&mut row),
            (KeyForm::V6, true) => batch.plain_v6.push_row(&mut row),
            _ => {
                let is_record = batch.push_row(row, self.shape);
                debug_assert!(is_record, "the row was made for this shape");
            }
        }
    }

    fn sequence_of(&mut self, engine_id: u32) -> Result<&mut Sequence, WireError> {
        if self.engines.len() == MAX_ENGINES && !self.engines.contains_key(&engine_id) {
            return Err(WireError::Engines);
        }
        Ok(self.engines.entry(engine_id).or_default())
    }

    /// Number of records that were sent but have not arrived.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.engines.values().map(|sequence| sequence.lost).sum()
    }

    /// Number of records that arrived again and were discarded.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.engines
            .values()
            .map(|sequence| sequence.repeated)
            .sum()
    }
}
