// SPDX-License-Identifier: Apache-2.0
//! The values of one column of a Parquet file.

use std::net::{IpAddr, Ipv4Addr};

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use turboflow_record::{Column, ColumnKind, ValueData, Values, clean_text};

use super::shape::Read;
use crate::read::kinds;

/// Maximum bytes of a text that is read, as in IPFIX. A dictionary can repeat a long text at no
/// cost to the file.
const MOST_TEXT_BYTES: usize = 65_535;
/// Number of characters of a text that an error message shows.
const SHOWN: usize = 64;

/// Advice on how to read the file without one of its columns.
fn without(column: &str) -> String {
    format!(
        "to read the others, drop it: \
         `duckdb -c \"COPY (SELECT * EXCLUDE ({column}) FROM 'FILE') TO 'new.parquet'\"`"
    )
}

/// One column of the open row group.
pub(super) struct OpenColumn {
    column: Column,
    unit: u64,
    is_unsigned: bool,
    reader: ColumnReader,
    full_level: i16,
    definition_levels: Vec<i16>,
    repetition_levels: Vec<i16>,
    /// Number of records that were skipped before the next value that is read.
    behind: usize,
}

/// The values that are present.
enum Packed {
    Addresses(Vec<IpAddr>),
    Numbers(Vec<u64>),
    Floats(Vec<f64>),
    Texts(Vec<ByteArray>),
}

impl OpenColumn {
    pub(super) fn new(read: Read, reader: ColumnReader, full_level: i16) -> Self {
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
            behind: 0,
        }
    }

    /// Skips the next `rows` values.
    pub(super) const fn pass(&mut self, rows: usize) {
        self.behind += rows;
    }

    /// Reads the last `rows` of the values that were skipped.
    pub(super) fn read_passed(&mut self, rows: usize) -> Result<Values, String> {
        self.behind -= rows;
        self.read(rows)
    }

    /// Reads the next `rows` values.
    pub(super) fn read(&mut self, rows: usize) -> Result<Values, String> {
        self.catch_up()?;
        self.definition_levels.clear();
        self.repetition_levels.clear();
        let levels = (&mut self.definition_levels, &mut self.repetition_levels);
        let (packed, got) = match &mut self.reader {
            ColumnReader::Int32ColumnReader(reader) => {
                let (values, got) = read::<Int32Type>(reader, rows, levels)?;
                let is_unsigned = self.is_unsigned;
                let wide = |value: i32| match is_unsigned {
                    true => i64::from(value as u32),
                    false => value.into(),
                };
                (self.numbers(values.into_iter().map(wide))?, got)
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let (values, got) = read::<Int64Type>(reader, rows, levels)?;
                (self.numbers(values.into_iter())?, got)
            }
            ColumnReader::DoubleColumnReader(reader) => {
                let (values, got) = read::<DoubleType>(reader, rows, levels)?;
                (Packed::Floats(values), got)
            }
            ColumnReader::FloatColumnReader(reader) => {
                let (values, got) = read::<FloatType>(reader, rows, levels)?;
                let values = values.into_iter().map(f64::from);
                (Packed::Floats(values.collect()), got)
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                let (values, got) = read::<ByteArrayType>(reader, rows, levels)?;
                (self.texts(values)?, got)
            }
            _ => return Err(format!("column {} has an unknown type", self.column.name)),
        };
        if got != rows {
            return Err(self.ends_early());
        }
        match (self.column.kind, packed) {
            (ColumnKind::List, Packed::Numbers(elements)) => self.lists(rows, elements),
            (_, packed) => self.spread(rows, packed),
        }
    }

    /// Skips the values that were not read.
    fn catch_up(&mut self) -> Result<(), String> {
        let behind = std::mem::take(&mut self.behind);
        let passed = match &mut self.reader {
            _ if behind == 0 => return Ok(()),
            ColumnReader::Int32ColumnReader(reader) => reader.skip_records(behind),
            ColumnReader::Int64ColumnReader(reader) => reader.skip_records(behind),
            ColumnReader::DoubleColumnReader(reader) => reader.skip_records(behind),
            ColumnReader::FloatColumnReader(reader) => reader.skip_records(behind),
            ColumnReader::ByteArrayColumnReader(reader) => reader.skip_records(behind),
            _ => return Err(format!("column {} has an unknown type", self.column.name)),
        };
        match passed.map_err(|error| error.to_string())? == behind {
            true => Ok(()),
            false => Err(self.ends_early()),
        }
    }

    #[cold]
    fn ends_early(&self) -> String {
        let name = &self.column.name;
        format!("column {name} ends before its row group does")
    }

    /// Whole numbers. Negative numbers that do not stand for large unsigned ones are refused rather
    /// than wrapped.
    fn numbers(&self, values: impl Iterator<Item = i64>) -> Result<Packed, String> {
        let (unit, is_unsigned) = (self.unit, self.is_unsigned);
        let number = |value: i64| match u64::try_from(value) {
            Ok(number) if unit == 1 => Ok(number),
            Ok(number) => number.checked_mul(unit).ok_or(value),
            Err(_) if is_unsigned => Ok(value as u64),
            Err(_) => Err(value),
        };
        let numbers = values.map(number).collect::<Result<_, _>>();
        numbers.map(Packed::Numbers).map_err(|value| {
            let (name, what) = (&self.column.name, kinds::describe(self.column.kind));
            let mend = without(name);
            format!("column {name}: {value} is not {what} that flow records can have; {mend}")
        })
    }

    fn texts(&self, texts: Vec<ByteArray>) -> Result<Packed, String> {
        let wrong = |text: &ByteArray| {
            let (name, what) = (&self.column.name, kinds::describe(self.column.kind));
            let mend = without(name);
            let start = &text.data()[..text.len().min(SHOWN)];
            let text = String::from_utf8_lossy(start);
            format!("column {name}: {text:?} is not {what}; {mend}")
        };
        match self.column.kind {
            ColumnKind::Text => {
                if let Some(long) = texts.iter().find(|text| text.len() > MOST_TEXT_BYTES) {
                    let (name, bytes) = (&self.column.name, long.len());
                    return Err(format!(
                        "column {name}: a text of {bytes} bytes is longer than {MOST_TEXT_BYTES}; \
                         {}",
                        without(name)
                    ));
                }
                let is_no_text = |text: &&ByteArray| std::str::from_utf8(text.data()).is_err();
                match texts.iter().find(is_no_text) {
                    Some(text) => Err(wrong(text)),
                    None => Ok(Packed::Texts(texts)),
                }
            }
            ColumnKind::Mac => {
                let macs = texts.iter();
                let macs = macs.map(|its| kinds::mac(its.data()).ok_or_else(|| wrong(its)));
                macs.collect::<Result<_, _>>().map(Packed::Numbers)
            }
            _ => {
                let addresses = texts.iter();
                let addresses =
                    addresses.map(|its| kinds::address(its.data()).ok_or_else(|| wrong(its)));
                addresses.collect::<Result<_, _>>().map(Packed::Addresses)
            }
        }
    }

    /// Inserts a zero for each absent value, as a batch requires.
    fn spread(&self, rows: usize, packed: Packed) -> Result<Values, String> {
        let is_there = |&level: &i16| level == self.full_level;
        let mut valid: Vec<bool> = match self.full_level {
            0 => Vec::new(),
            _ => self.definition_levels.iter().map(is_there).collect(),
        };
        if valid.len() == rows && valid.iter().all(|&valid| valid) {
            valid.clear();
        }
        let zero = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let spread = match packed {
            Packed::Addresses(values) => spread(values, &valid, rows, zero).map(ValueData::Address),
            Packed::Numbers(values) => spread(values, &valid, rows, 0).map(ValueData::Unsigned),
            Packed::Floats(values) => spread(values, &valid, rows, 0.0).map(ValueData::Float),
            Packed::Texts(values) => return self.joined(rows, &values, valid),
        };
        let whole = spread.map(|values| Values {
            data: values,
            valid,
        });
        whole.ok_or_else(|| self.wrong_levels())
    }

    /// Concatenated texts. An empty text counts as absent.
    fn joined(
        &self,
        rows: usize,
        there: &[ByteArray],
        mut valid: Vec<bool>,
    ) -> Result<Values, String> {
        let mut there = there.iter();
        let (mut ends, mut texts) = (Vec::with_capacity(rows), String::new());
        for row in 0..rows {
            if valid.get(row) != Some(&false) {
                let text = there.next().ok_or_else(|| self.wrong_levels())?;
                let text = String::from_utf8_lossy(text.data());
                let before = texts.len();
                texts.push_str(&clean_text(&text));
                if texts.len() == before {
                    valid.resize(rows, true);
                    valid[row] = false;
                }
            }
            ends.push(texts.len());
        }
        match there.next() {
            Some(_) => Err(self.wrong_levels()),
            None => Ok(Values {
                data: ValueData::Text { ends, texts },
                valid,
            }),
        }
    }

    /// Finds the end of each list.
    fn lists(&self, rows: usize, elements: Vec<u64>) -> Result<Values, String> {
        let (mut valid, mut ends) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let mut end = 0;
        let absent_below = i16::from(self.column.nullable);
        for (definition, repetition) in self.definition_levels.iter().zip(&self.repetition_levels) {
            if *repetition == 0 {
                ends.push(end);
                valid.push(*definition >= absent_below);
            }
            if *definition == self.full_level {
                end += 1;
                if let Some(last) = ends.last_mut() {
                    *last = end;
                }
            }
        }
        if ends.len() != rows || end != elements.len() {
            return Err(self.wrong_levels());
        }
        if valid.iter().all(|&valid| valid) {
            valid.clear();
        }
        Ok(Values {
            data: ValueData::List { ends, elements },
            valid,
        })
    }

    #[cold]
    fn wrong_levels(&self) -> String {
        format!("column {}: levels are wrong", self.column.name)
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

/// Moves the values to the positions of the records that have one; `None` if their number is wrong.
/// If `valid` is empty, all records have one.
fn spread<T: Clone>(mut values: Vec<T>, valid: &[bool], rows: usize, zero: T) -> Option<Vec<T>> {
    if valid.is_empty() {
        return (values.len() == rows).then_some(values);
    }
    let mut packed = values.len();
    if valid.len() != rows || packed != valid.iter().filter(|&&valid| valid).count() {
        return None;
    }
    values.resize(rows, zero.clone());
    for (row, &valid) in valid.iter().enumerate().rev() {
        if valid {
            packed -= 1;
            values.swap(row, packed);
        } else {
            values[row].clone_from(&zero);
        }
    }
    Some(values)
}
