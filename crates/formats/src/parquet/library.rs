// SPDX-License-Identifier: Apache-2.0
//! Floats, lists, texts and binary addresses, which few files contain: encoded by the parquet
//! crate.

use std::io::{self, Write};
use std::mem;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::Result;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use turboflow_record::{Column, ValueData, Values};

/// The encoder of one column chunk of floats, lists, texts or binary addresses.
pub(crate) struct LibraryChunk {
    nullable: bool,
    writer: ColumnWriter<'static>,
    pages: SharedBytes,
    numbers: Vec<i64>,
    floats: Vec<f64>,
    texts: Vec<ByteArray>,
    addresses: Vec<FixedLenByteArray>,
    definition_levels: Vec<i16>,
    repetition_levels: Vec<i16>,
}

impl LibraryChunk {
    pub(crate) fn new(
        column: &Column,
        descriptor: ColumnDescPtr,
        properties: WriterPropertiesPtr,
    ) -> Self {
        let pages = SharedBytes::default();
        let sink = Box::new(PageSink {
            tracked: TrackedWrite::new(pages.clone()),
        });
        Self {
            nullable: column.nullable,
            writer: get_column_writer(descriptor, properties, sink),
            pages,
            numbers: Vec::new(),
            floats: Vec::new(),
            texts: Vec::new(),
            addresses: Vec::new(),
            definition_levels: Vec::new(),
            repetition_levels: Vec::new(),
        }
    }

    /// Encodes the values of `rows` of a batch's column.
    pub(crate) fn write(&mut self, values: &Values, rows: Range<usize>) -> Result<()> {
        self.definition_levels.clear();
        self.repetition_levels.clear();
        match &values.data {
            ValueData::Float(floats) => self.write_floats(floats, &values.valid, rows),
            ValueData::List { ends, elements } => {
                self.write_lists(ends, elements, &values.valid, rows)
            }
            ValueData::Text { ends, texts } => self.write_texts(ends, texts, &values.valid, rows),
            ValueData::Address(addresses) => self.write_addresses(addresses, &values.valid, rows),
            ValueData::Unsigned(_) => unreachable!("numbers have an encoder of their own"),
        }
    }

    /// Ends the chunk and returns its bytes.
    pub(crate) fn close(self) -> Result<(Bytes, ColumnCloseResult)> {
        let result = self.writer.close()?;
        Ok((Bytes::from(self.pages.take()), result))
    }

    fn write_floats(&mut self, floats: &[f64], valid: &[bool], rows: Range<usize>) -> Result<()> {
        self.floats.clear();
        for row in rows {
            let there = valid.get(row) != Some(&false);
            self.definition_levels.push(i16::from(there));
            if there {
                self.floats.push(floats[row]);
            }
        }
        let levels = self.nullable.then_some(&self.definition_levels[..]);
        let ColumnWriter::DoubleColumnWriter(writer) = &mut self.writer else {
            unreachable!("the schema says that this column is DOUBLE")
        };
        writer.write_batch(&self.floats, levels, None).map(|_| ())
    }

    fn write_addresses(
        &mut self,
        addresses: &[IpAddr],
        valid: &[bool],
        rows: Range<usize>,
    ) -> Result<()> {
        self.addresses.clear();
        for row in rows {
            let there = valid.get(row) != Some(&false);
            self.definition_levels.push(i16::from(there));
            if there {
                let octets = match addresses[row] {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                self.addresses.push(octets.to_vec().into());
            }
        }
        let levels = self.nullable.then_some(&self.definition_levels[..]);
        let ColumnWriter::FixedLenByteArrayColumnWriter(writer) = &mut self.writer else {
            unreachable!("the schema says that this column is FIXED_LEN_BYTE_ARRAY")
        };
        writer
            .write_batch(&self.addresses, levels, None)
            .map(|_| ())
    }

    fn write_texts(
        &mut self,
        ends: &[usize],
        texts: &str,
        valid: &[bool],
        rows: Range<usize>,
    ) -> Result<()> {
        self.texts.clear();
        for row in rows {
            let there = valid.get(row) != Some(&false);
            self.definition_levels.push(i16::from(there));
            if there {
                let start = if row == 0 { 0 } else { ends[row - 1] };
                self.texts.push(texts[start..ends[row]].into());
            }
        }
        let levels = self.nullable.then_some(&self.definition_levels[..]);
        let ColumnWriter::ByteArrayColumnWriter(writer) = &mut self.writer else {
            unreachable!("the schema says that this column is BYTE_ARRAY")
        };
        writer.write_batch(&self.texts, levels, None).map(|_| ())
    }

    fn write_lists(
        &mut self,
        ends: &[usize],
        elements: &[u64],
        valid: &[bool],
        rows: Range<usize>,
    ) -> Result<()> {
        self.numbers.clear();
        let empty = i16::from(self.nullable);
        let mut start = if rows.start == 0 {
            0
        } else {
            ends[rows.start - 1]
        };
        for row in rows {
            let list = &elements[start..ends[row]];
            start = ends[row];
            let absent = valid.get(row) == Some(&false);
            self.repetition_levels.push(0);
            if absent || list.is_empty() {
                self.definition_levels.push(if absent { 0 } else { empty });
                continue;
            }
            self.numbers
                .extend(list.iter().map(|&element| element as i64));
            let levels = self.definition_levels.len() + list.len();
            self.definition_levels.resize(levels, empty + 1);
            self.repetition_levels.resize(levels, 1);
        }
        let (definition, repetition) = (&self.definition_levels, &self.repetition_levels);
        let ColumnWriter::Int64ColumnWriter(writer) = &mut self.writer else {
            unreachable!("the schema says that the elements are INT64")
        };
        writer
            .write_batch(&self.numbers, Some(definition), Some(repetition))
            .map(|_| ())
    }
}

/// The bytes of a column chunk, shared by its encoder and its owner. The lock is uncontended: the
/// encoder writes only while its owner calls it.
#[derive(Clone, Default)]
struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl SharedBytes {
    fn take(&self) -> Vec<u8> {
        mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A [`SerializedPageWriter`] that owns its output. The library's type borrows the output, but
/// several open columns cannot all borrow one file mutably.
struct PageSink {
    tracked: TrackedWrite<SharedBytes>,
}

impl PageWriter for PageSink {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        SerializedPageWriter::new(&mut self.tracked).write_page(page)
    }

    fn close(&mut self) -> Result<()> {
        SerializedPageWriter::new(&mut self.tracked).close()
    }
}
