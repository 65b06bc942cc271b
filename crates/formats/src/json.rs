// SPDX-License-Identifier: Apache-2.0
//! JSON lines: one object per record, keys in the order of the columns.
//!
//! Numbers are JSON numbers. 64-bit numbers are written exactly; readers that parse them as floats
//! lose digits. Times are nanoseconds since 1970 by default; addresses, MAC addresses and texts are
//! strings; lists are arrays; absent values are `null`, so that every line has every key. JSON has
//! no infinity and no NaN: such floats are `null` too.

use turboflow_record::{Column, FlowBatch, ValueData};

use crate::destination::Destination;
use crate::format::Packing;
use crate::lines::{LineWriter, Row, further_bytes, row_bytes};
use crate::quotes::json_string;
use crate::text::Text;
use crate::text_options::{TextOptions, Written};
use crate::{ExportError, FlowWriter};

struct JsonRow {
    /// The text before each value: `{"src_addr":` and then `,"dst_addr":`.
    before: Vec<Vec<u8>>,
    written: Vec<Written>,
}

/// Encodes records as lines, for messages.
pub struct JsonMessages {
    row: JsonRow,
    row_bytes: usize,
    text: Text,
}

impl JsonMessages {
    /// An encoder of lines with the columns of `schema`.
    #[must_use]
    pub fn new(schema: &[Column], options: TextOptions) -> Self {
        let row = JsonRow::new(schema, options);
        Self {
            row_bytes: row_bytes(&row, schema),
            row,
            text: Text::default(),
        }
    }

    /// Appends a record as a line.
    ///
    /// # Panics
    /// If the batch has other columns or no such row.
    pub fn append(&mut self, batch: &FlowBatch, row: usize, bytes: &mut Vec<u8>) {
        let further = batch
            .columns()
            .iter()
            .map(|values| further_bytes(values, row));
        self.text.clear();
        self.text.reserve(self.row_bytes + further.sum::<usize>());
        self.row.write(batch, row, &mut self.text);
        bytes.extend_from_slice(self.text.as_bytes());
    }
}

impl JsonRow {
    fn new(schema: &[Column], options: TextOptions) -> Self {
        let written: Vec<_> = schema
            .iter()
            .map(|column| Written::of(column, options))
            .collect();
        let columns = schema.iter().zip(&written).enumerate();
        let before = columns.map(|(index, (column, written))| {
            let start = if index == 0 { '{' } else { ',' };
            format!("{start}{}:", json_string(&written.name(column))).into_bytes()
        });
        Self {
            before: before.collect(),
            written,
        }
    }
}

/// Writes rows to `output`.
pub(crate) fn writer(
    output: Destination,
    packing: Packing,
    schema: &[Column],
    options: TextOptions,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    let row = JsonRow::new(schema, options);
    LineWriter::start(output, packing, schema, row, &[])
}

impl Row for JsonRow {
    fn frame_bytes(&self) -> usize {
        // Two quotes around a value, or `null` instead of it; the closing brace and the newline.
        self.before
            .iter()
            .map(|before| before.len() + 4)
            .sum::<usize>()
            + 3
    }

    #[inline(always)]
    fn write(&self, batch: &FlowBatch, row: usize, text: &mut Text) {
        let columns = batch.columns().iter().zip(&self.written);
        for ((values, written), before) in columns.zip(&self.before) {
            text.raw(before);
            if !values.valid.is_empty() && !values.valid[row] {
                text.raw(b"null");
                continue;
            }
            match &values.data {
                ValueData::Address(values) => {
                    text.byte(b'"');
                    text.address(values[row]);
                    text.byte(b'"');
                }
                ValueData::Unsigned(values) if written.is_quoted() => {
                    text.byte(b'"');
                    text.number(values[row], *written);
                    text.byte(b'"');
                }
                ValueData::Unsigned(values) => text.number(values[row], *written),
                ValueData::Float(values) if !values[row].is_finite() => text.raw(b"null"),
                ValueData::Float(values) => text.float(values[row]),
                ValueData::List { ends, elements } => {
                    let start = if row == 0 { 0 } else { ends[row - 1] };
                    text.list(&elements[start..ends[row]], b',');
                }
                ValueData::Text { ends, texts } => {
                    let start = if row == 0 { 0 } else { ends[row - 1] };
                    text.json_text(&texts[start..ends[row]]);
                }
            }
        }
        text.raw(b"}\n");
    }
}
