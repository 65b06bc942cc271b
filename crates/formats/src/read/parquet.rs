// SPDX-License-Identifier: Apache-2.0
//! Reads records from Parquet files: TurboFlow's own exactly, those of other programs if their
//! types are ones that flow records have.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;
use turboflow_record::{Column, ColumnKind, Definition, FlowBatch, Schema, Value};

use super::kinds;
use super::{BATCH_RECORDS, FlowReader, ReadError, Source};
use crate::parquet::schema::{COLUMNS_KEY, DEFINITION_KEY, parse_kinds};

struct ParquetSource {
    place: String,
    reader: SerializedFileReader<File>,
    next_row_group: usize,
    open: Vec<OpenColumn>,
    /// Records of the open row group not yet read.
    remaining: usize,
}

/// Reads the footer.
pub(crate) fn open(file: File, place: String) -> Result<FlowReader, ReadError> {
    let broken = |error: ParquetError| refused(&place, error.to_string());
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    let metadata = reader.metadata();
    let schema = schema(metadata).map_err(|reason| refused(&place, reason))?;
    // A definition that this version cannot parse is ignored: columns are then known by name.
    let text = footer_value(metadata, DEFINITION_KEY);
    let definition = text.and_then(|text| Definition::parse(text).ok());
    let (next_row_group, open, remaining) = (0, Vec::new(), 0);
    Ok(FlowReader {
        shown: vec![true; schema.len()],
        has_columns: true,
        schema,
        definition,
        source: Box::new(ParquetSource {
            place,
            reader,
            next_row_group,
            open,
            remaining,
        }),
    })
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

fn schema(metadata: &ParquetMetaData) -> Result<Schema, String> {
    let file = metadata.file_metadata();
    let fields = file.schema().get_fields();
    let kinds = footer_value(metadata, COLUMNS_KEY).and_then(parse_kinds);
    let described = kinds.filter(|kinds| kinds.len() == fields.len());
    let column = |(index, field): (usize, &std::sync::Arc<Type>)| {
        let shown = kind_of(field)?;
        // The footer tells a MAC address from an IP address; otherwise the types decide.
        let declared = described.as_ref().map(|kinds| kinds[index]);
        let kind = match (shown, declared) {
            (ColumnKind::Address, Some(ColumnKind::Mac)) => ColumnKind::Mac,
            _ => shown,
        };
        let nullable = field.get_basic_info().repetition() == Repetition::OPTIONAL;
        Ok(Column {
            name: field.name().to_owned(),
            kind,
            nullable,
        })
    };
    fields.iter().enumerate().map(column).collect()
}

fn kind_of(field: &Type) -> Result<ColumnKind, String> {
    let name = field.name();
    let no_kind = || format!("column {name} has a type that no column of a flow record has");
    let basic = field.get_basic_info();
    if basic.repetition() == Repetition::REPEATED {
        return Err(no_kind());
    }
    if field.is_group() {
        let number = |element: &Type| match element {
            Type::PrimitiveType {
                physical_type: PhysicalType::INT64,
                basic_info,
                ..
            } => basic_info.repetition() == Repetition::REQUIRED,
            _ => false,
        };
        let is_list = basic.logical_type_ref() == Some(&LogicalType::List)
            && matches!(field.get_fields(), [list] if list.is_group()
                && matches!(list.get_fields(), [element] if number(element)));
        return is_list.then_some(ColumnKind::List).ok_or_else(no_kind);
    }
    match (field.get_physical_type(), basic.logical_type_ref()) {
        (PhysicalType::BYTE_ARRAY, _) => Ok(ColumnKind::Address),
        (PhysicalType::INT32, Some(LogicalType::Integer(integer))) if !integer.is_signed => {
            Ok(ColumnKind::Unsigned {
                bits: integer.bit_width as u8,
            })
        }
        (PhysicalType::INT32, None) => Ok(ColumnKind::Unsigned { bits: 32 }),
        (PhysicalType::INT64, Some(LogicalType::Timestamp(time)))
            if time.unit == TimeUnit::NANOS =>
        {
            Ok(ColumnKind::TimestampNs)
        }
        (PhysicalType::INT64, None | Some(LogicalType::Integer(_))) => {
            Ok(ColumnKind::Unsigned { bits: 64 })
        }
        (PhysicalType::DOUBLE, _) => Ok(ColumnKind::Float),
        _ => Err(no_kind()),
    }
}

impl Source for ParquetSource {
    fn fill(&mut self, schema: &Schema, batch: &mut FlowBatch) -> Result<(), ReadError> {
        let place = self.place.clone();
        let broken = |error: ParquetError| refused(&place, error.to_string());
        while self.remaining == 0 {
            if self.next_row_group == self.reader.num_row_groups() {
                return Ok(());
            }
            self.open_row_group(schema).map_err(broken)?;
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
    fn open_row_group(&mut self, schema: &Schema) -> Result<(), ParquetError> {
        let group = self.reader.get_row_group(self.next_row_group)?;
        self.next_row_group += 1;
        self.remaining = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        self.open.clear();
        for (index, column) in schema.iter().enumerate() {
            let levels = group
                .metadata()
                .column(index)
                .column_descr()
                .max_def_level();
            let reader = group.get_column_reader(index)?;
            self.open
                .push(OpenColumn::new(column.clone(), reader, levels));
        }
        Ok(())
    }
}

/// One column of the open row group, and its values for the current batch.
struct OpenColumn {
    column: Column,
    reader: ColumnReader,
    full_level: i16,
    definition_levels: Vec<i16>,
    repetition_levels: Vec<i16>,
    addresses: Vec<IpAddr>,
    numbers: Vec<u64>,
    floats: Vec<f64>,
    ends: Vec<usize>,
    valid: Vec<bool>,
}

impl OpenColumn {
    fn new(column: Column, reader: ColumnReader, full_level: i16) -> Self {
        Self {
            column,
            reader,
            full_level,
            definition_levels: Vec::new(),
            repetition_levels: Vec::new(),
            addresses: Vec::new(),
            numbers: Vec::new(),
            floats: Vec::new(),
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
                replace(&mut self.numbers, values, |value| u64::from(value as u32));
                got
            }
            ColumnReader::Int64ColumnReader(reader) => {
                let (values, got) = read::<Int64Type>(reader, rows, levels)?;
                replace(&mut self.numbers, values, |value| value as u64);
                got
            }
            ColumnReader::DoubleColumnReader(reader) => {
                let (values, got) = read::<parquet::data_type::DoubleType>(reader, rows, levels)?;
                self.floats = values;
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

    fn take_texts(&mut self, values: &[ByteArray]) -> Result<(), String> {
        let wrong = |text: &ByteArray| {
            let (name, what) = (&self.column.name, kinds::describe(self.column.kind));
            format!(
                "column {name}: {:?} is not {what}",
                String::from_utf8_lossy(text.data())
            )
        };
        self.addresses.clear();
        self.numbers.clear();
        for text in values {
            if self.column.kind == ColumnKind::Mac {
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

fn replace<T>(numbers: &mut Vec<u64>, values: Vec<T>, as_number: impl Fn(T) -> u64) {
    numbers.clear();
    numbers.extend(values.into_iter().map(as_number));
}

/// Moves the values from the front to the valid positions; returns whether their number is right.
fn spread<T: Copy>(values: &mut Vec<T>, valid: &[bool], zero: T) -> bool {
    let mut packed = values.len();
    if packed != valid.iter().filter(|&&valid| valid).count() {
        return false;
    }
    values.resize(valid.len(), zero);
    for (row, &valid) in valid.iter().enumerate().rev() {
        values[row] = if valid {
            packed -= 1;
            values[packed]
        } else {
            zero
        };
    }
    true
}
