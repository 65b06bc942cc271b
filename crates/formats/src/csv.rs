// SPDX-License-Identifier: Apache-2.0
//! CSV: a header line, then one line per record.
//!
//! Addresses are text (IPv6 as in RFC 5952), numbers decimal, times and names as the options say,
//! MAC addresses `aa:bb:cc:dd:ee:ff`, lists `[1;2;3]`, absent values empty. Texts and column names
//! are quoted if they contain a comma or a quote, or begin or end with a space (RFC 4180).

use turboflow_record::{Column, FlowBatch, ValueData};

use crate::destination::Destination;
use crate::format::Packing;
use crate::lines::{LineWriter, Row};
use crate::quotes::csv_field;
use crate::text::Text;
use crate::text_options::{TextOptions, Written};
use crate::{ExportError, FlowWriter};

struct CsvRow {
    written: Vec<Written>,
}

/// Writes the header and then rows to `output`.
pub(crate) fn writer(
    output: Destination,
    packing: Packing,
    schema: &[Column],
    options: TextOptions,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    let written: Vec<_> = schema
        .iter()
        .map(|column| Written::of(column, options))
        .collect();
    let columns = schema.iter().zip(&written);
    let header: Vec<_> = columns
        .map(|(column, written)| csv_field(&written.name(column)))
        .collect();
    let header = header.join(",") + "\n";
    let row = CsvRow { written };
    LineWriter::start(output, packing, schema, row, header.as_bytes())
}

impl Row for CsvRow {
    fn frame_bytes(&self) -> usize {
        self.written.len() + 1
    }

    #[inline(always)]
    fn write(&self, batch: &FlowBatch, row: usize, text: &mut Text) {
        for (values, written) in batch.columns().iter().zip(&self.written) {
            if values.valid.is_empty() || values.valid[row] {
                match &values.data {
                    ValueData::Address(values) => text.address(values[row]),
                    ValueData::Unsigned(values) => text.number(values[row], *written),
                    ValueData::Float(values) => text.float(values[row]),
                    ValueData::List { ends, elements } => {
                        let start = if row == 0 { 0 } else { ends[row - 1] };
                        text.list(&elements[start..ends[row]], b';');
                    }
                    ValueData::Text { ends, texts } => {
                        let start = if row == 0 { 0 } else { ends[row - 1] };
                        text.csv_text(&texts[start..ends[row]]);
                    }
                }
            }
            text.byte(b',');
        }
        text.end_line();
    }
}
