// SPDX-License-Identifier: Apache-2.0
//! Groups: spread over time, of user-defined columns, and with conflicting names.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;
use turboflow_query::{Answer, Cell, PlainStyle, Query, QueryError, Question, TableStyle, run};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, Value};

const NUMBER: ColumnKind = ColumnKind::Unsigned { bits: 64 };

/// Numeric records with these column names. `_ns` columns are times; `u64::MAX` means absent.
struct Records {
    schema: Schema,
    batch: FlowBatch,
}

impl Records {
    fn new<const N: usize>(names: [&str; N], rows: &[[u64; N]]) -> Self {
        let column = |name: &str| Column {
            name: name.to_owned(),
            kind: match name.ends_with("_ns") {
                true => ColumnKind::TimestampNs,
                false => NUMBER,
            },
            nullable: true,
        };
        let schema = names.map(column).to_vec();
        let mut batch = FlowBatch::new(&schema);
        for row in rows {
            let value = |&number: &u64| match number {
                u64::MAX => Value::Absent,
                number => Value::Unsigned(number),
            };
            batch.push_row(&row.each_ref().map(value));
        }
        Self { schema, batch }
    }

    fn ask(&self, question: &Question) -> Result<Answer, QueryError> {
        let query = Query::parse(question, &self.schema)?;
        run(&query, [Ok::<_, QueryError>(self.batch.clone())])
    }

    fn csv(&self, question: &Question) -> String {
        let mut text = Vec::new();
        let answer = self.ask(question).unwrap();
        answer.write_csv(&mut text, PlainStyle::default()).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn refuses(&self, question: &Question) -> String {
        self.ask(question).unwrap_err().to_string()
    }
}

fn group_by(fields: &str) -> Question {
    Question {
        group_by: Some(fields.to_owned()),
        ..Question::default()
    }
}

fn by(name: &str, question: Question) -> Question {
    Question {
        by: Some(name.to_owned()),
        ..question
    }
}

fn select(fields: &str, question: Question) -> Question {
    Question {
        select: Some(fields.to_owned()),
        ..question
    }
}

const SECOND: u64 = 1_000_000_000;
const TIMED: [&str; 5] = ["protocol", "packets", "bytes", "first_ns", "last_ns"];

#[test]
fn a_record_is_spread_over_its_duration() {
    let records = Records::new(
        TIMED,
        &[
            // From 5 s to 25 s: a quarter, a half and a quarter in buckets of 10 s.
            [6, 10, 1000, 5 * SECOND, 25 * SECOND - 1],
            [17, 1, 60, 45 * SECOND, 45 * SECOND],
            // The last packet is at the first moment of a bucket.
            [6, 2, 80, 9 * SECOND, 10 * SECOND],
        ],
    );
    let expected = "\
start_ns,records,packets,bytes,share_percent
0,2,5,330,28.9474
10000000000,0,5,500,43.8596
20000000000,0,2,250,21.9298
30000000000,0,0,0,0
40000000000,1,1,60,5.2632
";
    assert_eq!(records.csv(&group_by("time:10s")), expected);
    // The edges of buckets are not times of packets.
    for (text, word) in [("first_ns", "first_ns"), ("last", "last_ns")] {
        let message = records.refuses(&select(text, group_by("time:10s")));
        let expected = format!("{word} of the packets in one is not known");
        assert!(message.contains(&expected), "{message}");
        records.refuses(&by(text, group_by("time:10s")));
    }
    for name in ["time:10s", "time", "start", "start_ns"] {
        let sorted = Question {
            ascending: true,
            ..by(name, group_by("time:10s"))
        };
        assert_eq!(records.csv(&sorted), expected, "{name}");
    }
    let table = records.ask(&group_by("time:10s")).unwrap();
    let table = table.to_table(TableStyle::default()).table;
    let header: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["start", "records", "packets", "bytes", "share"]);
    let of_tcp = records.csv(&select("records,bytes", group_by("time:10s,protocol")));
    let expected = "\
start_ns,protocol,records,bytes
0,6,2,330
10000000000,6,0,500
20000000000,6,0,250
40000000000,17,1,60
";
    assert_eq!(of_tcp, expected, "no empty buckets for a protocol");
    let whole = records.csv(&select("records,bytes", group_by("first_ns:10s")));
    let expected = "first_ns:10s,records,bytes\n0,2,1080\n40000000000,1,60\n";
    assert_eq!(whole, expected, "counted where records began");
}

#[test]
fn records_without_times_and_with_reversed_times() {
    let records = Records::new(
        TIMED,
        &[
            [6, 1, 10, u64::MAX, u64::MAX],
            [6, 2, 20, 15 * SECOND, u64::MAX],
            [6, 4, 40, 15 * SECOND, 2 * SECOND],
        ],
    );
    let csv = records.csv(&select("records,packets", group_by("time:10s")));
    assert_eq!(csv, "start_ns,records,packets\n,1,1\n10000000000,2,6\n");
    // If the last packet is before the first, there is no rate.
    let reversed = Records::new(TIMED, &[[6, 4, 40, 15 * SECOND, 2 * SECOND]]);
    let rates = select("bytes,bps,pps", group_by("protocol"));
    assert_eq!(reversed.csv(&rates), "protocol,bytes,bps,pps\n6,40,,\n");
    let none = Records::new(TIMED, &[]);
    assert_eq!(none.csv(&group_by("time:1s")).lines().count(), 1);
}

#[test]
fn more_buckets_than_the_limit_are_refused() {
    let records = Records::new(TIMED, &[[6, 1, 10, 0, 100_000 * SECOND - 1]]);
    let rows = |question: &Question| records.ask(question).unwrap().rows.len();
    assert_eq!(rows(&group_by("time:1s")), 100_000);
    let message = records.refuses(&group_by("time:999ms"));
    assert!(
        message.contains("more than 100000 buckets of 999 ms") && message.contains("wider"),
        "{message}"
    );
    let far = Records::new(TIMED, &[[6, 1, 10, 0, u64::MAX - 1]]);
    far.refuses(&group_by("time:1ns,protocol"));
    let apart = [0, 200_000 * SECOND].map(|time| [6, 1, 10, time, time]);
    let message = Records::new(TIMED, &apart).refuses(&group_by("time:1s"));
    assert!(message.contains("from 1970-01-01T00:00:00Z"), "{message}");
}

#[test]
fn columns_of_a_user_definition_are_shown_and_added_up() {
    let own = Records::new(
        ["protocol", "c", "s", "end_reason"],
        &[[6, 3, 300, 1], [17, 1, 700, 1], [6, 5, 200, 3]],
    );
    let table = |question: &Question| {
        let answer = own.ask(question).unwrap();
        answer.to_table(TableStyle::default()).table
    };
    let expected = "\
protocol  end_reason    c    s
────────  ────────────  ─  ───
tcp       end_of_flow   5  200
tcp       idle_timeout  3  300
udp       idle_timeout  1  700
";
    assert_eq!(table(&by("c", Question::default())), expected);
    let totals = own.ask(&Question::default()).unwrap().totals;
    assert_eq!((totals.read.packets, totals.read.bytes), (None, None));
    let protocols = by("sum(s)", group_by("protocol"));
    let expected = "protocol,records,sum(s),share_percent\n17,1,700,58.3333\n6,2,500,41.6667\n";
    assert_eq!(own.csv(&protocols), expected);
    let expected = "protocol,sum(s),max(c),min( c )\n17,700,1,1\n6,500,5,3\n";
    let question = select("sum(s),max(c),min( c )", group_by("protocol"));
    assert_eq!(own.csv(&question), expected);
    // The name does not tell the meaning, and a wrong sum would be a wrong answer.
    let message = own.refuses(&by("c", group_by("protocol")));
    assert!(
        message.contains("write sum(c), max(c) or min(c)"),
        "{message}"
    );
    let message = own.refuses(&by("x", group_by("protocol")));
    assert!(
        message.contains("known are protocol, records, share"),
        "{message}"
    );
}

#[test]
fn the_sort_column_is_shown_even_if_others_fill_the_table() {
    let names = [
        "src_port",
        "dst_port",
        "protocol",
        "packets",
        "bytes",
        "first_ns",
        "last_ns",
        "tcp_flags",
        "end_reason",
        "a",
        "b",
        "c",
        "d",
    ];
    let records = Records::new(names, &[[1; 13]]);
    let columns = |question: &Question| {
        let answer = records.ask(question).unwrap();
        answer
            .columns
            .into_iter()
            .map(|c| c.name)
            .collect::<Vec<_>>()
    };
    let usual = columns(&Question::default());
    assert_eq!(usual[8..], ["end_reason", "last_ns", "a"], "{usual:?}");
    let sorted = columns(&by("d", Question::default()));
    assert_eq!(sorted[8..], ["end_reason", "d", "last_ns"], "{sorted:?}");
    let all = columns(&Question {
        all_columns: true,
        ..by("duration", Question::default())
    });
    assert_eq!(all.join(","), names.join(",") + ",duration");
    let selected = columns(&select("a", by("d", Question::default())));
    assert_eq!(selected, ["a"]);
}

#[test]
fn column_names_of_an_answer_are_distinct() {
    let clash = Records::new(
        ["records", "share", "time", "packets", "first_ns", "last_ns"],
        &[[7, 8, 9, 1, 0, 0], [7, 8, 9, 2, SECOND, 3 * SECOND]],
    );
    let header = |question: &Question| clash.csv(question).lines().next().unwrap().to_owned();
    assert_eq!(
        header(&group_by("records")),
        "records,group_records,packets,group_share_percent,first_ns,last_ns"
    );
    assert_eq!(
        header(&group_by("packets")),
        "packets,group_records,group_packets,group_share_percent,first_ns,last_ns"
    );
    let row = |question: &Question| clash.csv(question).lines().nth(1).unwrap().to_owned();
    assert_eq!(row(&select("group_records", group_by("time"))), "9,2");
    assert_eq!(
        row(&select("records,sum(share)", group_by("time"))),
        "9,14,16"
    );
    assert_eq!(
        row(&select("packets", group_by("group_time:2s"))),
        "0,2",
        "where time is a column"
    );
    let message = clash.refuses(&group_by("group_time"));
    assert!(message.contains("write group_time:5m"), "{message}");
}

#[test]
fn a_sum_of_2_to_64_or_more_is_refused() {
    const HALF: u64 = 1 << 63;
    let records = Records::new(
        ["protocol", "packets", "bytes"],
        &[[6, 1, HALF + 1], [17, 2, HALF - 1], [17, 3, HALF + 1]],
    );
    let message = records.refuses(&group_by("protocol"));
    assert!(
        message.starts_with("bytes of these records adds up to 2^64 or more"),
        "{message}"
    );
    // Shares of a total of 2^64 or more, although the sum of each group fits.
    let of_few = Question {
        filter: Some("packets < 3".to_owned()),
        ..group_by("protocol")
    };
    let csv = records.csv(&of_few);
    assert!(csv.contains(&format!("6,1,1,{},50\n", HALF + 1)), "{csv}");
    // The query that the message suggests finds the largest records, without their total.
    let largest = Question {
        by: Some("bytes".to_owned()),
        top: Some(1),
        ..Question::default()
    };
    let answer = records.ask(&largest).unwrap();
    assert_eq!(answer.rows.len(), 1);
    assert_eq!(
        (answer.totals.matched.packets, answer.totals.matched.bytes),
        (Some(6), None)
    );
}

proptest! {
    #[test]
    fn spread_parts_add_up_to_the_total(
        rows in prop::collection::vec(
            (0..u64::MAX - 1, 0..u64::MAX - 1, 0..100u64 * SECOND, 0..50u64 * SECOND),
            1..8,
        ),
        width_ns in 10_000_000..20u64 * SECOND,
    ) {
        // Limited so that the sums stay below 2^64.
        let row = |&(packets, bytes, first_ns, length): &(u64, u64, u64, u64)| {
            [6, packets / 8, bytes / 8, first_ns, first_ns + length]
        };
        let rows: Vec<[u64; 5]> = rows.iter().map(row).collect();
        let records = Records::new(TIMED, &rows);
        let question = group_by(&format!("time:{width_ns}ns"));
        let answer = records.ask(&question).unwrap();
        let sum = |column: usize| {
            let cells = answer.rows.iter().map(|row| match row[column] {
                Cell::Unsigned(number) => number,
                _ => 0,
            });
            cells.sum::<u64>()
        };
        prop_assert_eq!(sum(1), rows.len() as u64);
        prop_assert_eq!(sum(2), rows.iter().map(|row| row[1]).sum::<u64>());
        prop_assert_eq!(sum(3), rows.iter().map(|row| row[2]).sum::<u64>());
        let starts = answer.rows.iter().map(|row| row[0].clone());
        let starts: Vec<Cell> = starts.collect();
        let first = rows.iter().map(|row| row[3]).min().unwrap();
        let last = rows.iter().map(|row| row[4]).max().unwrap();
        let buckets = first / width_ns..=last / width_ns;
        let expected: Vec<Cell> = buckets.map(|b| Cell::Unsigned(b * width_ns)).collect();
        prop_assert_eq!(starts, expected);
    }
}

/// Biflows with responses, with absent reverse values, and with reverse values of 0.
fn biflows() -> Records {
    let names = [
        "src_port",
        "packets",
        "bytes",
        "reverse_packets",
        "reverse_bytes",
    ];
    let rows = [
        [1, 2, 100, 9, 9_000],
        [2, 5, 500, u64::MAX, u64::MAX],
        [1, 1, 50, 0, 0],
    ];
    Records::new(names, &rows)
}

#[test]
fn both_directions_of_biflows_count() {
    let records = biflows();
    assert_eq!(
        records.csv(&group_by("src_port")),
        "src_port,records,packets,bytes,reverse_packets,reverse_bytes,share_percent\n\
         1,2,3,150,9,9000,94.8187\n\
         2,1,5,500,0,0,5.1813\n"
    );
    let answer = records.ask(&group_by("src_port")).unwrap();
    assert_eq!(answer.totals.matched.packets, Some(17));
    assert_eq!(answer.totals.matched.bytes, Some(9_650));
    let largest = Question {
        top: Some(1),
        select: Some("src_port,total_packets,total_bytes".to_owned()),
        filter: Some("total_bytes > 400".to_owned()),
        ..Question::default()
    };
    assert_eq!(
        records.csv(&largest),
        "src_port,total_packets,total_bytes\n1,11,9100\n"
    );
}

/// A request, and a response that takes 20 s. Spread over the initiator's time, the whole response
/// would be in the first second.
#[test]
fn each_direction_of_a_biflow_is_spread_over_its_own_time() {
    let names = [
        "protocol",
        "packets",
        "reverse_packets",
        "first_ns",
        "last_ns",
        "reverse_first_ns",
        "reverse_last_ns",
        "both",
    ];
    let answered = [17, 1, 40, 0, 0, SECOND, 20 * SECOND + SECOND - 1, 84];
    let not_answered = [6, 3, 0, 0, 3 * SECOND - 1, u64::MAX, u64::MAX, 3];
    let records = Records::new(names, &[answered, not_answered]);
    let select = |columns: &str, fields: &str| Question {
        select: Some(columns.to_owned()),
        ..group_by(fields)
    };
    let of_udp = Question {
        filter: Some("udp".to_owned()),
        ..select("packets,reverse_packets,total_packets,sum(both)", "time:7s")
    };
    assert_eq!(
        records.csv(&of_udp),
        "start_ns,packets,reverse_packets,total_packets,sum(both)\n\
         0,1,12,13,28\n7000000000,0,14,14,28\n14000000000,0,14,14,28\n"
    );
    assert_eq!(
        records.csv(&select("first_ns,last_ns", "protocol")),
        "protocol,first_ns,last_ns\n17,0,20999999999\n6,0,2999999999\n"
    );
    let long = Question {
        filter: Some("duration > 4s".to_owned()),
        select: Some("protocol,duration".to_owned()),
        ..Question::default()
    };
    assert_eq!(records.csv(&long), "protocol,duration\n17,20999999999\n");
}

#[test]
fn groups_keep_minimum_and_maximum() {
    let names = ["src_port", "bytes", "min_ttl", "ttl_max", "tcp_flags"];
    let rows = [
        [1, 10, 60, 61, 0x02],
        [1, 20, 50, u64::MAX, 0x10],
        [2, 5, u64::MAX, 9, 0x12],
    ];
    let records = Records::new(names, &rows);
    let select = |columns: &str| Question {
        select: Some(columns.to_owned()),
        ..group_by("src_port")
    };
    assert_eq!(
        records.csv(&select("min_ttl,ttl_max,tcp_flags")),
        "src_port,min_ttl,ttl_max,tcp_flags\n1,50,61,18\n2,,9,18\n"
    );
    // Shares need a measure that can be added up.
    let by = Question {
        by: Some("ttl_max".to_owned()),
        ..group_by("src_port")
    };
    assert_eq!(
        records.csv(&by),
        "src_port,records,bytes,ttl_max,share_percent\n1,2,30,61,85.7143\n2,1,5,9,14.2857\n"
    );
}

#[test]
fn a_minimum_is_not_spread_over_buckets() {
    let names = ["first_ns", "last_ns", "bytes", "max_length"];
    let records = Records::new(names, &[[5, 24, 20, 1_500]]);
    let question = Question {
        select: Some("bytes,max_length".to_owned()),
        ..group_by("time:10ns")
    };
    assert_eq!(
        records.csv(&question),
        "start_ns,bytes,max_length\n0,5,1500\n10,10,1500\n20,5,1500\n"
    );
}

#[test]
fn values_of_single_packets_cannot_be_grouped() {
    let records = Records::new(
        ["src_port", "bytes", "tos", "first_window", "length_mean"],
        &[[1, 2, 3, 4, 5]],
    );
    for column in ["tos", "first_window", "length_mean"] {
        let question = Question {
            by: Some(column.to_owned()),
            ..group_by("src_port")
        };
        let said = records.refuses(&question);
        assert!(
            said.contains("not an amount that groups could add up"),
            "{said}"
        );
    }
}

/// Two flows with responses, one of them within a single host.
fn talk() -> Records {
    let names = [
        "src_port", "dst_port", "bytes", "packets", "first_ns", "last_ns",
    ];
    let rows = [
        [1, 2, 1_000, 10, 0, 2 * SECOND],
        [2, 1, 500, 5, SECOND, 4 * SECOND],
        [3, 1, 300, 1, 61 * SECOND, 61 * SECOND],
        [1, 1, 40, 1, 62 * SECOND, 62 * SECOND],
    ];
    let mut records = Records::new(names, &rows);
    // Numbers stand in for addresses.
    for (column, name) in ["src_addr", "dst_addr"].into_iter().enumerate() {
        records.schema[column].name = name.to_owned();
    }
    records
}

#[test]
fn a_record_counts_at_both_its_hosts() {
    let answer = talk()
        .ask(&select("records,packets,bytes,share", group_by("host")))
        .unwrap();
    let mut text = Vec::new();
    answer.write_csv(&mut text, PlainStyle::default()).unwrap();
    // A record within one host counts there once.
    let expected = "host,records,packets,bytes,share_percent\n1,4,17,1840,100\n2,2,15,1500,81.5217\n\
                    3,1,1,300,16.3043\n";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
    let note = answer.to_table(TableStyle::default()).notes.concat();
    assert!(
        note.contains("Shares are of all bytes that matched (1.8 kB)")
            && note.contains("counts at both its hosts"),
        "{note}"
    );
}

#[test]
fn a_host_of_biflows_has_totals_of_both_directions() {
    let names = [
        "src_port",
        "dst_port",
        "bytes",
        "packets",
        "reverse_bytes",
        "reverse_packets",
    ];
    let mut records = Records::new(names, &[[1, 2, 10, 1, 100, 2], [2, 1, 5, 1, u64::MAX, 0]]);
    records.schema[0].name = "src_addr".to_owned();
    records.schema[1].name = "dst_addr".to_owned();
    assert_eq!(
        records.csv(&group_by("host")),
        "host,records,total_packets,total_bytes,share_percent\n1,2,4,115,100\n2,2,4,115,100\n"
    );
}

#[test]
fn every_bucket_has_its_own_largest_rows() {
    let question = Question {
        top_each: Some(1),
        ..select("bytes", group_by("first_ns:1m,src_addr"))
    };
    assert_eq!(
        talk().csv(&question),
        "first_ns:1m,src_addr,bytes\n0,1,1000\n60000000000,3,300\n"
    );
    let least = Question {
        ascending: true,
        top_each: Some(2),
        ..by("bytes", question.clone())
    };
    assert_eq!(
        talk().csv(&least),
        "first_ns:1m,src_addr,bytes\n0,2,500\n0,1,1000\n60000000000,1,40\n60000000000,3,300\n"
    );
    for fields in [Some("src_addr"), None] {
        let question = Question {
            group_by: fields.map(str::to_owned),
            top_each: Some(1),
            ..Question::default()
        };
        let message = talk().refuses(&question);
        assert!(message.contains("time:5m,src_addr"), "{message}");
    }
}

#[test]
fn groups_have_rates() {
    let rates = select(
        "bytes,bps,pps,bytes_per_packet,bytes/packets",
        group_by("src_addr"),
    );
    assert_eq!(
        talk().csv(&rates),
        "src_addr,bytes,bps,pps,bytes_per_packet,bytes/packets\n\
         1,1040,134.19354838709677,0.1774193548387097,94.54545454545455,94.54545454545455\n\
         2,500,1333.3333333333333,1.6666666666666667,100.0,100.0\n3,300,,,300.0,300.0\n"
    );
    // In time buckets, a rate refers to the whole bucket, however short the group is.
    assert_eq!(
        talk().csv(&select("bytes,bps", group_by("time:1m"))),
        "start_ns,bytes,bps\n0,1500,200\n60000000000,340,45.333333333333336\n"
    );
    let fastest = by("bps", select("src_addr,bps", group_by("src_addr")));
    assert!(talk().csv(&fastest).starts_with("src_addr,bps\n2,"));
    let message = talk().refuses(&by("bytes/src_addr", group_by("src_addr")));
    assert!(message.contains("bytes/src_addr"), "{message}");
}
