// SPDX-License-Identifier: Apache-2.0
//! The columns of a Parquet file: which of them flow records have, and how their values are read.

use std::fs::File;

use parquet::basic::Type as PhysicalType;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, TimeUnit};
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;
use turboflow_record::{Column, ColumnKind};

use crate::parquet::schema::{COLUMNS_KEY, parse_kinds};
use crate::read::kinds;

/// The columns that are read, and those that are left out.
pub(super) struct Shape {
    pub(super) columns: Vec<Read>,
    /// Names of the columns that are not read, each with what it holds.
    pub(super) left_out: Vec<String>,
}

/// A column that is read.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) column: Column,
    /// Index of the column among the leaves of the file's schema.
    pub(super) leaf: usize,
    /// For times, the number of nanoseconds in a unit; otherwise 1.
    pub(super) unit: u64,
    /// Whether negative numbers stand for large unsigned ones.
    pub(super) is_unsigned: bool,
    /// Whether neither its name nor the footer of one of our files says that it is a column of flow
    /// records.
    pub(super) is_strange: bool,
}

/// What the type of a column means.
enum Kind {
    /// A kind that flow records have, with the unit and whether it is unsigned.
    Flow(ColumnKind, u64, bool),
    /// Texts that may be addresses.
    Text,
    /// A type that flow records do not have.
    Foreign(&'static str),
}

/// Number of texts examined to learn whether they are addresses.
const TEXTS: usize = 1024;

impl Shape {
    /// Finds the columns.
    ///
    /// # Errors
    /// The reason why the file cannot be read, and what to do.
    pub(super) fn of(reader: &SerializedFileReader<File>) -> Result<Self, String> {
        let metadata = reader.metadata();
        check_compression(metadata)?;
        let fields = metadata.file_metadata().schema().get_fields();
        let kinds = super::footer_value(metadata, COLUMNS_KEY).and_then(parse_kinds);
        let described = kinds.filter(|kinds| kinds.len() == fields.len());
        let (mut columns, mut left_out, mut leaf) = (Vec::new(), Vec::new(), 0);
        for (index, field) in fields.iter().enumerate() {
            let declared = described.as_ref().map(|kinds| kinds[index]);
            if declared == Some(None) {
                // This column repeats the values of another one.
                leaf += leaves(field);
                continue;
            }
            let declared = declared.flatten();
            let kind = match (kind_of(field), declared) {
                (Kind::Text, _) => of_texts(reader, field, leaf, declared),
                // Table formats have a signed type for these kinds.
                (
                    Kind::Flow(ColumnKind::Unsigned { .. }, 1, is_unsigned),
                    Some(kind @ (ColumnKind::Unsigned { .. } | ColumnKind::TimestampNs)),
                ) => Kind::Flow(kind, 1, is_unsigned),
                // The type of other numbers and times is sufficient.
                (kind, _) => kind,
            };
            match kind {
                Kind::Flow(kind, unit, is_unsigned) => columns.push(Read {
                    column: Column {
                        name: field.name().to_owned(),
                        kind,
                        nullable: field.get_basic_info().repetition() == Repetition::OPTIONAL,
                    },
                    leaf,
                    unit,
                    is_unsigned: is_unsigned || declared.is_some(),
                    is_strange: declared.is_none() && kinds::kind_by_name(field.name()).is_none(),
                }),
                Kind::Text => left_out.push(format!("{} (text)", field.name())),
                Kind::Foreign(what) => left_out.push(format!("{} ({what})", field.name())),
            }
            leaf += leaves(field);
        }
        columns.retain(|read: &Read| {
            let outcome = match read.is_strange {
                true => super::check_values(reader, read),
                false => Ok(()),
            };
            let name = &read.column.name;
            left_out.extend(outcome.as_ref().err().map(|why| format!("{name} ({why})")));
            outcome.is_ok()
        });
        if columns.is_empty() && !fields.is_empty() {
            return Err(format!(
                "none of its columns is one of flow records: {}",
                left_out.join(", ")
            ));
        }
        Ok(Self { columns, left_out })
    }
}

/// Refuses files that use compression codecs that are not built in.
fn check_compression(metadata: &ParquetMetaData) -> Result<(), String> {
    let groups = metadata.row_groups().iter();
    let mut codecs = groups
        .flat_map(|group| group.columns())
        .map(|chunk| chunk.compression());
    let unread = codecs.find_map(|codec| match codec {
        Compression::BROTLI(_) => Some("brotli"),
        Compression::LZO => Some("lzo"),
        _ => None,
    });
    match unread {
        Some(codec) => Err(format!(
            "it is compressed with {codec}, which is not read; write it with zstd, snappy, gzip or \
             lz4, for example by \
             `duckdb -c \"COPY (FROM 'FILE') TO 'new.parquet' (COMPRESSION zstd)\"`"
        )),
        None => Ok(()),
    }
}

/// Number of leaves of a field; each leaf is a column of the file.
fn leaves(field: &Type) -> usize {
    match field.is_group() {
        true => field.get_fields().iter().map(|inner| leaves(inner)).sum(),
        false => 1,
    }
}

fn kind_of(field: &Type) -> Kind {
    let basic = field.get_basic_info();
    if basic.repetition() == Repetition::REPEATED {
        return Kind::Foreign("a repeated value");
    }
    if field.is_group() {
        return match is_list_of_numbers(field) {
            true => Kind::Flow(ColumnKind::List, 1, true),
            false => Kind::Foreign("a structure"),
        };
    }
    let bits = |bits: u8, is_unsigned| Kind::Flow(ColumnKind::Unsigned { bits }, 1, is_unsigned);
    let time = |unit: u64| Kind::Flow(ColumnKind::TimestampNs, unit, false);
    let (logical, converted) = (basic.logical_type_ref(), basic.converted_type());
    match (field.get_physical_type(), logical, converted) {
        (PhysicalType::BYTE_ARRAY, None | Some(LogicalType::String), _) => Kind::Text,
        (PhysicalType::INT64, Some(LogicalType::Timestamp(at)), _) => match at.unit {
            TimeUnit::NANOS => time(1),
            TimeUnit::MICROS => time(1_000),
            TimeUnit::MILLIS => time(1_000_000),
        },
        (PhysicalType::INT64, None, ConvertedType::TIMESTAMP_MICROS) => time(1_000),
        (PhysicalType::INT64, None, ConvertedType::TIMESTAMP_MILLIS) => time(1_000_000),
        (PhysicalType::INT32 | PhysicalType::INT64, Some(LogicalType::Integer(number)), _) => {
            bits(number.bit_width as u8, !number.is_signed)
        }
        (PhysicalType::INT64, None, ConvertedType::NONE | ConvertedType::INT_64)
            if kinds::kind_by_name(field.name()) == Some(ColumnKind::TimestampNs) =>
        {
            time(1)
        }
        (PhysicalType::INT32 | PhysicalType::INT64, None, converted) => match converted {
            ConvertedType::UINT_8 => bits(8, true),
            ConvertedType::UINT_16 => bits(16, true),
            ConvertedType::UINT_32 => bits(32, true),
            ConvertedType::UINT_64 => bits(64, true),
            ConvertedType::NONE if field.get_physical_type() == PhysicalType::INT32 => {
                bits(32, false)
            }
            ConvertedType::INT_8 | ConvertedType::INT_16 | ConvertedType::INT_32 => bits(32, false),
            ConvertedType::NONE | ConvertedType::INT_64 => bits(64, false),
            _ => Kind::Foreign("dates, times of day or decimals"),
        },
        (PhysicalType::DOUBLE | PhysicalType::FLOAT, _, _) => {
            Kind::Flow(ColumnKind::Float, 1, false)
        }
        (PhysicalType::INT96, ..) => Kind::Foreign("times as INT96"),
        (PhysicalType::BOOLEAN, ..) => Kind::Foreign("true or false"),
        (PhysicalType::INT32 | PhysicalType::INT64, ..) => {
            Kind::Foreign("dates, times of day or decimals")
        }
        _ => Kind::Foreign("binary data"),
    }
}

fn is_list_of_numbers(field: &Type) -> bool {
    let is_number = |element: &Type| match element {
        Type::PrimitiveType {
            physical_type: PhysicalType::INT64,
            basic_info,
            ..
        } => basic_info.repetition() == Repetition::REQUIRED,
        _ => false,
    };
    field.get_basic_info().logical_type_ref() == Some(&LogicalType::List)
        && matches!(field.get_fields(), [list] if list.is_group()
            && matches!(list.get_fields(), [element] if is_number(element)))
}

/// The kind of a column of texts: what the footer or its name says, otherwise what its first texts
/// look like.
fn of_texts(
    reader: &SerializedFileReader<File>,
    field: &Type,
    leaf: usize,
    declared: Option<ColumnKind>,
) -> Kind {
    let known = declared.or_else(|| kinds::kind_by_name(field.name()));
    if let Some(kind @ (ColumnKind::Address | ColumnKind::Mac | ColumnKind::Text)) = known {
        return Kind::Flow(kind, 1, true);
    }
    let texts = first_texts(reader, leaf).unwrap_or_default();
    // Without any text, nothing shows that the column is more than text.
    let all = |is: fn(&[u8]) -> bool| !texts.is_empty() && texts.iter().all(|text| is(text.data()));
    if all(|text| kinds::address(text).is_some()) {
        Kind::Flow(ColumnKind::Address, 1, true)
    } else if all(|text| kinds::mac(text).is_some()) {
        Kind::Flow(ColumnKind::Mac, 1, true)
    } else {
        Kind::Text
    }
}

fn first_texts(reader: &SerializedFileReader<File>, leaf: usize) -> Option<Vec<ByteArray>> {
    let groups = 0..reader.num_row_groups();
    let first = groups.into_iter().find(|&group| {
        let metadata = reader.metadata().row_group(group);
        metadata.num_rows() > 0
    })?;
    let group = reader.get_row_group(first).ok()?;
    let levels = group.metadata().column(leaf).column_descr().max_def_level();
    let ColumnReader::ByteArrayColumnReader(mut texts) = group.get_column_reader(leaf).ok()? else {
        return None;
    };
    let (mut values, mut definition) = (Vec::new(), Vec::new());
    let levels = (levels > 0).then_some(&mut definition);
    texts.read_records(TEXTS, levels, None, &mut values).ok()?;
    Some(values)
}
