// SPDX-License-Identifier: Apache-2.0
//! Creates writers: a file or a stream in one of the formats.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use turboflow_record::Column;

use crate::destination::Destination;
use crate::format::Packing;
use crate::wire;
use crate::{ExportError, FlowWriter, Format, WriteOptions, arrow, csv, json, parquet};

/// Creates a writer to the file `path`.
///
/// The records go to a file `.NAME.PID-N.tmp` in the target's directory, which replaces `path` when
/// it is complete; until then an existing file stays as it is. After a failed write (such as a full
/// disk), the complete records stay in `PATH.part`, a readable file of that format. Devices and
/// named pipes are written to directly; opening a pipe waits for a reader. Text formats are
/// compressed if `path` ends in `.gz` or `.zst`.
///
/// # Errors
/// [`ExportError::IsDirectory`], [`ExportError::NoDirectory`], [`ExportError::SymbolicLink`] or
/// [`ExportError::Create`] if the file cannot be written; [`ExportError::Encode`] if the format
/// cannot hold the schema.
pub fn create(
    path: &Path,
    format: Format,
    schema: &[Column],
    options: &WriteOptions,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    let packing = Packing::from_path(path);
    let output = Destination::create(path, options.files)?;
    writer_of_format(output, format, packing, schema, options)
}

/// Like [`create`], with a counter of the bytes that have left the writer.
pub(crate) fn create_counted(
    path: &Path,
    format: Format,
    schema: &[Column],
    options: &WriteOptions,
) -> Result<(Box<dyn FlowWriter>, Arc<AtomicU64>), ExportError> {
    let output = Destination::create(path, options.files)?;
    let written_bytes = output.byte_counter();
    let packing = Packing::from_path(path);
    let writer = writer_of_format(output, format, packing, schema, options)?;
    Ok((writer, written_bytes))
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
    let packing = Packing::from_path(Path::new(place));
    writer_of_format(
        Destination::stream(stream, place),
        format,
        packing,
        schema,
        options,
    )
}

/// The writer of a format. A new format is added here.
fn writer_of_format(
    output: Destination,
    format: Format,
    packing: Packing,
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
        Format::Csv => csv::writer(output, packing, schema, options.text),
        Format::JsonLines => json::writer(output, packing, schema, options.text),
        Format::Arrow => arrow::writer(output, schema, options),
        Format::Parquet => parquet::writer(output, schema, options),
        Format::Ipfix => wire::file_writer(output, schema, options),
    }
}
