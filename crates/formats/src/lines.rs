// SPDX-License-Identifier: Apache-2.0
//! Shared by CSV and JSON lines: rows of text in chunks, and the records kept when a disk is full.

use turboflow_record::{Column, ColumnKind, FlowBatch, ValueData, Values};

use crate::output::{Keep, Output};
use crate::text::{ADDRESS_BYTES, FLOAT_BYTES, MAC_BYTES, Text, UNSIGNED_BYTES};
use crate::{ExportError, FlowWriter, WriteProgress, WriteSummary};

/// Approximate size of the chunks written to the system.
const CHUNK_BYTES: usize = 256 << 10;

/// Writes a row as a line of one format.
pub(crate) trait Row: Send {
    /// Upper bound on the bytes of a row, without its lists and its values.
    fn frame_bytes(&self) -> usize;
    /// Writes one line, newline included.
    fn write(&self, batch: &FlowBatch, row: usize, text: &mut Text);
}

/// A [`FlowWriter`] of lines.
pub(crate) struct LineWriter<R> {
    row: R,
    row_bytes: usize,
    text: Text,
    output: Option<Output>,
    header_bytes: u64,
    records: u64,
    buffered_records: u64,
}

impl<R: Row + 'static> LineWriter<R> {
    /// Writes `header` at once, so that an unwritable target is reported before metering starts.
    pub(crate) fn start(
        mut output: Output,
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
        if let Err(interrupted) = output.write_all(header) {
            return Err(output.fail(keep, interrupted.source));
        }
        // Some values are written as whole words, a few bytes longer (see `Text::unsigned`).
        let values: usize = schema
            .iter()
            .map(|column| value_bytes(column.kind) + 4)
            .sum();
        Ok(Box::new(Self {
            row_bytes: row.frame_bytes() + values,
            row,
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
        let outcome = output.write_all(self.text.as_bytes());
        if let Err(interrupted) = outcome {
            let accepted = &self.text.as_bytes()[..interrupted.accepted_bytes];
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
        let lists: Vec<&Values> = batch
            .columns()
            .iter()
            .filter(|values| matches!(values.data, ValueData::List { .. }))
            .collect();
        for row in 0..batch.rows() {
            let elements: usize = lists.iter().map(|values| list_length(values, row)).sum();
            self.text
                .reserve(self.row_bytes + elements * (UNSIGNED_BYTES + 1));
            self.row.write(batch, row, &mut self.text);
            self.buffered_records += 1;
            if self.text.len() >= CHUNK_BYTES {
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

fn list_length(values: &Values, row: usize) -> usize {
    match &values.data {
        ValueData::List { ends, .. } => ends[row] - if row == 0 { 0 } else { ends[row - 1] },
        _ => 0,
    }
}

const fn value_bytes(kind: ColumnKind) -> usize {
    match kind {
        ColumnKind::Address => ADDRESS_BYTES,
        ColumnKind::Unsigned { .. } | ColumnKind::TimestampNs => UNSIGNED_BYTES,
        ColumnKind::Mac => MAC_BYTES,
        ColumnKind::Float => FLOAT_BYTES,
        ColumnKind::List => 2,
    }
}
