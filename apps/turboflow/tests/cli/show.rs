// SPDX-License-Identifier: Apache-2.0
//! `turboflow show`: how it uses `apps/query`, which has tests of its own.

use std::fs;
use std::process::Stdio;

use crate::support::{Folder, command, finish, office, project, rows, turboflow};
#[cfg(target_os = "linux")]
use crate::terminal::Terminal;

/// The records of the sample in every format.
pub(crate) fn recorded(folder: &Folder) -> [String; 3] {
    let files = ["a.csv", "a.jsonl", "a.parquet"].map(|name| folder.file(name));
    let outputs = files
        .iter()
        .flat_map(|file| ["-w".to_owned(), file.clone()]);
    let args = ["record", "-q", "-r", &office()].map(str::to_owned);
    turboflow(args.into_iter().chain(outputs)).exits(0);
    files
}

#[test]
fn answers_do_not_depend_on_the_format() {
    let folder = Folder::new();
    let files = recorded(&folder);
    for question in [
        &["--top", "5"][..],
        &["--group-by", "src_addr", "--top", "3", "--by", "packets"],
        &[
            "--where",
            "(tcp and port 443) or (udp and bytes > 10k)",
            "--format",
            "json",
        ],
        &["--group-by", "time:10s"],
        &[
            "--select",
            "src_addr,bytes",
            "--by",
            "bytes",
            "--ascending",
            "--format",
            "csv",
        ],
        &["--select", "all", "--top", "0", "--exact"],
    ] {
        let answers = files.each_ref().map(|file| {
            turboflow(["show", file].iter().chain(question))
                .exits(0)
                .stdout
        });
        assert!(!answers[0].is_empty(), "{question:?}");
        assert_eq!(answers[0], answers[1], "{question:?}");
        assert_eq!(answers[0], answers[2], "{question:?}");
    }
}

#[test]
fn tables_state_their_basis() {
    let folder = Folder::new();
    let [csv, ..] = recorded(&folder);
    let largest = turboflow(["show", &csv, "--top", "1"]).exits(0).stdout;
    assert!(
        largest.contains("2001:db8:2::10") && largest.contains("2.1 MB"),
        "{largest}"
    );
    assert!(
        largest.contains("1 of 742 rows (--top 0 shows all)"),
        "{largest}"
    );
    assert!(
        largest.contains("742 of 742 records matched, with 13,004 packets"),
        "{largest}"
    );
    let twenty = turboflow(["show", &csv]).exits(0).stdout;
    assert_eq!(twenty.lines().count(), 25, "{twenty}");
    assert!(twenty.contains("\nTimes are UTC, of 20"), "{twenty}");
    let exact = turboflow(["show", &csv, "--top", "1", "--exact"])
        .exits(0)
        .stdout;
    assert!(exact.contains("2103102"), "{exact}");
    let biflows = folder.file("biflows.csv");
    turboflow(["record", "-q", "-r", &office(), "--biflow", "-w", &biflows]).exits(0);
    let note = "Sorted by total_bytes.";
    let says = |more: &[&str]| {
        let question = ["show", &biflows].into_iter().chain(more.iter().copied());
        turboflow(question).exits(0).stdout.contains(note)
    };
    assert!(says(&[]) && says(&["--select", "src_addr,bytes"]));
    for more in [["--by", "bytes"], ["--by", "total_bytes"], ["--top", "0"]] {
        assert!(!says(&more), "{more:?}");
    }
    assert!(!twenty.contains(note), "{twenty}");
}

#[test]
fn time_buckets_add_up_to_the_total() {
    let folder = Folder::new();
    let [csv, ..] = recorded(&folder);
    let ask = |group_by: &str| {
        let question = ["show", &csv, "--group-by", group_by, "--format", "csv"];
        rows(&turboflow(question).exits(0).stdout)
    };
    let (spread, began) = (ask("time:5s"), ask("first_ns:5s"));
    let sum = |rows: &[String], column: usize| {
        let number = |row: &String| row.split(',').nth(column).unwrap().parse::<u64>().unwrap();
        rows.iter().map(number).sum::<u64>()
    };
    for column in 1..4 {
        assert_eq!(sum(&spread, column), sum(&began, column));
    }
    assert_eq!(sum(&spread, 1), 742);
    assert_ne!(spread, began, "some records last longer than 5 s");
    for group_by in ["time:200ms", "first_ns:200ms"] {
        let table = turboflow(["show", &csv, "--group-by", group_by])
            .exits(0)
            .stdout;
        assert!(table.lines().count() > 40, "{table}");
    }
    turboflow(["show", &csv, "--group-by", "time:1us"])
        .exits(2)
        .says(&["more than 100000 buckets of 1 us"]);
    turboflow(["show", &csv, "--group-by", "time:5"])
        .exits(2)
        .says(&["--group-by", "write 5s"]);
}

/// Parquet files contain their definition, so their columns may have any name.
#[test]
fn groups_fold_by_the_ops_of_the_definition() {
    let folder = Folder::new();
    let make = |name: &str, op: &str| {
        let feature = |name: &str, op: &str| {
            format!("[[feature]]\nname = \"{name}\"\nop = \"{op}\"\nof = \"ip_length\"\n")
        };
        let features = [
            ("longest", op),
            ("opening", "first"),
            ("bytes", "max"),
            ("packets", "sum"),
        ];
        let text: String = features.map(|(name, op)| feature(name, op)).concat();
        let definition = folder.write("own.toml", &text);
        let file = folder.file(name);
        let office = office();
        let args = [
            "record",
            "-q",
            "-r",
            &office,
            "-w",
            &file,
            "--definition",
            &definition,
        ];
        turboflow(args).exits(0);
        file
    };
    let (largest, added) = (make("max.parquet", "max"), make("sum.parquet", "sum"));
    let group = |file: &str, select: &str| {
        let args = [
            "show",
            file,
            "--group-by",
            "protocol",
            "--where",
            "tcp",
            "--format",
            "csv",
        ];
        turboflow(args.iter().chain(&["--select", select]))
    };
    let answer = |file: &str| group(file, "longest,packets,bytes,share").exits(0).stdout;
    let [of_max, of_sum] = [&largest, &added].map(|file| {
        let text = answer(file);
        let line = text.lines().nth(1).unwrap().to_owned();
        line.split(',').map(str::to_owned).collect::<Vec<_>>()
    });
    // The maximum of a group is the maximum of its flows. The column named `packets` is a sum here.
    assert_eq!(of_max[1], "1500");
    assert_eq!(of_max[3], "1500");
    assert_eq!(of_sum[1], of_sum[2]);
    assert_eq!(of_max[2], of_sum[2]);
    let refused = group(&largest, "opening");
    refused
        .exits(2)
        .says(&["opening is not an amount that groups could add up"]);
    let said = turboflow(["show", &largest, "--where", "tcp"])
        .exits(0)
        .stdout;
    assert!(!said.contains("bytes in all"), "{said}");
    turboflow(["show", &largest, &added]).exits(2).says(&[
        "sum.parquet",
        "column \"longest\" is sum of ip_length, not max of ip_length",
    ]);
}

#[test]
fn records_of_a_custom_definition_can_be_queried() {
    let folder = Folder::new();
    let text = "[[feature]]\nname = \"c\"\nop = \"count\"\n\n\
                [[feature]]\nname = \"s\"\nop = \"sum\"\nof = \"ip_length\"\n";
    let definition = folder.write("own.toml", text);
    let csv = folder.file("own.csv");
    let office = office();
    let args = ["record", "-q", "-r", &office, "-w", &csv];
    turboflow(args.iter().chain(&["--definition", &definition])).exits(0);
    let sorted = turboflow(["show", &csv, "--by", "c", "--top", "1", "--exact"]);
    let sorted = sorted.exits(0).stdout;
    let header: Vec<&str> = sorted.lines().next().unwrap().split_whitespace().collect();
    assert!(header.contains(&"c") && header.contains(&"s"), "{sorted}");
    assert!(sorted.ends_with("742 of 742 records matched\n"), "{sorted}");
    let groups = turboflow([
        "show",
        &csv,
        "--group-by",
        "protocol",
        "--by",
        "sum(s)",
        "--format",
        "csv",
    ]);
    let groups = groups.exits(0).stdout;
    assert!(
        groups.starts_with("protocol,records,sum(s),share_percent\n6,"),
        "{groups}"
    );
    let packets = turboflow([
        "show",
        &csv,
        "--group-by",
        "protocol",
        "--select",
        "sum(c)",
        "--format",
        "csv",
    ]);
    let counts = rows(&packets.exits(0).stdout);
    let count = |row: &String| row.split_once(',').unwrap().1.parse::<u64>().unwrap();
    let counts = counts.iter().map(count);
    assert_eq!(counts.sum::<u64>(), 13_004);
}

#[test]
fn wrong_questions_and_files_are_refused() {
    let folder = Folder::new();
    let [csv, ..] = recorded(&folder);
    let other = folder.write("other.csv", "a,b\n1,2\n");
    turboflow(["show", &csv, "--where", "byts > 3"])
        .exits(2)
        .says(&["byts", "bytes", "^"]);
    turboflow(["show", &csv, "--where", "duration > 2"])
        .exits(2)
        .says(&["the unit of \"2\" is missing", "^"]);
    turboflow(["show", &csv, "--where", "bytes > 1 kB and tcp"])
        .exits(2)
        .says(&["units follow their number without a space: write 1kB", "^"]);
    turboflow(["show", &csv, "--by", "nothing"])
        .exits(2)
        .says(&["nothing"]);
    turboflow(["show", &csv, "--format", "xml"])
        .exits(2)
        .says(&["table", "csv", "json"]);
    let none = turboflow(["show", &folder.file("none.csv")]);
    let none = none
        .exits(2)
        .says(&["none.csv does not exist: check the path"]);
    assert!(!none.stderr.contains("os error"), "{}", none.stderr);
    turboflow(["show", &csv, "--where", "ipv6"])
        .exits(0)
        .says(&["ipv6 is the protocol 41 (IPv6 in IPv4); ip6 is traffic over IPv6"]);
    turboflow(["show", &csv, "--where", "port 80 and 443"])
        .exits(0)
        .says(&["means \"and port 443\"", "write \"or 443\""]);
    turboflow(["show", &csv, "--group-by", "port"])
        .exits(2)
        .says(&["group by dst_port"]);
    turboflow(["show", &csv, "--top-each", "3"])
        .exits(2)
        .says(&["--group-by", "write time:5m,src_addr"]);
    turboflow(["show", &csv, "--clip", "--group-by", "protocol"])
        .exits(2)
        .says(&["--within <FROM..TO>"]);
    turboflow(["show", &csv, &other])
        .exits(2)
        .says(&["other.csv"]);
    turboflow(["show"]).exits(2).says(&["FILE"]);
}

/// A number that may be a maximum must not be summed.
#[test]
fn a_text_file_does_not_say_how_columns_add_up() {
    let folder = Folder::new();
    let text = "src_addr,bytes,tcp_window_max,window\n10.0.0.1,5,100,100\n10.0.0.1,6,300,300\n";
    let csv = folder.write("flows.csv", text);
    let ask = |by: &str| {
        let args = [
            "show",
            &csv,
            "--group-by",
            "src_addr",
            "--format",
            "csv",
            "--by",
            by,
        ];
        turboflow(args)
    };
    let largest = ask("tcp_window_max").exits(0).stdout;
    assert!(largest.contains("\n10.0.0.1,2,11,300,100\n"), "{largest}");
    ask("window")
        .exits(2)
        .says(&["write sum(window), max(window) or min(window)"]);
    let largest = ask("max(window)").exits(0).stdout;
    assert!(largest.contains("\n10.0.0.1,2,11,300,100\n"), "{largest}");
}

/// The table in a terminal; `apps/query` has the golden tests.
#[cfg(target_os = "linux")]
#[test]
fn a_table_fits_the_terminal() {
    let folder = Folder::new();
    let [csv, ..] = recorded(&folder);
    for (columns, has_reason) in [(80, false), (200, true)] {
        let mut screen = Terminal::start(&command(["show", &csv, "--top", "12"]), 40, columns);
        assert_eq!(screen.ends(), 0);
        let text = screen.text();
        assert!(screen.widest() <= columns.into(), "{text}");
        assert!(text.contains("2001:db8:2::10"), "{text}");
        let header = text.lines().next().unwrap_or_default();
        assert_eq!(header.contains("end_reason"), has_reason, "{text}");
        assert_eq!(text.contains("No room for"), !has_reason, "{text}");
    }
}

#[test]
fn now_is_the_clock_unless_it_is_given() {
    let folder = Folder::new();
    let text = "src_addr,bytes,first_ns\n10.0.0.1,5,1700000000000000000\n";
    let csv = folder.write("flows.csv", text);
    let matched = |args: &[&str]| {
        let question = ["show", &csv, "--where", "first_ns >= -1h"];
        turboflow(question.iter().chain(args)).exits(0).stdout
    };
    assert!(matched(&["--now", "2023-11-14T22:50:00Z"]).contains("1 of 1 records matched"));
    assert!(matched(&["--now", "2023-11-15"]).contains("0 of 1 records matched"));
    assert!(matched(&[]).contains("0 of 1 records matched"));
    // An empty answer states the time span of the records, and how to ask for it.
    turboflow(["show", &csv, "--where", "first_ns >= -1h"])
        .exits(0)
        .says(&[
            "counted from the clock",
            "2023-11-14T22:13:20Z",
            "--now last",
        ]);
    turboflow([
        "show",
        &csv,
        "--where",
        "first > -1h",
        "--now",
        "2023-12-01",
    ])
    .exits(0)
    .says(&["counted from --now", "2023-11-14T22:13:20Z", "--now last"]);
    assert!(matched(&["--now", "last"]).contains("1 of 1 records matched"));
    let outside = ["--within", "2024-03-01..2024-03-02"];
    let outside = turboflow(["show", &csv].into_iter().chain(outside)).exits(0);
    outside.says(&["no record is within this time: the records are from 2023-11-14T22:13:20Z to"]);
    let none = turboflow(["show", &csv, "--where", "bytes > 9"]).exits(0);
    assert!(!none.stderr.contains("--now"), "{}", none.stderr);
    let input = Stdio::from(fs::File::open(&csv).unwrap());
    finish(command(["show", "-", "--now", "last"]).stdin(input))
        .exits(2)
        .says(&["standard input can be read once"]);
    let inside = ["--within", "2023-11-14..2023-11-15", "--where", "bytes > 9"];
    let inside = turboflow(["show", &csv].into_iter().chain(inside)).exits(0);
    assert_eq!(inside.stderr, "");
    let timeless = folder.write("timeless.csv", "src_addr,bytes\n10.0.0.1,5\n");
    turboflow(["show", &timeless, "--now", "last"])
        .exits(2)
        .says(&["the records have no times"]);
    turboflow(["show", &csv, "--now", "soon"])
        .exits(2)
        .says(&["2024-03-01T12:30:00Z", "or last"]);
}

#[test]
fn times_and_names_are_for_people_if_asked() {
    let folder = Folder::new();
    let [csv, ..] = recorded(&folder);
    let ask = |args: &[&str]| {
        let question = [
            "show",
            &csv,
            "--top",
            "1",
            "--select",
            "protocol,first_ns,end_reason",
        ];
        turboflow(question.iter().chain(args))
    };
    let iso = ask(&["--format", "csv", "--time", "iso", "--names"])
        .exits(0)
        .stdout;
    assert!(
        iso.starts_with("protocol,first_iso,end_reason\ntcp,20"),
        "{iso}"
    );
    let seconds = ask(&["--format", "json", "--time", "s"]).exits(0).stdout;
    assert!(
        seconds.starts_with("{\"protocol\":6,\"first_s\":1"),
        "{seconds}"
    );
    let plain = ask(&["--format", "csv"]).exits(0).stdout;
    assert_eq!(
        ask(&["--format", "csv", "--time", "ns"]).exits(0).stdout,
        plain
    );
    ask(&["--names"])
        .exits(2)
        .says(&["--names is for --format csv and json"]);
}

/// Files that Arrow has rewritten; `crates/formats` tests every type.
#[test]
fn parquet_of_other_programs_is_read_or_refused_with_what_to_do() {
    let foreign = |name: &str| project(&format!("crates/formats/tests/foreign/{name}.parquet"));
    for name in ["gzip", "microseconds"] {
        let answer = turboflow(["show", &foreign(name)]).exits(0);
        assert!(answer.stdout.contains("records matched"), "{answer:?}");
        assert_eq!(answer.stderr, "");
    }
    turboflow(["show", &foreign("brotli")])
        .exits(2)
        .says(&["compressed with brotli", "duckdb"]);
}

/// Only the times differ, because IPFIX has milliseconds.
#[test]
fn ipfix_files_are_read() {
    let folder = Folder::new();
    let (csv, ipfix) = (folder.file("a.csv"), folder.file("a.ipfix"));
    for args in [&[][..], &["--biflow"]] {
        let meter = ["record", "-q", "-r", &office(), "-w", &csv, "-w", &ipfix];
        turboflow(meter.iter().chain(args)).exits(0);
        for question in [
            &[
                "--group-by",
                "protocol,dst_port",
                "--select",
                "records,packets,bytes",
            ][..],
            &[
                "--where",
                "tcp port https",
                "--group-by",
                "host",
                "--select",
                "records",
            ],
            &[
                "--group-by",
                "end_reason",
                "--select",
                "records,tcp_flags,min_length,max_ttl",
            ],
        ] {
            let answer = |file: &str| {
                let question = question.iter().chain(&["--format", "csv"]);
                turboflow(["show", file].iter().chain(question))
                    .exits(0)
                    .stdout
            };
            assert_eq!(answer(&csv), answer(&ipfix), "{question:?}");
        }
    }
}
