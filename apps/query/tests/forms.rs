// SPDX-License-Identifier: Apache-2.0
//! The forms in which times, durations and names are written and read.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use turboflow_query::{
    Filter, Input, PlainStyle, Query, QueryError, Question, RecordShape, TableStyle, TimeForm, run,
};
use turboflow_record::{Column, ColumnKind, Definition, FlowBatch, Schema, Value};

use crate::show::{SECOND, START, ask, batch, csv, question, schema};

/// The definition tells which columns are in nanoseconds.
#[test]
fn durations_of_a_definition_have_units() {
    let text = "[[feature]]\nname = \"pause\"\nop = \"gap_max\"\n\n\
                [[feature]]\nname = \"usual_pause\"\nop = \"gap_mean\"\n\n\
                [[feature]]\nname = \"window\"\nop = \"mean\"\nof = \"tcp_window\"\n";
    let definition = Definition::parse(text).unwrap();
    let columns: Schema = [
        ("pause", ColumnKind::Unsigned { bits: 64 }),
        ("usual_pause", ColumnKind::Float),
        ("window", ColumnKind::Float),
    ]
    .map(|(name, kind)| Column {
        name: name.to_owned(),
        kind,
        nullable: true,
    })
    .to_vec();
    let mut records = FlowBatch::new(&columns);
    for (pause, usual, window) in [
        (21_585_091_000, 1.5e9, 64_800.0),
        (4_000_000_000, 250e6, 62.25),
    ] {
        records.push_row(&[
            Value::Unsigned(pause),
            Value::Float(usual),
            Value::Float(window),
        ]);
    }
    let shape = RecordShape {
        schema: &columns,
        definition: Some(&definition),
    };
    let ask = |question: &Question| {
        let query = Query::parse(question, shape)?;
        run(&query, [Ok::<_, QueryError>(records.clone())])
    };
    let filter = |text: &str| Question {
        filter: Some(text.to_owned()),
        ..question()
    };
    let table = |question: &Question| {
        let style = TableStyle {
            width: None,
            humanise: true,
        };
        let table = ask(question).unwrap().to_table(style).table;
        let row = table.lines().nth(2).unwrap_or_default();
        row.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(table(&question()), "21.58 s 1.5 s 64800");
    let second = Question {
        select: Some("window".to_owned()),
        ..filter("pause < 5s")
    };
    assert_eq!(table(&second), "62.25");
    for (text, count) in [
        ("pause > 5s", 1),
        ("pause in 1s..30s", 2),
        ("usual_pause > 1s", 1),
        ("usual_pause >= 250ms", 2),
        ("window > 100", 1),
    ] {
        assert_eq!(ask(&filter(text)).unwrap().rows.len(), count, "{text}");
    }
    for text in ["pause > 5", "usual_pause > 5"] {
        let message = ask(&filter(text)).unwrap_err().to_string();
        assert!(message.contains("write 5s, or 5ns"), "{message}");
    }
    let groups = Question {
        group_by: Some("window".to_owned()),
        select: Some("pause".to_owned()),
        by: Some("pause".to_owned()),
        ..question()
    };
    assert_eq!(table(&groups), "64800 21.58 s");
    // Programs get nanoseconds.
    let mut text = Vec::new();
    let answer = ask(&question()).unwrap();
    answer.write_csv(&mut text, PlainStyle::default()).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("\n21585091000,1500000000.0,64800.0\n"),
        "{text}"
    );
}

/// What `--time` and `--names` write reads back as the same records.
#[test]
fn texts_of_every_form_read_back() {
    let mut columns = schema();
    let time = |name: &str| Column {
        name: name.to_owned(),
        kind: ColumnKind::TimestampNs,
        nullable: true,
    };
    columns.extend(["reverse_first_ns", "opened", "syn_ns"].map(time));
    let mut records = FlowBatch::new(&columns);
    let batch = batch();
    let times = [
        0,
        1,
        START + 1,
        START + 120_000_000,
        START * 2 + 999_999_999,
        u64::MAX,
    ];
    for row in 0..batch.rows() {
        let own = (0..schema().len()).map(|column| match (&*columns[column].name, row) {
            // A protocol number without a name.
            ("protocol", 2) => Value::Unsigned(253),
            ("end_reason", 2) => Value::Unsigned(9),
            ("end_reason", row) => Value::Unsigned(row as u64 % 5 + 1),
            ("last_ns", row) => Value::Unsigned(times[row]),
            _ => batch.value(row, column),
        });
        let optional = if row == 3 {
            Value::Absent
        } else {
            Value::Unsigned(times[row])
        };
        let more = [
            optional,
            Value::Unsigned(START + row as u64),
            Value::Unsigned(START),
        ];
        records.push_row(&own.chain(more).collect::<Vec<_>>());
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("records");
    let all = Question {
        all_columns: true,
        ..question()
    };
    let query = Query::parse(&all, &columns).unwrap();
    let answer = run(&query, [Ok::<_, QueryError>(records.clone())]).unwrap();
    for time in [TimeForm::Nanoseconds, TimeForm::Seconds, TimeForm::Iso] {
        for (names, is_csv) in [(false, false), (false, true), (true, false), (true, true)] {
            let (mut text, style) = (Vec::new(), PlainStyle { time, names });
            match is_csv {
                true => answer.write_csv(&mut text, style).unwrap(),
                false => answer.write_json_lines(&mut text, style).unwrap(),
            }
            std::fs::write(&path, &text).unwrap();
            let input = Input::open(&[&path]).unwrap();
            let known = input.schema().clone();
            let called: Vec<&str> = known.iter().map(|column| &*column.name).collect();
            let expected: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
            assert_eq!(called, expected, "{style:?}");
            let read: Vec<FlowBatch> = input.map(Result::unwrap).collect();
            assert_eq!((read.len(), read[0].rows()), (1, records.rows()));
            for row in 0..records.rows() {
                for (column, name) in called.iter().enumerate() {
                    let (own, its) = (records.value(row, column), read[0].value(row, column));
                    assert_eq!(own, its, "{style:?} {is_csv} {name} of row {row}");
                }
            }
        }
    }
    // Digits below a nanosecond would be lost, so they are refused.
    for text in [
        "first_s\n1.0000000001\n",
        "first_iso\n2024-01-01T00:00:00.0000000001Z\n",
    ] {
        std::fs::write(&path, text).unwrap();
        let mut input = Input::open(&[&path]).unwrap();
        assert!(input.next().unwrap().is_err(), "{text}");
    }
    // Other programs write whole seconds.
    std::fs::write(&path, "first_s,bytes\n1700000000,1\n1700000000.5,1\n").unwrap();
    let read = Input::open(&[&path]).unwrap().next().unwrap().unwrap();
    let times = [0, 1].map(|row| read.value(row, 0));
    let expected = [START, START + SECOND / 2].map(Value::Unsigned);
    assert_eq!(times, expected);
}

/// Names from table headers are understood, and names in any case.
#[test]
fn fields_have_the_names_that_headers_show() {
    let select = |text: &str| Question {
        select: Some(text.to_owned()),
        filter: Some("port 53".to_owned()),
        top: Some(1),
        ..question()
    };
    let expected = "192.0.2.53,1700000020000000000,1700000020000000000\n";
    for names in [
        "src_addr,first_ns,last_ns",
        "src_addr,first,last",
        "SRC_ADDR,First,LAST_NS",
        "src_addr,start,end",
        "src_addr,time,last",
    ] {
        let expected = format!("src_addr,first_ns,last_ns\n{expected}");
        assert_eq!(csv(&select(names)), expected, "{names}");
    }
    let by = |name: &str| Question {
        by: Some(name.to_owned()),
        select: Some("src_port".to_owned()),
        top: Some(1),
        ..question()
    };
    for name in ["first", "last", "start", "LAST"] {
        assert_eq!(csv(&by(name)), "src_port\n40002\n", "{name}");
    }
    let grouped = |group_by: &str, by: &str| Question {
        group_by: Some(group_by.to_owned()),
        by: Some(by.to_owned()),
        select: Some("records".to_owned()),
        ..question()
    };
    assert_eq!(
        csv(&grouped("first:5m", "first")),
        csv(&grouped("first_ns:5m", "first_ns:5m"))
    );
    let ports = csv(&grouped("Dst_Port", "Last"));
    assert!(
        ports.starts_with("dst_port,records\n80,1\n0,1\n"),
        "{ports}"
    );
    let share = Question {
        select: Some("share_percent".to_owned()),
        ..grouped("protocol", "share")
    };
    assert!(csv(&share).starts_with("protocol,share_percent\n6,"));
    // A column with that name takes precedence.
    let mut columns = schema();
    columns[11].name = "start".to_owned();
    let filter = Filter::parse("start == 7", &columns).unwrap();
    assert!(filter.passes(&batch(), 0));
}

#[test]
fn programs_get_times_and_names_in_the_form_they_want() {
    let question = Question {
        select: Some("src_addr,protocol,first_ns,duration,end_reason".to_owned()),
        filter: Some("port 53".to_owned()),
        top: Some(1),
        ..question()
    };
    let text = |style: PlainStyle, is_csv: bool| {
        let (answer, mut text) = (ask(&question).unwrap(), Vec::new());
        match is_csv {
            true => answer.write_csv(&mut text, style).unwrap(),
            false => answer.write_json_lines(&mut text, style).unwrap(),
        }
        String::from_utf8(text).unwrap()
    };
    let style = |time, names| PlainStyle { time, names };
    assert_eq!(
        text(style(TimeForm::Iso, true), true),
        "src_addr,protocol,first_iso,duration,end_reason\n\
         192.0.2.53,udp,2023-11-14T22:13:40.000000000Z,0,idle_timeout\n"
    );
    assert_eq!(
        text(style(TimeForm::Seconds, false), true),
        "src_addr,protocol,first_s,duration,end_reason\n192.0.2.53,17,1700000020.000000000,0,1\n"
    );
    assert_eq!(
        text(style(TimeForm::Iso, true), false),
        "{\"src_addr\":\"192.0.2.53\",\"protocol\":\"udp\",\
         \"first_iso\":\"2023-11-14T22:13:40.000000000Z\",\"duration\":0,\"end_reason\":\"idle_timeout\"}\n"
    );
    assert!(
        text(style(TimeForm::Seconds, true), false)
            .contains("\"protocol\":\"udp\",\"first_s\":1700000020.000000000,")
    );
    // The name of a bucket column tells the form of its times, too.
    let buckets = Question {
        group_by: Some("first_ns:5m".to_owned()),
        select: Some("records".to_owned()),
        ..Question::default()
    };
    for (time, expected) in [
        (
            TimeForm::Nanoseconds,
            "first_ns:5m,records\n1699999800000000000,4\n",
        ),
        (
            TimeForm::Seconds,
            "first_s:5m,records\n1699999800.000000000,4\n",
        ),
        (
            TimeForm::Iso,
            "first_iso:5m,records\n2023-11-14T22:10:00.000000000Z,4\n",
        ),
    ] {
        let mut text = Vec::new();
        let answer = ask(&buckets).unwrap();
        answer.write_csv(&mut text, style(time, false)).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with(expected), "{text}");
    }
}
