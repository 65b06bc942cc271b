// SPDX-License-Identifier: Apache-2.0
//! From Parquet files, only the columns of the question are read. The answers must equal those of
//! reading whole records.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::Ipv4Addr;
use std::path::Path;

use turboflow_formats::{Format, WriteOptions, create, read};
use turboflow_query::{
    Answer, Input, PlainStyle, Query, QueryError, Question, answer, answers, run,
};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, Value};

/// Number of records: several batches, and several row groups.
const RECORDS: u64 = 40_000;

/// Records with every kind of column. In every third record, optional values are absent.
fn of_every_kind() -> (Schema, FlowBatch) {
    let column = |(name, kind, nullable): (&str, ColumnKind, bool)| Column {
        name: name.to_owned(),
        kind,
        nullable,
    };
    let schema = [
        ("src_addr", ColumnKind::Address, true),
        ("dst_port", ColumnKind::Unsigned { bits: 16 }, false),
        ("bytes", ColumnKind::Unsigned { bits: 64 }, true),
        ("mean", ColumnKind::Float, true),
        ("sizes", ColumnKind::List, true),
        ("application", ColumnKind::Text, true),
    ];
    let schema = schema.map(column).to_vec();
    let mut batch = FlowBatch::new(&schema);
    for number in 0..RECORDS {
        let list: Vec<u64> = (0..number % 4).collect();
        let text = format!("application {}", number % 5);
        let row = [
            Value::Address(Ipv4Addr::from_bits(number as u32 / 2).into()),
            Value::Unsigned(number % 65_536),
            Value::Unsigned(number * 7_919 % RECORDS),
            Value::Float(number as f64 / 7.0),
            Value::List(&list),
            Value::Text(&text),
        ];
        let is_absent = |place: usize| place != 1 && (number + place as u64).is_multiple_of(3);
        let row = row.into_iter().enumerate();
        let row = row.map(|(place, value)| match is_absent(place) {
            true => Value::Absent,
            false => value,
        });
        batch.push_row(&row.collect::<Vec<_>>());
    }
    (schema, batch)
}

fn write(path: &Path, schema: &Schema, batch: &FlowBatch) {
    let options = WriteOptions {
        row_group_records: 15_000,
        ..WriteOptions::default()
    };
    let mut writer = create(path, Format::Parquet, schema, &options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

#[test]
fn columns_that_are_read_later_are_those_of_the_batch() {
    let (schema, whole) = of_every_kind();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.parquet");
    write(&path, &schema, &whole);
    for then in 0..schema.len() {
        let first = (then + 1) % schema.len();
        let mut reader = read(&path).unwrap();
        reader.read_apart(&[first], &[then]);
        let (mut start, mut batches) = (0, 0);
        while let Some(mut batch) = reader.next_batch().unwrap() {
            let mut there = vec![first];
            // Skips the column in every other batch.
            if batches % 2 == 1 {
                reader.complete(&mut batch).unwrap();
                there.push(then);
            }
            for column in there {
                for row in 0..batch.rows() {
                    let (read, written) =
                        (batch.value(row, column), whole.value(start + row, column));
                    assert_eq!(read, written, "column {column}, record {}", start + row);
                }
            }
            start += batch.rows();
            batches += 1;
        }
        assert!(start == whole.rows() && batches > 3, "{start} in {batches}");
    }
}

#[test]
fn answers_about_files_are_those_of_whole_records() {
    let (schema, whole) = of_every_kind();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.parquet");
    write(&path, &schema, &whole);
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    for (filter, group_by, by, select, top) in [
        ("", "", "", "", 0),
        ("dst_port < 100", "", "", "", 0),
        ("bytes == none", "", "mean", "application,sizes", 5),
        (
            "application has 3 and mean > 100",
            "",
            "dst_port",
            "src_addr",
            50,
        ),
        ("sizes has 2", "src_addr", "bytes", "", 20),
        ("", "src_addr/24,application", "", "", 0),
        (
            "not (src_addr in 0.0.0.0/18)",
            "mean",
            "records",
            "records",
            9,
        ),
        (
            "mean == none",
            "dst_port:1k,src_addr/30",
            "max(dst_port)",
            "bytes,max(dst_port)",
            7,
        ),
    ] {
        let question = Question {
            filter: text(filter),
            group_by: text(group_by),
            by: text(by),
            select: text(select),
            top: Some(top).filter(|top| *top > 0),
            all_columns: true,
            ..Question::default()
        };
        let query = Query::parse(&question, &schema).unwrap();
        let expected = run(&query, [Ok::<_, QueryError>(whole.clone())]).unwrap();
        let found = answer(&query, &mut Input::open(&[&path]).unwrap(), None).unwrap();
        let lines = [&expected, &found].map(csv);
        assert!(lines[0].lines().count() > 1, "{question:?}");
        assert_eq!(lines[0], lines[1], "{question:?}");
        assert_eq!(expected.totals, found.totals, "{question:?}");
    }
}

fn csv(answer: &Answer) -> String {
    let mut lines = Vec::new();
    answer.write_csv(&mut lines, PlainStyle::default()).unwrap();
    String::from_utf8(lines).unwrap()
}

/// Questions that are asked together each get the answer that they get alone.
#[test]
fn questions_together_have_their_own_answers() {
    let (schema, whole) = of_every_kind();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.parquet");
    write(&path, &schema, &whole);
    let open = || Input::open(&[&path]).unwrap();
    let asked = [
        (None, "application"),
        (Some("dst_port < 5000"), "src_addr/20"),
        (Some("sizes has 2"), "mean"),
        (None, "src_addr"),
    ];
    let queries = asked.map(|(filter, group_by)| {
        let question = Question {
            filter: filter.map(str::to_owned),
            group_by: Some(group_by.to_owned()),
            ..Question::default()
        };
        Query::parse(&question, &schema).unwrap()
    });
    let refs = queries.each_ref();
    let alone = refs.map(|query| answer(query, &mut open(), None).unwrap());
    let groups: u64 = alone.iter().map(|answer| answer.totals.rows).sum();
    let together = |queries: &[&Query], most| answers(queries, &mut open(), most).unwrap();

    for (alone, found) in alone.iter().zip(together(&refs, groups)) {
        let found = found.unwrap().unwrap();
        assert_eq!(csv(alone), csv(&found));
        assert_eq!(alone.totals, found.totals);
    }
    // With one group too many, the question with the most groups is dropped.
    let found = together(&refs, groups - 1);
    let left: Vec<bool> = found.iter().map(Option::is_none).collect();
    assert_eq!(left, [false, false, false, true]);
    assert_eq!(
        csv(found[1].as_ref().unwrap().as_ref().unwrap()),
        csv(&alone[1])
    );
    // A question that fails does not affect the others.
    let few = queries[2].clone().with_most_groups(10);
    let found = together(&[&queries[0], &few], groups);
    assert_eq!(
        csv(found[0].as_ref().unwrap().as_ref().unwrap()),
        csv(&alone[0])
    );
    let error = found[1].as_ref().unwrap().as_ref().unwrap_err();
    assert!(matches!(error, QueryError::Groups { limit: 10 }));
}
