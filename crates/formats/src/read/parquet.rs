// SPDX-License-Identifier: Apache-2.0
//! Reads records from Parquet files: TurboFlow's own exactly, those of other programs as far as
//! their columns have types of flow records.

mod shape;

use std::fs::File;
use std::io::{self, Read as _, Seek, SeekFrom};
use std::net::{IpAddr, Ipv4Addr};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use turboflow_record::{Column, ColumnKind, Definition, FlowBatch, Schema, Value, clean_text};

use super::kinds;
use super::{BATCH_RECORDS, FlowReader, ReadError, Source};
use crate::parquet::schema::DEFINITION_KEY;
use shape::{Read, Shape};

struct ParquetSource {
    place: String,
    columns: Vec<Read>,
    reader: SerializedFileReader<File>,
    next_row_group: usize,
    open: Vec<OpenColumn>,
    /// Records of the open row group not yet read.
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
    // A definition that this version cannot parse is ignored: columns are then known by name.
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
            columns,
            reader,
            next_row_group,
            open,
            remaining,
        }),
    })
}

/// Whether the file ends as Parquet does: the footer, which says where everything is, is written
/// last.
fn is_complete(mut file: &File) -> io::Result<bool> {
    let mut end = [0; 4];
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(4)))?;
    file.read_exact(&mut end)?;
    // A file with an encrypted footer is whole.
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

/// Whether all values of a column are some that flow records can have. Where statistics say so, no
/// value is read.
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
        let mut rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        while rows > 0 {
            let part = rows.min(BATCH_RECORDS);
            column.read(part).map_err(|_| what)?;
            rows -= part;
        }
    }
    Ok(())
}

/// How a file is read without one of its columns.
fn without(column: &str) -> String {
    format!(
        "to read the others, drop it: \
         `duckdb -c \"COPY (SELECT * EXCLUDE ({column}) FROM 'FILE') TO 'new.parquet'\"`"
    )
}

impl Source for ParquetSource {
    fn fill(&mut self, _schema: &Schema, batch: &mut FlowBatch) -> Result<(), ReadError> {
        let place = self.place.clone();
        let broken = |error: ParquetError| refused(&place, error.to_string());
        while self.remaining == 0 {
            if self.next_row_group == self.reader.num_row_groups() {
                return Ok(());
            }
            self.open_row_group().map_err(broken)?;
        }
        let rows = self.remaining.min(BATCH_RECORDS);
        for column in &mut self.open {
            column
                .read(rows)
                .map_err(|reason| refused(&place, reason))?;
        }
        self.remaining -= rows;
        let mut row = Vec::with_capacity(self.open.len());
        for index in 0..rows {
            row.clear();
            row.extend(self.open.iter().map(|column| column.value(index)));
            batch.push_row(&row);
        }
        Ok(())
    }
}

impl ParquetSource {
    fn open_row_group(&mut self) -> Result<(), ParquetError> {
        let group = self.reader.get_row_group(self.next_row_group)?;
        self.next_row_group += 1;
        self.remaining = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        self.open.clear();
        for column in &self.columns {
            let chunk = group.metadata().column(column.leaf);
            let levels = chunk.column_descr().max_def_level();
            let reader = group.get_column_reader(column.leaf)?;
            self.open
                .push(OpenColumn::new(column.clone(), reader, levels));
        }
        Ok(())
    }
}

/// One column of the open row group, and its values for the current batch.
struct OpenColumn {
    column: Column,
    unit: u64,
    is_unsigned: bool,
    reader: ColumnReader,
    full_level: i16,
    definition_levels: Vec<i16>,
    repetition_levels: Vec<i16>,
    addresses: Vec<IpAddr>,
    numbers: Vec<u64>,
    floats: Vec<f64>,
    texts: Vec<String>,
    ends: Vec<usize>,
    valid: Vec<bool>,
}

impl OpenColumn {
    fn new(read: Read, reader: ColumnReader, full_level: i16) -> Self {
        let Read {
            column,
            unit,
            is_unsigned,
            ..
        } = read;
        Self {
            column,
            unit,
            is_unsigned,
            reader,
            full_level,
            definition_levels: Vec::new(),
            repetition_levels: Vec::new(),
            addresses: Vec::new(),
            numbers: Vec::new(),
            floats: Vec::new(),
            texts: Vec::new(),
            ends: Vec::new(),
            valid: Vec::new(),
        }
    }

    fn value(&self, row: usize) -> Value<'_> {
        if self.valid.get(row) == Some(&false) {
            return Value::Absent;
        }
        match self.column.kind {
            ColumnKind::Address => Value::Address(self.addresses[row]),
            ColumnKind::Float => Value::Float(self.floats[row]),
            ColumnKind::Text => match self.texts[row].as_str() {
                "" => Value::Absent,
                text => Value::Text(text),
            },
            ColumnKind::List => {
                let start = if row == 0 { 0 } else { self.ends[row - 1] };
                Value::List(&self.numbers[start..self.ends[row]])
            }
            _ => Value::Unsigned(self.numbers[row]),
        }
    }

    /// Reads the next `rows` values.
    fn read(&mut self, rows: usize) -> Result<(), String> {
        self.definition_levels.clear();
        self.repetition_levels.clear();
        let levels = (&mut self.definition_levels, &mut self.repetition_levels);
        let got = match &mut self.reader {
            ColumnReader::Int32ColumnReader(reader) => {
                let (values, got) = read::<Int32Type>(reader, rows, levels)?;
                let is_unsigned = self.is_unsigned;
                let wide = |value: i32| match is_unsigned {
                    true => i64::from(value as u32),
                    false => value.into(),
                };
                self.take_numbers(values.into_iter().map(wide))?;
                got
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let (values, got) = read::<Int64Type>(reader, rows, levels)?;
                self.take_numbers(values.into_iter())?;
                got
            }
            ColumnReader::DoubleColumnReader(reader) => {
                let (values, got) = read::<parquet::data_type::DoubleType>(reader, rows, levels)?;
                self.floats = values;
                got
            }
            ColumnReader::FloatColumnReader(reader) => {
                let (values, got) = read::<parquet::data_type::FloatType>(reader, rows, levels)?;
                self.floats = values.into_iter().map(f64::from).collect();
                got
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                let (values, got) =
                    read::<parquet::data_type::ByteArrayType>(reader, rows, levels)?;
                self.take_texts(&values)?;
                got
            }
            _ => return Err(format!("column {} has an unknown type", self.column.name)),
        };
        if got != rows {
            return Err(format!(
                "column {} ends before its row group does",
                self.column.name
            ));
        }
        if self.column.kind == ColumnKind::List {
            self.end_lists(rows)
        } else {
            self.spread(rows)
        }
    }

    /// Takes whole numbers. Where negative ones are none that flow records have, they are refused
    /// rather than wrapped.
    fn take_numbers(&mut self, values: impl Iterator<Item = i64>) -> Result<(), String> {
        self.numbers.clear();
        for value in values {
            let number = match u64::try_from(value) {
                Ok(number) => number.checked_mul(self.unit),
                Err(_) if self.is_unsigned => Some(value as u64),
                Err(_) => None,
            };
            let wrong = || {
                let (name, what) = (&self.column.name, kinds::describe(self.column.kind));
                let mend = without(name);
                format!("column {name}: {value} is not {what} that flow records can have; {mend}")
            };
            self.numbers.push(number.ok_or_else(wrong)?);
        }
        Ok(())
    }

    fn take_texts(&mut self, values: &[ByteArray]) -> Result<(), String> {
        let wrong = |text: &ByteArray| {
            let (name, what) = (&self.column.name, kinds::describe(self.column.kind));
            format!(
                "column {name}: {:?} is not {what}; {}",
                String::from_utf8_lossy(text.data()),
                without(name)
            )
        };
        self.addresses.clear();
        self.numbers.clear();
        self.texts.clear();
        for text in values {
            if self.column.kind == ColumnKind::Text {
                let text = std::str::from_utf8(text.data()).map_err(|_| wrong(text))?;
                self.texts.push(clean_text(text).into_owned());
            } else if self.column.kind == ColumnKind::Mac {
                self.numbers
                    .push(kinds::mac(text.data()).ok_or_else(|| wrong(text))?);
            } else {
                self.addresses
                    .push(kinds::address(text.data()).ok_or_else(|| wrong(text))?);
            }
        }
        Ok(())
    }

    /// Inserts a zero for each absent value, as a [`FlowBatch`] requires.
    fn spread(&mut self, rows: usize) -> Result<(), String> {
        self.valid.clear();
        if self.full_level == 0 {
            return Ok(());
        }
        let there = self
            .definition_levels
            .iter()
            .map(|&level| level == self.full_level);
        self.valid.extend(there);
        let zero = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let whole = self.valid.len() == rows
            && match self.column.kind {
                ColumnKind::Address => spread(&mut self.addresses, &self.valid, zero),
                ColumnKind::Float => spread(&mut self.floats, &self.valid, 0.0),
                ColumnKind::Text => spread(&mut self.texts, &self.valid, String::new()),
                _ => spread(&mut self.numbers, &self.valid, 0),
            };
        whole
            .then_some(())
            .ok_or_else(|| format!("column {}: levels are wrong", self.column.name))
    }

    /// Finds where each list ends.
    fn end_lists(&mut self, rows: usize) -> Result<(), String> {
        self.valid.clear();
        self.ends.clear();
        let mut end = 0;
        let absent_below = i16::from(self.column.nullable);
        for (definition, repetition) in self.definition_levels.iter().zip(&self.repetition_levels) {
            if *repetition == 0 {
                self.ends.push(end);
                self.valid.push(*definition >= absent_below);
            }
            if *definition == self.full_level {
                end += 1;
                if let Some(last) = self.ends.last_mut() {
                    *last = end;
                }
            }
        }
        let whole = self.ends.len() == rows && end == self.numbers.len();
        whole
            .then_some(())
            .ok_or_else(|| format!("column {}: levels are wrong", self.column.name))
    }
}

type Levels<'a> = (&'a mut Vec<i16>, &'a mut Vec<i16>);

/// Reads the values of `rows` records, and returns how many records there were.
fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    levels: Levels<'_>,
) -> Result<(Vec<T::T>, usize), String> {
    let (mut values, mut total) = (Vec::with_capacity(rows), 0);
    while total < rows {
        let outcome = reader.read_records(
            rows - total,
            Some(&mut *levels.0),
            Some(&mut *levels.1),
            &mut values,
        );
        let (got, _, _) = outcome.map_err(|error| error.to_string())?;
        if got == 0 {
            break;
        }
        total += got;
    }
    Ok((values, total))
}

/// Moves the values from the front to the valid positions; returns whether their number is right.
fn spread<T: Clone>(values: &mut Vec<T>, valid: &[bool], zero: T) -> bool {
    let mut packed = values.len();
    if packed != valid.iter().filter(|&&valid| valid).count() {
        return false;
    }
    values.resize(valid.len(), zero.clone());
    for (row, &valid) in valid.iter().enumerate().rev() {
        if valid {
            packed -= 1;
            values.swap(row, packed);
        } else {
            values[row].clone_from(&zero);
        }
    }
    true
}
