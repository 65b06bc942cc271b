// SPDX-License-Identifier: Apache-2.0
//! `turboflow show`: wired to `crates/query`, which has its own tests.

use std::fs;
use std::process::Stdio;

use crate::support::{Folder, command, finish, office, rows, turboflow};

/// The sample's records in every format.
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
fn answers_the_same_from_every_format() {
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
fn tables_say_what_they_stand_on() {
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
fn reads_several_files_and_standard_input() {
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
fn questions_and_files_that_are_wrong() {
    let folder = Folder::new();
    let [csv, ..] = recorded(&folder);
    let other = folder.write("other.csv", "a,b\n1,2\n");
    turboflow(["show", &csv, "--where", "byts > 3"])
        .exits(2)
        .says(&["byts", "bytes", "^"]);
    turboflow(["show", &csv, "--by", "nothing"])
        .exits(2)
        .says(&["nothing"]);
    turboflow(["show", &csv, "--format", "xml"])
        .exits(2)
        .says(&["table", "csv", "json"]);
    turboflow(["show", &folder.file("none.csv")])
        .exits(2)
        .says(&["none.csv"]);
    turboflow(["show", &csv, &other])
        .exits(2)
        .says(&["other.csv"]);
    turboflow(["show"]).exits(2).says(&["FILE"]);
}
