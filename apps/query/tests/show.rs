// SPDX-License-Identifier: Apache-2.0
//! Questions and answers on a few records.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::net::IpAddr;

use proptest::prelude::*;
use turboflow_formats::{Format, WriteOptions, create};
use turboflow_query::{
    Answer, Filter, Input, PlainStyle, Query, QueryError, Question, TableStyle, run,
};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, Value};

pub(crate) fn schema() -> Schema {
    let unsigned = |bits| ColumnKind::Unsigned { bits };
    [
        ("src_addr", ColumnKind::Address, false),
        ("dst_addr", ColumnKind::Address, false),
        ("src_port", unsigned(16), false),
        ("dst_port", unsigned(16), false),
        ("protocol", unsigned(8), false),
        ("packets", unsigned(64), false),
        ("bytes", unsigned(64), false),
        ("first_ns", ColumnKind::TimestampNs, false),
        ("last_ns", ColumnKind::TimestampNs, false),
        ("tcp_flags", unsigned(16), false),
        ("end_reason", unsigned(8), false),
        ("vlan", unsigned(16), true),
        ("mean_length", ColumnKind::Float, true),
        ("sizes", ColumnKind::List, true),
        ("source_mac", ColumnKind::Mac, true),
    ]
    .map(|(name, kind, nullable)| Column {
        name: name.to_owned(),
        kind,
        nullable,
    })
    .to_vec()
}

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const START: u64 = 1_700_000_000 * SECOND;

/// Source, destination, ports, protocol, packets, bytes, start and duration in seconds, flags, end
/// reason, VLAN.
type Record = (&'static str, &'static str, [u64; 10], Option<u64>);

const RECORDS: [Record; 6] = [
    (
        "10.0.0.1",
        "192.0.2.1",
        [40_000, 443, 6, 10, 5_000, 0, 5, 0x1b, 3, 0],
        Some(7),
    ),
    (
        "10.0.0.2",
        "192.0.2.1",
        [40_001, 443, 6, 20, 50_000, 10, 1, 0x02, 1, 0],
        Some(7),
    ),
    (
        "10.0.1.1",
        "192.0.2.53",
        [5353, 53, 17, 1, 80, 20, 0, 0, 1, 0],
        None,
    ),
    (
        "192.0.2.53",
        "10.0.1.1",
        [53, 5353, 17, 1, 300, 20, 0, 0, 1, 0],
        None,
    ),
    (
        "2001:db8::1",
        "2001:db8::2",
        [0, 0, 58, 4, 400, 400, 3, 0, 4, 0],
        Some(0),
    ),
    (
        "10.0.0.1",
        "192.0.2.1",
        [40_002, 80, 6, 2, 120, 401, 60, 0x06, 2, 0],
        None,
    ),
];

pub(crate) fn batch() -> FlowBatch {
    let mut batch = FlowBatch::new(&schema());
    for (source, destination, numbers, vlan) in RECORDS {
        let [
            sport,
            dport,
            protocol,
            packets,
            bytes,
            start,
            length,
            flags,
            reason,
            _,
        ] = numbers;
        let address = |text: &str| Value::Address(text.parse::<IpAddr>().unwrap());
        let first = START + start * SECOND;
        let sizes = [packets, bytes];
        let number = Value::Unsigned;
        batch.push_row(&[
            address(source),
            address(destination),
            number(sport),
            number(dport),
            number(protocol),
            number(packets),
            number(bytes),
            number(first),
            number(first + length * SECOND),
            number(flags),
            number(reason),
            vlan.map_or(Value::Absent, number),
            vlan.map_or(Value::Absent, |_| {
                Value::Float(bytes as f64 / packets as f64)
            }),
            vlan.map_or(Value::Absent, |_| Value::List(&sizes)),
            vlan.map_or(Value::Absent, |_| number(0x0242_ac11_0002)),
        ]);
    }
    batch
}

pub(crate) fn ask(question: &Question) -> Result<Answer, QueryError> {
    run(
        &Query::parse(question, &schema())?,
        [Ok::<_, QueryError>(batch())],
    )
}

pub(crate) fn csv(question: &Question) -> String {
    let mut text = Vec::new();
    ask(question)
        .unwrap()
        .write_csv(&mut text, PlainStyle::default())
        .unwrap();
    String::from_utf8(text).unwrap()
}

pub(crate) fn question() -> Question {
    Question::default()
}

#[test]
fn groups_are_sums_and_shares() {
    let group_by = Some("dst_port".to_owned());
    let text = csv(&Question {
        group_by,
        ..question()
    });
    let expected = "\
dst_port,records,packets,bytes,share_percent,first_ns,last_ns
443,2,30,55000,98.39,1700000000000000000,1700000011000000000
0,1,4,400,0.7156,1700000400000000000,1700000403000000000
5353,1,1,300,0.5367,1700000020000000000,1700000020000000000
80,1,2,120,0.2147,1700000401000000000,1700000461000000000
53,1,1,80,0.1431,1700000020000000000,1700000020000000000
";
    assert_eq!(text, expected);
}

#[test]
fn groups_by_prefix_time_and_bucket() {
    let first_column = |group_by: &str, by: Option<&str>| {
        let by = by.map(str::to_owned);
        let text = csv(&Question {
            group_by: Some(group_by.to_owned()),
            by,
            ..question()
        });
        let rows = text.lines().skip(1);
        rows.map(|row| row.split(',').take(2).collect::<Vec<_>>().join(","))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        first_column("src_addr/24", Some("records")),
        [
            "10.0.0.0/24,3",
            "10.0.1.0/24,1",
            "192.0.2.0/24,1",
            "2001:db8::/64,1"
        ]
    );
    assert_eq!(
        first_column("src_addr/0/48", Some("records")),
        ["0.0.0.0/0,5", "2001:db8::/48,1"]
    );
    let minute = |n: u64| START / (300 * SECOND) * 300 * SECOND + n * 300 * SECOND;
    let buckets = [format!("{},4", minute(0)), format!("{},2", minute(2))];
    let starts: Vec<String> = first_column("first_ns:5m", None);
    assert_eq!(starts, buckets);
    assert_eq!(
        first_column("bytes:1k", Some("bytes:1k")),
        ["50000,1", "5000,1", "0,4"]
    );
    assert_eq!(
        first_column("duration:10s", Some("records")),
        ["0,5", "60000000000,1"]
    );
    assert_eq!(first_column("vlan", Some("vlan")), ["7,2", "0,1", ",3"]);
}

#[test]
fn records_come_in_the_order_asked_for() {
    let select = Some("src_port, bytes".to_owned());
    let top = Question {
        select,
        top: Some(2),
        ..question()
    };
    assert_eq!(csv(&top), "src_port,bytes\n40001,50000\n40000,5000\n");
    let least = Question {
        ascending: true,
        by: Some("duration".to_owned()),
        ..top.clone()
    };
    assert_eq!(csv(&least), "src_port,bytes\n5353,80\n53,300\n");
    let all = Question {
        top: None,
        filter: Some("port 53".to_owned()),
        ..top.clone()
    };
    assert_eq!(csv(&all), "src_port,bytes\n5353,80\n53,300\n");
    assert_eq!(
        csv(&Question {
            top: Some(0),
            ..top
        }),
        "src_port,bytes\n"
    );
    let answer = ask(&Question {
        top: Some(1),
        filter: Some("tcp".to_owned()),
        ..question()
    });
    let totals = answer.unwrap().totals;
    assert_eq!(
        (totals.read.records, totals.matched.records, totals.rows),
        (6, 3, 3)
    );
    assert_eq!(
        (totals.read.bytes, totals.matched.packets),
        (Some(55_900), Some(32))
    );
}

#[test]
fn tables_show_names_and_units() {
    let filter = Some("vlan == 7 or udp".to_owned());
    let select = Some(
        "src_addr,protocol,bytes,first_ns,duration,tcp_flags,end_reason,vlan,source_mac,sizes"
            .to_owned(),
    );
    let question = Question {
        filter,
        select,
        top: Some(3),
        ..question()
    };
    let style = TableStyle {
        width: None,
        humanise: true,
    };
    let expected = "\
src_addr    protocol    bytes  first     duration  tcp_flags  end_reason    vlan  source_mac         sizes
──────────  ────────  ───────  ────────  ────────  ─────────  ────────────  ────  ─────────────────  ──────────
10.0.0.2    tcp       50.0 kB  22:13:30       1 s  S          idle_timeout     7  02:42:ac:11:00:02  [20 50000]
10.0.0.1    tcp        5.0 kB  22:13:20       5 s  FSPA       end_of_flow      7  02:42:ac:11:00:02  [10 5000]
192.0.2.53  udp         300 B  22:13:40         0  .          idle_timeout     -  -                  -
";
    let text = ask(&question).unwrap().to_table(style);
    assert_eq!(text.table, expected);
    assert_eq!(text.notes, ["Times are UTC, of 2023-11-14."]);
    let mut text = Vec::new();
    ask(&question)
        .unwrap()
        .write_json_lines(&mut text, PlainStyle::default())
        .unwrap();
    let text = String::from_utf8(text).unwrap();
    let first = text.lines().next().unwrap();
    assert_eq!(
        first,
        "{\"src_addr\":\"10.0.0.2\",\"protocol\":6,\"bytes\":50000,\"first_ns\":1700000010000000000,\
         \"duration\":1000000000,\"tcp_flags\":2,\"end_reason\":1,\"vlan\":7,\
         \"source_mac\":\"02:42:ac:11:00:02\",\"sizes\":[20,50000]}"
    );
}

#[test]
fn errors_point_into_the_invalid_option() {
    let refuse = |question: Question| ask(&question).unwrap_err().to_string();
    let group = |text: &str| Question {
        group_by: Some(text.to_owned()),
        ..question()
    };
    for (text, expected) in [
        ("src_prt", "did you mean src_port?"),
        ("proto", "did you mean protocol?"),
        ("ip", "did you mean host?"),
        ("sip", "did you mean src_addr?"),
        ("minute", "did you mean time:1m?"),
        ("flags", "did you mean tcp_flags?"),
        ("bytes/24", "bytes is not an address"),
        ("src_addr:5", "src_addr is not a number or a time"),
        ("src_addr/200", "not the length of a prefix"),
        ("first_ns", "times need a width"),
        ("time:0s", "wider than 0"),
        ("time:x", "a duration such as"),
        ("time:5", "write 5s, or 5ns"),
        ("first_ns:5", "write 5s, or 5ns"),
        ("duration:5", "write 5s, or 5ns"),
        ("time", "write time:5m"),
        ("time:1s,protocol,time:2s", "one width"),
        ("protocol,protocol", "twice"),
        ("net", "write host/24"),
        ("port", "group by dst_port"),
        ("host,host/24", "twice"),
        ("bps", "cannot be a key of groups"),
        ("sizes", "is a list"),
        ("src_addr,,bytes", "unknown field"),
    ] {
        let message = refuse(group(text));
        assert!(
            message.contains(expected) && message.contains("groups: "),
            "{message}"
        );
    }
    let by = |name: &str| Question {
        by: Some(name.to_owned()),
        ..group("dst_port")
    };
    for name in ["vlan", "src_port", "end_reason", "sizes", "mean_length"] {
        let message = refuse(by(name));
        assert!(
            message.contains(&format!("order: {name} is not an amount"))
                && message.contains("known are dst_port, records, packets, bytes, share"),
            "{message}"
        );
    }
    let message = refuse(by("byte"));
    assert!(message.contains("did you mean bytes?"), "{message}");
    let select = |fields: &str, question: Question| {
        refuse(Question {
            select: Some(fields.to_owned()),
            ..question
        })
    };
    let message = select("bytes,nope", question());
    assert!(message.ends_with("        ^^^^"), "{message}");
    let message = select("bytes,nope", group("dst_port"));
    assert!(message.ends_with("        ^^^^"), "{message}");
    for question in [question(), group("dst_port")] {
        let message = select("bytes, bytes", question);
        assert!(message.contains("is given twice"), "{message}");
    }
}

#[test]
fn several_files_are_one_input() {
    let directory = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for format in Format::READABLE {
        let path = directory.path().join(format!("flows.{format}"));
        let mut writer = create(&path, format, &schema(), &WriteOptions::default()).unwrap();
        writer.write(&batch()).unwrap();
        writer.finish().unwrap();
        paths.push(path);
    }
    let input = Input::open(&paths).unwrap();
    let question = Question {
        group_by: Some("protocol".to_owned()),
        ..question()
    };
    let query = Query::parse(&question, input.schema()).unwrap();
    let answer = run(&query, input).unwrap();
    assert_eq!(answer.totals.read.records, 18);
    assert_eq!(answer.totals.read.bytes, Some(3 * 55_900));
    let other = directory.path().join("other.csv");
    std::fs::write(&other, "src_addr,dst_addr,bytes\n1.2.3.4,1.2.3.4,5\n").unwrap();
    paths.push(other);
    let message = Input::open(&paths).err().unwrap().to_string();
    assert!(message.contains("other.csv does not fit"), "{message}");
    assert!(
        message.contains("column 3 is \"bytes\", not \"src_port\""),
        "{message}"
    );
    assert!(Input::open(&[directory.path().join("none")]).is_err());
}

/// Number of matching records in files with these contents.
fn ask_files(contents: &[(&str, &str)], filter: &str) -> Result<u64, String> {
    let directory = tempfile::tempdir().unwrap();
    let paths = contents.iter().map(|(name, content)| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    });
    let paths: Vec<_> = paths.collect();
    let input = Input::open(&paths).map_err(|error| error.to_string())?;
    let question = Question {
        filter: (!filter.is_empty()).then(|| filter.to_owned()),
        ..question()
    };
    let query = Query::parse(&question, input.schema()).map_err(|error| error.to_string())?;
    let answer = run(&query, input).map_err(|error| error.to_string())?;
    Ok(answer.totals.matched.records)
}

#[test]
fn files_are_compatible_if_one_does_not_show_a_kind() {
    let without = ("a.csv", "bytes,speed,inner\n5,,\n");
    let with = ("b.csv", "bytes,speed,inner\n6,12.5,10.0.0.1\n");
    for files in [[without, with], [with, without]] {
        assert_eq!(ask_files(&files, ""), Ok(2));
        assert_eq!(ask_files(&files, "speed > 12"), Ok(1));
    }
    let other = ("c.csv", "bytes,speed,inner\n6,12,10.0.0.1\n");
    let refused = ask_files(&[with, other], "").unwrap_err();
    assert!(
        refused.contains("column \"speed\" holds whole numbers, not numbers with fractions"),
        "{refused}"
    );
    // An interval without flows produces an empty JSON lines file.
    let nothing = ("d.jsonl", "");
    let one = ("e.jsonl", "{\"bytes\":7,\"speed\":null}\n");
    for files in [[nothing, one], [one, nothing]] {
        assert_eq!(ask_files(&files, "bytes > 6"), Ok(1));
    }
}

#[test]
fn reverse_times_are_times_in_text_files_too() {
    let biflow = (
        "a.csv",
        "bytes,reverse_first_ns\n5,1700000000000000000\n6,\n",
    );
    assert_eq!(
        ask_files(&[biflow], "reverse_first_ns >= 2023-01-01"),
        Ok(1)
    );
}

#[test]
fn a_file_that_changes_before_it_is_read_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.csv");
    for (before, after) in [
        ("bytes,packets\n5,1\n", "bytes\n5\n"),
        // When the question was bound, `speed` held whole numbers.
        ("bytes,speed\n5,\n", "bytes,speed\n5,12.5\n"),
    ] {
        std::fs::write(&path, before).unwrap();
        let mut input = Input::open(&[&path]).unwrap();
        std::fs::write(&path, after).unwrap();
        let refused = input.next().unwrap().unwrap_err().to_string();
        assert!(
            refused.contains("a.csv changed before it was read"),
            "{refused}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_parsed_or_refused(
        text in prop_oneof![
            "\\PC{0,40}",
            prop::collection::vec(
                prop::sample::select(vec![
                    "bytes", "src_addr", "(", ")", "and", "or", "not", "in", "has", "==", "<", "!",
                    ",", "10.0.0.0/8", "1.5k", "5m", "tcp", "host", "port", "none", "'", "::1", "é",
                ]),
                0..20,
            ).prop_map(|words| words.join(" ")),
        ],
    ) {
        match Filter::parse(&text, &schema()) {
            Ok(filter) => {
                let _ = filter.apply(&batch(), &schema());
            }
            Err(error) => prop_assert!(error.to_string().contains("filter: ")),
        }
        let group_by = Some(text.clone());
        let _ = Query::parse(&Question { group_by, by: Some(text.clone()), ..question() }, &schema());
        let _ = Query::parse(&Question { select: Some(text), ..question() }, &schema());
    }
}
