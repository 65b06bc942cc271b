// SPDX-License-Identifier: Apache-2.0
//! Parquet files written by other programs. Those in `foreign` were rewritten with Arrow.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, FloatType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use turboflow_formats::read;
use turboflow_record::{ColumnKind, Value};

use crate::support::read_all;

fn rewritten(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/foreign")
        .join(name)
}

#[test]
fn rewritten_files_hold_the_same_records() {
    let (schema, gzip) = read_all(&rewritten("gzip.parquet"));
    let (_, microseconds) = read_all(&rewritten("microseconds.parquet"));
    assert_eq!(schema[7].name, "first_ns");
    assert_eq!(schema[7].kind, ColumnKind::TimestampNs);
    assert!(gzip.rows() > 0);
    assert_eq!(gzip.rows(), microseconds.rows());
    for row in 0..gzip.rows() {
        for (column, shape) in schema.iter().enumerate() {
            let (exact, cut) = (gzip.value(row, column), microseconds.value(row, column));
            match (shape.kind, exact) {
                (ColumnKind::TimestampNs, Value::Unsigned(ns)) => {
                    assert_eq!(cut, Value::Unsigned(ns / 1_000 * 1_000), "{}", shape.name);
                }
                _ => assert_eq!(cut, exact, "{}", shape.name),
            }
        }
    }
}

#[test]
fn an_unknown_compression_is_refused_with_what_to_do() {
    let message = read(&rewritten("brotli.parquet"))
        .err()
        .unwrap()
        .to_string();
    for words in ["brotli.parquet", "compressed with brotli", "duckdb", "zstd"] {
        assert!(message.contains(words), "{message}");
    }
}

/// The values of one column.
enum Values<'a> {
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Float(&'a [f32]),
    Bool(&'a [bool]),
    Text(&'a [&'a str]),
}

fn written(path: &Path, message: &str, compression: Compression, columns: &[Values<'_>]) {
    let schema = Arc::new(parse_message_type(message).unwrap());
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .build();
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties)).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for values in columns {
        let mut column = group.next_column().unwrap().unwrap();
        let count = match values {
            Values::Int32(values) => column.typed::<Int32Type>().write_batch(values, None, None),
            Values::Int64(values) => column.typed::<Int64Type>().write_batch(values, None, None),
            Values::Float(values) => column.typed::<FloatType>().write_batch(values, None, None),
            Values::Bool(values) => column.typed::<BoolType>().write_batch(values, None, None),
            Values::Text(texts) => {
                let texts: Vec<_> = texts.iter().map(|text| ByteArray::from(*text)).collect();
                column
                    .typed::<ByteArrayType>()
                    .write_batch(&texts, None, None)
            }
        };
        count.unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn columns_that_flow_records_do_not_have_are_left_out_and_named() {
    let directory = tempfile::tempdir().unwrap();
    let message = "message records {
        REQUIRED BYTE_ARRAY region (UTF8);
        REQUIRED BYTE_ARRAY src_addr (UTF8);
        REQUIRED BYTE_ARRAY inner (UTF8);
        REQUIRED BOOLEAN is_internal;
        REQUIRED INT32 dst_port (INT_32);
        REQUIRED INT64 bytes;
        REQUIRED INT64 first_ns (TIMESTAMP_MILLIS);
        REQUIRED INT64 last_ns;
        REQUIRED FLOAT score;
        REQUIRED INT32 day (DATE);
    }";
    for compression in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(Default::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(Default::default()),
    ] {
        let path = directory.path().join("a.parquet");
        let columns = [
            Values::Text(&["eu", "10.0.0.1"]),
            Values::Text(&["10.0.0.1", "::1"]),
            Values::Text(&["192.0.2.1", "192.0.2.2"]),
            Values::Bool(&[true, false]),
            Values::Int32(&[443, 65_535]),
            Values::Int64(&[5, i64::MAX]),
            Values::Int64(&[1_700_000_000_123, 0]),
            Values::Int64(&[1_700_000_000_123_456_789, 1]),
            Values::Float(&[0.5, 2.0]),
            Values::Int32(&[1, 2]),
        ];
        written(&path, message, compression, &columns);
        let (schema, batch) = read_all(&path);
        let names: Vec<&str> = schema.iter().map(|column| column.name.as_str()).collect();
        let expected = "src_addr inner dst_port bytes first_ns last_ns score";
        assert_eq!(names.join(" "), expected, "{compression}");
        let row: Vec<_> = (0..names.len())
            .map(|column| batch.value(0, column))
            .collect();
        let expected = [
            Value::Address("10.0.0.1".parse().unwrap()),
            Value::Address("192.0.2.1".parse().unwrap()),
            Value::Unsigned(443),
            Value::Unsigned(5),
            Value::Unsigned(1_700_000_000_123_000_000),
            Value::Unsigned(1_700_000_000_123_456_789),
            Value::Float(0.5),
        ];
        assert_eq!(row, expected);
        assert_eq!(schema[5].kind, ColumnKind::TimestampNs);
        let left_out = read(&path).unwrap().left_out().join(", ");
        assert!(
            left_out.starts_with("region (text), is_internal (true or false), day ("),
            "{left_out}"
        );
    }
}

#[test]
fn numbers_that_would_be_wrapped_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.parquet");
    for (column, values, words) in [
        (
            "INT64 bytes",
            Values::Int64(&[5, -5]),
            "column bytes: -5 is not an unsigned number",
        ),
        (
            "INT32 dst_port (INT_32)",
            Values::Int32(&[-1, 1]),
            "column dst_port: -1",
        ),
        (
            "INT64 first_ns (TIMESTAMP_MICROS)",
            Values::Int64(&[-1, 0]),
            "column first_ns: -1",
        ),
        (
            "INT64 first_ns (TIMESTAMP_MILLIS)",
            Values::Int64(&[i64::MAX, 0]),
            "column first_ns",
        ),
    ] {
        let message = format!("message records {{ REQUIRED {column}; }}");
        written(&path, &message, Compression::UNCOMPRESSED, &[values]);
        let refused = read(&path).unwrap().next_batch().unwrap_err().to_string();
        assert!(
            refused.contains(words) && refused.contains("EXCLUDE"),
            "{refused}"
        );
    }
    // A column that is declared unsigned may use all of its bits.
    let message = "message records { REQUIRED INT64 bytes (UINT_64); }";
    written(
        &path,
        message,
        Compression::UNCOMPRESSED,
        &[Values::Int64(&[-1, 0])],
    );
    assert_eq!(read_all(&path).1.value(0, 0), Value::Unsigned(u64::MAX));
}

#[test]
fn strange_columns_that_do_not_fit_are_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.parquet");
    // The first texts look like addresses, but a later one does not.
    let mut nearly = vec!["10.0.0.1"; 2_000];
    nearly[1_999] = "gateway";
    let message = "message records {
        REQUIRED INT64 bytes;
        REQUIRED INT64 balance;
        REQUIRED INT64 ordered_at (TIMESTAMP_MILLIS);
        REQUIRED BYTE_ARRAY peer (UTF8);
        REQUIRED INT32 site;
    }";
    let mut balance = vec![5; 2_000];
    balance[1_000] = -5;
    let columns = [
        Values::Int64(&[7; 2_000]),
        Values::Int64(&balance),
        Values::Int64(&[i64::MAX; 2_000]),
        Values::Text(&nearly),
        Values::Int32(&[3; 2_000]),
    ];
    written(&path, message, Compression::UNCOMPRESSED, &columns);
    let (schema, batch) = read_all(&path);
    let names: Vec<&str> = schema.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["bytes", "site"]);
    assert_eq!(batch.rows(), 2_000);
    let left_out = read(&path).unwrap().left_out().join(", ");
    for column in ["balance (numbers", "ordered_at (numbers", "peer (text)"] {
        assert!(left_out.contains(column), "{left_out}");
    }
    // A column without any text does not count as addresses.
    let message = "message records { REQUIRED INT64 bytes; OPTIONAL BYTE_ARRAY peer (UTF8); }";
    let columns = [Values::Int64(&[]), Values::Text(&[])];
    written(&path, message, Compression::UNCOMPRESSED, &columns);
    let reader = read(&path).unwrap();
    assert_eq!(reader.left_out(), ["peer (text)"]);
}

#[test]
fn a_file_without_a_column_of_flow_records_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.parquet");
    let message = "message records { REQUIRED BYTE_ARRAY name (UTF8); REQUIRED BOOLEAN yes; }";
    let columns = [Values::Text(&["x"]), Values::Bool(&[true])];
    written(&path, message, Compression::UNCOMPRESSED, &columns);
    let message = read(&path).err().unwrap().to_string();
    assert!(
        message.contains("none of its columns") && message.contains("name (text)"),
        "{message}"
    );
}
