// SPDX-License-Identifier: Apache-2.0
//! Arrow files, streams and messages, read by Arrow's own library.

use std::io::{self, Write};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, TimeUnit};
use proptest::prelude::*;
use turboflow_formats::{ArrowMessages, DEFINITION_KEY, Format, WriteOptions, create, to_writer};
use turboflow_record::{ColumnKind, FlowBatch, Schema};

use crate::support::{Owned, Rows, batch, default_batch, default_schema, table, write};

/// All record batches of a file.
pub(crate) fn arrow_batches(path: &Path) -> Vec<RecordBatch> {
    let file = std::fs::File::open(path).unwrap();
    let reader = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
    reader.map(Result::unwrap).collect()
}

/// The values of a record batch. Checks that its types are those that the schema should result in.
fn rows_of(schema: &Schema, batches: &[RecordBatch]) -> Rows {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let columns = schema.iter().zip(batch.columns());
            rows.push(
                columns
                    .map(|(column, array)| value(column.kind, array, row))
                    .collect(),
            );
        }
    }
    rows
}

fn value(kind: ColumnKind, array: &dyn Array, row: usize) -> Owned {
    if array.is_null(row) {
        return Owned::Absent;
    }
    let text = || array.as_string::<i32>().value(row);
    match kind {
        ColumnKind::Address => Owned::Address(text().parse::<IpAddr>().unwrap()),
        ColumnKind::Text => Owned::Text(text().to_owned()),
        ColumnKind::Mac => {
            let bytes = text().split(':');
            let byte = |text| u64::from_str_radix(text, 16).unwrap();
            Owned::Unsigned(bytes.fold(0, |number, text| number << 8 | byte(text)))
        }
        ColumnKind::Unsigned { bits: 8 } => {
            Owned::Unsigned(array.as_primitive::<UInt8Type>().value(row).into())
        }
        ColumnKind::Unsigned { bits: 16 } => {
            Owned::Unsigned(array.as_primitive::<UInt16Type>().value(row).into())
        }
        ColumnKind::Unsigned { bits: 32 } => {
            Owned::Unsigned(array.as_primitive::<UInt32Type>().value(row).into())
        }
        ColumnKind::Unsigned { .. } => {
            Owned::Unsigned(array.as_primitive::<UInt64Type>().value(row))
        }
        ColumnKind::TimestampNs => {
            let time = array.as_primitive::<TimestampNanosecondType>().value(row);
            Owned::Unsigned(time.try_into().unwrap())
        }
        ColumnKind::Float => Owned::Float(array.as_primitive::<Float64Type>().value(row)),
        ColumnKind::List => {
            let list = array.as_list::<i32>().value(row);
            Owned::List(list.as_primitive::<UInt64Type>().values().to_vec())
        }
    }
}

/// A stream whose content a test can inspect.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn streamed(bytes: &[u8]) -> Vec<RecordBatch> {
    let reader = StreamReader::try_new(bytes, None).unwrap();
    reader.map(Result::unwrap).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn files_streams_and_messages_give_back_records((schema, rows) in table(0..120)) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flows.arrow");
        let batches: Vec<FlowBatch> = rows.chunks(37).map(|rows| batch(&schema, rows)).collect();
        write(&path, Format::Arrow, &schema, &batches);
        let meant = batch(&schema, &rows);
        prop_assert_eq!(&batch(&schema, &rows_of(&schema, &arrow_batches(&path))), &meant);

        let stream = Shared::default();
        let options = WriteOptions::default();
        let sink = Box::new(stream.clone());
        let mut writer = to_writer(sink, "a pipe", Format::Arrow, &schema, &options).unwrap();
        for batch in &batches {
            writer.write(batch).unwrap();
            // Flushed records can be read although the stream continues.
            writer.flush().unwrap();
        }
        prop_assert_eq!(writer.progress().records_written, rows.len() as u64);
        writer.finish().unwrap();
        let read = streamed(&stream.0.lock().unwrap());
        prop_assert_eq!(&batch(&schema, &rows_of(&schema, &read)), &meant);

        let (mut messages, mut bytes) = (ArrowMessages::new(&schema, &[]), Vec::new());
        let half = rows.len() / 2;
        let chosen: Vec<usize> = (half..rows.len()).collect();
        messages.encode(&meant, &chosen, &mut bytes);
        let read = batch(&schema, &rows_of(&schema, &streamed(&bytes)));
        prop_assert_eq!(&read, &batch(&schema, &rows[half..]));
    }
}

#[test]
fn types_and_metadata_are_as_documented() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.arrow");
    let options = WriteOptions {
        metadata: vec![(DEFINITION_KEY.to_owned(), "[key]".to_owned())],
        ..WriteOptions::default()
    };
    let writer = create(&path, Format::Arrow, &default_schema(), &options).unwrap();
    writer.finish().unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let reader = arrow_ipc::reader::FileReader::try_new(file, None).unwrap();
    let schema = reader.schema();
    let kind = |name: &str| schema.field_with_name(name).unwrap().data_type().clone();
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    assert_eq!(
        ["src_addr", "src_port", "protocol", "packets", "first_ns"].map(kind),
        [
            DataType::Utf8,
            DataType::UInt16,
            DataType::UInt8,
            DataType::UInt64,
            time
        ]
    );
    assert!(schema.fields().iter().all(|field| !field.is_nullable()));
    assert_eq!(schema.metadata()[DEFINITION_KEY], "[key]");
}

#[test]
fn small_batches_are_joined_and_times_after_2262_are_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.arrow");
    let options = WriteOptions::default();
    let mut writer = create(&path, Format::Arrow, &default_schema(), &options).unwrap();
    let line = |last_ns: u64| format!("10.0.0.1 10.0.0.2 1 2 6 3 4 5 {last_ns} 7 8 9 10 11 12 3");
    for last_ns in (0..2_000).chain([u64::MAX]) {
        writer.write(&default_batch(&[&line(last_ns)])).unwrap();
    }
    let error = writer.finish().unwrap_err();
    assert_eq!(error.records_written(), 2_000);
    assert!(
        error.to_string().contains("1 records have times"),
        "{error}"
    );
    let rows: Vec<_> = arrow_batches(&path)
        .iter()
        .map(RecordBatch::num_rows)
        .collect();
    assert_eq!(rows, [1_024, 976]);
}
