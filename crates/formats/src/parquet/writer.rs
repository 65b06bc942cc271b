// SPDX-License-Identifier: Apache-2.0
//! The file: row groups, the footer, and the records to keep when a write fails.

use std::io::{self, Write};
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use parquet::basic::Compression as Codec;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, ParquetMetaDataBuilder, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;
use turboflow_record::{Column, FlowBatch};

use crate::destination::{Destination, Interrupted, Keep};
use crate::parquet::chunk::Chunk;
use crate::parquet::encoders::{Encoders, Part};
use crate::parquet::page::codec_of;
use crate::parquet::schema;
use crate::parquet::types::{Leaf, leaves};
use crate::storable::{signed_rows, storable_rows};
use crate::{ExportError, FlowWriter, Unexportable, WriteOptions, WriteSummary};

struct ParquetWriter {
    schema: Vec<Column>,
    leaves: Vec<Leaf>,
    /// Finds the rows that the types of the file can hold.
    storable: fn(&[Column], &FlowBatch) -> Vec<Range<usize>>,
    properties: WriterPropertiesPtr,
    file: Option<SerializedFileWriter<Sink>>,
    chunks: Vec<Chunk>,
    codec: Codec,
    encoders: Encoders,
    row_group_records: usize,
    open_records: usize,
    records: u64,
    /// Number of records left out because the types of the file cannot hold their times or numbers.
    out_of_range: u64,
    /// End of the last row group that the output has accepted.
    safe_bytes: u64,
}

/// Writes row groups to `output`.
pub(crate) fn writer(
    output: Destination,
    columns: &[Column],
    options: &WriteOptions,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    let place = output.place().to_owned();
    let refused = |error: ParquetError| encode_error(place.clone(), &error);
    let leaves = leaves(columns, options.parquet_types).map_err(|reason| ExportError::Encode {
        place: place.clone(),
        format: "parquet",
        reason,
    })?;
    let properties = schema::properties(&leaves, options)
        .map_err(refused)?
        .into();
    let message = schema::message(&leaves).map_err(refused)?;
    let sink = Sink {
        output: Some(output),
        place: place.clone(),
        buffer: Vec::new(),
        failure: None,
    };
    let file = SerializedFileWriter::new(sink, message, WriterPropertiesPtr::clone(&properties));
    let mut writer = ParquetWriter {
        schema: columns.to_vec(),
        leaves,
        storable: match options.parquet_types.is_lake() {
            true => signed_rows,
            false => storable_rows,
        },
        properties,
        file: Some(file.map_err(refused)?),
        chunks: Vec::new(),
        codec: codec_of(options.compression).map_err(refused)?,
        encoders: Encoders::new(options.compression).map_err(|e| refused(e.into()))?,
        row_group_records: options.row_group_records.max(1),
        open_records: 0,
        records: 0,
        out_of_range: 0,
        safe_bytes: 0,
    };
    let outcome = writer.flush();
    writer.checked(outcome)?;
    Ok(Box::new(writer))
}

impl FlowWriter for ParquetWriter {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        self.append(std::iter::once(batch))
    }

    fn write_several(&mut self, batches: &[Arc<FlowBatch>]) -> Result<(), ExportError> {
        self.append(batches.iter().map(Arc::as_ref))
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, ExportError> {
        let outcome = self.close_row_group();
        self.checked(outcome)?;
        let Some(file) = &mut self.file else {
            return Ok(WriteSummary::default());
        };
        let outcome = file.finish().map(|_| ());
        let outcome = outcome.and_then(|()| Ok(file.inner_mut().flush()?));
        self.checked(outcome)?;
        let Some(mut file) = self.file.take() else {
            return Ok(WriteSummary::default());
        };
        let sink = file.inner_mut();
        let place = sink.place.clone();
        let Some(output) = sink.output.take() else {
            return Ok(WriteSummary::default());
        };
        let bytes = output.written_bytes();
        output
            .complete()
            .map_err(|source| ExportError::unfinished(place.clone(), source))?;
        if self.out_of_range > 0 {
            return Err(ExportError::NotSent {
                place,
                records: self.records,
                bytes,
                lost: 0,
                unexportable: Unexportable {
                    out_of_range: self.out_of_range,
                    ..Unexportable::default()
                },
                source: None,
            });
        }
        Ok(WriteSummary {
            records: self.records,
            bytes,
        })
    }
}

impl ParquetWriter {
    /// Encodes several batches together, as many as fit in one row group.
    fn append<'a>(
        &mut self,
        batches: impl Iterator<Item = &'a FlowBatch>,
    ) -> Result<(), ExportError> {
        let mut parts: Vec<Part<'_>> = Vec::new();
        for batch in batches {
            let storable = (self.storable)(&self.schema, batch);
            let stored: usize = storable.iter().map(Range::len).sum();
            self.out_of_range += (batch.rows() - stored) as u64;
            for mut rows in storable {
                while !rows.is_empty() && self.file.is_some() {
                    let room = self.row_group_records - self.open_records;
                    let end = rows.end.min(rows.start + room);
                    self.open_records += end - rows.start;
                    parts.push((batch, rows.start..end));
                    if self.open_records == self.row_group_records {
                        let outcome = self.encode(&mut parts);
                        let outcome = outcome.and_then(|()| self.close_row_group());
                        self.checked(outcome)?;
                    }
                    rows.start = end;
                }
            }
        }
        let outcome = self.encode(&mut parts);
        self.checked(outcome)
    }

    fn encode(&mut self, parts: &mut Vec<Part<'_>>) -> Result<(), ParquetError> {
        if parts.is_empty() {
            return Ok(());
        }
        if self.chunks.is_empty() {
            self.open_row_group();
        }
        self.encoders.write(&mut self.chunks, &self.leaves, parts)?;
        parts.clear();
        Ok(())
    }

    fn open_row_group(&mut self) {
        let Some(file) = &self.file else { return };
        let descriptors = file.schema_descr().columns();
        let columns = self.leaves.iter().zip(descriptors);
        let open = |(leaf, descriptor): (_, &_)| {
            Chunk::new(leaf, ColumnDescPtr::clone(descriptor), &self.properties)
        };
        self.chunks = columns.map(open).collect();
    }

    fn close_row_group(&mut self) -> Result<(), ParquetError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        if self.open_records == 0 {
            return Ok(());
        }
        let mut row_group = file.next_row_group()?;
        let chunks = mem::take(&mut self.chunks);
        for (bytes, result) in self.encoders.close(chunks, self.codec)? {
            row_group.append_column(&bytes, result)?;
        }
        row_group.close()?;
        self.flush()?;
        self.records += mem::take(&mut self.open_records) as u64;
        Ok(())
    }

    /// Writes everything buffered to the output; whatever it accepts is safe.
    fn flush(&mut self) -> Result<(), ParquetError> {
        if let Some(file) = &mut self.file {
            file.flush()?;
            self.safe_bytes = file.bytes_written() as u64;
        }
        Ok(())
    }

    /// Turns a failure into the error for the user, and keeps the row groups written so far.
    fn checked(&mut self, outcome: Result<(), ParquetError>) -> Result<(), ExportError> {
        let Err(error) = outcome else { return Ok(()) };
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        let sink = file.inner_mut();
        let (Some(output), Some(source)) = (sink.output.take(), sink.failure.take()) else {
            return Err(encode_error(sink.place.clone(), &error));
        };
        let tail = self.footer(&file).unwrap_or_default();
        let records = if tail.is_empty() { 0 } else { self.records };
        let length_bytes = self.safe_bytes;
        let keep = Keep {
            records,
            length_bytes,
            tail: &tail,
            counts_in_streams: false,
        };
        Err(output.fail(keep, source))
    }

    /// A footer for the row groups that are safe.
    fn footer(&self, file: &SerializedFileWriter<Sink>) -> Option<Vec<u8>> {
        let safe = |group: &&RowGroupMetaData| {
            let end = |column: &parquet::file::metadata::ColumnChunkMetaData| {
                let (start, length) = column.byte_range();
                start + length
            };
            group.columns().iter().map(end).max().unwrap_or(0) <= self.safe_bytes
        };
        let groups: Vec<_> = file
            .flushed_row_groups()
            .iter()
            .filter(safe)
            .cloned()
            .collect();
        let metadata = FileMetaData::new(
            self.properties.writer_version().as_num(),
            groups.iter().map(RowGroupMetaData::num_rows).sum(),
            Some(self.properties.created_by().to_owned()),
            self.properties.key_value_metadata().cloned(),
            file.flushed_row_groups().first()?.schema_descr_ptr(),
            None,
        );
        let metadata = ParquetMetaDataBuilder::new(metadata)
            .set_row_groups(groups)
            .build();
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &metadata)
            .finish()
            .ok()?;
        Some(footer)
    }
}

fn encode_error(place: String, error: &ParquetError) -> ExportError {
    ExportError::Encode {
        place,
        format: "parquet",
        reason: error.to_string(),
    }
}

/// Collects small writes and keeps the first error: the library returns errors as text only.
struct Sink {
    /// `None` after a failure: the library's remaining writes are discarded.
    output: Option<Destination>,
    place: String,
    buffer: Vec<u8>,
    failure: Option<io::Error>,
}

const BUFFER_BYTES: usize = 256 << 10;

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(output) = &mut self.output else {
            return Ok(());
        };
        let outcome = output.write_all(&self.buffer);
        self.buffer.clear();
        outcome.map_err(|Interrupted { source, .. }| {
            let again = source.kind().into();
            self.failure = Some(source);
            again
        })
    }
}
