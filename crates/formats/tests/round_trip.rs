// SPDX-License-Identifier: Apache-2.0
//! Records are read back unchanged in every format, for random schemas and records.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use crate::support::{
    Owned, batch, default_batch, default_schema, read_all, table, write, write_as,
};
use parquet::basic::Encoding;
use parquet::data_type::DoubleType;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::FileReader;
use parquet::file::writer::SerializedFileWriter;
use proptest::prelude::*;
use turboflow_formats::{Format, ParquetTypes};
use turboflow_record::{ColumnKind, FlowBatch, Schema, Value};

/// Asserts that two batches hold the same values.
fn same(schema: &Schema, left: &FlowBatch, right: &FlowBatch) -> Result<(), TestCaseError> {
    prop_assert_eq!(left.rows(), right.rows());
    for row in 0..left.rows() {
        for (column, described) in schema.iter().enumerate() {
            let (left, right) = (left.value(row, column), right.value(row, column));
            prop_assert_eq!(left, right, "row {}, column {:?}", row, described);
        }
    }
    Ok(())
}

/// A first row without absent values, from which readers of text files learn the kind of every
/// column.
fn telling_row(schema: &Schema) -> Vec<Owned> {
    let value = |kind| match kind {
        ColumnKind::Address => Owned::Address("2001:db8::7".parse().unwrap()),
        ColumnKind::Float => Owned::Float(1.5),
        ColumnKind::List => Owned::List(vec![1, 2]),
        ColumnKind::Text => Owned::Text("no number, no address".to_owned()),
        _ => Owned::Unsigned(7),
    };
    schema.iter().map(|column| value(column.kind)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn parquet_gives_back_schema_and_records(
        (schema, mut rows) in table(0..180),
        (_, types) in prop::sample::select(ParquetTypes::NAMES.to_vec()),
    ) {
        if types.is_lake() {
            rows.iter_mut().flatten().for_each(Owned::make_signed);
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flows.parquet");
        let batches: Vec<_> = rows.chunks(37).map(|rows| batch(&schema, rows)).collect();
        write_as(&path, Format::Parquet, types, &schema, &batches);
        let (read_schema, read) = read_all(&path);
        prop_assert_eq!(&read_schema, &schema);
        same(&schema, &batch(&schema, &rows), &read)?;
    }

    #[test]
    fn text_gives_back_records((schema, mut rows) in table(0..40)) {
        // A file with only text columns of unknown names would not be recognised as flow records.
        prop_assume!(schema.iter().any(|column| column.kind != ColumnKind::Text));
        rows.insert(0, telling_row(&schema));
        let directory = tempfile::tempdir().unwrap();
        let written = batch(&schema, &rows);
        for format in [Format::Csv, Format::JsonLines] {
            let path = directory.path().join(format!("flows.{format}"));
            write(&path, format, &schema, std::slice::from_ref(&written));
            let (read_schema, read) = read_all(&path);
            let names = |schema: &Schema| -> Vec<_> {
                schema.iter().map(|column| column.name.clone()).collect()
            };
            prop_assert_eq!(names(&read_schema), names(&schema));
            same(&schema, &written, &read)?;
        }
    }
}

#[test]
fn pages_row_groups_and_dictionaries_of_every_size_are_read_back() {
    // More than two pages in a row group. One column stops using its dictionary at once, one stops
    // late, one never does. Batches end inside pages, or are written together.
    let mut schema = default_schema();
    schema[1].nullable = true;
    let rows: Vec<Vec<Owned>> = (0..150_000u64)
        .map(|n| {
            let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let v6 = n % 3 == 0;
            let address = |n: u64| -> std::net::IpAddr {
                if v6 {
                    ((0x2001 << 112) | u128::from(n)).to_be_bytes().into()
                } else {
                    ((n as u32) << 3).to_be_bytes().into()
                }
            };
            let mut row = vec![
                Owned::Address(address(mixed >> 50)),
                match n % 11 {
                    0 => Owned::Absent,
                    // Dictionary-encoded for two pages, then no longer.
                    _ => Owned::Address(address(if n < 40_000 { n % 500 } else { n })),
                },
            ];
            let late = if n < 40_000 { n % 5 } else { mixed >> 8 };
            let numbers = [
                mixed >> 48,
                n % 7,
                6,
                late,
                mixed,
                1 << 60 | n,
                1 << 60 | mixed >> 20,
                n % 4096,
                n % 2,
                mixed >> 32,
                64,
                u64::from(v6),
                0,
                n % 5,
            ];
            row.extend(numbers.map(Owned::Unsigned));
            row
        })
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.parquet");
    let batches: Vec<_> = rows
        .chunks(4001)
        .map(|rows| Arc::new(batch(&schema, rows)))
        .collect();
    let options = turboflow_formats::WriteOptions {
        row_group_records: 110_000,
        ..turboflow_formats::WriteOptions::default()
    };
    let mut writer = turboflow_formats::create(&path, Format::Parquet, &schema, &options).unwrap();
    let (alone, together) = batches.split_at(3);
    alone.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.write_several(together).unwrap();
    writer.finish().unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let reader = parquet::file::reader::SerializedFileReader::new(file).unwrap();
    let group = reader.metadata().row_group(0);
    let has = |column: usize, wanted: Encoding| {
        let mut encodings = group.column(column).encodings();
        encodings.any(|encoding| encoding == wanted)
    };
    let numbered = [0, 1].map(|column| has(column, Encoding::RLE_DICTIONARY));
    let texts = [0, 1].map(|column| has(column, Encoding::DELTA_LENGTH_BYTE_ARRAY));
    assert_eq!((numbered, texts), ([true, true], [false, true]));
    let statistics = group.column(1).statistics().unwrap();
    assert_eq!(statistics.null_count_opt(), Some(10_000));
    assert_eq!(statistics.min_bytes_opt().unwrap(), b"0.0.0.0");
    assert_eq!(statistics.max_bytes_opt().unwrap(), b"2001::ffff");
    let (read_schema, read) = read_all(&path);
    assert_eq!(read_schema, schema);
    let expected = batch(&schema, &rows);
    for row in 0..expected.rows() {
        for column in 0..schema.len() {
            assert_eq!(
                expected.value(row, column),
                read.value(row, column),
                "{row} {column}"
            );
        }
    }
}

#[test]
fn empty_files_keep_their_columns() {
    let directory = tempfile::tempdir().unwrap();
    for format in Format::READABLE {
        let path = directory.path().join(format!("flows.{format}"));
        write(&path, format, &default_schema(), &[]);
        let (schema, read) = read_all(&path);
        assert_eq!(schema.len(), 16, "{format}");
        assert_eq!(read.rows(), 0);
    }
}

#[test]
fn every_compression_is_read_back() {
    use turboflow_formats::{Compression, WriteOptions, create};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.parquet");
    let batch = default_batch(&["10.0.0.1 10.0.0.2 1 2 6 3 4 5 6 7 8 9 10 11 12 3"]);
    for compression in [
        Compression::None,
        Compression::Snappy,
        Compression::Zstd { level: 3 },
    ] {
        let options = WriteOptions {
            compression,
            ..WriteOptions::default()
        };
        let mut writer = create(&path, Format::Parquet, &default_schema(), &options).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        assert_eq!(read_all(&path).1.value(0, 15), Value::Unsigned(3));
    }
    let options = WriteOptions {
        compression: Compression::Zstd { level: 99 },
        ..options()
    };
    assert!(create(&path, Format::Parquet, &default_schema(), &options).is_err());
    assert_eq!(
        read_all(&path).1.rows(),
        1,
        "a failed creation leaves the old file unchanged"
    );
}

fn options() -> turboflow_formats::WriteOptions {
    turboflow_formats::WriteOptions::default()
}

/// The kind of a column is shown only by values after the sample.
#[test]
fn text_shows_the_kinds_of_columns_that_are_absent_for_long() {
    let directory = tempfile::tempdir().unwrap();
    let csv = format!("bytes,speed\n{}6,12.5\n", "5,\n".repeat(400_000));
    let json = format!(
        "{}{{\"bytes\":6,\"speed\":12.5}}\n",
        "{\"bytes\":5,\"speed\":null}\n".repeat(60_000)
    );
    for (name, content) in [("a.csv", csv), ("a.jsonl", json)] {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        let (schema, read) = read_all(&path);
        assert_eq!(schema[1].kind, ColumnKind::Float, "{name}");
        assert_eq!(read.value(read.rows() - 1, 1), Value::Float(12.5), "{name}");
    }
}

/// A footer that declares numbers to be MAC addresses.
#[test]
fn declared_kinds_that_contradict_the_parquet_types_are_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.parquet");
    let types = "message m { required double x; }";
    let types = Arc::new(parquet::schema::parser::parse_message_type(types).unwrap());
    let said = KeyValue::new("turboflow.columns".to_owned(), "mac".to_owned());
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![said]));
    let file = std::fs::File::create(&path).unwrap();
    let mut file = SerializedFileWriter::new(file, types, Arc::new(properties.build())).unwrap();
    let mut group = file.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let values = column.typed::<DoubleType>();
    values.write_batch(&[1.5], None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    file.close().unwrap();
    let (schema, read) = read_all(&path);
    assert_eq!(schema[0].kind, ColumnKind::Float);
    assert_eq!(read.value(0, 0), Value::Float(1.5));
}
