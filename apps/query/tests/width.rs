// SPDX-License-Identifier: Apache-2.0
//! Tables as they look in terminals of 80, 120 and 200 columns, compared with the files in
//! `golden`. `UPDATE=1` rewrites the files; review the difference before committing it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::IpAddr;
use std::path::Path;

use turboflow_formats::table::wrapped;
use turboflow_query::{Query, QueryError, Question, TableStyle, run};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, Value};

use crate::show::{SECOND, START};

/// The columns of the default definition.
fn schema() -> Schema {
    let unsigned = |bits| ColumnKind::Unsigned { bits };
    [
        ("src_addr", ColumnKind::Address),
        ("dst_addr", ColumnKind::Address),
        ("src_port", unsigned(16)),
        ("dst_port", unsigned(16)),
        ("protocol", unsigned(8)),
        ("packets", unsigned(64)),
        ("bytes", unsigned(64)),
        ("first_ns", ColumnKind::TimestampNs),
        ("last_ns", ColumnKind::TimestampNs),
        ("tcp_flags", unsigned(16)),
        ("end_reason", unsigned(8)),
    ]
    .map(|(name, kind)| Column {
        name: name.to_owned(),
        kind,
        nullable: false,
    })
    .to_vec()
}

/// Source, destination, ports, protocol, packets, bytes, start and duration in microseconds, flags,
/// end reason.
type Record = (&'static str, &'static str, [u64; 9]);

const V4: [Record; 3] = [
    (
        "192.168.100.101",
        "198.51.100.200",
        [54_321, 443, 6, 18_230, 21_034_567, 0, 118_250_113, 0x1b, 2],
    ),
    (
        "10.1.2.3",
        "203.0.113.7",
        [40_001, 53, 17, 1, 78, 1_250_007, 0, 0, 1],
    ),
    (
        "10.1.2.3",
        "203.0.113.7",
        [0, 0, 1, 4, 336, 59_999_999, 3_003_000, 0, 4],
    ),
];

const V6: [Record; 2] = [
    (
        "2001:db8:1234:5678:9abc:def0:1234:5678",
        "2001:db8:8765:4321:fedc:ba98:7654:3210",
        [54_321, 443, 6, 210, 310_345, 0, 5_000_000, 0x1b, 3],
    ),
    (
        "fe80::1",
        "ff02::fb",
        [5_353, 5_353, 17, 2, 310, 90_000_000_000, 10, 0, 1],
    ),
];

fn batch(records: &[Record]) -> FlowBatch {
    let mut batch = FlowBatch::new(&schema());
    for (source, destination, numbers) in records {
        let [
            sport,
            dport,
            protocol,
            packets,
            bytes,
            first_us,
            length_us,
            flags,
            reason,
        ] = *numbers;
        let address = |text: &str| Value::Address(text.parse::<IpAddr>().unwrap());
        let first_ns = START + first_us * 1_000;
        let mut row = vec![address(source), address(destination)];
        let last_ns = first_ns + length_us * 1_000;
        let rest = [
            sport, dport, protocol, packets, bytes, first_ns, last_ns, flags, reason,
        ];
        row.extend(rest.map(Value::Unsigned));
        batch.push_row(&row);
    }
    batch
}

/// A table and its notes, at every width.
fn screens(name: &str, question: &Question, records: &[Record]) {
    let mut text = String::new();
    let query = Query::parse(question, &schema()).unwrap();
    let answer = run(&query, [Ok::<_, QueryError>(batch(records))]).unwrap();
    for width in [80, 120, 200] {
        let style = TableStyle {
            width: Some(width),
            humanise: true,
        };
        let shown = answer.to_table(style);
        // Worded as the program words it.
        let left_out = (!shown.left_out.is_empty()).then(|| {
            let columns = shown.left_out.join(", ");
            format!("No room for {columns}: --select chooses columns.")
        });
        let notes = shown.notes.iter().chain(&left_out);
        let notes: String = notes.map(|note| wrapped(note, Some(width))).collect();
        let screen = format!("{}{notes}", shown.table);
        assert!(
            screen.lines().all(|line| line.chars().count() <= width),
            "{screen}"
        );
        for (source, destination, _) in records.iter().filter(|_| question.group_by.is_none()) {
            let is_whole = |address: &str| screen.split_whitespace().any(|word| word == address);
            assert!(
                is_whole(source) && is_whole(destination),
                "an address is cut:\n{screen}"
            );
        }
        // The rows are the largest by bytes, and the note tells how many there are.
        let header = shown.table.lines().next().unwrap();
        assert!(header.contains("bytes"), "{screen}");
        let rule = format!("{width} {}\n", "·".repeat(width - 4));
        text += &format!("{rule}{screen}");
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let golden = golden.join(format!("{name}.txt"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(golden.parent().unwrap()).unwrap();
        std::fs::write(&golden, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&golden).unwrap(), "{name}");
}

#[test]
fn records_of_ipv4() {
    let question = Question {
        top: Some(20),
        ..Question::default()
    };
    screens("records-v4", &question, &V4);
}

#[test]
fn records_of_ipv6() {
    let question = Question {
        top: Some(20),
        ..Question::default()
    };
    screens("records-v6", &question, &V6);
}

#[test]
fn groups_of_hosts() {
    let question = Question {
        group_by: Some("host".to_owned()),
        ..Question::default()
    };
    screens("hosts", &question, &[&V4[..], &V6[..]].concat());
}

#[test]
fn columns_of_the_users_choice() {
    let select = "end_reason,tcp_flags,bps,first_ns,last_ns,bytes_per_packet,src_addr,dst_addr";
    let question = Question {
        select: Some(select.to_owned()),
        ..Question::default()
    };
    let query = Query::parse(&question, &schema()).unwrap();
    let answer = run(&query, [Ok::<_, QueryError>(batch(&V4))]).unwrap();
    let style = TableStyle {
        width: Some(80),
        humanise: true,
    };
    let shown = answer.to_table(style);
    assert!(shown.table.starts_with("end_reason"), "{}", shown.table);
    // The last columns are dropped first, and the note lists them.
    assert_eq!(shown.left_out, ["src_addr", "dst_addr"]);
}

/// Fractions are truncated, and dates that differ are kept.
#[test]
fn dates_are_said_once_or_stay() {
    let times = |offsets: [u64; 2]| {
        let records = offsets.map(|offset_us| {
            let (source, destination, mut numbers) = V4[1];
            numbers[5] = offset_us;
            (source, destination, numbers)
        });
        let question = Question {
            select: Some("first_ns".to_owned()),
            ..Question::default()
        };
        let query = Query::parse(&question, &schema()).unwrap();
        let answer = run(&query, [Ok::<_, QueryError>(batch(&records))]).unwrap();
        let shown = answer.to_table(TableStyle {
            width: None,
            humanise: true,
        });
        let rows = shown
            .table
            .lines()
            .skip(2)
            .map(str::to_owned)
            .collect::<Vec<_>>();
        (rows.join(" | "), shown.notes.concat())
    };
    let day = 86_400 * SECOND / 1_000;
    let said = |rows: &str, note: &str| (rows.to_owned(), note.to_owned());
    assert_eq!(
        times([0, 1_999_999]),
        said(
            "22:13:20.000 | 22:13:21.999",
            "Times are UTC, of 2023-11-14."
        )
    );
    assert_eq!(
        times([0, day]),
        said("11-14 22:13:20 | 11-15 22:13:20", "Times are UTC, of 2023.")
    );
    assert_eq!(
        times([0, 60 * day]),
        said(
            "2023-11-14 22:13:20 | 2024-01-13 22:13:20",
            "Times are UTC."
        )
    );
}
