// SPDX-License-Identifier: Apache-2.0
//! The text formats of the default definition, byte for byte. `UPDATE=1 cargo test` rewrites the
//! golden files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;

use crate::support::{Owned, batch, default_batch, default_schema, read_all, write};
use parquet::file::reader::FileReader;
use turboflow_formats::Format;
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema};

const RECORDS: &[&str] = &[
    "10.0.0.1 192.0.2.255 49152 443 6 12 3456 1700000000000000000 1700000001500000000 27 40 1500 63 64 0 3",
    "192.0.2.255 10.0.0.1 443 49152 6 18446744073709551615 0 0 18446744073709551615 4095 0 4294967295 0 255 255 5",
    "2001:db8::1 ff02::fb 5353 5353 17 1 94 1700000000000000001 1700000000000000001 0 94 94 255 255 184 1",
    "::ffff:1.2.3.4 2001:db8:0:0:1:0:0:1 0 0 58 2 144 1 2 0 72 72 64 64 0 4",
];

fn mixed() -> (Schema, FlowBatch) {
    let column = |name: &str, kind| Column {
        name: name.to_owned(),
        kind,
        nullable: true,
    };
    let schema = vec![
        column("source_mac", ColumnKind::Mac),
        column("mean, \"length\"", ColumnKind::Float),
        column("sizes", ColumnKind::List),
        column("vlan", ColumnKind::Unsigned { bits: 16 }),
    ];
    let rows = vec![
        vec![
            Owned::Unsigned(0x0242_ac11_0002),
            Owned::Float(1234.5),
            Owned::List(vec![60, 1500, 40]),
            Owned::Unsigned(4094),
        ],
        vec![Owned::Absent, Owned::Absent, Owned::Absent, Owned::Absent],
        vec![
            Owned::Unsigned(0),
            Owned::Float(1e300),
            Owned::List(Vec::new()),
            Owned::Unsigned(0),
        ],
    ];
    let batch = batch(&schema, &rows);
    (schema, batch)
}

fn check(name: &str, schema: &Schema, batch: &FlowBatch) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let format = Format::from_path(&path).unwrap();
    write(&path, format, schema, std::slice::from_ref(batch));
    let golden = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    let written = std::fs::read_to_string(&path).unwrap();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&golden, &written).unwrap();
    }
    assert_eq!(written, std::fs::read_to_string(&golden).unwrap(), "{name}");
    let (_, read) = read_all(&golden);
    assert_eq!(&read, batch, "{name}");
}

#[test]
fn text_is_as_documented() {
    let (schema, records) = (default_schema(), default_batch(RECORDS));
    check("default.csv", &schema, &records);
    check("default.jsonl", &schema, &records);
    let (schema, records) = mixed();
    check("mixed.csv", &schema, &records);
    check("mixed.jsonl", &schema, &records);
}

#[test]
fn parquet_types_and_statistics_are_as_documented() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.parquet");
    // In one record, the last time is after 2262.
    let (late, last) = (format!(" {} ", u64::MAX), format!(" {} ", i64::MAX));
    let records: Vec<_> = RECORDS
        .iter()
        .map(|line| line.replace(&format!(" 0 0{late}"), &format!(" 0 0{last}")))
        .collect();
    let records: Vec<_> = records.iter().map(String::as_str).collect();
    let batch = default_batch(&records);
    write(&path, Format::Parquet, &default_schema(), &[batch]);
    let file = std::fs::File::open(&path).unwrap();
    let reader = parquet::file::reader::SerializedFileReader::new(file).unwrap();
    let mut printed = Vec::new();
    let metadata = reader.metadata().file_metadata();
    parquet::schema::printer::print_schema(&mut printed, metadata.schema());
    let expected = "message flow_record {
  REQUIRED BYTE_ARRAY src_addr (STRING);
  REQUIRED BYTE_ARRAY dst_addr (STRING);
  REQUIRED INT32 src_port (INTEGER(16,false));
  REQUIRED INT32 dst_port (INTEGER(16,false));
  REQUIRED INT32 protocol (INTEGER(8,false));
  REQUIRED INT64 packets (INTEGER(64,false));
  REQUIRED INT64 bytes (INTEGER(64,false));
  REQUIRED INT64 first_ns (TIMESTAMP(NANOS,true));
  REQUIRED INT64 last_ns (TIMESTAMP(NANOS,true));
  REQUIRED INT32 tcp_flags (INTEGER(16,false));
  REQUIRED INT32 min_length (INTEGER(32,false));
  REQUIRED INT32 max_length (INTEGER(32,false));
  REQUIRED INT32 min_ttl (INTEGER(8,false));
  REQUIRED INT32 max_ttl (INTEGER(8,false));
  REQUIRED INT32 tos (INTEGER(8,false));
  REQUIRED INT32 end_reason (INTEGER(8,false));
}
";
    assert_eq!(String::from_utf8(printed).unwrap(), expected);
    let pairs = metadata.key_value_metadata().unwrap();
    assert!(pairs.iter().any(|pair| pair.key == "turboflow.version"));
    let columns = reader.metadata().row_group(0).columns();
    let bounds = |index: usize| {
        let statistics = columns[index].statistics().unwrap();
        assert_eq!(statistics.null_count_opt(), Some(0));
        (
            statistics.min_bytes_opt().unwrap().to_vec(),
            statistics.max_bytes_opt().unwrap().to_vec(),
        )
    };
    assert_eq!(
        bounds(0),
        (b"10.0.0.1".to_vec(), b"::ffff:1.2.3.4".to_vec())
    );
    assert_eq!(
        bounds(2),
        (0u32.to_le_bytes().to_vec(), 49152u32.to_le_bytes().to_vec())
    );
    // Unsigned order: the greatest value does not count as -1.
    assert_eq!(
        bounds(5),
        (1u64.to_le_bytes().to_vec(), u64::MAX.to_le_bytes().to_vec())
    );
    assert_eq!(
        bounds(11),
        (
            72u32.to_le_bytes().to_vec(),
            u32::MAX.to_le_bytes().to_vec()
        )
    );
}
