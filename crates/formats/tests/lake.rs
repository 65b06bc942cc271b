// SPDX-License-Identifier: Apache-2.0
//! Parquet with the types that table formats support.

use std::fs::File;
use std::path::Path;

use parquet::basic::{LogicalType, TimeUnit, Type as PhysicalType};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use turboflow_formats::{Format, ParquetTypes, WriteOptions, create};
use turboflow_record::{Column, ColumnKind, Schema};

use crate::support::{
    Owned, batch, default_batch, default_options, default_schema, read_all, write_as,
};

const RECORD: &str = "10.0.0.1 2001:db8::2 1 2 6 3 4 1700000000123456789 8 7 8 9 10 11 12 3";

fn open(path: &Path) -> SerializedFileReader<File> {
    SerializedFileReader::new(File::open(path).unwrap()).unwrap()
}

/// A column of every kind and width, once required and once optional.
fn every_kind() -> Schema {
    let unsigned = [8, 16, 32, 64].map(|bits| ColumnKind::Unsigned { bits });
    let others = [
        ColumnKind::Address,
        ColumnKind::TimestampNs,
        ColumnKind::Mac,
        ColumnKind::Float,
        ColumnKind::List,
        ColumnKind::Text,
    ];
    let kinds = unsigned.into_iter().chain(others);
    let both = kinds.flat_map(|kind| [(kind, false), (kind, true)]);
    let column = |(index, (kind, nullable))| Column {
        name: format!("c{index}"),
        kind,
        nullable,
    };
    both.enumerate().map(column).collect()
}

/// Iceberg's table of Parquet types, format version 2, without types that flow records never need.
fn is_known(physical: PhysicalType, logical: Option<&LogicalType>) -> bool {
    match (physical, logical) {
        (PhysicalType::INT32 | PhysicalType::INT64 | PhysicalType::DOUBLE, None) => true,
        (PhysicalType::FIXED_LEN_BYTE_ARRAY, None) => true,
        (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)) => true,
        (PhysicalType::INT64, Some(LogicalType::Timestamp(at))) => at.unit == TimeUnit::MICROS,
        _ => false,
    }
}

#[test]
fn every_column_has_a_type_that_table_formats_know() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.parquet");
    for (types, leaves, all_known) in [
        (ParquetTypes::Exact, 20, false),
        (ParquetTypes::Lake, 22, true),
        (ParquetTypes::LakeBinary, 24, true),
    ] {
        write_as(&path, Format::Parquet, types, &every_kind(), &[]);
        let reader = open(&path);
        let columns = reader.metadata().file_metadata().schema_descr().columns();
        assert_eq!(columns.len(), leaves, "{types}");
        let mut known = columns
            .iter()
            .map(|leaf| is_known(leaf.physical_type(), leaf.logical_type_ref()));
        assert_eq!(known.all(|known| known), all_known, "{types}");
    }
}

#[test]
fn times_are_long_nanoseconds_and_microseconds_and_addresses_texts_and_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.parquet");
    let schema = default_schema();
    let written = [default_batch(&[RECORD])];
    write_as(
        &path,
        Format::Parquet,
        ParquetTypes::LakeBinary,
        &schema,
        &written,
    );
    let rows: Vec<_> = open(&path).get_row_iter(None).unwrap().collect();
    let row = rows[0].as_ref().unwrap();
    let value = |wanted: &str| {
        let mut columns = row.get_column_iter();
        columns.find(|(name, _)| *name == wanted).unwrap().1.clone()
    };
    assert_eq!(value("first_ns"), Field::Long(1_700_000_000_123_456_789));
    let micros = Field::TimestampMicros(1_700_000_000_123_456);
    assert_eq!(value("first_time"), micros);
    assert_eq!(value("protocol"), Field::Int(6));
    assert_eq!(value("min_length"), Field::Long(8));
    assert_eq!(value("src_addr"), Field::Str("10.0.0.1".to_owned()));
    for (name, address) in [
        ("src_addr_bytes", "::ffff:10.0.0.1"),
        ("dst_addr_bytes", "2001:db8::2"),
    ] {
        let octets = address.parse::<std::net::Ipv6Addr>().unwrap().octets();
        assert_eq!(value(name), Field::Bytes(octets.to_vec().into()), "{name}");
    }
    // Our reader returns only the columns of the records.
    let (read_schema, read) = read_all(&path);
    assert_eq!(read_schema, schema);
    assert_eq!(read.value(0, 7), written[0].value(0, 7));
}

/// Numbers beyond the limit of signed numbers must not wrap to negative ones.
#[test]
fn numbers_from_two_to_the_63_on_are_left_out_and_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.parquet");
    let schema: Schema = ["packets", "bytes"]
        .map(|name| Column {
            name: name.to_owned(),
            kind: ColumnKind::Unsigned { bits: 64 },
            nullable: true,
        })
        .into();
    let largest = i64::MAX as u64;
    let numbers = [(1, largest), (largest + 1, 1), (2, u64::MAX), (largest, 2)];
    let rows =
        numbers.map(|(packets, bytes)| vec![Owned::Unsigned(packets), Owned::Unsigned(bytes)]);
    let options = WriteOptions {
        parquet_types: ParquetTypes::Lake,
        ..default_options()
    };
    let mut writer = create(&path, Format::Parquet, &schema, &options).unwrap();
    writer.write(&batch(&schema, &rows)).unwrap();
    let error = writer.finish().unwrap_err();
    assert_eq!(error.records_written(), 2);
    let said = error.to_string();
    assert!(said.contains("2 records have times or counters"), "{said}");
    let (_, read) = read_all(&path);
    let kept = [rows[0].clone(), rows[3].clone()];
    for (row, kept) in kept.iter().enumerate() {
        for (column, value) in kept.iter().enumerate() {
            assert_eq!(read.value(row, column), value.as_value());
        }
    }
}

#[test]
fn a_name_that_is_derived_and_taken_is_refused_before_a_file_is_made() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.parquet");
    let schema: Schema = ["seen_ns", "seen_time"]
        .map(|name| Column {
            name: name.to_owned(),
            kind: ColumnKind::TimestampNs,
            nullable: false,
        })
        .into();
    let options = WriteOptions {
        parquet_types: ParquetTypes::Lake,
        ..default_options()
    };
    let error = create(&path, Format::Parquet, &schema, &options);
    let said = error.err().unwrap().to_string();
    assert!(said.contains("two columns `seen_time`"), "{said}");
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}
