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
use crate::parquet::types::{Form, Leaf};

/// Footer key: the version that wrote the file.
pub(crate) const VERSION_KEY: &str = "turboflow.version";
/// Footer key: the kinds of the columns, which a reader needs to tell addresses from texts and MAC
/// addresses.
pub(crate) const COLUMNS_KEY: &str = "turboflow.columns";
/// Footer key: the definition of the records as TOML, if the writer was given it (see
/// [`WriteOptions::metadata`]). From it readers learn the operation (`op`) of each feature.
pub const DEFINITION_KEY: &str = "turboflow.definition";

/// In the value of [`COLUMNS_KEY`]: a column that is derived from another one and repeats its
/// values.
const DERIVED: &str = "derived";
/// Octets of a binary address.
const ADDRESS_OCTETS: i32 = 16;

/// The message type of the file.
pub(crate) fn message(leaves: &[Leaf]) -> Result<TypePtr> {
    let fields = leaves
        .iter()
        .map(|leaf| field(leaf).map(Arc::new))
        .collect::<Result<_>>()?;
    Ok(Arc::new(
        Type::group_type_builder("flow_record")
            .with_fields(fields)
            .build()?,
    ))
}

fn field(leaf: &Leaf) -> Result<Type> {
    let column = &leaf.column;
    let repetition = if column.nullable {
        Repetition::OPTIONAL
    } else {
        Repetition::REQUIRED
    };
    let (physical, logical) = match (leaf.form, column.kind) {
        (Form::Bytes, _) => (PhysicalType::FIXED_LEN_BYTE_ARRAY, None),
        (Form::Micros, _) => (
            PhysicalType::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
        ),
        (_, ColumnKind::Address | ColumnKind::Mac | ColumnKind::Text) => {
            (PhysicalType::BYTE_ARRAY, Some(LogicalType::String))
        }
        (_, ColumnKind::Float) => (PhysicalType::DOUBLE, None),
        (form, ColumnKind::List) => return list(&column.name, repetition, form),
        (Form::Lake, ColumnKind::Unsigned { bits: 8 | 16 }) => (PhysicalType::INT32, None),
        (Form::Lake, _) => (PhysicalType::INT64, None),
        (Form::Exact, ColumnKind::Unsigned { bits: 64 }) => {
            (PhysicalType::INT64, Some(LogicalType::integer(64, false)))
        }
        (Form::Exact, ColumnKind::Unsigned { bits }) => (
            PhysicalType::INT32,
            Some(LogicalType::integer(bits as i8, false)),
        ),
        (Form::Exact, ColumnKind::TimestampNs) => (
            PhysicalType::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::NANOS)),
        ),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_logical_type(logical)
        .with_repetition(repetition);
    match leaf.form {
        Form::Bytes => field.with_length(ADDRESS_OCTETS).build(),
        _ => field.build(),
    }
}

/// The standard three levels: `optional group NAME (LIST) { repeated group list { required int64
/// element } }`.
fn list(name: &str, repetition: Repetition, form: Form) -> Result<Type> {
    let unsigned = (form == Form::Exact).then(|| LogicalType::integer(64, false));
    let element = Type::primitive_type_builder("element", PhysicalType::INT64)
        .with_logical_type(unsigned)
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
pub(crate) fn properties(leaves: &[Leaf], options: &WriteOptions) -> Result<WriterProperties> {
    let kinds = leaves.iter().map(|leaf| match leaf.form.is_derived() {
        true => DERIVED.to_owned(),
        false => kind_name(leaf.column.kind),
    });
    let mut pairs = vec![
        KeyValue::new(VERSION_KEY.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        KeyValue::new(COLUMNS_KEY.to_owned(), kinds.collect::<Vec<_>>().join(" ")),
    ];
    let given = options.metadata.iter();
    pairs.extend(given.map(|(key, value)| KeyValue::new(key.clone(), value.clone())));
    Ok(WriterProperties::builder()
        .set_created_by(concat!("turboflow ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(codec_of(options.compression)?)
        .set_key_value_metadata(Some(pairs))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // Readers skip whole row groups; a page index would cost more than it saves.
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

/// The kinds in the value of [`COLUMNS_KEY`], with `None` for a derived column. `None` as a whole
/// if another program wrote the value.
pub(crate) fn parse_kinds(described: &str) -> Option<Vec<Option<ColumnKind>>> {
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
    let kind = |name| match name {
        DERIVED => Some(None),
        name => {
            let mut kinds = kinds.into_iter();
            kinds.find(|&kind| kind_name(kind) == name).map(Some)
        }
    };
    described.split(' ').map(kind).collect()
}
