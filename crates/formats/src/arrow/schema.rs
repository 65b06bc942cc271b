// SPDX-License-Identifier: Apache-2.0
//! Columns as Arrow fields.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, TimeUnit};
use turboflow_record::{Column, ColumnKind};

use crate::parquet::schema::{COLUMNS_KEY, VERSION_KEY, describe};

/// Times are in UTC.
pub(super) const ZONE: &str = "UTC";

/// The schema, with the same metadata as a Parquet footer.
pub(super) fn schema(columns: &[Column], metadata: &[(String, String)]) -> Schema {
    let own = [
        (VERSION_KEY, env!("CARGO_PKG_VERSION").to_owned()),
        (COLUMNS_KEY, describe(columns)),
    ]
    .map(|(key, value)| (key.to_owned(), value));
    let pairs: HashMap<String, String> = own.into_iter().chain(metadata.iter().cloned()).collect();
    fields(columns).with_metadata(pairs)
}

/// The schema without metadata.
pub(super) fn fields(columns: &[Column]) -> Schema {
    let fields = columns
        .iter()
        .map(|column| Field::new(&column.name, data_type(column.kind), column.nullable));
    Schema::new(fields.collect::<Vec<_>>())
}

fn data_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Address | ColumnKind::Mac | ColumnKind::Text => DataType::Utf8,
        ColumnKind::Unsigned { bits: 8 } => DataType::UInt8,
        ColumnKind::Unsigned { bits: 16 } => DataType::UInt16,
        ColumnKind::Unsigned { bits: 32 } => DataType::UInt32,
        ColumnKind::Unsigned { .. } => DataType::UInt64,
        ColumnKind::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, Some(ZONE.into())),
        ColumnKind::Float => DataType::Float64,
        ColumnKind::List => DataType::List(element()),
    }
}

/// The field of the elements of a list.
pub(super) fn element() -> FieldRef {
    Arc::new(Field::new("element", DataType::UInt64, false))
}
