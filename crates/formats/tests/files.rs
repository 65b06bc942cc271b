// SPDX-License-Identifier: Apache-2.0
//! Files get their final name when they are complete. Errors are reported once, with place and
//! advice.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use crate::arrow::arrow_batches;
use crate::support::{default_batch, default_options, default_schema, read_all};
use flate2::write::GzEncoder;
use proptest::prelude::*;
use turboflow_formats::{
    ExportError, FlowWriter, Format, ReadError, WriteOptions, create, from_stream, read, to_writer,
};
use turboflow_record::{FlowBatch, Value};

const RECORD: &str = "10.0.0.1 10.0.0.2 1 2 6 3 4 5 6 7 8 9 10 11 12 3";

fn records(count: usize) -> FlowBatch {
    default_batch(&vec![RECORD; count])
}

/// Number of flow records in a file of any format.
fn records_in(path: &Path) -> u64 {
    match path.display().to_string().contains(".arrow") {
        true => {
            let batches = arrow_batches(path);
            batches.iter().map(|batch| batch.num_rows() as u64).sum()
        }
        false => crate::support::records_in(path),
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn replaces_the_target_only_when_complete() {
    for format in Format::ALL {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(format!("flows.{format}"));
        fs::write(&path, "old").unwrap();
        let schema = default_schema();
        let mut writer = create(&path, format, &schema, &default_options()).unwrap();
        writer.write(&records(10_000)).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(
            names(directory.path()).len(),
            2,
            "a temporary file beside it"
        );
        writer.finish().unwrap();
        assert_eq!(names(directory.path()).len(), 1);
        assert_eq!(records_in(&path), 10_000);
    }
}

/// Parquet's times are signed nanoseconds, which end in 2262. No time may wrap to before 1970.
#[test]
fn parquet_leaves_out_records_after_2262_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows.parquet");
    let late = u64::MAX / 2 + 1;
    let line = |last_ns: u64| format!("10.0.0.1 10.0.0.2 1 2 6 3 4 5 {last_ns} 7 8 9 10 11 12 3");
    let lines: Vec<_> = [6, late, late - 1, u64::MAX].map(line).into();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let options = WriteOptions {
        row_group_records: 1,
        ..default_options()
    };
    let mut writer = create(&path, Format::Parquet, &default_schema(), &options).unwrap();
    writer.write(&default_batch(&lines)).unwrap();
    let error = writer.finish().unwrap_err();
    assert_eq!(error.records_written(), 2);
    let said = error.to_string();
    assert!(said.contains("2 records have times or counters"), "{said}");
    let (_, batch) = read_all(&path);
    let times: Vec<_> = (0..batch.rows()).map(|row| batch.value(row, 8)).collect();
    assert_eq!(times, [Value::Unsigned(6), Value::Unsigned(late - 1)]);
}

#[test]
fn leaves_nothing_when_dropped_unfinished() {
    for format in Format::ALL {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flows");
        let schema = default_schema();
        let mut writer = create(&path, format, &schema, &default_options()).unwrap();
        writer.write(&records(100)).unwrap();
        drop(writer);
        assert!(names(directory.path()).is_empty());
    }
}

#[test]
fn keeps_a_symbolic_link_and_permissions() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let (path, link) = (
        directory.path().join("real.csv"),
        directory.path().join("link.csv"),
    );
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&path, &link).unwrap();
    let schema = default_schema();
    let writer = create(&link, Format::Csv, &schema, &default_options()).unwrap();
    writer.finish().unwrap();
    assert!(link.is_symlink());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::read_to_string(&path).unwrap().starts_with("src_addr,"));
}

#[test]
fn refuses_invalid_targets_at_creation() {
    let directory = tempfile::tempdir().unwrap();
    let refuse = |path: &Path| {
        let schema = default_schema();
        create(path, Format::Csv, &schema, &default_options())
            .err()
            .unwrap()
            .to_string()
    };
    let message = refuse(directory.path());
    assert!(message.contains("it is a directory"), "{message}");
    let message = refuse(&directory.path().join("none/flows.csv"));
    assert!(
        message.contains("there is no directory") && message.contains("none"),
        "{message}"
    );
    fs::write(directory.path().join("file"), "").unwrap();
    refuse(&directory.path().join("file/flows.csv"));
    refuse(Path::new(""));
    refuse(Path::new("/proc/flows.csv"));
}

#[test]
fn reports_a_full_device() {
    let schema = default_schema();
    let path = Path::new("/dev/full");
    for format in Format::ALL {
        let error = match create(path, format, &schema, &default_options()) {
            Ok(mut writer) => writer
                .write(&records(50_000))
                .err()
                .unwrap_or_else(|| writer.finish().err().unwrap()),
            Err(error) => error,
        };
        let message = error.to_string();
        assert!(
            message.contains("/dev/full") && message.contains("No space"),
            "{message}"
        );
    }
    assert!(path.exists());
}

/// Accepts `left` bytes, then fails with an error of that kind.
struct Limited {
    left: usize,
    kind: io::ErrorKind,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(self.kind.into());
        }
        let taken = bytes.len().min(self.left);
        self.left -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer to a stream that accepts `left` bytes, and then fails with an error of that kind.
fn limited(left: usize, kind: io::ErrorKind, format: Format) -> Box<dyn FlowWriter> {
    let stream = Box::new(Limited { left, kind });
    let options = default_options();
    to_writer(
        stream,
        "standard output",
        format,
        &default_schema(),
        &options,
    )
    .unwrap()
}

#[test]
fn counts_the_records_a_stream_took() {
    let schema = default_schema();
    let mut text = Vec::new();
    let header = schema.iter().map(|c| c.name.len() + 1).sum::<usize>();
    let line = RECORD.len() + 1;
    for format in [Format::Csv, Format::JsonLines] {
        // Space for the header, 10,000 CSV lines and half a line.
        let left = header + 10_000 * line + line / 2;
        let mut writer = limited(left, io::ErrorKind::StorageFull, format);
        let error = writer.write(&records(100_000)).unwrap_err();
        let ExportError::Write {
            records,
            kept: None,
            ..
        } = &error
        else {
            panic!("{error}")
        };
        text.push((format, *records));
        writer.write(&records_after_failure()).unwrap();
        assert_eq!(writer.finish().unwrap().records, 0);
    }
    assert_eq!(text[0], (Format::Csv, 10_000));
    assert!(text[1].1 < 10_000);
}

fn records_after_failure() -> FlowBatch {
    records(1)
}

#[test]
fn tells_a_broken_pipe_from_other_failures() {
    for format in Format::ALL {
        // Enough bytes for the header of any format.
        let mut writer = limited(4_000, io::ErrorKind::BrokenPipe, format);
        let outcome = writer
            .write(&records(100_000))
            .and_then(|()| writer.finish());
        assert!(
            matches!(outcome, Err(ExportError::BrokenPipe)),
            "{format}: {outcome:?}"
        );
    }
}

/// Not an independent test: runs in a process that cannot write files larger than 512 KiB.
#[test]
#[ignore = "started by keeps_what_was_written_on_a_full_disk"]
fn writes_until_the_disk_is_full() {
    let directory = std::env::var("TURBOFLOW_TEST_DIRECTORY").unwrap();
    for format in Format::ALL {
        let path = Path::new(&directory).join(format!("flows.{format}"));
        let options = WriteOptions {
            row_group_records: 5000,
            ..default_options()
        };
        let schema = default_schema();
        let mut writer = create(&path, format, &schema, &options).unwrap();
        let addresses = |n: u64| {
            let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let address = std::net::Ipv4Addr::from((n >> 32) as u32);
            default_batch(&[&format!(
                "{address} {address} 1 2 6 3 {n} 5 {n} 7 8 9 10 11 12 3"
            )])
        };
        let error = (0..100_000)
            .find_map(|n| writer.write(&addresses(n)).err())
            .unwrap();
        let ExportError::Write {
            records,
            kept: Some(kept),
            ..
        } = &error
        else {
            panic!("{error}")
        };
        assert!(error.to_string().contains("flows."), "{error}");
        drop(writer);
        assert!(*records > 1000, "{error}");
        assert_eq!(records_in(kept), *records, "{error}");
    }
    assert_eq!(
        names(Path::new(&directory)).len(),
        Format::ALL.len(),
        "only the .part files are left"
    );
}

#[test]
fn keeps_what_was_written_on_a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let outcome = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "files::writes_until_the_disk_is_full",
        ])
        .env("TURBOFLOW_TEST_DIRECTORY", directory.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&outcome.stdout);
    assert!(
        outcome.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

#[test]
fn read_errors_name_line_and_column() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows");
    let message_of = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        let mut reader = match read(&path) {
            Ok(reader) => reader,
            Err(error) => return error.to_string(),
        };
        let error = loop {
            match reader.next_batch() {
                Ok(Some(_)) => {}
                Ok(None) => break reader.damage().unwrap(),
                Err(error) => break error,
            }
        };
        error.to_string()
    };
    let cases: [(&[u8], &str); 14] = [
        (
            b"src_addr,bytes\n1.2.3.4,5\nx,6",
            "line 3, column src_addr: \"x\" is not an IP address",
        ),
        (
            b"src_addr,bytes\n1.2.3.4,5\n1.2.3",
            "line 3: the file ends within this line",
        ),
        (
            b"src_addr,bytes\n1.2.3.4,5\nx,6\n",
            "line 3, column src_addr: \"x\" is not an IP address",
        ),
        (
            b"src_addr,bytes\n1.2.3.4,-5\n",
            "line 2, column bytes: \"-5\" is not an unsigned number",
        ),
        (
            b"src_addr,bytes\n1.2.3.4\n",
            "line 2: 1 values where the header has 2 columns",
        ),
        (b"bytes,bytes\n", "repeated"),
        (b"\x7fELF\x02\x01\x01\0\0", "binary data"),
        (
            b"{\"bytes\":1}\n{\"bytes\":\"x\"}\n",
            "line 2: the value of \"bytes\" is not an unsigned",
        ),
        (
            b"{\"bytes\":1}\n{\"bytes\":1",
            "line 2: the file ends within this line: its writer was stopped (no JSON object",
        ),
        (b"{\"bytes\":1} x\n", "line 1: more text"),
        (
            b"{\"bytes\":{\"a\":1}}",
            "line 1: no value of a flow record",
        ),
        (
            b"PAR1 and no more",
            "is a Parquet file that is not complete",
        ),
        (b"PAR1 and no footer PAR1", "as Parquet"),
        (b"{\"by\\u00zz\":1}", "unknown escape"),
    ];
    for (content, expected) in cases {
        let message = message_of(content);
        assert!(message.contains(expected), "{message} has no {expected}");
    }
    let missing = read(&directory.path().join("none")).err().unwrap();
    assert!(matches!(missing, ReadError::NoFile { .. }));
}

/// The bytes of a file of `count` records.
fn bytes_of(format: Format, count: usize) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("flows");
    let mut writer = create(&path, format, &default_schema(), &default_options()).unwrap();
    writer.write(&records(count)).unwrap();
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

#[test]
fn reads_gzip_and_zstd_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let write = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let text = bytes_of(Format::Csv, 20_000);
    // Two gzip members, as in the output of `cat a.gz b.gz`.
    let (first, second) = text.split_at(text.len() / 3);
    let members = [gzip(first), gzip(second)].concat();
    for bytes in [members, zstd::encode_all(&*text, 1).unwrap()] {
        assert_eq!(records_in(&write("flows", &bytes)), 20_000);
    }
    let refused = |bytes: &[u8]| {
        let outcome = read(&write("odd", bytes)).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        outcome.err().unwrap().to_string()
    };
    let whole = gzip(&text);
    // The readable part is read, and the cut is reported.
    let mut cut = read(&write("odd", &whole[..whole.len() / 2])).unwrap();
    let rows = cut
        .by_ref()
        .map(|batch| batch.unwrap().rows())
        .sum::<usize>();
    assert!((1..20_000).contains(&rows), "{rows}");
    let message = cut.damage().unwrap().to_string();
    assert!(
        message.contains(&format!("odd, line {}: the compressed file", rows + 2)),
        "{message} {rows}"
    );
    let message = refused(&gzip(&whole));
    assert!(message.contains("compressed twice"), "{message}");
    let message = refused(&gzip(&bytes_of(Format::Parquet, 10)));
    assert!(
        message.contains("Parquet") && message.contains("decompress it"),
        "{message}"
    );
    let message = refused(&gzip(b"[{\"packets\":1}]"));
    assert!(
        message.contains("JSON array") && !message.contains("jq -c"),
        "{message}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_read_or_refused(text in "[{}\\[\\]\",:;.0-9a-f\\\\nu\n -]{0,120}", json in any::<bool>()) {
        let start = if json { "{\"bytes\":1,\"a\":[1],\"b\":1.5}\n" } else { "bytes,a,b\n1,[1],1.5\n" };
        for text in [text.clone(), start.to_owned() + &text] {
            let stream = Box::new(io::Cursor::new(text.into_bytes()));
            if let Ok(reader) = from_stream(stream, "test") {
                let outcome: Result<Vec<_>, _> = reader.collect();
                if let Err(error) = outcome {
                    prop_assert!(error.to_string().starts_with("test, line "));
                }
            }
        }
    }
}
