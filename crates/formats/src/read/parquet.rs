// SPDX-License-Identifier: Apache-2.0
//! Reads records from Parquet files: all columns of TurboFlow's own files exactly, and from files
//! of other programs the columns whose types flow records have.

mod column;
mod shape;

use std::fs::File;
use std::io::{self, Read as _, Seek, SeekFrom};

use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use turboflow_record::{ColumnKind, Definition, FlowBatch, Schema, Values};

use super::{BATCH_RECORDS, FlowReader, ReadError, Source};
use crate::parquet::schema::DEFINITION_KEY;
use column::OpenColumn;
use shape::{Read, Shape};

/// Maximum number of records in a batch with texts, each of which has up to 64 KiB.
const TEXT_BATCH_RECORDS: usize = 1024;

struct ParquetSource {
    place: String,
    columns: Vec<Read>,
    order: Vec<Turn>,
    reader: SerializedFileReader<File>,
    next_row_group: usize,
    open: Vec<OpenColumn>,
    /// Records of the open row group that have not been read yet.
    remaining: usize,
}

/// Reads the footer.
pub(crate) fn open(file: File, place: String) -> Result<FlowReader, ReadError> {
    let broken = |error: ParquetError| refused(&place, error.to_string());
    if !is_complete(&file).unwrap_or(true) {
        return Err(ReadError::Incomplete { place });
    }
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let metadata = reader.metadata();
    let Shape { columns, left_out } = Shape::of(&reader).map_err(|why| refused(&place, why))?;
    let schema: Schema = columns.iter().map(|read| read.column.clone()).collect();
    // Ignored if this version cannot parse it: columns are then recognised by name.
    let text = footer_value(metadata, DEFINITION_KEY);
    let definition = text.and_then(|text| Definition::parse(text).ok());
    let (next_row_group, open, remaining) = (0, Vec::new(), 0);
    Ok(FlowReader {
        shown: vec![true; schema.len()],
        has_columns: true,
        schema,
        definition,
        left_out,
        source: Box::new(ParquetSource {
            place,
            order: vec![Turn::First; columns.len()],
            columns,
            reader,
            next_row_group,
            open,
            remaining,
        }),
    })
}

/// Whether the file ends as a Parquet file does: the footer, which locates everything else, is
/// written last.
fn is_complete(mut file: &File) -> io::Result<bool> {
    let mut end = [0; 4];
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(4)))?;
    file.read_exact(&mut end)?;
    // A file with an encrypted footer is complete.
    Ok(length >= 12 && matches!(&end, b"PAR1" | b"PARE"))
}

/// The footer's value for that key.
fn footer_value<'m>(metadata: &'m ParquetMetaData, key: &str) -> Option<&'m str> {
    let pairs = metadata.file_metadata().key_value_metadata();
    let mut named = pairs.into_iter().flatten().filter(|pair| pair.key == key);
    named.find_map(|pair| pair.value.as_deref())
}

fn refused(place: &str, reason: String) -> ReadError {
    ReadError::Parquet {
        place: place.to_owned(),
        reason,
    }
}

/// Checks that all values of a column are ones that flow records can have. If the statistics say
/// so, no value is read.
///
/// # Errors
/// What does not fit.
fn check_values(reader: &SerializedFileReader<File>, read: &Read) -> Result<(), &'static str> {
    let is_number = matches!(
        read.column.kind,
        ColumnKind::Unsigned { .. } | ColumnKind::TimestampNs
    );
    let is_text = matches!(read.column.kind, ColumnKind::Address | ColumnKind::Mac);
    if !is_text && (!is_number || read.is_unsigned) {
        return Ok(());
    }
    let what = match is_text {
        true => "text",
        false => "numbers or times that flow records do not have",
    };
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index).map_err(|_| what)?;
        let chunk = group.metadata().column(read.leaf);
        let (least, most) = match chunk.statistics() {
            Some(Statistics::Int32(its)) => (
                its.min_opt().map(|n| i64::from(*n)),
                its.max_opt().map(|n| i64::from(*n)),
            ),
            Some(Statistics::Int64(its)) => (its.min_opt().copied(), its.max_opt().copied()),
            _ => (None, None),
        };
        if let (Some(0..), Some(most), true) = (least, most, is_number) {
            let most = u64::try_from(most)
                .ok()
                .and_then(|n| n.checked_mul(read.unit));
            most.ok_or(what)?;
            continue;
        }
        let levels = chunk.column_descr().max_def_level();
        let values = group.get_column_reader(read.leaf).map_err(|_| what)?;
        let mut column = OpenColumn::new(read.clone(), values, levels);
        let mut rows = usize::try_from(group.metadata().num_rows()).map_err(|_| what)?;
        while rows > 0 {
            let part = rows.min(BATCH_RECORDS);
            column.read(part).map_err(|_| what)?;
            rows -= part;
        }
    }
    Ok(())
}

impl Source for ParquetSource {
    fn fill(&mut self, schema: &Schema, batch: &mut FlowBatch) -> Result<(), ReadError> {
        while self.remaining == 0 {
            if self.next_row_group == self.reader.num_row_groups() {
                return Ok(());
            }
            let opened = self.open_row_group();
            opened.map_err(|why| self.broken(&why))?;
        }
        let rows = self.remaining.min(self.batch_records());
        let mut columns = Vec::with_capacity(schema.len());
        for (index, column) in schema.iter().enumerate() {
            let open = &mut self.open[index];
            columns.push(match self.order[index] {
                Turn::First => open.read(rows).map_err(|why| self.broken(&why))?,
                Turn::Then | Turn::Never => {
                    open.pass(rows);
                    Values::none(column.kind)
                }
            });
        }
        self.remaining -= rows;
        *batch = FlowBatch::of_columns(rows, columns);
        Ok(())
    }

    fn read_apart(&mut self, first: &[usize], then: &[usize]) {
        // The number of records is counted by reading a column, instead of trusting the footer.
        let counted = first.is_empty().then(|| self.smallest_column()).flatten();
        for (index, turn) in self.order.iter_mut().enumerate() {
            *turn = match index {
                index if first.contains(&index) || counted == Some(index) => Turn::First,
                index if then.contains(&index) => Turn::Then,
                _ => Turn::Never,
            };
        }
    }

    fn complete(&mut self, batch: &mut FlowBatch) -> Result<(), ReadError> {
        for index in 0..self.open.len() {
            if self.order[index] == Turn::Then {
                let values = self.open[index].read_passed(batch.rows());
                let values = values.map_err(|why| self.broken(&why))?;
                batch.fill(index, values);
            }
        }
        Ok(())
    }
}

/// At what point the values of a column are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    First,
    /// When the batch is completed.
    Then,
    Never,
}

impl ParquetSource {
    /// Opens the next row group. Afterwards its number is the number of opened row groups minus
    /// one.
    fn open_row_group(&mut self) -> Result<(), String> {
        let group = self.reader.get_row_group(self.next_row_group);
        self.next_row_group += 1;
        let group = group.map_err(|error| error.to_string())?;
        self.remaining = rows_of(group.metadata(), &self.columns)?;
        self.open.clear();
        for column in &self.columns {
            let chunk = group.metadata().column(column.leaf);
            let levels = chunk.column_descr().max_def_level();
            let reader = group.get_column_reader(column.leaf);
            let reader = reader.map_err(|error| error.to_string())?;
            self.open
                .push(OpenColumn::new(column.clone(), reader, levels));
        }
        Ok(())
    }

    /// An error in the open row group, whose number counts from 0 as in other programs.
    #[cold]
    fn broken(&self, why: &str) -> ReadError {
        let number = self.next_row_group.saturating_sub(1);
        refused(&self.place, format!("row group {number}: {why}"))
    }

    /// Maximum records in a batch: few enough to bound the size of its texts, however often a
    /// dictionary repeats one.
    fn batch_records(&self) -> usize {
        let mut turns = self.columns.iter().zip(&self.order);
        let has_texts =
            turns.any(|(read, turn)| read.column.kind == ColumnKind::Text && *turn != Turn::Never);
        match has_texts {
            true => TEXT_BATCH_RECORDS,
            false => BATCH_RECORDS,
        }
    }

    /// The column that is cheapest to read, other than texts and lists.
    fn smallest_column(&self) -> Option<usize> {
        let groups = self.reader.metadata().row_groups();
        let bytes = |read: &Read| -> i64 {
            let chunks = groups.iter().map(|group| group.column(read.leaf));
            chunks.fold(0, |sum, chunk| sum.saturating_add(chunk.compressed_size()))
        };
        let is_long = |read: &Read| matches!(read.column.kind, ColumnKind::Text | ColumnKind::List);
        let columns = self.columns.iter().enumerate();
        let smallest = columns.min_by_key(|(_, read)| (is_long(read), bytes(read)));
        smallest.map(|(index, _)| index)
    }
}

/// Number of records in a row group, if all of its columns agree on it.
///
/// # Errors
/// The contradiction in the footer.
fn rows_of(group: &RowGroupMetaData, columns: &[Read]) -> Result<usize, String> {
    let rows = group.num_rows();
    let count = usize::try_from(rows)
        .map_err(|_| format!("it has {rows} records according to the footer, a negative number"))?;
    if columns.is_empty() && rows > 0 {
        return Err(format!(
            "it has {rows} records according to the footer, and no column"
        ));
    }
    for read in columns {
        let values = group.column(read.leaf).num_values();
        // A list has one value for each element, or one that marks it as empty.
        let fits = match read.column.kind {
            ColumnKind::List => values >= rows,
            _ => values == rows,
        };
        if !fits {
            let name = &read.column.name;
            return Err(format!(
                "it has {rows} records according to the footer, but column {name} has {values} \
                 values: the file is damaged"
            ));
        }
    }
    Ok(count)
}
