// SPDX-License-Identifier: Apache-2.0
//! Questions about text columns: applications and names.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use turboflow_query::{Answer, Filter, PlainStyle, Query, QueryError, Question, TableStyle, run};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, Value};

fn schema() -> Schema {
    [
        ("src_addr", ColumnKind::Address),
        ("bytes", ColumnKind::Unsigned { bits: 64 }),
        ("application", ColumnKind::Text),
        ("server_name", ColumnKind::Text),
    ]
    .map(|(name, kind)| Column {
        name: name.to_owned(),
        kind,
        nullable: kind == ColumnKind::Text,
    })
    .to_vec()
}

fn records() -> FlowBatch {
    let mut batch = FlowBatch::new(&schema());
    for (bytes, application, name) in [
        (500, "TLS.NetFlix", "www.netflix.com"),
        (100, "DNS", ""),
        (300, "TLS.NetFlix", "a,\"b\""),
        (50, "", ""),
        (40, "TLS", "Example.org"),
    ] {
        let text = |text: &'static str| match text {
            "" => Value::Absent,
            text => Value::Text(text),
        };
        let address = Value::Address([10, 0, 0, 1].into());
        batch.push_row(&[
            address,
            Value::Unsigned(bytes),
            text(application),
            text(name),
        ]);
    }
    batch
}

fn answer(question: &Question) -> Answer {
    let query = Query::parse(question, &schema()).unwrap();
    run(&query, [Ok::<_, QueryError>(records())]).unwrap()
}

fn csv(question: &Question) -> String {
    let mut text = Vec::new();
    let answer = answer(question);
    answer.write_csv(&mut text, PlainStyle::default()).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn records_are_grouped_by_application() {
    let question = Question {
        group_by: Some("application".to_owned()),
        select: Some("records,bytes".to_owned()),
        ..Question::default()
    };
    assert_eq!(
        csv(&question),
        "application,records,bytes\nTLS.NetFlix,2,800\nDNS,1,100\n,1,50\nTLS,1,40\n"
    );
    let table = answer(&question).to_table(TableStyle::default()).table;
    assert!(table.contains("TLS.NetFlix        2    800"), "{table}");
}

#[test]
fn texts_are_tested_as_a_whole_or_for_a_part() {
    for (text, bytes) in [
        ("application == \"TLS.NetFlix\"", vec![500, 300]),
        ("application = TLS.NetFlix", vec![500, 300]),
        ("application == tls.netflix", vec![]),
        ("application != TLS.NetFlix", vec![100, 40]),
        ("application in (DNS, TLS)", vec![100, 40]),
        ("application has netflix", vec![500, 300]),
        ("not application has netflix", vec![100, 50, 40]),
        ("server_name has 'EXAMPLE.ORG'", vec![40]),
        ("application == none", vec![50]),
        ("application != none and bytes < 50", vec![40]),
    ] {
        let filter = Filter::parse(text, &schema()).unwrap();
        let left = filter.apply(&records(), &schema());
        let found: Vec<u64> = (0..left.rows())
            .map(|row| match left.value(row, 1) {
                Value::Unsigned(bytes) => bytes,
                value => panic!("{value:?}"),
            })
            .collect();
        assert_eq!(found, bytes, "{text}");
    }
    let refused = Filter::parse("application < TLS", &schema()).unwrap_err();
    let message = refused.to_string();
    assert!(message.contains("neither less nor more"), "{message}");
}

#[test]
fn texts_keep_their_form_for_programs() {
    let question = Question {
        filter: Some("bytes == 300".to_owned()),
        select: Some("application,server_name".to_owned()),
        ..Question::default()
    };
    assert_eq!(
        csv(&question),
        "application,server_name\nTLS.NetFlix,\"a,\"\"b\"\"\"\n"
    );
    let mut json = Vec::new();
    let answer = answer(&question);
    answer
        .write_json_lines(&mut json, PlainStyle::default())
        .unwrap();
    assert_eq!(
        String::from_utf8(json).unwrap(),
        "{\"application\":\"TLS.NetFlix\",\"server_name\":\"a,\\\"b\\\"\"}\n"
    );
}

#[test]
fn texts_are_no_amounts() {
    for (group_by, by) in [("src_addr", "server_name"), ("application:5", "bytes")] {
        let question = Question {
            group_by: Some(group_by.to_owned()),
            by: Some(by.to_owned()),
            ..Question::default()
        };
        assert!(Query::parse(&question, &schema()).is_err(), "{group_by}");
    }
}
