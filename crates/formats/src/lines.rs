// SPDX-License-Identifier: Apache-2.0
//! Shared by CSV and JSON lines: rows of text in chunks, and the records to keep when a write
//! fails.

use std::borrow::Cow;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use turboflow_record::{Column, ColumnKind, FlowBatch, ValueData, Values};

use crate::destination::{Destination, Keep};
use crate::format::Packing;
use crate::text::{
    ADDRESS_BYTES, FLOAT_BYTES, MAC_BYTES, NAME_BYTES, TIME_BYTES, Text, UNSIGNED_BYTES,
    quoted_bytes,
};
use crate::{ExportError, FlowWriter, WriteProgress, WriteSummary};

/// Approximate size of the chunks written to the system.
const CHUNK_BYTES: usize = 256 << 10;
/// Uncompressed bytes in a frame of compressed text.
const FRAME_BYTES: usize = 1 << 20;
/// Compression levels at which the compressors keep up with the text.
const ZSTD_LEVEL: i32 = 3;
const GZIP_LEVEL: Compression = Compression::new(4);

/// Writes a row as a line of one format.
pub(crate) trait Row: Send {
    /// Upper bound on the bytes of a row apart from its values.
    fn frame_bytes(&self) -> usize;
    /// Writes one line, newline included.
    fn write(&self, batch: &FlowBatch, row: usize, text: &mut Text);
}

/// A [`FlowWriter`] of lines.
pub(crate) struct LineWriter<R> {
    row: R,
    row_bytes: usize,
    packing: Packing,
    text: Text,
    output: Option<Destination>,
    header_bytes: u64,
    records: u64,
    buffered_records: u64,
}

impl<R: Row + 'static> LineWriter<R> {
    /// Writes `header` at once, so that an unwritable target is reported before metering starts.
    pub(crate) fn start(
        mut output: Destination,
        packing: Packing,
        schema: &[Column],
        row: R,
        header: &[u8],
    ) -> Result<Box<dyn FlowWriter>, ExportError> {
        let keep = Keep {
            records: 0,
            length_bytes: 0,
            tail: &[],
            counts_in_streams: true,
        };
        let header = packed(packing, header).map_err(|source| failed(&output, source))?;
        if let Err(interrupted) = output.write_all(&header) {
            return Err(output.fail(keep, interrupted.source));
        }
        Ok(Box::new(Self {
            row_bytes: row_bytes(&row, schema),
            row,
            packing,
            text: Text::default(),
            output: Some(output),
            header_bytes: header.len() as u64,
            records: 0,
            buffered_records: 0,
        }))
    }

    fn hand_over(&mut self) -> Result<(), ExportError> {
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        let before = output.written_bytes();
        let bytes = packed(self.packing, self.text.as_bytes());
        let bytes = bytes.map_err(|source| failed(output, source))?;
        let outcome = output.write_all(&bytes);
        if let Err(interrupted) = outcome {
            // Compressed text can only be kept in whole frames, so nothing of this frame is kept.
            let accepted = match self.packing {
                Packing::None => &bytes[..interrupted.accepted_bytes],
                Packing::Gzip | Packing::Zstd => &[],
            };
            let whole = memchr::memrchr(b'\n', accepted).map_or(0, |end| end + 1);
            let lines = memchr::memchr_iter(b'\n', accepted).count() as u64;
            let keep = Keep {
                records: self.records + lines,
                length_bytes: before + whole as u64,
                tail: &[],
                counts_in_streams: true,
            };
            debug_assert!(before >= self.header_bytes);
            let output = self.output.take().expect("the output just failed");
            return Err(output.fail(keep, interrupted.source));
        }
        self.records += self.buffered_records;
        self.buffered_records = 0;
        self.text.clear();
        Ok(())
    }
}

impl<R: Row + 'static> FlowWriter for LineWriter<R> {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        if self.output.is_none() {
            return Ok(());
        }
        let of_any_length: Vec<&Values> = batch
            .columns()
            .iter()
            .filter(|values| matches!(values.data, ValueData::List { .. } | ValueData::Text { .. }))
            .collect();
        let chunk_bytes = match self.packing {
            Packing::None => CHUNK_BYTES,
            Packing::Gzip | Packing::Zstd => FRAME_BYTES,
        };
        for row in 0..batch.rows() {
            let more = of_any_length
                .iter()
                .map(|values| further_bytes(values, row));
            self.text.reserve(self.row_bytes + more.sum::<usize>());
            self.row.write(batch, row, &mut self.text);
            self.buffered_records += 1;
            if self.text.len() >= chunk_bytes {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        self.hand_over()
    }

    fn progress(&self) -> WriteProgress {
        match &self.output {
            Some(output) => output.progress(self.records),
            None => WriteProgress::default(),
        }
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, ExportError> {
        self.hand_over()?;
        let Some(output) = self.output.take() else {
            return Ok(WriteSummary::default());
        };
        let (place, bytes) = (output.place().to_owned(), output.written_bytes());
        output
            .complete()
            .map_err(|source| ExportError::unfinished(place, source))?;
        Ok(WriteSummary {
            records: self.records,
            bytes,
        })
    }
}

/// The text as it is written. Each chunk is a complete frame (zstd) or member (gzip), which all
/// readers concatenate into one stream, so whatever was written before a failure can be read.
fn packed(packing: Packing, text: &[u8]) -> io::Result<Cow<'_, [u8]>> {
    if text.is_empty() {
        return Ok(Cow::Borrowed(text));
    }
    match packing {
        Packing::None => Ok(Cow::Borrowed(text)),
        Packing::Zstd => zstd::bulk::compress(text, ZSTD_LEVEL).map(Cow::Owned),
        Packing::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), GZIP_LEVEL);
            encoder.write_all(text)?;
            encoder.finish().map(Cow::Owned)
        }
    }
}

fn failed(output: &Destination, source: io::Error) -> ExportError {
    ExportError::Write {
        place: output.place().to_owned(),
        records: 0,
        kept: None,
        source,
    }
}

/// Maximum bytes of a row apart from the content of its lists and texts.
pub(crate) fn row_bytes(row: &impl Row, schema: &[Column]) -> usize {
    // Some values are written as whole words, which are a few bytes longer: see `Text::unsigned`.
    let values = schema.iter().map(|column| value_bytes(column.kind) + 4);
    row.frame_bytes() + values.sum::<usize>()
}

/// Maximum bytes of the elements of a list, or of the content of a text.
pub(crate) fn further_bytes(values: &Values, row: usize) -> usize {
    let length = |ends: &[usize]| ends[row] - if row == 0 { 0 } else { ends[row - 1] };
    match &values.data {
        ValueData::List { ends, .. } => length(ends) * (UNSIGNED_BYTES + 1),
        ValueData::Text { ends, .. } => quoted_bytes(length(ends)),
        _ => 0,
    }
}

const fn value_bytes(kind: ColumnKind) -> usize {
    match kind {
        ColumnKind::Address => ADDRESS_BYTES,
        ColumnKind::Unsigned { bits: 8 } => NAME_BYTES,
        ColumnKind::Unsigned { .. } => UNSIGNED_BYTES,
        ColumnKind::TimestampNs => TIME_BYTES,
        ColumnKind::Mac => MAC_BYTES,
        ColumnKind::Float => FLOAT_BYTES,
        // Only the brackets or quotes, without the content.
        ColumnKind::List | ColumnKind::Text => 2,
    }
}
