// SPDX-License-Identifier: Apache-2.0
//! Parquet files whose footer is wrong, and texts that a dictionary repeats.

use std::path::Path;

use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use turboflow_formats::{Format, WriteOptions, create, read};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, Value};

/// A number whose bytes in the footer are 0x96 0x4e, and which occurs there nowhere else; 8,191
/// also takes two bytes.
const RECORDS: u64 = 5_003;
const COUNT: [u8; 3] = [0x16, 0x96, 0x4e];
const LIE: [u8; 3] = [0x16, 0xfe, 0x7f];

fn honest(path: &Path) {
    let schema: Schema = ["packets", "bytes"]
        .map(|name| Column {
            name: name.to_owned(),
            kind: ColumnKind::Unsigned { bits: 64 },
            nullable: false,
        })
        .to_vec();
    let mut batch = FlowBatch::new(&schema);
    (0..RECORDS).for_each(|n| batch.push_row(&[Value::Unsigned(n % 3), Value::Unsigned(n)]));
    let mut writer = create(path, Format::Parquet, &schema, &WriteOptions::default()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
}

/// Offsets of the number of records in the footer: of the file, of each column, of the row group.
fn counts(file: &[u8]) -> Vec<usize> {
    let length: [u8; 4] = file[file.len() - 8..file.len() - 4].try_into().unwrap();
    let footer = file.len() - 8 - u32::from_le_bytes(length) as usize;
    let places = footer..file.len() - COUNT.len();
    places
        .filter(|&at| file[at..].starts_with(&COUNT))
        .collect()
}

/// The error when these columns are read; `None` if the file is read to its end.
fn error(path: &Path, columns: &[usize]) -> Option<String> {
    let mut reader = read(path).unwrap();
    reader.read_apart(columns, &[]);
    let mut rows = 0;
    loop {
        match reader.next_batch() {
            Ok(Some(batch)) => rows += batch.rows() as u64,
            Ok(None) => break,
            Err(error) => return Some(error.to_string()),
        }
    }
    assert_eq!(rows, RECORDS);
    None
}

#[test]
fn a_footer_with_more_records_than_there_are_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lie.parquet");
    honest(&path);
    assert_eq!(error(&path, &[]), None);
    let file = std::fs::read(&path).unwrap();
    let places = counts(&file);
    assert_eq!(places.len(), 4, "file, two columns, row group");
    // The row group alone, one column, or all counts are wrong.
    for lies in [&places[3..], &places[1..2], &places[..]] {
        let mut lying = file.clone();
        for &at in lies {
            lying[at..at + LIE.len()].copy_from_slice(&LIE);
        }
        std::fs::write(&path, lying).unwrap();
        for columns in [&[][..], &[0], &[1], &[0, 1]] {
            let error = error(&path, columns).expect("an error");
            for words in ["lie.parquet", "row group 0", "column "] {
                assert!(error.contains(words), "{lies:?} {columns:?}: {error}");
            }
        }
    }
}

/// Writes the same text of `bytes` bytes in each of `records` records. The file contains it once.
fn repeated(path: &Path, bytes: usize, records: usize) {
    let schema = parse_message_type("message m { required binary application (UTF8); }").unwrap();
    let properties = WriterProperties::builder().set_dictionary_page_size_limit(1 << 30);
    let file = std::fs::File::create(path).unwrap();
    let properties = properties.build().into();
    let mut writer = SerializedFileWriter::new(file, schema.into(), properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let text = ByteArray::from("x".repeat(bytes).into_bytes());
    let texts = vec![text; records];
    let values = column.typed::<ByteArrayType>();
    values.write_batch(&texts, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn a_text_that_a_dictionary_repeats_fills_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.parquet");
    repeated(&path, 4_000, 3_000);
    assert!(std::fs::metadata(&path).unwrap().len() < 100_000);
    let batches: Vec<FlowBatch> = read(&path).unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(FlowBatch::rows).sum::<usize>(), 3_000);
    assert!(batches.iter().all(|batch| batch.rows() <= 1_024));

    repeated(&path, 65_536, 3_000);
    let error = read(&path).unwrap().next_batch().unwrap_err().to_string();
    for words in [
        "long.parquet",
        "row group 0",
        "application",
        "65536 bytes",
        "drop it",
    ] {
        assert!(error.contains(words), "{error}");
    }
}
