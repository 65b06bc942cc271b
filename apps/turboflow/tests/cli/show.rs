// SPDX-License-Identifier: Apache-2.0
//! `turboflow show`: its use of `apps/query`, which has its own tests.

use std::fs;
use std::process::Stdio;

use crate::support::{Folder, command, finish, office, rows, turboflow};

/// The records of the sample in every format.
fn recorded(folder: &Folder) -> [String; 3] {
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
            "tcp and port 443 or udp and bytes > 10k",
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
    assert_eq!(twenty.lines().count(), 24, "{twenty}");
    let exact = turboflow(["show", &csv, "--top", "1", "--exact"])
        .exits(0)
        .stdout;
    assert!(exact.contains("2103102"), "{exact}");
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

/// Parquet files contain their definition, so columns may have any name.
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
        .says(&["opening is no amount that groups could add up"]);
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
        "s",
        "--format",
        "csv",
    ]);
    let groups = groups.exits(0).stdout;
    assert!(
        groups.starts_with("protocol,records,s,share\n6,"),
        "{groups}"
    );
    let packets = turboflow([
        "show",
        &csv,
        "--group-by",
        "protocol",
        "--select",
        "c",
        "--format",
        "csv",
    ]);
    let counts = rows(&packets.exits(0).stdout);
    let count = |row: &String| row.split_once(',').unwrap().1.parse::<u64>().unwrap();
    let counts = counts.iter().map(count);
    assert_eq!(counts.sum::<u64>(), 13_004);
}

#[test]
fn several_files_and_standard_input_are_read() {
    let folder = Folder::new();
    let [csv, ..] = recorded(&folder);
    let twice = turboflow(["show", &csv, &csv, "--group-by", "protocol"])
        .exits(0)
        .stdout;
    assert!(twice.contains("1,484 of 1,484 records"), "{twice}");
    let input = Stdio::from(fs::File::open(&csv).unwrap());
    let piped = finish(command(["show", "-", "--format", "csv"]).stdin(input))
        .exits(0)
        .stdout;
    assert_eq!(rows(&piped).len(), 742);
}

#[test]
fn files_without_flow_records_are_refused_with_their_kind() {
    let folder = Folder::new();
    let says = |file: &str, words: &[&str]| {
        turboflow(["show", file]).exits(2).says(words).says(&[file]);
    };
    says(&office(), &["a capture of packets", "turboflow record -r"]);
    let ipfix = folder.file("flows.ipfix");
    turboflow(["record", "-q", "-r", &office(), "-w", &ipfix]).exits(0);
    says(&ipfix, &["IPFIX"]);
    let notes = folder.write("notes.txt", "hello\n");
    says(&notes, &["no header of flow records"]);
    let letter = folder.write("letter.txt", "hello\nworld, and all\n");
    says(&letter, &["no header of flow records"]);
    says(&folder.write("flows.csv", ""), &["empty"]);
    says(&folder.write("random", b"packets\0\x01"), &["binary data"]);
    // The output for a capture without flows.
    for (name, text) in [
        ("none.jsonl", ""),
        ("none", ""),
        ("none.csv", "c,end_reason\n"),
    ] {
        turboflow(["show", &folder.write(name, text)]).exits(0);
    }
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
    turboflow(["show", &csv, "--by", "nothing"])
        .exits(2)
        .says(&["nothing"]);
    turboflow(["show", &csv, "--format", "xml"])
        .exits(2)
        .says(&["table", "csv", "json"]);
    turboflow(["show", &folder.file("none.csv")])
        .exits(2)
        .says(&["none.csv"]);
    turboflow(["show", &csv, "--group-by", "host"])
        .exits(2)
        .says(&["group by src_addr, by dst_addr"]);
    turboflow(["show", &csv, &other])
        .exits(2)
        .says(&["other.csv"]);
    turboflow(["show"]).exits(2).says(&["FILE"]);
}
