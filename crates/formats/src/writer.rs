// SPDX-License-Identifier: Apache-2.0
//! The common interface of all formats.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use turboflow_record::{Column, FlowBatch};

use crate::output::Output;
use crate::wire::{self, WireOptions};
use crate::{ExportError, Format, SendGauge, csv, json, parquet};

/// Takes flow records batch by batch and writes them in one format.
///
/// If it is dropped before [`finish`](FlowWriter::finish), its unfinished file is removed.
pub trait FlowWriter: Send {
    /// Writes the records of `batch`, which has the columns of the schema given at creation.
    ///
    /// # Errors
    /// [`ExportError::Write`] says how many records are safe and where. It is returned once;
    /// afterwards the writer discards further records. [`ExportError::BrokenPipe`] where the reader
    /// of a stream closed it.
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError>;

    /// Writes several batches, which some formats do faster than one by one.
    ///
    /// # Errors
    /// As [`write`](FlowWriter::write).
    fn write_several(&mut self, batches: &[Arc<FlowBatch>]) -> Result<(), ExportError> {
        batches.iter().try_for_each(|batch| self.write(batch))
    }

    /// Makes buffered records visible to readers of the output, where the format allows it: lines
    /// can be flushed, Parquet only at the end.
    ///
    /// # Errors
    /// As [`write`](FlowWriter::write).
    fn flush(&mut self) -> Result<(), ExportError> {
        Ok(())
    }

    /// Whether records written now are lost, although the writer continues and may recover.
    fn is_failing(&self) -> bool {
        false
    }

    /// The records known to be written or dropped so far. The counts never decrease.
    fn progress(&self) -> WriteProgress {
        WriteProgress::default()
    }

    /// The progress of sending, for an output to a collector.
    fn sending(&self) -> Option<Arc<SendGauge>> {
        None
    }

    /// Writes buffered records, completes the output and gives a file its name.
    ///
    /// # Errors
    /// As [`write`](FlowWriter::write).
    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError>;
}

/// Totals of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Flow records.
    pub records: u64,
    /// Bytes of the file or stream.
    pub bytes: u64,
}

/// Records written and dropped. All others are in buffers, or in an unfinished file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteProgress {
    /// Records in completed files, or accepted by the reader of the stream.
    pub records_written: u64,
    /// Records that could not be written.
    pub records_dropped: u64,
}

/// How Parquet pages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// Snappy: for readers without zstd.
    Snappy,
    /// Zstandard at a level from 1 to 22.
    Zstd {
        /// The level.
        level: i32,
    },
}

/// Options of writing, apart from the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Compression of Parquet pages. Default: zstd at level 1.
    pub compression: Compression,
    /// Records in a Parquet row group, which bounds the writer's memory. Default: 1,048,576, about
    /// 100 MiB at most with the default definition.
    pub row_group_records: usize,
    /// Key-value pairs for the Parquet footer, such as the definition and the command.
    pub metadata: Vec<(String, String)>,
    /// Whether a file's bytes must be on the disk before it gets its name. Default: no.
    pub sync: bool,
    /// Options of IPFIX files: the information elements of the columns, and the observation domain.
    pub wire: WireOptions,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            compression: Compression::Zstd { level: 1 },
            row_group_records: 1 << 20,
            metadata: Vec::new(),
            sync: false,
            wire: WireOptions::default(),
        }
    }
}

/// Creates a writer to the file `path`.
///
/// The records go to a file `.NAME.PID-N.tmp` in the target's directory, which replaces `path` when
/// it is complete; until then an existing file stays as it is. After a failed write (a full disk)
/// the complete records stay in `PATH.part`, a readable file of that format. Devices and named
/// pipes are written to directly; opening a pipe waits for a reader.
///
/// # Errors
/// [`ExportError::IsDirectory`], [`ExportError::NoDirectory`] or [`ExportError::Create`] where the
/// file cannot be written, [`ExportError::Encode`] where the format cannot hold the schema.
pub fn create(
    path: &Path,
    format: Format,
    schema: &[Column],
    options: &WriteOptions,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    over(Output::create(path, options.sync)?, format, schema, options)
}

/// Like [`create`], with a counter of the bytes that have left the writer.
pub(crate) fn create_counted(
    path: &Path,
    format: Format,
    schema: &[Column],
    options: &WriteOptions,
) -> Result<(Box<dyn FlowWriter>, Arc<AtomicU64>), ExportError> {
    let output = Output::create(path, options.sync)?;
    let written_bytes = output.byte_counter();
    Ok((over(output, format, schema, options)?, written_bytes))
}

/// A writer to a stream; `place` is its name in errors.
///
/// # Errors
/// As [`FlowWriter::write`]: a CSV header, for example, is written at once.
pub fn to_writer(
    stream: Box<dyn Write + Send>,
    place: &str,
    format: Format,
    schema: &[Column],
    options: &WriteOptions,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    over(Output::stream(stream, place), format, schema, options)
}

fn over(
    output: Output,
    format: Format,
    schema: &[Column],
    options: &WriteOptions,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    if schema.is_empty() {
        let (place, format) = (output.place().to_owned(), format.name());
        return Err(ExportError::Encode {
            place,
            format,
            reason: "it has no column".to_owned(),
        });
    }
    match format {
        Format::Csv => csv::writer(output, schema),
        Format::JsonLines => json::writer(output, schema),
        Format::Parquet => parquet::writer(output, schema, options),
        Format::Ipfix => wire::file_writer(output, schema, &options.wire),
    }
}
