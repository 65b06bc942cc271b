// SPDX-License-Identifier: Apache-2.0
//! A file or a stream of Arrow record batches.

use std::mem;
use std::ops::Range;
use std::sync::Arc;

use arrow_ipc::Block;
use arrow_schema::ArrowError;
use turboflow_record::{Column, FlowBatch};

use super::arrays::Part;
use super::encoder::{END, Encoder, MAGIC};
use crate::destination::{Destination, Keep};
use crate::storable::storable_rows;
use crate::{ExportError, FlowWriter, Unexportable, WriteOptions, WriteProgress, WriteSummary};

/// Maximum records of a batch in a file: readers process a file batch by batch.
const BATCH_RECORDS: usize = 65_536;
/// Maximum number of batches that are joined into one: batches of a live run may have one record
/// each.
const JOINED_BATCHES: usize = 1_024;
/// Approximate size of the chunks written to the system.
const CHUNK_BYTES: usize = 1 << 20;

struct ArrowWriter {
    columns: Vec<Column>,
    encoder: Encoder,
    /// `None` after a failure.
    output: Option<Destination>,
    /// Whether the output is a file, which has a footer.
    is_file: bool,
    /// Batches that will be joined into one, and the number of their records.
    open: Vec<Arc<FlowBatch>>,
    open_records: usize,
    /// Encoded bytes that are not written yet.
    bytes: Vec<u8>,
    /// All blocks, each with the number of its records.
    blocks: Vec<(Block, u64)>,
    /// Offset of the next block.
    end: u64,
    /// Number of records that the output has accepted.
    written: u64,
    /// Number of records left out because Arrow cannot hold their times.
    out_of_range: u64,
}

/// Writes record batches to `output`: a file with a footer, or a stream.
pub(crate) fn writer(
    output: Destination,
    columns: &[Column],
    options: &WriteOptions,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    let is_file = output.is_file();
    let mut writer = ArrowWriter {
        columns: columns.to_vec(),
        encoder: Encoder::new(columns, &options.metadata),
        output: Some(output),
        is_file,
        open: Vec::new(),
        open_records: 0,
        bytes: Vec::new(),
        blocks: Vec::new(),
        end: 0,
        written: 0,
        out_of_range: 0,
    };
    if is_file {
        writer.bytes.extend_from_slice(MAGIC);
    }
    let outcome = writer.encoder.schema(&mut writer.bytes);
    writer.checked(outcome)?;
    writer.end = writer.bytes.len() as u64;
    // Written at once, so that an unwritable target is reported before metering starts.
    writer.hand_over()?;
    Ok(Box::new(writer))
}

impl ArrowWriter {
    fn append(&mut self, batch: Arc<FlowBatch>) -> Result<(), ExportError> {
        if self.output.is_none() {
            return Ok(());
        }
        self.open_records += batch.rows();
        self.open.push(batch);
        match self.open_records >= BATCH_RECORDS || self.open.len() == JOINED_BATCHES {
            true => self.close_batch(),
            false => Ok(()),
        }
    }

    /// Joins and encodes the batches that are waiting.
    fn close_batch(&mut self) -> Result<(), ExportError> {
        let batches = mem::take(&mut self.open);
        self.open_records = 0;
        let (mut parts, mut room): (Vec<Part<'_>>, usize) = (Vec::new(), BATCH_RECORDS);
        for batch in &batches {
            let storable = storable_rows(&self.columns, batch);
            let stored: usize = storable.iter().map(Range::len).sum();
            self.out_of_range += (batch.rows() - stored) as u64;
            for mut rows in storable {
                while !rows.is_empty() {
                    let end = rows.end.min(rows.start + room);
                    parts.push((batch, rows.start..end));
                    room -= end - rows.start;
                    rows.start = end;
                    if room == 0 {
                        self.encode(&mut parts)?;
                        room = BATCH_RECORDS;
                    }
                }
            }
        }
        self.encode(&mut parts)
    }

    fn encode(&mut self, parts: &mut Vec<Part<'_>>) -> Result<(), ExportError> {
        let records: usize = parts.iter().map(|(_, rows)| rows.len()).sum();
        if records == 0 || self.output.is_none() {
            return Ok(());
        }
        let outcome = self.encoder.records(parts, &mut self.bytes);
        parts.clear();
        let (header, body) = self.checked(outcome)?;
        let block = Block::new(self.end as i64, header as i32, body as i64);
        self.blocks.push((block, records as u64));
        self.end += (header + body) as u64;
        match self.bytes.len() >= CHUNK_BYTES {
            true => self.hand_over(),
            false => Ok(()),
        }
    }

    /// Writes the encoded bytes to the output. After a failure, the blocks that it accepted are
    /// kept.
    fn hand_over(&mut self) -> Result<(), ExportError> {
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        let before = output.written_bytes();
        let bytes = mem::take(&mut self.bytes);
        match output.write_all(&bytes) {
            Ok(()) => {
                self.written = self.blocks.iter().map(|(_, records)| records).sum();
                self.bytes = bytes;
                self.bytes.clear();
                Ok(())
            }
            Err(interrupted) => {
                let accepted = before + interrupted.accepted_bytes as u64;
                Err(self.fail(accepted, interrupted.source))
            }
        }
    }

    fn fail(&mut self, accepted: u64, source: std::io::Error) -> ExportError {
        let end_of = |block: &Block| {
            (block.offset() + block.bodyLength()) as u64 + block.metaDataLength() as u64
        };
        self.blocks.retain(|(block, _)| end_of(block) <= accepted);
        let blocks: Vec<Block> = self.blocks.iter().map(|(block, _)| *block).collect();
        let output = self.output.take().expect("the output just failed");
        output.fail(
            Keep {
                records: self.blocks.iter().map(|(_, records)| records).sum(),
                length_bytes: blocks.last().map_or(0, end_of),
                tail: &self.encoder.footer(&blocks),
                counts_in_streams: true,
            },
            source,
        )
    }

    fn checked<T>(&self, outcome: Result<T, ArrowError>) -> Result<T, ExportError> {
        let place = self.output.as_ref().map_or("", Destination::place);
        outcome.map_err(|error| ExportError::Encode {
            place: place.to_owned(),
            format: "arrow",
            reason: error.to_string(),
        })
    }
}

impl FlowWriter for ArrowWriter {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        self.append(Arc::new(batch.clone()))
    }

    fn write_several(&mut self, batches: &[Arc<FlowBatch>]) -> Result<(), ExportError> {
        let mut batches = batches.iter();
        batches.try_for_each(|batch| self.append(Arc::clone(batch)))
    }

    /// A file cannot be read before it has its footer, so its batches wait and become larger.
    fn flush(&mut self) -> Result<(), ExportError> {
        if self.is_file {
            return Ok(());
        }
        self.close_batch()?;
        self.hand_over()
    }

    fn progress(&self) -> WriteProgress {
        let progress = self.output.as_ref().map(|its| its.progress(self.written));
        progress.unwrap_or_default()
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, ExportError> {
        self.close_batch()?;
        if self.output.is_none() {
            return Ok(WriteSummary::default());
        }
        let tail = match self.is_file {
            true => {
                let blocks: Vec<Block> = self.blocks.iter().map(|(block, _)| *block).collect();
                self.encoder.footer(&blocks)
            }
            false => END.to_vec(),
        };
        self.bytes.extend_from_slice(&tail);
        self.hand_over()?;
        let Some(output) = self.output.take() else {
            return Ok(WriteSummary::default());
        };
        let (place, bytes) = (output.place().to_owned(), output.written_bytes());
        output
            .complete()
            .map_err(|source| ExportError::unfinished(place.clone(), source))?;
        let records = self.written;
        match self.out_of_range {
            0 => Ok(WriteSummary { records, bytes }),
            out_of_range => Err(ExportError::NotSent {
                place,
                records,
                bytes,
                lost: 0,
                unexportable: Unexportable {
                    out_of_range,
                    ..Unexportable::default()
                },
                source: None,
            }),
        }
    }
}
