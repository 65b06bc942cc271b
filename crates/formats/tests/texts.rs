// SPDX-License-Identifier: Apache-2.0
//! Applications, names and Community IDs: written to every format and read back, and on the wire.

use std::process::Command;
use std::sync::Arc;

use turboflow_formats::wire::{
    DATAGRAM_BYTES, Protocol, Refresh, Session, WireOptions, encoder, left_out,
};
use turboflow_formats::{DEFINITION_KEY, Format, WriteOptions, create};
use turboflow_merge::Layout;
use turboflow_record::{
    ApplicationNames, ColumnKind, Definition, ElementOptions, Feature, FlowBatch, Input, Op,
    Schema, Value,
};

use crate::support::{Owned, Rows, batch, read_all};

fn names() -> Arc<ApplicationNames> {
    Arc::new(ApplicationNames {
        library: "nDPI 4.2.0".to_owned(),
        applications: vec![
            (0, "Unknown".to_owned(), 0),
            (5, "DNS".to_owned(), 14),
            (91, "TLS".to_owned(), 5),
            (133, "NetFlix".to_owned(), 17),
        ],
        categories: vec![(5, "Web".to_owned()), (17, "Streaming".to_owned())],
        ..ApplicationNames::default()
    })
}

fn options(definition: &Definition, is_biflow: bool, keeps_definition: bool) -> WriteOptions {
    let text = (DEFINITION_KEY.to_owned(), definition.to_toml());
    WriteOptions {
        metadata: keeps_definition.then_some(text).into_iter().collect(),
        wire: WireOptions {
            elements: definition.elements(is_biflow, &ElementOptions::default()),
            applications: Some(names()),
            ..WireOptions::default()
        },
        ..WriteOptions::default()
    }
}

/// Texts that are hard to write, including the absent text for each input.
fn text(row: usize, column: usize, name: &str) -> Owned {
    let applications = ["TLS.NetFlix", "DNS", "Unknown", "TLS", "Own protocol"];
    let texts = [
        "example.org",
        "a,b;\"c\" 'd'",
        " bücher.example ",
        "{\"json\": [1]}\\x1b",
        "12345",
        "10.0.0.1",
        "日本語",
    ];
    match (row * 7 + column) % 5 {
        0 if row > 0 => Owned::Absent,
        _ if name == "application" => Owned::Text(applications[row % 5].to_owned()),
        1 if row > 4 => Owned::Text("x".repeat(250 + row % 6)),
        _ => Owned::Text(texts[(row + column) % texts.len()].to_owned()),
    }
}

fn rows(schema: &Schema, count: usize) -> Rows {
    let row = |row: usize| {
        let value = |(index, column): (usize, &turboflow_record::Column)| match column.kind {
            ColumnKind::Text => text(row, index, &column.name),
            ColumnKind::Address => Owned::Address([10, 0, index as u8, row as u8].into()),
            ColumnKind::TimestampNs => {
                Owned::Unsigned((1_700_000_000_000 + row as u64) * 1_000_000)
            }
            _ => Owned::Unsigned((row % 200) as u64),
        };
        schema.iter().enumerate().map(value).collect()
    };
    (0..count).map(row).collect()
}

fn schema(definition: &Definition, is_biflow: bool) -> Schema {
    let layout = Layout::compile(definition, is_biflow).unwrap();
    layout.schema().clone()
}

/// The records in sorted order, because IPFIX files have them in the order of their templates.
fn sorted(batch: &FlowBatch, columns: usize) -> Vec<String> {
    let row = |row: usize| {
        let values = (0..columns).map(|column| format!("{:?}", batch.value(row, column)));
        values.collect::<Vec<_>>().join(" ")
    };
    let mut rows: Vec<String> = (0..batch.rows()).map(row).collect();
    rows.sort();
    rows
}

#[test]
fn texts_are_read_back_from_every_format() {
    let directory = tempfile::tempdir().unwrap();
    let applications = Definition::with_applications;
    for (definition, is_biflow) in [
        (applications(), false),
        (applications(), true),
        (applications().with_verdicts(), false),
        (applications().with_verdicts(), true),
    ] {
        let schema = schema(&definition, is_biflow);
        let written = batch(&schema, &rows(&schema, 200));
        let read_back = Format::READABLE.into_iter().chain([Format::Ipfix]);
        for format in read_back {
            for keeps_definition in [false, true] {
                let path = directory.path().join(format!("a.{}", format.name()));
                let options = options(&definition, is_biflow, keeps_definition);
                let mut writer = create(&path, format, &schema, &options).unwrap();
                writer.write(&written).unwrap();
                writer.finish().unwrap();
                let (its, read) = read_all(&path);
                let kinds = |schema: &Schema| {
                    let columns = schema.iter();
                    let columns = columns.filter(|column| column.kind == ColumnKind::Text);
                    columns
                        .map(|column| column.name.clone())
                        .collect::<Vec<_>>()
                };
                if keeps_definition || format != Format::Ipfix {
                    assert_eq!(kinds(&its), kinds(&schema), "{format}");
                    let columns = schema.len();
                    assert_eq!(
                        sorted(&read, columns),
                        sorted(&written, columns),
                        "{format}"
                    );
                    continue;
                }
                // Without the definition, elements are recognised by their ids.
                let mut expected = kinds(&schema);
                let mut named = kinds(&its);
                expected.sort();
                named.sort();
                assert_eq!(named, expected);
                assert_eq!(read.rows(), written.rows());
            }
        }
    }
}

#[test]
fn templates_for_every_shape_and_one_for_all_hold_texts() {
    // More shapes than there can be templates: most records share a template in which a text is a
    // list.
    let mut definition = Definition::with_applications();
    let of_ports = [Input::Vlan, Input::Vni, Input::MplsLabel];
    let further = of_ports.map(|input| Feature::new(input.name(), Op::First, Some(input)));
    definition.features.extend(further);
    let schema = schema(&definition, false);
    let mut rows = rows(&schema, 3_000);
    for (number, row) in rows.iter_mut().enumerate() {
        for (index, value) in row.iter_mut().enumerate() {
            if schema[index].nullable && (number * 2_654_435_761) >> (index + 3) & 1 == 1 {
                *value = Owned::Absent;
            }
        }
    }
    let written = batch(&schema, &rows);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ipfix");
    let options = options(&definition, false, true);
    let mut writer = create(&path, Format::Ipfix, &schema, &options).unwrap();
    writer.write(&written).unwrap();
    writer.finish().unwrap();
    let (_, read) = read_all(&path);
    assert_eq!(sorted(&read, schema.len()), sorted(&written, schema.len()));
}

#[test]
fn control_characters_stay_within_their_line() {
    // Texts are cleaned at their source. A writer that gets others still writes valid files.
    let definition = Definition::with_applications();
    let schema = schema(&definition, false);
    let mut rows = rows(&schema, 3);
    let column = schema
        .iter()
        .position(|its| its.name == "server_name")
        .unwrap();
    for row in &mut rows {
        row[column] = Owned::Text("a\nb\r\"\u{1b}[2J\t\\".to_owned());
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.jsonl");
    let options = options(&definition, false, false);
    let mut writer = create(&path, Format::JsonLines, &schema, &options).unwrap();
    writer.write(&batch(&schema, &rows)).unwrap();
    writer.finish().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 3);
    assert!(
        text.contains(r#""server_name":"a\u000ab\u000d\"\u001b[2J\u0009\\""#),
        "{text}"
    );
    let (_, read) = read_all(&path);
    let cleaned = "a\\x0ab\\x0d\"\\x1b[2J\\x09\\";
    assert_eq!(read.value(0, column), Value::Text(cleaned));
}

#[test]
fn names_of_applications_are_sent_once_and_with_every_refresh() {
    let definition = Definition::with_applications();
    let schema = schema(&definition, false);
    let options = options(&definition, false, false).wire;
    let mut encoder = encoder(Protocol::Ipfix, &schema, &options, "test").unwrap();
    let mut units = Vec::new();
    for _ in 0..2 {
        let records = batch(&schema, &rows(&schema, 50));
        encoder.encode(&records, &mut |unit| units.push(unit));
    }
    encoder.flush(&mut |unit| units.push(unit));
    let mut session = Session::new(Protocol::Ipfix, &options, Refresh::DATAGRAMS);
    let mut messages = Vec::new();
    let is_name = |unit: &&turboflow_formats::wire::Unit| {
        matches!(unit, turboflow_formats::wire::Unit::Name(_))
    };
    assert_eq!(units.iter().filter(is_name).count(), 5);
    for unit in &units {
        session.unit(unit, 0, &mut |message| messages.push(message));
    }
    let id = |application: u32| {
        let mut id = vec![20, 0, 0, 0x8b, 0x30];
        id.extend_from_slice(&application.to_be_bytes());
        id
    };
    // Number, name and category, as RFC 6759 requires.
    let mut netflix = id(91 << 16 | 133);
    netflix.extend_from_slice(b"\x0bTLS.NetFlix\x09Streaming");
    let names_in = |messages: &[turboflow_formats::wire::Message]| {
        let holds = |bytes: &[u8]| {
            bytes
                .windows(netflix.len())
                .filter(|it| *it == netflix)
                .count()
        };
        messages
            .iter()
            .map(|message| holds(&message.bytes))
            .sum::<usize>()
    };
    assert_eq!(names_in(&messages), 1);
    assert!(
        messages
            .iter()
            .all(|message| message.bytes.len() <= DATAGRAM_BYTES)
    );
    let mut again = Vec::new();
    session.tick(60_000, &mut |message| again.push(message));
    assert_eq!(names_in(&again), 1);
    session.restart();
    let mut after = Vec::new();
    session.tick(60_001, &mut |message| after.push(message));
    assert_eq!(names_in(&after), 1);
}

#[test]
fn netflow_leaves_texts_out_by_name() {
    let definition = Definition::with_applications();
    let (schema, elements) = (
        schema(&definition, false),
        definition.elements(false, &ElementOptions::default()),
    );
    let mut names: Vec<&str> = Input::INSPECTED.into_iter().map(Input::name).collect();
    names.push("community_id");
    for protocol in [Protocol::Netflow9, Protocol::Netflow5] {
        let out = left_out(protocol, &schema, &elements);
        assert!(names.iter().all(|name| out.contains(name)), "{out:?}");
    }
    assert!(left_out(Protocol::Ipfix, &schema, &elements).is_empty());
}

/// What tshark prints for a file, if tshark is installed.
fn tshark(path: &std::path::Path, fields: &[&str]) -> Option<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-T", "fields"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn tshark_reads_applications_and_their_names() {
    let definition = Definition::with_applications();
    let schema = schema(&definition, false);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.ipfix");
    let mut writer = create(
        &path,
        Format::Ipfix,
        &schema,
        &options(&definition, false, true),
    )
    .unwrap();
    writer.write(&batch(&schema, &rows(&schema, 20))).unwrap();
    writer.finish().unwrap();
    let fields = [
        "cflow.application_name",
        "cflow.application_id.classification_engine_id",
    ];
    let Some(said) = tshark(&path, &fields) else {
        eprintln!("tshark is not installed: not compared with it");
        return;
    };
    for name in ["TLS.NetFlix", "DNS", "Unknown", "TLS", "Own protocol"] {
        assert!(said.contains(name), "{said}");
    }
    assert!(said.contains("20"), "{said}");
}
