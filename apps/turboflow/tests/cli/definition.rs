// SPDX-License-Identifier: Apache-2.0
//! `turboflow definition`.

use std::collections::BTreeSet;

use crate::support::{Folder, office, turboflow};

#[test]
fn the_printed_definition_is_valid_and_is_the_default() {
    let folder = Folder::new();
    let text = turboflow(["definition"]).exits(0).stdout;
    let path = folder.write("default.toml", text);
    let checked = turboflow(["definition", "--check", &path]).exits(0).stdout;
    assert!(
        checked.contains("is valid: 5 key fields, 10 features, 16 columns"),
        "{checked}"
    );
    let record = |args: &[&str]| {
        let office = office();
        let all = [
            "record", "-q", "-r", &office, "--seed", "3", "-w", "-", "--format", "csv",
        ];
        turboflow(all.iter().chain(args)).exits(0).stdout
    };
    assert_eq!(record(&["--definition", &path]), record(&[]));
}

#[test]
fn a_wrong_definition_is_refused_with_its_line_and_a_fix() {
    let folder = Folder::new();
    let path = folder.write("d.toml", "[[feature]]\nname = \"x\"\nop = \"summ\"\n");
    turboflow(["definition", "--check", &path])
        .exits(2)
        .says(&["line 3", "did you mean `sum`"]);
    turboflow(["definition", "--check", "/nonexistent"])
        .exits(2)
        .says(&["/nonexistent"]);
}

/// An input that capture files lack: the definition is valid with a note, but refused for files.
#[test]
fn inputs_of_the_kernel_alone_are_noted() {
    let folder = Folder::new();
    let text = "[[feature]]\nname = \"queue\"\nop = \"last\"\nof = \"receive_queue\"\n";
    let path = folder.write("d.toml", text);
    let checked = turboflow(["definition", "--check", &path]).exits(0).stdout;
    assert!(
        checked.contains("7 columns; receive_queue with --engine xdp"),
        "{checked}"
    );
    turboflow([
        "record",
        "-r",
        &office(),
        "-w",
        "x.csv",
        "--definition",
        &path,
    ])
    .exits(2)
    .says(&["d.toml, line 4", "`software` cannot see `receive_queue`"]);
}

/// A definition may be valid, but not for this use.
#[test]
fn a_use_that_the_definition_does_not_fit_is_refused_with_its_line() {
    let folder = Folder::new();
    let refused = |text: &str, biflow: bool, words: &[&str]| {
        let path = folder.write("d.toml", text);
        let options = if biflow { &["--biflow"][..] } else { &[] };
        for question in [
            &["definition", "--check", &path][..],
            &["record", "-r", &office(), "--definition", &path],
        ] {
            turboflow(question.iter().chain(options))
                .exits(2)
                .says(words);
        }
    };
    let feature = |name: &str, rest: &str| format!("[[feature]]\nname = \"{name}\"\n{rest}\n");
    let directions = feature("d", "op = \"list\"\nk = 4\nof = \"direction\"");
    refused(
        &directions,
        false,
        &["d.toml, line 5: feature `d`", "--biflow"],
    );
    let count = feature("packets", "op = \"count\"");
    let half = format!("[key]\nfields = [\"protocol\",\n  \"source_address\"]\n{count}");
    refused(
        &half,
        true,
        &["d.toml, line 3: key", "`destination_address`"],
    );
    let lists = ["ip_length", "timestamp"]
        .map(|input| feature(input, &format!("op = \"list\"\nk = 256\nof = \"{input}\"")));
    refused(
        &lists.concat(),
        false,
        &[
            "d.toml, line 8: feature `timestamp`",
            "10 more than a record",
        ],
    );
}

#[test]
fn lists_everything_with_one_line_each() {
    let list = turboflow(["definition", "--list"]).exits(0).stdout;
    for words in [
        "source_address ",
        "gap_variance ",
        "histogram ",
        "tcp_options ",
        "Inputs",
    ] {
        assert!(list.contains(words), "{words}");
    }
    assert!(
        list.lines()
            .any(|line| line.contains("hardware_timestamp") && line.contains("only with engine "))
    );
    assert!(list.lines().all(|line| line.len() <= 120), "{list}");
}

#[test]
fn prints_columns_and_types() {
    let folder = Folder::new();
    let schema = turboflow(["definition", "--schema"]).exits(0).stdout;
    let first_ns = schema
        .lines()
        .find(|line| line.starts_with("first_ns"))
        .unwrap();
    assert!(first_ns.contains("timestamp(ns"));
    assert_eq!(schema.lines().count(), 18);
    let text = "[[feature]]\nname = \"sizes\"\nop = \"list\"\nof = \"ip_length\"\nk = 4\n";
    let path = folder.write("d.toml", text);
    let schema = turboflow(["definition", "--schema", &path, "--biflow"])
        .exits(0)
        .stdout;
    assert!(
        schema.contains("reverse_sizes") && schema.contains("list"),
        "{schema}"
    );
    turboflow(["definition", "--list", "--schema"])
        .exits(2)
        .says(&["cannot be used with"]);
}

#[test]
fn biflow_needs_a_definition() {
    for words in [
        &["definition", "--biflow"][..],
        &["definition", "--list", "--biflow"],
    ] {
        let ran = turboflow(words).exits(2);
        assert_eq!(ran.stdout, "");
        ran.says(&["--biflow is of no use without --check or --schema"]);
    }
    turboflow(["definition", "--schema", "--biflow"]).exits(0);
}

/// The inputs of inspection have a definition of their own, which is refused where nothing is
/// inspected.
#[test]
fn applications_need_inspection() {
    let folder = Folder::new();
    let text = turboflow(["definition", "--with-applications"])
        .exits(0)
        .stdout;
    let path = folder.write("apps.toml", &text);
    let checked = turboflow(["definition", "--check", &path]).exits(0).stdout;
    assert!(
        checked.contains("26 columns; application, application_category"),
        "{checked}"
    );
    assert!(
        checked.contains("http_host with application inspection only"),
        "{checked}"
    );
    let columns = turboflow(["definition", "--schema", &path]).exits(0).stdout;
    assert!(columns.contains("server_name"), "{columns}");
    turboflow([
        "record",
        "-r",
        &office(),
        "-w",
        "x.csv",
        "--definition",
        &path,
    ])
    .exits(2)
    .says(&["apps.toml, line", "is found by application inspection"]);
}

/// A flow has the same ID in all formats.
#[test]
fn community_ids_are_in_every_output() {
    let folder = Folder::new();
    let text = "[[feature]]\nname = \"packets\"\nop = \"count\"\n\n\
                [[feature]]\nname = \"community_id\"\nop = \"community_id\"\n";
    let path = folder.write("id.toml", text);
    let ids = |flags: &[&str], name: &str| {
        let office = office();
        let file = folder.file(name);
        let mut arguments = vec!["record", "-r", &office, "-w", &file, "--definition", &path];
        arguments.extend(flags);
        turboflow(arguments).exits(0);
        let shown = ["show", &file, "--select", "community_id", "--format", "csv"];
        let shown = turboflow(shown).exits(0).stdout;
        let ids: BTreeSet<String> = shown.lines().skip(1).map(str::to_owned).collect();
        assert!(
            ids.len() > 1 && ids.iter().all(|id| id.starts_with("1:")),
            "{shown}"
        );
        ids
    };
    let csv = ids(&[], "a.csv");
    for name in ["a.jsonl", "a.parquet", "a.ipfix"] {
        assert_eq!(ids(&[], name), csv, "{name}");
    }
    // If an ICMP flow has several types, that of its first message counts, and a biflow has one ID.
    assert!(ids(&["--biflow"], "b.csv").is_subset(&csv));
}
