// SPDX-License-Identifier: Apache-2.0
//! IPFIX files are read back exactly as they were written.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::Path;

use turboflow_formats::wire::WireOptions;
use turboflow_formats::{DEFINITION_KEY, Format, WriteOptions, create, read};
use turboflow_merge::Layout;
use turboflow_record::{
    ColumnKind, Definition, ElementOptions, FlowBatch, Input, Op, Schema, TimeUnit, Value,
};

use crate::support::{Owned, Rows, batch, read_all};

const T0_NS: u64 = 1_700_000_000_123_456_789;

fn options(definition: &Definition, is_biflow: bool, time: TimeUnit) -> WriteOptions {
    let elements = ElementOptions {
        time,
        ..ElementOptions::default()
    };
    WriteOptions {
        wire: WireOptions {
            elements: definition.elements(is_biflow, &elements),
            ..WireOptions::default()
        },
        ..WriteOptions::default()
    }
}

/// Rows of every shape: IPv4 and IPv6, and every third nullable value absent.
fn rows(schema: &Schema, count: u64) -> Rows {
    let value = |row: u64, index: u64, kind: ColumnKind, nullable: bool| match kind {
        _ if nullable && (row >> (index % 9)) & 1 == 1 => Owned::Absent,
        ColumnKind::Address if row.is_multiple_of(2) => {
            Owned::Address([10, 0, index as u8, row as u8].into())
        }
        ColumnKind::Address => {
            Owned::Address([0x2001, 0xdb8, 0, 0, 0, 0, index as u16, row as u16].into())
        }
        ColumnKind::TimestampNs => Owned::Unsigned(T0_NS + row * 1_001_001),
        ColumnKind::Unsigned { bits } => {
            let most = u64::MAX >> (64 - u32::from(bits));
            Owned::Unsigned([row, most, 0][(row + index) as usize % 3].min(most))
        }
        ColumnKind::Mac => Owned::Unsigned(0x0242_ac11_0000 + row),
        ColumnKind::Float => Owned::Float(row as f64 / 8.0),
        ColumnKind::List => Owned::List((0..row % 4).map(|part| part * 1_000 + index).collect()),
        ColumnKind::Text => Owned::Text(format!("text {row} of {index}")),
    };
    let row = |row: u64| {
        let columns = schema.iter().enumerate();
        let values = columns.map(|(index, c)| value(row, index as u64, c.kind, c.nullable));
        values.collect()
    };
    (0..count).map(row).collect()
}

fn written(
    path: &Path,
    definition: &Definition,
    is_biflow: bool,
    time: TimeUnit,
    count: u64,
) -> (Schema, FlowBatch) {
    let layout = Layout::compile(definition, is_biflow).unwrap();
    let schema = layout.schema().clone();
    let records = batch(&schema, &rows(&schema, count));
    let options = options(definition, is_biflow, time);
    let mut writer = create(path, Format::Ipfix, &schema, &options).unwrap();
    writer.write(&records).unwrap();
    writer.finish().unwrap();
    (schema, records)
}

/// The records in sorted order: a file has them in the order of their templates.
fn sorted(batch: &FlowBatch, columns: usize) -> Vec<String> {
    let row = |row: usize| {
        let values = (0..columns).map(|column| format!("{:?}", batch.value(row, column)));
        values.collect::<Vec<_>>().join(" ")
    };
    let mut rows: Vec<String> = (0..batch.rows()).map(row).collect();
    rows.sort();
    rows
}

/// The records with their times reduced to the resolution of the file.
fn cut(schema: &Schema, batch: &FlowBatch, unit_ns: u64) -> FlowBatch {
    let mut cut = FlowBatch::new(schema);
    for row in 0..batch.rows() {
        let value = |(index, kind): (usize, ColumnKind)| match (batch.value(row, index), kind) {
            (Value::Unsigned(ns), ColumnKind::TimestampNs) => {
                Value::Unsigned(ns / unit_ns * unit_ns)
            }
            (value, _) => value,
        };
        let kinds = schema.iter().map(|column| column.kind).enumerate();
        cut.push_row(&kinds.map(value).collect::<Vec<_>>());
    }
    cut
}

#[test]
fn default_records_are_read_back_with_their_columns() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ipfix");
    for is_biflow in [false, true] {
        for (time, unit_ns) in [
            (TimeUnit::Milliseconds, 1_000_000),
            (TimeUnit::Microseconds, 1_000),
            (TimeUnit::Nanoseconds, 1),
        ] {
            // Biflows have more shapes than there can be templates.
            let (schema, records) = written(&path, &Definition::default(), is_biflow, time, 20_000);
            let (found, read) = read_all(&path);
            let names = |schema: &Schema| {
                let names = schema.iter().map(|column| column.name.clone());
                names.collect::<Vec<_>>().join(" ")
            };
            assert_eq!(names(&found), names(&schema));
            let expected = cut(&schema, &records, unit_ns);
            assert_eq!(read.rows(), 20_000);
            let (expected, read) = (sorted(&expected, schema.len()), sorted(&read, schema.len()));
            let different = expected
                .iter()
                .zip(&read)
                .find(|(left, right)| left != right);
            assert_eq!(different, None, "biflow {is_biflow}, {time:?}");
        }
    }
}

const OWN: &str = "
[key]
fields = [\"protocol\"]

[[feature]]
name = \"n\"
op = \"count\"

[[feature]]
name = \"average\"
op = \"mean\"
of = \"ip_length\"

[[feature]]
name = \"sizes\"
op = \"list\"
k = 4
of = \"ip_length\"

[[feature]]
name = \"window\"
op = \"max\"
of = \"tcp_window\"
";

#[test]
fn columns_of_a_definition_have_the_names_of_their_elements() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ipfix");
    let definition = Definition::parse(OWN).unwrap();
    let (schema, records) = written(&path, &definition, false, TimeUnit::default(), 50);
    let (found, read) = read_all(&path);
    assert_eq!(found.len(), schema.len());
    assert!(read.rows() == 50 && found.iter().any(|column| column.name == "packets"));
    let names: Vec<&str> = found.iter().map(|column| column.name.as_str()).collect();
    let has = |words: &[&str]| {
        let mut names = names.iter();
        names.position(|name| words.iter().all(|word| name.contains(word)))
    };
    for (words, own) in [
        (&["mean", "length"][..], "average"),
        (&["length", "list"], "sizes"),
        (&["max", "window"], "window"),
    ] {
        let column = has(words).unwrap_or_else(|| panic!("{words:?} is none of {names:?}"));
        let before = schema.iter().position(|column| column.name == own).unwrap();
        let values = |batch: &FlowBatch, column: usize| {
            let values = (0..50).map(|row| format!("{:?}", batch.value(row, column)));
            let mut values: Vec<String> = values.collect();
            values.sort();
            values
        };
        assert_eq!(values(&read, column), values(&records, before), "{own}");
    }
}

/// Texts that define one feature for each operation and input that result in a column of their own.
fn all_features() -> Vec<String> {
    let feature =
        |text: &str| format!("[key]\nfields = [\"protocol\", \"source_address\"]\n{text}");
    let one = |index: usize, op: &str, of: &str| {
        format!("[[feature]]\nname = \"own{index}\"\nop = \"{op}\"\n{of}\n")
    };
    let mut texts = Vec::new();
    for op in Op::NAMES {
        let all: Vec<String> = std::iter::once(String::new())
            .chain(
                Input::ALL
                    .iter()
                    .map(|input| format!("of = \"{}\"", input.name())),
            )
            .filter_map(|of| {
                let more = match op {
                    "nth" | "list" => "\nk = 2",
                    "histogram" => "\nedges = [5, 9]",
                    _ => "",
                };
                let of = format!("{of}{more}");
                let definition = Definition::parse(&feature(&one(0, op, &of))).ok()?;
                // `nth` of inputs beyond the 48th has no element.
                let elements = definition.elements(true, &ElementOptions::default());
                let has_numbers = elements.iter().all(|mapped| mapped.v4.id != 0);
                assert!(has_numbers || op == "nth", "{op} {of}");
                has_numbers.then_some(of)
            })
            .collect();
        // As many features as fit into a definition.
        for some in all.chunks(8) {
            let parts = some.iter().enumerate();
            let parts: Vec<String> = parts.map(|(index, of)| one(index, op, of)).collect();
            texts.push(feature(&parts.concat()));
        }
    }
    texts
}

/// A file of this crate contains its definition, so that every column is read back unchanged.
#[test]
fn columns_of_every_definition_are_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ipfix");
    let texts = all_features();
    assert!(texts.len() > 40, "{}", texts.len());
    for text in texts.iter().map(String::as_str).chain([OWN]) {
        let definition = Definition::parse(text).unwrap();
        for is_biflow in [false, true] {
            let Ok(layout) = Layout::compile(&definition, is_biflow) else {
                continue;
            };
            let schema = layout.schema().clone();
            let records = batch(&schema, &rows(&schema, 60));
            let metadata = vec![(DEFINITION_KEY.to_owned(), definition.to_toml())];
            let options = WriteOptions {
                metadata,
                ..options(&definition, is_biflow, TimeUnit::Nanoseconds)
            };
            let mut writer = create(&path, Format::Ipfix, &schema, &options).unwrap();
            writer.write(&records).unwrap();
            writer.finish().unwrap();
            let reader = read(&path).unwrap();
            assert_eq!(reader.definition(), Some(&definition), "{text}");
            assert_eq!(reader.left_out(), [""; 0], "{text}");
            let (found, read) = read_all(&path);
            let plain = |schema: &Schema| {
                let columns = schema
                    .iter()
                    .map(|column| (column.name.clone(), column.kind));
                columns.collect::<Vec<_>>()
            };
            assert_eq!(plain(&found), plain(&schema), "{text}");
            // A column without an element in IPFIX is not in the file.
            let numbered = |column: usize| options.wire.elements[column].v4.id > 0;
            let sent = |batch: &FlowBatch| {
                let row = |row: usize| {
                    let columns = (0..schema.len()).filter(|column| numbered(*column));
                    let values = columns.map(|column| format!("{:?}", batch.value(row, column)));
                    values.collect::<Vec<_>>().join(" ")
                };
                let mut rows: Vec<String> = (0..batch.rows()).map(row).collect();
                rows.sort();
                rows
            };
            assert_eq!(sent(&read), sent(&records), "biflow {is_biflow}: {text}");
        }
    }
}

#[test]
fn a_damaged_file_is_reported_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ipfix");
    written(
        &path,
        &Definition::default(),
        false,
        TimeUnit::default(),
        5_000,
    );
    let whole = fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let reader = read(&path);
        let mut records = 0;
        let error = match reader {
            Ok(mut reader) => loop {
                match reader.next_batch() {
                    Ok(Some(batch)) => records += batch.rows(),
                    Ok(None) => break reader.damage().expect("the damage is noticed"),
                    Err(error) => break error,
                }
            },
            Err(error) => error,
        };
        (error.to_string(), records)
    };
    // Complete messages are read, and the cut is reported.
    let mut before = 0;
    for length in [10, whole.len() / 2, whole.len() - 1] {
        let (message, records) = refused(&whole[..length]);
        assert!(
            message.contains("a.ipfix") && message.contains("within a message"),
            "{message}"
        );
        assert_eq!(length == 10, records == 0, "{length}: {records}");
        // The last message may be an options message.
        assert!((before..=5_000).contains(&records), "{length}: {records}");
        assert!(length > whole.len() / 2 || records < 5_000);
        before = records;
    }
    let (message, _) = refused(&[&whole[..], b"\0\x0a\0\x04 garbage garbage garbage"].concat());
    assert!(message.contains("damaged"), "{message}");
    // No input causes a panic.
    for at in 0..whole.len().min(3_000) {
        let mut bytes = whole.clone();
        bytes.truncate(6_000);
        bytes[at] ^= 0xff;
        fs::write(&path, &bytes).unwrap();
        if let Ok(reader) = read(&path) {
            let _ = reader.collect::<Result<Vec<_>, _>>();
        }
    }
}
