// SPDX-License-Identifier: Apache-2.0
//! `turboflow show`: the files that it reads, and what they reveal about their columns.

use std::fs;
use std::process::Stdio;

use crate::show::recorded;
use crate::support::{Folder, command, finish, office, rows, turboflow};

/// The footer of a Parquet file is at its end.
#[test]
fn a_cut_parquet_file_is_not_complete() {
    let folder = Folder::new();
    let [.., parquet] = recorded(&folder);
    let whole = fs::read(&parquet).unwrap();
    for length in [8, 11, whole.len() / 2, whole.len() - 1] {
        let cut = folder.write("cut.parquet", &whole[..length]);
        let refused = turboflow(["show", &cut]);
        let refused = refused
            .exits(2)
            .says(&["cut.parquet", "is not complete", "copy it again"]);
        assert!(!refused.stderr.contains("footer"), "{}", refused.stderr);
    }
}

/// An IPFIX file holds its definition, as a Parquet file does.
#[test]
fn answers_about_a_definition_do_not_depend_on_the_format() {
    let folder = Folder::new();
    let feature = |name: &str, op: &str, of: &str| {
        let of = if of.is_empty() {
            String::new()
        } else {
            format!("of = \"{of}\"\n")
        };
        format!("[[feature]]\nname = \"{name}\"\nop = \"{op}\"\n{of}\n")
    };
    let text = [
        feature("payload", "sum", "payload_length"),
        feature("max_gap", "gap_max", ""),
        feature("mean_window", "mean", "tcp_window"),
        feature("opened", "first", "timestamp"),
        feature("packets", "count", ""),
    ]
    .concat();
    let definition = folder.write("own.toml", &text);
    for biflow in [&[][..], &["--biflow"]] {
        let [ipfix, parquet] = ["own.ipfix", "own.parquet"].map(|name| folder.file(name));
        let office = office();
        let args = ["record", "-q", "-r", &office, "-w", &ipfix, "-w", &parquet];
        let more = ["--definition", &definition, "--export-time", "ns"];
        turboflow(args.iter().chain(&more).chain(biflow)).exits(0);
        for question in [
            &["--select", "all", "--format", "csv", "--by", "payload"][..],
            &[
                "--where",
                "max_gap > 1s and mean_window > 1000",
                "--top",
                "0",
            ],
            &[
                "--group-by",
                "protocol",
                "--by",
                "max_gap",
                "--select",
                "packets,payload",
            ],
        ] {
            let answers = [&ipfix, &parquet].map(|file| {
                let shown = turboflow(["show", file].iter().chain(question)).exits(0);
                assert_eq!(shown.stderr, "", "{question:?}");
                let mut lines: Vec<String> = shown.stdout.lines().map(str::to_owned).collect();
                lines[1..].sort();
                lines
            });
            assert!(answers[0].len() > 2, "{question:?}");
            assert_eq!(answers[0], answers[1], "{question:?}");
        }
    }
}

/// The definition says which columns are durations; CSV does not.
#[test]
fn durations_of_a_definition_have_units() {
    let folder = Folder::new();
    let text = "[[feature]]\nname = \"max_gap\"\nop = \"gap_max\"\n";
    let definition = folder.write("own.toml", text);
    let file = folder.file("own.parquet");
    let office = office();
    let args = ["record", "-q", "-r", &office, "-w", &file];
    turboflow(args.iter().chain(&["--definition", &definition])).exits(0);
    let ask = |condition: &str| turboflow(["show", &file, "--where", condition, "--top", "1"]);
    let some = ask("max_gap > 1s").exits(0).stdout;
    assert!(!some.contains("\n0 of 742"), "{some}");
    assert!(some.lines().nth(2).unwrap().contains(" s"), "{some}");
    ask("max_gap > 5").exits(2).says(&["write 5s, or 5ns"]);
}

#[test]
fn several_files_and_standard_input_are_read() {
    let folder = Folder::new();
    let [csv, ..] = recorded(&folder);
    let twice = turboflow(["show", &csv, &csv, "--group-by", "protocol"]);
    let twice = twice
        .exits(0)
        .says(&["a.csv is named several times: it is read once"]);
    assert!(
        twice.stdout.contains("742 of 742 records"),
        "{}",
        twice.stdout
    );
    let copies = turboflow(["show", &folder.file("")]);
    let copies = copies
        .exits(0)
        .says(&["a.csv and", "taken for copies of", "a.parquet"]);
    assert!(
        copies.stdout.contains("742 of 742 records"),
        "{}",
        copies.stdout
    );
    fs::copy(&csv, folder.file("b.csv")).unwrap();
    let both = turboflow(["show", &csv, &folder.file("b.csv")]).exits(0);
    let both = both.stdout;
    assert!(both.contains("1,484 of 1,484 records"), "{both}");
    let input = Stdio::from(fs::File::open(&csv).unwrap());
    let piped = finish(command(["show", "-", "--format", "csv"]).stdin(input))
        .exits(0)
        .stdout;
    assert_eq!(rows(&piped).len(), 742);
}

#[test]
fn folders_patterns_and_compressed_texts_are_read() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path().join("2024/03/01")).unwrap();
    let names = [
        "2024/03/01/a.csv.zst",
        "2024/03/01/b.csv.gz",
        "2024/03/c.csv",
    ];
    for name in names {
        let file = folder.file(name);
        turboflow(["record", "-q", "-r", &office(), "-w", &file]).exits(0);
    }
    let plain = fs::read(folder.file(names[2])).unwrap();
    for name in &names[..2] {
        let packed = fs::read(folder.file(name)).unwrap();
        assert!(packed.len() * 2 < plain.len(), "{name}");
    }
    for (given, records) in [
        ("2024/03/01", "1,484 of 1,484"),
        ("2024", "2,226 of 2,226"),
        ("2024/*/*.csv", "742 of 742"),
        ("2024/**/*.csv.*", "1,484 of 1,484"),
    ] {
        let answer = turboflow(["show", &folder.file(given)]).exits(0).stdout;
        assert!(
            answer.contains(&format!("{records} records matched")),
            "{answer}"
        );
    }
    turboflow(["show", &folder.file("*.parquet")])
        .exits(2)
        .says(&["*.parquet", "no file of flow records found"]);
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
    let input = Stdio::from(fs::File::open(&ipfix).unwrap());
    finish(command(["show", "-"]).stdin(input)).exits(2).says(&[
        "IPFIX, which is read only from a plain file",
        "name the file",
    ]);
    let notes = folder.write("notes.txt", "hello\n");
    says(&notes, &["not a header of flow records"]);
    let letter = folder.write("letter.txt", "hello\nworld, and all\n");
    says(&letter, &["not a header of flow records"]);
    says(&folder.write("flows.csv", ""), &["empty"]);
    says(&folder.write("random", b"packets\0\x01"), &["binary data"]);
    // The output for captures without flows.
    for (name, text) in [
        ("none.jsonl", ""),
        ("none", ""),
        ("none.csv", "c,end_reason\n"),
    ] {
        turboflow(["show", &folder.write(name, text)]).exits(0);
    }
}

#[test]
fn a_pipe_whose_writer_failed_is_an_error() {
    let folder = Folder::new();
    let piped = |text: &str| {
        let path = folder.write("input", text);
        let input = Stdio::from(fs::File::open(path).unwrap());
        finish(command(["show", "-"]).stdin(input))
    };
    piped("")
        .exits(2)
        .says(&["standard input is empty", "failed"]);
    piped("\n").exits(2).says(&["standard input is empty"]);
    piped("src_addr,bytes\n10.0.0.1,500\n10.0.0.2,12")
        .exits(2)
        .says(&["standard input, line 3", "stopped within this line"]);
    piped("{\"bytes\":5}\n{\"bytes\":6")
        .exits(2)
        .says(&["line 2", "stopped within this line"]);
    piped("src_addr,bytes\n10.0.0.1,500\n").exits(0);
    // A file written by hand may lack its last newline.
    turboflow([
        "show",
        &folder.write("a.csv", "src_addr,bytes\n10.0.0.1,12"),
    ])
    .exits(0);
}
