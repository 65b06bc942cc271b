// SPDX-License-Identifier: Apache-2.0
//! The one face of every format.

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
/// Dropped before [`finish`](FlowWriter::finish), a file that was being written is removed.
pub trait FlowWriter: Send {
    /// Writes the records of `batch`, which has the columns of the schema given at creation.
    ///
    /// # Errors
    /// [`ExportError::Write`] says how many records are safe and where; it comes once, and after
    /// it the writer takes and ignores what it is given. [`ExportError::BrokenPipe`] where the
    /// reader of a stream went away.
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError>;

    /// Writes batches that came together, which some formats do faster than one after the other.
    ///
    /// # Errors
    /// As [`write`](FlowWriter::write).
    fn write_several(&mut self, batches: &[Arc<FlowBatch>]) -> Result<(), ExportError> {
        batches.iter().try_for_each(|batch| self.write(batch))
    }

    /// Hands what is buffered to whoever reads the output, as far as the format can: lines can,
    /// Parquet waits for the end.
    ///
    /// # Errors
    /// As [`write`](FlowWriter::write).
    fn flush(&mut self) -> Result<(), ExportError> {
        Ok(())
    }

    /// Whether what is written now is lost, though the writer goes on and may recover.
    fn is_failing(&self) -> bool {
        false
    }

    /// What has become of the records so far: those of which it is known, which never become fewer.
    fn progress(&self) -> WriteProgress {
        WriteProgress::default()
    }

    /// How the sending stands, where this is sent to a collector.
    fn sending(&self) -> Option<Arc<SendGauge>> {
        None
    }

    /// Writes what is buffered, completes the output and, for a file, gives it its name.
    ///
    /// # Errors
    /// As [`write`](FlowWriter::write).
    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError>;
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Flow records.
    pub records: u64,
    /// Bytes of the file or stream.
    pub bytes: u64,
}

/// What has become of records. The others wait: in buffers, or in a file that has no name yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteProgress {
    /// In files that have their name, or with whoever reads the stream.
    pub records_written: u64,
    /// Could not be written.
    pub records_dropped: u64,
}

/// How Parquet pages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Snappy: for readers that know no zstd.
    Snappy,
    /// Zstandard at a level from 1 to 22.
    Zstd {
        /// The level.
        level: i32,
    },
}

/// How records are written, beyond the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Compression of Parquet pages. Default: zstd at level 1.
    pub compression: Compression,
    /// Records in a Parquet row group; it bounds the writer's memory. Default: 1,048,576, which
    /// takes at most about 100 MiB with the default definition.
    pub row_group_records: usize,
    /// Key-value pairs for the Parquet footer: the definition, the command, ...
    pub metadata: Vec<(String, String)>,
    /// Whether a file's bytes must be on the disk before it gets its name. Default: no.
    pub sync: bool,
    /// What an IPFIX file needs to know: the information elements of the columns, the observation
    /// domain.
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

/// A writer to the file `path`.
///
/// The records go to a file `.NAME.PID-N.tmp` in the same directory, which replaces `path` when it
/// is complete; until then a file that `path` names stays as it is. After a failed write (a full
/// disk) the whole records that were written stay in `PATH.part`, a readable file of the same
/// format. Devices and named pipes are written to directly; a pipe is waited for
/// until somebody reads it.
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

/// The same, with a counter of the bytes that have left the writer.
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
