// SPDX-License-Identifier: Apache-2.0
//! Any text after `--where`, `--group-by`, `--by` and `--select` is parsed or refused, and every
//! parsed query can be run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turboflow_query::{Filter, PlainStyle, Query, QueryError, Question, TimeForm, run};
use turboflow_record::{Column, ColumnKind, FlowBatch, Value};

fn schema() -> Vec<Column> {
    let column = |name: &str, kind| Column {
        name: name.to_owned(),
        kind,
        nullable: true,
    };
    vec![
        column("src_addr", ColumnKind::Address),
        column("dst_addr", ColumnKind::Address),
        column("src_port", ColumnKind::Unsigned { bits: 16 }),
        column("dst_port", ColumnKind::Unsigned { bits: 16 }),
        column("protocol", ColumnKind::Unsigned { bits: 8 }),
        column("packets", ColumnKind::Unsigned { bits: 64 }),
        column("bytes", ColumnKind::Unsigned { bits: 64 }),
        column("first_ns", ColumnKind::TimestampNs),
        column("last_ns", ColumnKind::TimestampNs),
        column("tcp_flags", ColumnKind::Unsigned { bits: 16 }),
        column("end_reason", ColumnKind::Unsigned { bits: 8 }),
        column("mean_length", ColumnKind::Float),
        column("sizes", ColumnKind::List),
        column("source_mac", ColumnKind::Mac),
        column("application", ColumnKind::Text),
    ]
}

fuzz_target!(|text: &str| {
    let schema = schema();
    let mut batch = FlowBatch::new(&schema);
    let number = Value::Unsigned;
    batch.push_row(&[
        Value::Address([10, 0, 0, 1].into()),
        Value::Address([0x2001; 8].into()),
        number(1),
        number(65_535),
        number(6),
        number(u64::MAX),
        number(u64::MAX),
        number(u64::MAX),
        number(0),
        number(0xfff),
        number(255),
        Value::Float(f64::NAN),
        Value::List(&[0, u64::MAX]),
        number(0xffff_ffff_ffff),
        Value::Text("TLS.NetFlix"),
    ]);
    batch.push_row(&vec![Value::Absent; schema.len()]);
    let _ = Filter::parse(text, &schema).map(|filter| filter.apply(&batch, &schema));
    let mut parts = text.splitn(4, ';').map(str::to_owned);
    let question = Question {
        group_by: parts.next(),
        by: parts.next(),
        filter: parts.next(),
        select: parts.next(),
        ..Question::default()
    };
    if let Ok(query) = Query::parse(&question, &schema) {
        let answer = run(&query, [Ok::<_, QueryError>(batch)]).expect("two records fit the memory");
        let _ = answer.to_table(Default::default());
        let style = PlainStyle {
            time: TimeForm::Iso,
            names: true,
        };
        answer
            .write_csv(&mut std::io::sink(), style)
            .expect("a sink takes everything");
        answer
            .write_json_lines(&mut std::io::sink(), style)
            .expect("a sink takes everything");
    }
});
