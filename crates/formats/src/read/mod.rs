// SPDX-License-Identifier: Apache-2.0
//! Reads the flow records that this crate writes, batch by batch, in bounded memory.

mod csv;
mod error;
mod ipfix;
mod json;
mod kinds;
mod lines;
mod parquet;
mod start;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use turboflow_record::{Definition, FlowBatch, Schema};

pub use error::ReadError;

use crate::Format;
use kinds::Seen;
use lines::Lines;
use start::text_of;

/// Maximum number of records in a batch.
const BATCH_RECORDS: usize = 8192;

/// Reads a file of flow records batch by batch; see [`read`].
pub struct FlowReader {
    schema: Schema,
    /// For each column, whether its values have shown its kind.
    shown: Vec<bool>,
    has_columns: bool,
    definition: Option<Definition>,
    left_out: Vec<String>,
    source: Box<dyn Source>,
}

/// Opens the stream again from its start, if that is possible.
type Again<'a> = &'a dyn Fn() -> Option<Lines>;

/// A reader of one format.
trait Source: Send {
    /// Appends up to [`BATCH_RECORDS`] records to an empty batch; none at the end.
    fn fill(&mut self, schema: &Schema, batch: &mut FlowBatch) -> Result<(), ReadError>;

    /// Limits the batches to the columns in `first`, if the format stores columns separately; those
    /// in `then` are left to [`Source::complete`].
    fn read_apart(&mut self, _first: &[usize], _then: &[usize]) {}

    /// Fills in the columns of the last batch that were left to this call.
    fn complete(&mut self, _batch: &mut FlowBatch) -> Result<(), ReadError> {
        Ok(())
    }

    /// After the end: where the file was cut off, if an incomplete rest was left out.
    fn damage(&self) -> Option<ReadError> {
        None
    }

    /// Changes the columns to those of `_schema`, matched by name; false if every record has all
    /// columns.
    fn rearrange(&mut self, _before: &Schema, _schema: &Schema) -> bool {
        false
    }
}

impl FlowReader {
    /// A reader of text with known column names.
    fn new(seen: Seen, source: Box<dyn Source>) -> Self {
        let (schema, shown) = seen.columns();
        Self {
            schema,
            shown,
            has_columns: true,
            definition: None,
            left_out: Vec::new(),
            source,
        }
    }

    fn without_records(schema: Schema, source: Box<dyn Source>) -> Self {
        Self {
            shown: vec![false; schema.len()],
            schema,
            has_columns: false,
            definition: None,
            left_out: Vec::new(),
            source,
        }
    }

    /// The columns of every batch.
    ///
    /// Parquet files declare their columns. In CSV and JSON lines, the columns of the default
    /// definition are recognised by name. The kind of any other column is determined by its values:
    /// in a file by all of them, in a stream by those in the first MiB. A column without values is
    /// assumed to hold unsigned numbers. Every column of a text file is nullable.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Whether the columns are known, which they are unless it is a JSON lines file without
    /// records.
    #[must_use]
    pub const fn has_columns(&self) -> bool {
        self.has_columns
    }

    /// The definition of the records, if the file contains it, as TurboFlow's Parquet and IPFIX
    /// files do.
    #[must_use]
    pub const fn definition(&self) -> Option<&Definition> {
        self.definition.as_ref()
    }

    /// Names of the columns of the file that are not read because flow records do not have such
    /// types, each with what it holds.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Whether the kind of a column is known, rather than assumed because it has no values.
    #[must_use]
    pub fn shows_kind(&self, column: usize) -> bool {
        self.shown.get(column) == Some(&true)
    }

    /// Takes the kinds of columns that have not shown theirs from another file. If this file has no
    /// records, takes all columns.
    pub fn take_kinds(&mut self, of: &Schema) {
        if !self.has_columns {
            self.schema.clone_from(of);
        }
        for (index, column) in self.schema.iter_mut().enumerate() {
            if let (Some(false), Some(other)) = (self.shown.get(index), of.get(index)) {
                column.kind = other.kind;
            }
        }
    }

    /// Takes the columns that several files have together: they may differ, because IPFIX templates
    /// leave out what is absent. Returns false if this file has all of its columns in every record.
    pub fn take_columns(&mut self, all: &Schema) -> bool {
        let takes = self.source.rearrange(&self.schema, all);
        if takes {
            self.schema.clone_from(all);
            self.shown = vec![true; all.len()];
        }
        takes
    }

    /// Limits the batches to the columns in `first`; those in `then` are read when
    /// [`FlowReader::complete`] asks for them. Both are indices into the schema. Parquet stores
    /// columns separately, so that columns that are not read cost nothing; other formats return all
    /// columns in every batch.
    ///
    /// Invalid values are not detected in columns that are not read.
    pub fn read_apart(&mut self, first: &[usize], then: &[usize]) {
        self.source.read_apart(first, then);
    }

    /// Fills in the columns of the last batch that were given as `then` to
    /// [`FlowReader::read_apart`].
    ///
    /// # Errors
    /// As [`FlowReader::next_batch`].
    pub fn complete(&mut self, batch: &mut FlowBatch) -> Result<(), ReadError> {
        self.source.complete(batch)
    }

    /// After the last record: where the file was cut off, because its writer was stopped.
    /// Everything before was read, and the incomplete rest was left out.
    #[must_use]
    pub fn damage(&self) -> Option<ReadError> {
        self.source.damage()
    }

    /// The next records; `None` at the end.
    ///
    /// # Errors
    /// [`ReadError`], which for text formats has the line and column of the invalid value.
    pub fn next_batch(&mut self) -> Result<Option<FlowBatch>, ReadError> {
        let mut batch = FlowBatch::new(&self.schema);
        self.source.fill(&self.schema, &mut batch)?;
        Ok((batch.rows() > 0).then_some(batch))
    }
}

impl Iterator for FlowReader {
    type Item = Result<FlowBatch, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

/// Opens a file of flow records; `-` is standard input. The content determines the format.
///
/// # Errors
/// [`ReadError::NoFile`] if there is no such file, [`ReadError::Open`] if it cannot be opened, and
/// other errors if it does not contain flow records.
pub fn read(path: &Path) -> Result<FlowReader, ReadError> {
    open(path, Kinds::Inferred)
}

/// Opens a file that was read before. Columns whose kind does not show early get the kind given in
/// `columns`.
///
/// # Errors
/// As [`read`].
pub fn read_again(path: &Path, columns: &Schema) -> Result<FlowReader, ReadError> {
    let mut reader = open(path, Kinds::Known)?;
    reader.take_kinds(columns);
    Ok(reader)
}

/// How the kinds of columns are determined if the start of a file does not show them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kinds {
    Inferred,
    Known,
}

fn open(path: &Path, kinds: Kinds) -> Result<FlowReader, ReadError> {
    if path == Path::new("-") {
        let stdin = Box::new(io::stdin());
        return from_text(stdin, "standard input", EmptyStream::Failed, &|| None);
    }
    let place = path.display().to_string();
    let refused = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ReadError::NoFile {
            place: place.clone(),
        },
        _ => ReadError::Open {
            place: place.clone(),
            source,
        },
    };
    let mut file = File::open(path).map_err(refused)?;
    let is_file = file.metadata().map_err(refused)?.is_file();
    if is_file && starts_as_parquet(&mut file)? {
        return parquet::open(File::open(path).map_err(refused)?, place);
    }
    if is_file && ipfix::is_start(&start_of(path, &place)?) {
        return ipfix::open(path, place);
    }
    // A capture without flows gives an empty JSON lines file, but a CSV file with a header. So an
    // empty file whose name says CSV is truncated.
    let empty = match is_file {
        true if has_header(path) => EmptyStream::Refused,
        true => EmptyStream::Allowed,
        false => EmptyStream::Failed,
    };
    let file = File::open(path).map_err(refused)?;
    let again = || {
        let may = is_file && kinds == Kinds::Inferred;
        let file = may.then(|| File::open(path).ok()).flatten()?;
        let text = text_of(Box::new(file), &place).ok()?;
        Some(Lines::new(text, &place))
    };
    from_text(Box::new(file), &place, empty, &again)
}

/// Whether an empty stream is an error or a file without records.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EmptyStream {
    Allowed,
    Refused,
    /// Refused, because the program at the other end of the pipe has probably failed. A program
    /// that stopped within a line has failed, too.
    Failed,
}

/// Reads CSV or JSON lines from a stream, which may be compressed with gzip or zstd; `place` is its
/// name in errors.
///
/// # Errors
/// As [`read`]. Parquet and IPFIX cannot be read from a stream: Parquet has its schema at the end,
/// and IPFIX has templates between the records.
pub fn from_stream(stream: Box<dyn Read + Send>, place: &str) -> Result<FlowReader, ReadError> {
    from_text(stream, place, EmptyStream::Allowed, &|| None)
}

fn from_text(
    stream: Box<dyn Read + Send>,
    place: &str,
    empty: EmptyStream,
    again: Again<'_>,
) -> Result<FlowReader, ReadError> {
    let mut lines = Lines::new(text_of(stream, place)?, place);
    if empty == EmptyStream::Failed {
        lines.expect_whole_lines();
    }
    let start = lines.sample()?;
    let first = start
        .iter()
        .copied()
        .find(|byte| !byte.is_ascii_whitespace());
    match first {
        None if empty == EmptyStream::Refused => Err(lines.error(None, EMPTY)),
        None if empty == EmptyStream::Failed => Err(ReadError::NothingCame {
            place: place.to_owned(),
        }),
        Some(b'{') | None => json::open(lines, again),
        Some(_) => csv::open(lines, again),
    }
}

const EMPTY: &str = "the file is empty: its writer stopped before the header";

/// Whether a file of that name has content even if it has no records.
fn has_header(path: &Path) -> bool {
    Format::from_path(path).is_ok_and(Format::has_header)
}

/// The first bytes of a file.
fn start_of(path: &Path, place: &str) -> Result<Vec<u8>, ReadError> {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4).read_to_end(&mut start));
    read.map_err(|source| ReadError::Open {
        place: place.to_owned(),
        source,
    })?;
    Ok(start)
}

fn starts_as_parquet(file: &mut File) -> Result<bool, ReadError> {
    let mut start = [0; 4];
    // A shorter file is not Parquet.
    Ok(file.read_exact(&mut start).is_ok() && start == *b"PAR1")
}
