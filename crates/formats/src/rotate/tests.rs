// SPDX-License-Identifier: Apache-2.0
//! File rotation on a simulated clock.

use std::cell::Cell;
use std::fs;

use turboflow_merge::Layout;
use turboflow_record::{
    ColumnKind, Definition, ElementOptions, Feature, Input, Op, Schema, TimeUnit, Value,
};

use super::*;
use crate::wire::WireOptions;

thread_local! {
    static NOW_MS: Cell<u64> = const { Cell::new(0) };
    static TURNS: Cell<u64> = const { Cell::new(0) };
    static FAILURES: Cell<u64> = const { Cell::new(0) };
}

/// 22 November 2026, 01:02:03 UTC.
const START_MS: u64 = 1_795_309_323_000;

fn schema() -> Schema {
    schema_of(&Definition::default())
}

fn schema_of(definition: &Definition) -> Schema {
    Layout::compile(definition, false).unwrap().schema().clone()
}

/// Flow records whose values are all zero, with `list` as the value of every list.
fn batch(schema: &Schema, records: usize, list: &[u64]) -> FlowBatch {
    let mut batch = FlowBatch::new(schema);
    let zero = |column: &Column| match column.kind {
        ColumnKind::Address => Value::Address([0, 0, 0, 0].into()),
        ColumnKind::List => Value::List(list),
        ColumnKind::Float => Value::Float(0.0),
        _ => Value::Unsigned(0),
    };
    let row: Vec<Value<'_>> = schema.iter().map(zero).collect();
    (0..records).for_each(|_| batch.push_row(&row));
    batch
}

fn write_options(definition: &Definition) -> WriteOptions {
    let elements = ElementOptions {
        enterprise: turboflow_record::DOCUMENTATION_ENTERPRISE,
        time: TimeUnit::Milliseconds,
    };
    let elements = definition.elements(false, &elements);
    WriteOptions {
        wire: WireOptions {
            elements,
            ..WireOptions::default()
        },
        ..WriteOptions::default()
    }
}

fn observe(event: &RotateEvent<'_>) {
    if matches!(event, RotateEvent::Failed(_)) {
        FAILURES.set(FAILURES.get() + 1);
    }
}

fn start(folder: &Path, name: &str, every_ms: Option<u64>) -> Box<dyn FlowWriter> {
    start_with(folder, name, every_ms, &Definition::default())
}

fn start_with(
    folder: &Path,
    name: &str,
    every_ms: Option<u64>,
    definition: &Definition,
) -> Box<dyn FlowWriter> {
    NOW_MS.set(START_MS);
    start_by(RotateBy::Clock, folder, name, every_ms, definition).unwrap()
}

fn start_by(
    by: RotateBy,
    folder: &Path,
    name: &str,
    every_ms: Option<u64>,
    definition: &Definition,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    let pattern: NamePattern = folder.join(name).to_str().unwrap().parse().unwrap();
    let options = RotateOptions {
        every_ms,
        size_bytes: None,
        by,
        keep: Retention {
            age_seconds: Some(3_600),
            total_bytes: None,
        },
        wall_ms: || NOW_MS.get(),
        turns_asked: || TURNS.get(),
        observe,
    };
    let format = Format::from_path(Path::new(name)).unwrap();
    let (schema, write) = (schema_of(definition), write_options(definition));
    rotate(pattern, format, &schema, &write, options)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

#[test]
fn days_have_folders_and_old_files_go() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = start(folder.path(), "%Y/%m/%d/f-%H%M%S.csv", Some(1_800_000));
    let write = |writer: &mut Box<dyn FlowWriter>, now_ms: u64| {
        NOW_MS.set(now_ms);
        writer.write(&batch(&schema(), 1, &[])).unwrap();
    };
    write(&mut writer, START_MS + 1_800_000);
    assert_eq!(names(&folder.path().join("2026/11/22")), ["f-010203.csv"]);
    // 22 November 2096: later than the time of the clock after which files are named.
    let later_ms = START_MS + 25_568 * 86_400_000;
    for half_hour in 0..4 {
        write(&mut writer, later_ms + half_hour * 1_800_000);
    }
    assert!(
        !folder.path().join("2026").exists(),
        "more than an hour old"
    );
    let day = folder.path().join("2096/11/22");
    // Written to until 01:30, 02:00 and 02:30; it is 02:32:03.
    assert_eq!(names(&day), ["f-013000.csv", "f-020000.csv"]);
    writer.finish().unwrap();
    assert_eq!(
        names(&day),
        ["f-013000.csv", "f-020000.csv", "f-023000.csv"]
    );
    // A folder without a time in its name is not created.
    let missing = folder.path().join("mount");
    let pattern: NamePattern = missing.join("%Y/f.csv").to_str().unwrap().parse().unwrap();
    let options = RotateOptions {
        by: RotateBy::Clock,
        every_ms: None,
        size_bytes: None,
        keep: Retention::default(),
        wall_ms: || NOW_MS.get(),
        turns_asked: || TURNS.get(),
        observe,
    };
    let write = write_options(&Definition::default());
    let refused = rotate(pattern, Format::Csv, &schema(), &write, options);
    let message = refused.err().unwrap().to_string();
    assert!(message.contains("there is no directory"), "{message}");
}

#[test]
fn files_end_on_time_even_without_records() {
    for ending in ["csv", "jsonl", "parquet", "ipfix"] {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("f-%H%M%S.{ending}");
        let mut writer = start(folder.path(), &name, Some(300_000));
        writer.flush().unwrap();
        assert!(names(folder.path()).is_empty(), "none is complete yet");
        NOW_MS.set(START_MS + 177_000);
        writer.flush().unwrap();
        assert_eq!(names(folder.path()), [format!("f-010203.{ending}")]);
        // The rotation is noticed late, but the file is still named after the clock.
        NOW_MS.set(START_MS + 477_000 + 1_234);
        writer.flush().unwrap();
        writer.finish().unwrap();
        let all = ["f-010203", "f-010500", "f-011000"].map(|name| format!("{name}.{ending}"));
        assert_eq!(names(folder.path()), all);
    }
}

#[test]
fn a_request_starts_a_file_and_no_file_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = start(folder.path(), "f-%H%M.csv", None);
    for _ in 0..2 {
        TURNS.set(TURNS.get() + 1);
        writer.flush().unwrap();
    }
    writer.finish().unwrap();
    let all = ["f-0102-1.csv", "f-0102-2.csv", "f-0102.csv"];
    assert_eq!(names(folder.path()), all);
}

#[test]
fn a_clock_that_is_set_back_starts_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = start(folder.path(), "f-%H%M.csv", Some(60_000));
    NOW_MS.set(START_MS - 3_600_000);
    writer.flush().unwrap();
    writer.finish().unwrap();
    assert_eq!(names(folder.path()), ["f-0002.csv", "f-0102.csv"]);
}

#[test]
fn a_failure_is_reported_and_the_next_file_is_tried() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let mut writer = start(&inner, "f-%H%M%S.csv", Some(3_600_000));
    fs::remove_dir_all(&inner).unwrap();
    TURNS.set(TURNS.get() + 1);
    writer.flush().unwrap();
    assert!(FAILURES.get() >= 1 && writer.is_failing());
    fs::create_dir(&inner).unwrap();
    NOW_MS.set(START_MS + RETRY_MS);
    writer.flush().unwrap();
    assert!(!writer.is_failing());
    assert!(matches!(writer.finish(), Err(ExportError::Write { .. })));
    assert_eq!(names(&inner), ["f-010303.csv"]);
}

#[test]
fn old_files_go_at_the_start_and_while_no_file_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let year = folder.path().join("1971");
    let old = |name: &str| {
        fs::create_dir_all(&year).unwrap();
        let path = year.join(name);
        fs::write(&path, "old").unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        path
    };
    let at_start = old("f-0101.csv");
    let mut writer = start(folder.path(), "%Y/f-%m%d.csv", Some(60_000));
    assert!(!at_start.exists(), "removed before the first file");
    // A file at the path of the next folder prevents any new file.
    fs::write(folder.path().join("2027"), "").unwrap();
    NOW_MS.set(START_MS + 60 * 86_400_000);
    writer.flush().unwrap();
    assert!(writer.is_failing());
    let later = old("f-0102.csv");
    NOW_MS.set(START_MS + 61 * 86_400_000);
    writer.flush().unwrap();
    assert!(writer.is_failing(), "still no file");
    assert!(!later.exists(), "removed all the same");
}

#[test]
fn records_count_as_written_when_their_file_is_renamed_and_as_dropped_when_it_fails() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let mut writer = start(&inner, "f-%H%M%S.csv", None);
    let write = |writer: &mut dyn FlowWriter, records| {
        writer.write(&batch(&schema(), records, &[])).unwrap();
        writer.flush().unwrap();
        let progress = writer.progress();
        (progress.records_written, progress.records_dropped)
    };
    assert_eq!(write(writer.as_mut(), 3), (0, 0));
    TURNS.set(TURNS.get() + 1);
    assert_eq!(write(writer.as_mut(), 2), (3, 0));
    fs::remove_dir_all(&inner).unwrap();
    TURNS.set(TURNS.get() + 1);
    // Dropped: the records of the removed file, and the record for which there was no file.
    assert_eq!(write(writer.as_mut(), 1), (3, 3));
    let ended = writer.finish();
    assert!(matches!(ended, Err(ExportError::Write { records: 3, .. })));
}

#[test]
fn a_record_that_the_format_cannot_hold_costs_no_other_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut definition = Definition::default();
    let lengths = Feature::new("lengths", Op::List { k: 256 }, Some(Input::IpLength));
    definition.features.push(lengths);
    let schema = schema_of(&definition);
    let mut writer = start_with(folder.path(), "f-%H%M%S.ipfix", None, &definition);
    writer.write(&batch(&schema, 3, &[1])).unwrap();
    // Longer than the maximum length of a message.
    writer.write(&batch(&schema, 1, &[1_500; 20_000])).unwrap();
    TURNS.set(TURNS.get() + 1);
    writer.flush().unwrap();
    let progress = writer.progress();
    assert_eq!((progress.records_written, progress.records_dropped), (3, 1));
    assert_eq!(names(folder.path()), ["f-010203.ipfix"]);
    let ended = writer.finish();
    assert!(matches!(ended, Err(ExportError::Write { records: 3, .. })));
}

/// Files with a size limit of one byte.
fn start_of_one_byte(folder: &Path) -> Box<dyn FlowWriter> {
    NOW_MS.set(START_MS);
    let options = RotateOptions {
        by: RotateBy::Clock,
        every_ms: None,
        size_bytes: Some(1),
        keep: Retention::default(),
        wall_ms: || NOW_MS.get(),
        turns_asked: || 0,
        observe: |_| {},
    };
    let pattern = folder.join("f-%H%M%S.csv");
    let pattern = pattern.to_str().unwrap().parse().unwrap();
    rotate(
        pattern,
        Format::Csv,
        &schema(),
        &WriteOptions::default(),
        options,
    )
    .unwrap()
}

#[test]
fn batches_written_together_are_in_one_file_unless_it_is_large() {
    let batches = [2, 3].map(|records| Arc::new(batch(&schema(), records, &[])));
    let folder = tempfile::tempdir().unwrap();
    let mut writer = start(folder.path(), "f-%H%M%S.parquet", None);
    writer.write_several(&batches).unwrap();
    TURNS.set(TURNS.get() + 1);
    writer.flush().unwrap();
    assert_eq!(writer.progress().records_written, 5);
    assert_eq!(names(folder.path()), ["f-010203.parquet"]);
    assert_eq!(writer.finish().unwrap().records, 5);

    let folder = tempfile::tempdir().unwrap();
    let mut writer = start_of_one_byte(folder.path());
    writer.write_several(&batches).unwrap();
    writer.flush().unwrap();
    assert_eq!(writer.finish().unwrap().records, 5);
    assert!(names(folder.path()).len() >= 3);
}

#[test]
fn a_large_file_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = start_of_one_byte(folder.path());
    // The header alone exceeds the limit.
    writer.flush().unwrap();
    NOW_MS.set(START_MS + 1_000);
    writer.flush().unwrap();
    writer.finish().unwrap();
    assert!(names(folder.path()).len() >= 2);
}

#[test]
fn two_outputs_with_one_pattern_and_time_write_two_files() {
    let folder = tempfile::tempdir().unwrap();
    let first = start(folder.path(), "f-%H.csv", None);
    let second = start(folder.path(), "f-%H.csv", None);
    first.finish().unwrap();
    second.finish().unwrap();
    assert_eq!(names(folder.path()), ["f-01-1.csv", "f-01.csv"]);
}

/// One record for each time, in minutes after 01:00 on the day of `START_MS`.
fn records_at(minutes: &[u64]) -> FlowBatch {
    let schema = schema();
    let hour_ns = (START_MS - START_MS % HOUR_MS) * 1_000_000;
    let mut batch = FlowBatch::new(&schema);
    for minute in minutes {
        let value = |column: &Column| match column.kind {
            ColumnKind::Address => Value::Address([0, 0, 0, 0].into()),
            ColumnKind::TimestampNs => Value::Unsigned(hour_ns + minute * 60_000_000_000),
            _ => Value::Unsigned(*minute),
        };
        let row: Vec<Value<'_>> = schema.iter().map(value).collect();
        batch.push_row(&row);
    }
    batch
}

const HOUR_MS: u64 = 3_600_000;

/// Number of records in each file of a folder, by file name.
fn counts(folder: &Path) -> Vec<(String, usize)> {
    let count = |name: String| {
        let text = fs::read_to_string(folder.join(&name)).unwrap();
        (name, text.lines().count() - 1)
    };
    names(folder).into_iter().map(count).collect()
}

#[test]
fn files_by_record_have_the_records_of_their_period_however_late_they_come() {
    let folder = tempfile::tempdir().unwrap();
    let by = RotateBy::Record;
    NOW_MS.set(START_MS);
    let begin = START_MS - START_MS % HOUR_MS;
    let place = folder.path();
    let write = |writer: &mut Box<dyn FlowWriter>, minute: u64, minutes: &[u64]| {
        NOW_MS.set(begin + minute * 60_000);
        writer.write(&records_at(minutes)).unwrap();
    };
    let definition = Definition::default();
    let mut writer = start_by(by, place, "f-%H%M.csv", Some(1_800_000), &definition).unwrap();
    write(&mut writer, 20, &[10, 12, 19]);
    write(&mut writer, 31, &[29, 30, 28, 31]);
    // In the second half hour a record came for the first file, so it stays open for another
    // period.
    assert_eq!(counts(place), []);
    write(&mut writer, 61, &[60, 61]);
    assert_eq!(counts(place), []);
    write(&mut writer, 91, &[90]);
    let files = |expected: &[(&str, usize)]| {
        let expected = expected
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count));
        assert_eq!(counts(place), expected.collect::<Vec<_>>());
    };
    files(&[("f-0100.csv", 5), ("f-0130.csv", 2)]);
    // A later record of this period goes to a new file.
    write(&mut writer, 92, &[1, 33]);
    assert_eq!(writer.progress().records_dropped, 0);
    assert_eq!(writer.finish().unwrap().records, 12);
    files(&[
        ("f-0100-1.csv", 1),
        ("f-0100.csv", 5),
        ("f-0130-1.csv", 1),
        ("f-0130.csv", 2),
        ("f-0200.csv", 2),
        ("f-0230.csv", 1),
    ]);
}

#[test]
fn times_of_all_kinds_open_few_files_and_lose_no_record() {
    let folder = tempfile::tempdir().unwrap();
    NOW_MS.set(START_MS);
    let definition = Definition::default();
    let by = RotateBy::Record;
    let mut writer = start_by(by, folder.path(), "f-%Y%m%d%H.csv", None, &definition).unwrap();
    let hours: Vec<u64> = (0..20).map(|n| n * 7 % 20 * 60).collect();
    writer.write(&records_at(&hours)).unwrap();
    let entries = fs::read_dir(folder.path()).unwrap();
    let unfinished = entries.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with(".tmp")
    });
    assert_eq!(unfinished.count(), 4);
    assert_eq!(writer.finish().unwrap().records, 20);
    let counts = counts(folder.path());
    assert_eq!(counts.len(), 20);
    assert!(
        counts.iter().all(|(_, records)| *records == 1),
        "{counts:?}"
    );
}

#[test]
fn records_without_a_time_have_no_file_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    NOW_MS.set(START_MS);
    let definition = Definition {
        features: vec![Feature::new("packets", Op::Count, None)],
        ..Definition::default()
    };
    let started = start_by(
        RotateBy::Record,
        folder.path(),
        "f-%H.csv",
        None,
        &definition,
    );
    let said = started.err().unwrap().to_string();
    assert!(said.contains("op `min` of `timestamp`"), "{said}");
    let absent = folder.path().join("absent");
    let started = start_by(
        RotateBy::Record,
        &absent,
        "f-%H.csv",
        None,
        &Definition::default(),
    );
    let said = started.err().unwrap().to_string();
    assert!(said.contains("there is no directory"), "{said}");
}
