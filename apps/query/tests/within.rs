// SPDX-License-Identifier: Apache-2.0
//! Ranges of time: which records overlap them, and which time buckets appear.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use turboflow_query::{Answer, Cell, Query, QueryError, Question, TableStyle, run};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, Value};

const SECOND: u64 = 1_000_000_000;
const NAMES: [&str; 7] = [
    "packets",
    "bytes",
    "reverse_bytes",
    "first_ns",
    "last_ns",
    "reverse_first_ns",
    "reverse_last_ns",
];

/// A biflow: the bytes and times of the initiator, and those of the responder.
type Biflow = (u64, (u64, u64), Option<(u64, (u64, u64))>);

fn schema() -> Schema {
    let column = |name: &str| Column {
        name: name.to_owned(),
        kind: match name.ends_with("_ns") {
            true => ColumnKind::TimestampNs,
            false => ColumnKind::Unsigned { bits: 64 },
        },
        nullable: true,
    };
    NAMES.map(column).to_vec()
}

fn ask(records: &[Biflow], question: &Question) -> Result<Answer, QueryError> {
    let schema = schema();
    let mut batch = FlowBatch::new(&schema);
    for &(bytes, (first, last), answer) in records {
        let reverse = |number: Option<u64>| number.map_or(Value::Absent, Value::Unsigned);
        batch.push_row(&[
            Value::Unsigned(1),
            Value::Unsigned(bytes),
            reverse(answer.map(|it| it.0)),
            Value::Unsigned(first),
            Value::Unsigned(last),
            reverse(answer.map(|it| it.1.0)),
            reverse(answer.map(|it| it.1.1)),
        ]);
    }
    let query = Query::parse(question, &schema)?;
    run(&query, [Ok::<_, QueryError>(batch)])
}

fn within(range: &str, group_by: Option<&str>) -> Question {
    Question {
        within: Some(range.to_owned()),
        group_by: group_by.map(str::to_owned),
        now_ns: Some(100 * SECOND),
        ..Question::default()
    }
}

/// The bytes of the selected records.
fn chosen(records: &[Biflow], range: &str) -> u64 {
    let answer = ask(records, &within(range, None)).unwrap();
    answer.totals.matched.bytes.unwrap()
}

fn seconds(from: u64, to: u64) -> String {
    format!("{}..{}", from * SECOND, to * SECOND)
}

#[test]
fn a_record_is_in_the_time_in_which_it_has_packets() {
    let one = [(100, (10 * SECOND, 20 * SECOND), None)];
    for (range, bytes) in [
        (seconds(0, 10), 0),
        (seconds(0, 11), 100),
        (seconds(12, 13), 100),
        // A record that ends at a moment overlaps the range that starts at this moment.
        (seconds(20, 30), 100),
        (format!("{}..", 20 * SECOND + 1), 0),
        ("..10000000001".to_owned(), 100),
        ("..10000000000".to_owned(), 0),
        ("-80s..".to_owned(), 100),
        ("-79s..now".to_owned(), 0),
        ("1970-01-01T00:00:15..1970-01-01T00:00:16".to_owned(), 100),
    ] {
        assert_eq!(chosen(&one, &range), bytes, "{range}");
    }
}

#[test]
fn each_direction_has_its_own_times() {
    // The request is at 10 s, the response at 30 s.
    let one = [(
        100,
        (10 * SECOND, 11 * SECOND),
        Some((900, (30 * SECOND, 31 * SECOND))),
    )];
    assert_eq!(chosen(&one, &seconds(0, 15)), 1000);
    assert_eq!(chosen(&one, &seconds(25, 40)), 1000);
    assert_eq!(chosen(&one, &seconds(15, 25)), 0);
    let answer = ask(&one, &within(&seconds(25, 40), Some("time:5s"))).unwrap();
    assert_eq!(answer.rows.len(), 2);
    let sum = |name: &str| {
        let column = answer.columns.iter().position(|it| it.name == name);
        let cells = answer.rows.iter().map(|row| match row[column.unwrap()] {
            Cell::Unsigned(number) => number,
            _ => 0,
        });
        cells.sum::<u64>()
    };
    // It began earlier.
    assert_eq!(
        (sum("records"), sum("bytes"), sum("reverse_bytes")),
        (0, 0, 900)
    );
}

#[test]
fn a_short_time_within_long_records_has_its_buckets_alone() {
    let day = 86_400 * SECOND;
    let one = [(86_400_000, (0, day - 1), None)];
    let all = Question {
        within: None,
        ..within("..", Some("time:1ms"))
    };
    let refused = ask(&one, &all).unwrap_err();
    assert!(matches!(refused, QueryError::Buckets { .. }), "{refused}");
    let answer = ask(&one, &within(&seconds(50, 51), Some("time:1ms"))).unwrap();
    assert_eq!(answer.rows.len(), 1000);
    let start = |row: &Vec<Cell>| row[0].clone();
    let ends = answer
        .rows
        .first()
        .map(start)
        .zip(answer.rows.last().map(start));
    let at_ms = |ms: u64| Cell::Unsigned(50 * SECOND + ms * 1_000_000);
    assert_eq!(ends, Some((at_ms(0), at_ms(999))));
}

#[test]
fn wrong_times_are_refused_with_what_would_be_right() {
    for (range, reason) in [
        ("", "write 2024-03-01T12:30..2024-03-01T13:00"),
        ("..", "or only one of them with the dots"),
        ("yesterday..", "write 2024"),
        ("5", "write 2024"),
        ("5..5", "this time ends before it begins"),
        ("5..4", "this time ends before it begins"),
        ("0..0", "this time ends before it begins"),
    ] {
        let refused = ask(&[], &within(range, None)).unwrap_err().to_string();
        assert!(
            refused.starts_with("time: ") && refused.contains(reason),
            "{refused}"
        );
    }
    let clockless = Question {
        now_ns: None,
        ..within("-1h..", None)
    };
    let refused = ask(&[], &clockless).unwrap_err().to_string();
    assert!(refused.contains("now is not defined"), "{refused}");
    let column = Column {
        name: "bytes".to_owned(),
        kind: ColumnKind::Unsigned { bits: 64 },
        nullable: false,
    };
    let refused = Query::parse(&within("5..", None), &vec![column]).unwrap_err();
    assert!(refused.to_string().contains("no times"), "{refused}");
}

fn span() -> impl Strategy<Value = (u64, u64)> {
    (0..200u64, prop_oneof![0..5u64, 0..100u64]).prop_map(|(first, lasts)| (first, first + lasts))
}

fn biflow() -> impl Strategy<Value = Biflow> {
    let answer = proptest::option::of((0..1000u64, span()));
    (0..1000u64, span(), answer)
}

/// Groups that count only the parts of records within a range of time.
fn clipped(range: &str, group_by: &str) -> Question {
    Question {
        clip: true,
        ..within(range, Some(group_by))
    }
}

#[test]
fn clipped_groups_have_the_part_of_each_record_that_is_in_the_time() {
    // A day with 86.4 MB, a second with 5 kB, and a record that ends before.
    let day = 86_400 * SECOND;
    let records = [
        (86_400_000, (0, day - 1), None),
        (5000, (50 * SECOND, 51 * SECOND - 1), None),
        (7000, (0, SECOND), None),
    ];
    let question = Question {
        by: Some("bytes".to_owned()),
        select: Some("records,bytes,share,max(bytes),bps".to_owned()),
        ..clipped(&seconds(50, 51), "first_ns:1s")
    };
    let answer = ask(&records, &question).unwrap();
    // The record that is largest as a whole is the smaller one in this second, and did not begin in
    // it.
    let cells = |row: &Vec<Cell>| row[1..5].to_vec();
    let found: Vec<Vec<Cell>> = answer.rows.iter().map(cells).collect();
    let row = |records, bytes, percent, most| {
        let [records, bytes, most] = [records, bytes, most].map(Cell::Unsigned);
        vec![records, bytes, Cell::Float(percent), most]
    };
    let expected = vec![
        row(1, 5000, 83.3333, 5000),
        row(0, 1000, 16.6667, 86_400_000),
    ];
    assert_eq!(found, expected);
    let Cell::Float(bps) = answer.rows[0][5] else {
        panic!("{:?}", answer.rows[0])
    };
    assert!((bps - 40_000.0).abs() < 1e-3, "{bps}");
    let notes = answer.to_table(TableStyle::default()).notes;
    let said = "Shares are of all bytes that matched in that time (6.0 kB).";
    assert!(notes.iter().any(|note| note == said), "{notes:?}");
    assert_eq!(answer.shares.unwrap().whole, 6000);
    // The totals of matched records are not clipped.
    assert_eq!(answer.totals.matched.bytes, Some(86_405_000));
    // A rate refers to the requested time, not to the bucket in which a record began.
    let question = Question {
        select: Some("bytes,bps".to_owned()),
        ..clipped(&seconds(100, 150), "first_ns:1m")
    };
    let rows = ask(&records, &question).unwrap().rows;
    let [Cell::Float(rate)] = rows[0][2..] else {
        unreachable!("a rate")
    };
    assert!(rows.len() == 1 && (rate - 8000.0).abs() < 0.001, "{rows:?}");
}

#[test]
fn what_cannot_be_clipped_is_refused() {
    let range = seconds(0, 5);
    let refused = |question: &Question| ask(&[], question).unwrap_err().to_string();
    let timeless = Question {
        within: None,
        ..clipped(&range, "bytes")
    };
    let groupless = Question {
        group_by: None,
        ..clipped(&range, "bytes")
    };
    for question in [timeless, groupless] {
        let reason = refused(&question);
        assert!(reason.contains("needs both"), "{reason}");
    }
    let reason = refused(&clipped(&range, "time:1s"));
    assert!(reason.contains("leave out the clipping"), "{reason}");
    let by_last = Question {
        by: Some("last_ns".to_owned()),
        ..clipped(&range, "bytes")
    };
    let reason = refused(&by_last);
    assert!(reason.contains("records are clipped"), "{reason}");
}

proptest! {
    /// Groups clipped to a range of whole buckets equal the sums of these buckets.
    #[test]
    fn clipped_groups_are_sums_of_buckets(
        records in prop::collection::vec(biflow(), 0..20),
        (from, count, width) in (0..30u64, 1..10u64, 1..20u64),
    ) {
        let range = format!("{}..{}", from * width, (from + count) * width);
        let question = |question: Question| Question {
            select: Some("records,bytes,reverse_bytes,total_bytes".to_owned()),
            ..question
        };
        let clipped = ask(&records, &question(clipped(&range, "packets"))).unwrap().rows;
        let buckets = format!("time:{width}ns,packets");
        let buckets = ask(&records, &question(within(&range, Some(&buckets)))).unwrap().rows;
        let sum = |rows: &[Vec<Cell>]| {
            let number = |row: &Vec<Cell>, column: usize| match row[row.len() - 4 + column] {
                Cell::Unsigned(number) => number,
                _ => 0,
            };
            [0, 1, 2, 3].map(|column| rows.iter().map(|row| number(row, column)).sum::<u64>())
        };
        prop_assert_eq!(sum(&clipped), sum(&buckets));
    }
}

proptest! {
    /// In a range of whole buckets, the buckets equal those without a range.
    #[test]
    fn buckets_are_those_of_all_time(
        records in prop::collection::vec(biflow(), 0..20),
        (from, count, width) in (0..30u64, 1..10u64, 1..20u64),
    ) {
        let (from, to) = (from * width, (from + count) * width);
        let range = format!("{from}..{to}");
        let meets = |(first, last): (u64, u64)| first < to && last >= from;
        let is_in = |record: &&Biflow| meets(record.1) || record.2.is_some_and(|it| meets(it.1));
        let expected: Vec<Biflow> = records.iter().filter(is_in).copied().collect();
        let records_in = ask(&records, &within(&range, None)).unwrap().totals.matched.records;
        prop_assert_eq!(records_in, expected.len() as u64);
        let rows = |records: &[Biflow], range: Option<&str>| {
            let question = Question {
                within: range.map(str::to_owned),
                select: Some("records,bytes,reverse_bytes,max(bytes)".to_owned()),
                ..within("", Some(&format!("time:{width}ns")))
            };
            let rows = ask(records, &question).unwrap().rows;
            let is_there = |row: &Vec<Cell>| {
                let Cell::Unsigned(start) = row[0] else { return false };
                (from..to).contains(&start)
            };
            // Silent buckets are filled in only between the first and the last bucket with records.
            let is_silent = |row: &Vec<Cell>| row[1..4] == [const { Cell::Unsigned(0) }; 3];
            let its = rows.into_iter().filter(|row| range.is_some() || is_there(row));
            its.filter(|row| !is_silent(row)).collect::<Vec<_>>()
        };
        prop_assert_eq!(rows(&records, Some(&range)), rows(&expected, None));
    }
}
