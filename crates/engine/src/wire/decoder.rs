// SPDX-License-Identifier: Apache-2.0
//! Messages into batches of records and counters.

use std::collections::BTreeMap;

use thiserror::Error;
use turboflow_merge::Layout;

use super::record::{self, Of};
use super::sequence::Sequence;
use super::{HEADER_BYTES, Header, Kind, counters, layout_id};
use crate::{EngineCounters, MicroflowBatch, RecordShape};

/// Engines that one decoder follows.
const MAX_ENGINES: usize = 1_024;

/// Why a message is none, or not one for this receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireError {
    /// A counter that this version does not know.
    #[error("counter {number} is unknown to this version of turboflow")]
    Counter {
        /// Its number.
        number: u16,
    },
    /// More engines than a receiver follows.
    #[error("records of more than 1024 engines arrive; use fewer engine ids")]
    Engines,
    /// Records of a key that has none of this family.
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
        /// What stands there.
        found: u16,
    },
    /// A body that is no whole number of records.
    #[error("a body of {body_bytes} bytes is no whole number of records of {record_bytes} bytes")]
    PartialRecord {
        /// Bytes of the body.
        body_bytes: usize,
        /// Bytes of a record.
        record_bytes: usize,
    },
    /// A reason that this version does not know.
    #[error("a reason why frames are in no flow is unknown to this version of turboflow")]
    Reason,
    /// A record that no packet can have made.
    #[error("record {index} of the message has no packet, or ends before it begins")]
    Record {
        /// Its place in the message.
        index: usize,
    },
    /// Less than what the message says.
    #[error("{needed} bytes are needed and {available} are there")]
    Truncated {
        /// Bytes needed.
        needed: usize,
        /// Bytes there are.
        available: usize,
    },
    /// Another version of the wire form.
    #[error("version {found} of the wire form; this turboflow reads version 1")]
    Version {
        /// The version found.
        found: u8,
    },
}

/// What a message said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Which engine sent it.
    pub engine_id: u32,
    /// Records that were appended to the batch.
    pub records: usize,
    /// Packets in them.
    pub packets: u64,
    /// Bytes in them, as the IP headers declare them.
    pub bytes: u64,
    /// The records of all packets before this time have been sent; `None` where the message says nothing.
    pub watermark_ns: Option<u64>,
    /// The engine's counters, where the message has them.
    pub counters: Option<EngineCounters>,
    /// Whether nothing follows from this engine.
    pub is_end: bool,
}

/// Reads the messages of any number of engines whose records are of one layout.
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

    /// Appends the records of a message to `batch`. Bytes behind its length are padding.
    ///
    /// # Errors
    /// Where it is no message, or not one of this layout; nothing is appended then.
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
            is_end: header.kind == Kind::End,
        };
        let wide = self.shape.wide_key_words.is_some();
        let of = match (header.kind, wide) {
            (Kind::RecordsV4, false) => Of::V4,
            (Kind::RecordsV6, false) => Of::V6,
            (Kind::RecordsWide, true) => Of::Wide,
            (Kind::Counters | Kind::End, _) => {
                decoded.counters = Some(counters::read(body)?);
                self.sequence_of(header.engine_id)?.takes(header.sequence, 0);
                return Ok(decoded);
            }
            (kind, _) => return Err(WireError::Family { found: kind as u8 }),
        };
        let (rows, packets, bytes) = self.rows(body, of)?;
        let count = rows.len() as u64;
        if self
            .sequence_of(header.engine_id)?
            .takes(header.sequence, count)
        {
            (decoded.records, decoded.packets, decoded.bytes) = (rows.len(), packets, bytes);
            rows.for_each(|bytes| self.append(bytes, of, batch));
        }
        Ok(decoded)
    }

    /// The records of a body, each of which could have been made by an engine; their packets and bytes.
    fn rows<'a>(
        &self,
        body: &'a [u8],
        of: Of,
    ) -> Result<(std::slice::ChunksExact<'a, u8>, u64, u64), WireError> {
        let record_bytes = of.bytes(self.shape);
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
            if packets == 0 || last_ns < first_ns {
                return Err(WireError::Record { index });
            }
            all_packets = all_packets.wrapping_add(packets);
            all_bytes = all_bytes.wrapping_add(bytes);
        }
        Ok((rows, all_packets, all_bytes))
    }

    fn append(&self, bytes: &[u8], of: Of, batch: &mut MicroflowBatch) {
        let mut row = record::row(bytes, of, self.shape);
        match (of, self.shape.is_plain()) {
            (Of::V4, true) => batch.plain_v4.push_row(&mut row),
            (Of::V6, true) => batch.plain_v6.push_row(&mut row),
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

    /// Records that were sent and have not arrived.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.engines.values().map(|sequence| sequence.lost).sum()
    }

    /// Records that arrived a second time, and were left out.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.engines.values().map(|sequence| sequence.repeated).sum()
    }
}
