// SPDX-License-Identifier: Apache-2.0
//! One column of the open row group: encodes values, and holds compressed pages in memory.

use std::ops::Range;

use bytes::Bytes;
use parquet::basic::Compression as Codec;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::schema::types::ColumnDescPtr;
use turboflow_record::{ColumnKind, Values};

use crate::parquet::flat::FlatChunk;
use crate::parquet::library::LibraryChunk;
use crate::parquet::page::Compressor;
use crate::parquet::types::{Form, Leaf};

/// The encoder of one column chunk.
pub(crate) enum Chunk {
    Flat(Box<FlatChunk>),
    Library(Box<LibraryChunk>),
}

impl Chunk {
    pub(crate) fn new(
        leaf: &Leaf,
        descriptor: ColumnDescPtr,
        properties: &WriterPropertiesPtr,
    ) -> Self {
        let column = &leaf.column;
        let is_rare = matches!(
            column.kind,
            ColumnKind::Float | ColumnKind::List | ColumnKind::Text
        );
        if is_rare || leaf.form == Form::Bytes {
            let properties = WriterPropertiesPtr::clone(properties);
            Self::Library(Box::new(LibraryChunk::new(column, descriptor, properties)))
        } else {
            Self::Flat(Box::new(FlatChunk::new(leaf, descriptor)))
        }
    }

    /// Encodes the values of `rows` of a batch's column.
    pub(crate) fn write(
        &mut self,
        leaf: &Leaf,
        values: &Values,
        rows: Range<usize>,
        compressor: &mut Compressor,
    ) -> Result<()> {
        let absent = !values.valid.is_empty() && values.valid[rows.clone()].contains(&false);
        if absent && !leaf.column.nullable {
            let message = format!(
                "{} is absent in a record, which it may never be",
                leaf.column.name
            );
            return Err(ParquetError::General(message));
        }
        match self {
            Self::Flat(chunk) => chunk.write(values, rows, compressor),
            Self::Library(chunk) => chunk.write(values, rows),
        }
    }

    /// Ends the chunk and returns its bytes.
    pub(crate) fn close(
        self,
        codec: Codec,
        compressor: &mut Compressor,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        match self {
            Self::Flat(chunk) => chunk.close(codec, compressor),
            Self::Library(chunk) => chunk.close(),
        }
    }
}
