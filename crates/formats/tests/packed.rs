// SPDX-License-Identifier: Apache-2.0
//! Texts that are compressed because of their file names.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;

use turboflow_formats::{Format, create, read};
use turboflow_record::FlowBatch;

use crate::support::{default_batch, default_options, default_schema, read_all};

/// Enough records for several frames.
fn records() -> FlowBatch {
    let line = |port: u32| format!("10.0.0.1 10.0.0.2 {port} 2 6 3 4 5 6 7 8 9 10 11 12 3");
    let lines: Vec<String> = (0..40_000).map(line).collect();
    default_batch(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

const NAMES: [(&str, &[u8]); 4] = [
    ("a.csv.gz", b"\x1f\x8b"),
    ("a.csv.zst", b"\x28\xb5\x2f\xfd"),
    ("a.jsonl.gz", b"\x1f\x8b"),
    ("a.JSONL.ZST", b"\x28\xb5\x2f\xfd"),
];

#[test]
fn a_name_compresses_the_text() {
    let directory = tempfile::tempdir().unwrap();
    for (name, magic) in NAMES {
        let (path, batch) = (directory.path().join(name), records());
        let format = Format::from_path(&path).unwrap();
        let mut writer = create(&path, format, &default_schema(), &default_options()).unwrap();
        writer.write(&batch).unwrap();
        // Flushed records can be read before the stream ends.
        writer.flush().unwrap();
        writer.write(&batch).unwrap();
        let summary = writer.finish().unwrap();
        assert_eq!(summary.records, 80_000);
        let bytes = fs::read(&path).unwrap();
        assert_eq!(summary.bytes, bytes.len() as u64);
        assert!(bytes.starts_with(magic), "{name}");
        assert!(bytes.len() < 80_000 * 12, "{name}: {}", bytes.len());
        let (_, read) = read_all(&path);
        assert_eq!(read.rows(), 80_000);
        for row in [0, 39_999, 40_000, 79_999] {
            assert_eq!(read.value(row, 2), batch.value(row % 40_000, 2), "{name}");
        }
    }
}

#[test]
fn nothing_but_the_header_is_a_stream_too() {
    let directory = tempfile::tempdir().unwrap();
    for (name, _) in NAMES {
        let path = directory.path().join(name);
        let format = Format::from_path(&path).unwrap();
        let writer = create(&path, format, &default_schema(), &default_options()).unwrap();
        writer.finish().unwrap();
        assert!(
            read(&path).unwrap().next_batch().unwrap().is_none(),
            "{name}"
        );
    }
}

/// A file left by a killed writer is read up to its last complete line.
#[test]
fn a_cut_line_is_left_out_and_reported() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a.csv", "a.jsonl"] {
        let path = directory.path().join(name);
        let format = Format::from_path(&path).unwrap();
        let mut writer = create(&path, format, &default_schema(), &default_options()).unwrap();
        writer.write(&records()).unwrap();
        writer.finish().unwrap();
        let bytes = fs::read(&path).unwrap();
        let count = |reader: &mut turboflow_formats::FlowReader| {
            let mut rows = 0;
            while let Some(batch) = reader.next_batch().unwrap() {
                rows += batch.rows();
            }
            rows
        };
        let mut whole = read(&path).unwrap();
        let all = count(&mut whole);
        assert!(whole.damage().is_none());
        fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
        let mut cut = read(&path).unwrap();
        assert_eq!(count(&mut cut), all - 1, "{name}");
        let message = cut.damage().unwrap().to_string();
        assert!(
            message.contains(name) && message.contains("ends within this line"),
            "{message}"
        );
    }
}

/// Half a frame cannot be decompressed: whatever is kept ends with a complete frame.
#[test]
fn a_cut_text_is_an_error_behind_its_last_whole_frame() {
    let directory = tempfile::tempdir().unwrap();
    for (name, _) in NAMES {
        let path = directory.path().join(name);
        let format = Format::from_path(&path).unwrap();
        let mut writer = create(&path, format, &default_schema(), &default_options()).unwrap();
        writer.write(&records()).unwrap();
        writer.finish().unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
        let mut reader = read(&path).unwrap();
        let mut rows = 0;
        let error = loop {
            match reader.next_batch() {
                Ok(Some(batch)) => rows += batch.rows(),
                Ok(None) => break reader.damage().expect("the end is missed"),
                Err(error) => break error,
            }
        };
        assert!(rows > 0 && rows < 40_000, "{name}: {rows}");
        assert!(error.to_string().contains(name), "{error}");
    }
}
