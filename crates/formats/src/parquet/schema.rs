// SPDX-License-Identifier: Apache-2.0
//! Columns as Parquet types, and the metadata of the footer.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{Type, TypePtr};
use turboflow_record::{Column, ColumnKind};

use crate::WriteOptions;
use crate::parquet::page::codec_of;

/// Footer key: the version that wrote the file.
pub(crate) const VERSION_KEY: &str = "turboflow.version";
/// Footer key: the kinds of the columns; a reader needs them to tell addresses from MAC addresses.
pub(crate) const COLUMNS_KEY: &str = "turboflow.columns";
/// Footer key: the definition of the records as TOML, if the writer was given it (see
/// [`WriteOptions::metadata`]). Readers take the ops of features from it.
pub const DEFINITION_KEY: &str = "turboflow.definition";

/// The message type of the file.
pub(crate) fn message(schema: &[Column]) -> Result<TypePtr> {
    let fields = schema
        .iter()
        .map(|column| field(column).map(Arc::new))
        .collect::<Result<_>>()?;
    Ok(Arc::new(
        Type::group_type_builder("flow_record")
            .with_fields(fields)
            .build()?,
    ))
}

fn field(column: &Column) -> Result<Type> {
    let repetition = if column.nullable {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    let (physical, logical) = match column.kind {
        ColumnKind::Address | ColumnKind::Mac | ColumnKind::Text => {
            (PhysicalType::BYTE_ARRAY, Some(LogicalType::String))
        }
        ColumnKind::Unsigned { bits: 64 } => {
            (PhysicalType::INT64, Some(LogicalType::integer(64, false)))
        }
        ColumnKind::Unsigned { bits } => (
            PhysicalType::INT32,
            Some(LogicalType::integer(bits as i8, false)),
        ),
        ColumnKind::TimestampNs => (
            PhysicalType::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
        ),
        ColumnKind::Float => (PhysicalType::DOUBLE, None),
        ColumnKind::List => return list(&column.name, repetition),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition)
        .build()
}

/// The standard three levels: `optional group NAME (LIST) { repeated group list { required int64
/// element } }`.
fn list(name: &str, repetition: Repetition) -> Result<Type> {
    let element = Type::primitive_type_builder("element", PhysicalType::INT64)
        .with_logical_type(Some(LogicalType::integer(64, false)))
        .with_repetition(Repetition::REQUIRED)
        .build()?;
    let list = Type::group_type_builder("list")
        .with_repetition(Repetition::REPEATED)
        .with_fields(vec![Arc::new(element)])
        .build()?;
    Type::group_type_builder(name)
        .with_logical_type(Some(LogicalType::List))
        .with_repetition(repetition)
        .with_fields(vec![Arc::new(list)])
        .build()
}

/// Compression, statistics and key-value pairs of the footer.
pub(crate) fn properties(schema: &[Column], options: &WriteOptions) -> Result<WriterProperties> {
    let mut pairs = vec![
        KeyValue::new(VERSION_KEY.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        KeyValue::new(COLUMNS_KEY.to_owned(), describe(schema)),
    ];
    let given = options.metadata.iter();
    pairs.extend(given.map(|(key, value)| KeyValue::new(key.clone(), value.clone())));
    Ok(WriterProperties::builder()
        .set_created_by(concat!("turboflow ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(codec_of(options.compression)?)
        .set_key_value_metadata(Some(pairs))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // Readers skip whole row groups; a page index would cost more than it helps.
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(options.row_group_records))
        .build())
}

/// The kinds of the columns in order, as `address unsigned16 timestamp_ns ...`.
pub(crate) fn describe(schema: &[Column]) -> String {
    let names: Vec<String> = schema.iter().map(|column| kind_name(column.kind)).collect();
    names.join(" ")
}

fn kind_name(kind: ColumnKind) -> String {
    match kind {
        ColumnKind::Address => "address".to_owned(),
        ColumnKind::Unsigned { bits } => format!("unsigned{bits}"),
        ColumnKind::TimestampNs => "timestamp_ns".to_owned(),
        ColumnKind::Mac => "mac".to_owned(),
        ColumnKind::Float => "float".to_owned(),
        ColumnKind::List => "list".to_owned(),
        ColumnKind::Text => "text".to_owned(),
    }
}

/// The kinds in a [`COLUMNS_KEY`] value; `None` if another program wrote it.
pub(crate) fn parse_kinds(described: &str) -> Option<Vec<ColumnKind>> {
    let kinds = [
        ColumnKind::Address,
        ColumnKind::Unsigned { bits: 8 },
        ColumnKind::Unsigned { bits: 16 },
        ColumnKind::Unsigned { bits: 32 },
        ColumnKind::Unsigned { bits: 64 },
        ColumnKind::TimestampNs,
        ColumnKind::Mac,
        ColumnKind::Float,
        ColumnKind::List,
        ColumnKind::Text,
    ];
    described
        .split(' ')
        .map(|name| kinds.into_iter().find(|&k| kind_name(k) == name))
        .collect()
}
