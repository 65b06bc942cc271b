// SPDX-License-Identifier: Apache-2.0
//! The interface of every output: the file formats of this crate, collectors in `crates/transport`,
//! and Kafka in `crates/kafka`. The program chooses among them in
//! `apps/turboflow/src/record/outputs.rs`.

use std::sync::Arc;

use turboflow_record::FlowBatch;

use crate::wire::WireOptions;
use crate::{ExportError, FileOptions, ParquetTypes, SendGauge, TextOptions};

/// Takes flow records batch by batch and writes them in one format.
///
/// If it is dropped before [`finish`](FlowWriter::finish), its unfinished file is removed.
pub trait FlowWriter: Send {
    /// Writes the records of `batch`, which has the columns of the schema given at creation.
    ///
    /// # Errors
    /// [`ExportError::Write`] says how many records are safe and where. It is returned once;
    /// afterwards the writer discards further records. [`ExportError::BrokenPipe`] if the reader of
    /// a stream closed it.
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError>;

    /// Writes several batches, which some formats do faster than one by one.
    ///
    /// # Errors
    /// As [`write`](FlowWriter::write).
    fn write_several(&mut self, batches: &[Arc<FlowBatch>]) -> Result<(), ExportError> {
        batches.iter().try_for_each(|batch| self.write(batch))
    }

    /// Makes buffered records visible to readers of the output if the format allows it: lines can
    /// be flushed, Parquet cannot before its end.
    ///
    /// # Errors
    /// As [`write`](FlowWriter::write).
    fn flush(&mut self) -> Result<(), ExportError> {
        Ok(())
    }

    /// Says how far the run has come. Called after writes, and several times a second if there are
    /// none.
    ///
    /// # Errors
    /// As [`write`](FlowWriter::write).
    fn pass(&mut self, _passed: Passed) -> Result<(), ExportError> {
        Ok(())
    }

    /// Whether records written now are lost. The writer continues and may recover.
    fn is_failing(&self) -> bool {
        false
    }

    /// The records known to be written or dropped so far. The counts never decrease.
    fn progress(&self) -> WriteProgress {
        WriteProgress::default()
    }

    /// The progress of sending, if the output is a collector.
    fn sending(&self) -> Option<Arc<SendGauge>> {
        None
    }

    /// Writes buffered records and completes the output; a file gets its final name.
    ///
    /// # Errors
    /// As [`write`](FlowWriter::write).
    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError>;
}

/// Totals of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteSummary {
    /// Number of flow records.
    pub records: u64,
    /// Bytes of the file or stream.
    pub bytes: u64,
}

/// How far a run has come, as an output sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// No record that is written from now on has a packet before this time, in nanoseconds since
    /// 1970, unless its packets were late. 0 if unknown.
    pub watermark_ns: u64,
    /// Records of this output that were discarded before they reached its writer.
    pub records_overrun: u64,
}

/// Numbers of records written and dropped. All others are in buffers or in an unfinished file.
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

/// Options of writers, apart from the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// Compression of Parquet pages. Default: zstd at level 1.
    pub compression: Compression,
    /// The types of Parquet columns.
    pub parquet_types: ParquetTypes,
    /// Records in a Parquet row group, which bounds the writer's memory. Default: 1,048,576, at
    /// most about 100 MiB with the default definition.
    pub row_group_records: usize,
    /// Key-value pairs for the Parquet footer, such as the definition and the command. IPFIX files
    /// contain only the definition.
    pub metadata: Vec<(String, String)>,
    /// How files are created and completed.
    pub files: FileOptions,
    /// How CSV and JSON lines write times and names.
    pub text: TextOptions,
    /// Options of IPFIX files: the information elements of the columns, and the observation domain.
    pub wire: WireOptions,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            compression: Compression::Zstd { level: 1 },
            parquet_types: ParquetTypes::default(),
            row_group_records: 1 << 20,
            metadata: Vec::new(),
            files: FileOptions::default(),
            text: TextOptions::default(),
            wire: WireOptions::default(),
        }
    }
}
