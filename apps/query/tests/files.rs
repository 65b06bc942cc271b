// SPDX-License-Identifier: Apache-2.0
//! The files that arguments stand for.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use turboflow_query::{Input, flow_files, flow_files_so_far};
use turboflow_record::Value;

#[test]
fn folders_and_patterns_stand_for_their_files() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for name in [
        "2024/03/01/b.csv",
        "2024/03/01/a.csv.zst",
        "2024/03/02/c.jsonl",
        "2024/03/02/.d.csv.77-0.tmp",
        "2024/03/02/notes.txt",
        "2024/03/02/ledger.json",
        "2024/[x].csv",
    ] {
        std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        std::fs::write(at(name), "bytes\n1\n").unwrap();
    }
    let found = |given: &[&str]| {
        let given: Vec<_> = given.iter().map(|name| at(name)).collect();
        let files = flow_files(&given).map_err(|error| error.to_string())?.files;
        let relative = |path: &std::path::PathBuf| {
            let path = path.strip_prefix(directory.path()).unwrap();
            path.display().to_string()
        };
        Ok::<_, String>(files.iter().map(relative).collect::<Vec<_>>())
    };
    let first = ["2024/03/01/a.csv.zst", "2024/03/01/b.csv"].map(str::to_owned);
    assert_eq!(found(&["2024/03/01"]).unwrap(), first);
    assert_eq!(found(&["2024/*/01/*"]).unwrap(), first);
    assert_eq!(found(&["2024/**/*.csv*"]).unwrap()[..2], first);
    assert_eq!(
        found(&["2024"]).unwrap().join(" "),
        "2024/03/01/a.csv.zst 2024/03/01/b.csv 2024/03/02/c.jsonl 2024/[x].csv"
    );
    // A file is read once, however often a pattern matches it or its folders.
    let all = found(&["2024"]).unwrap();
    for given in [
        &["2024/**/*"][..],
        &["2024/**"],
        &["2024", "2024/03/01/../01/b.csv"],
        &["2024", "2024"],
    ] {
        let mut again = found(given).unwrap();
        again.sort();
        assert_eq!(again, all, "{given:?}");
    }
    assert_eq!(
        found(&["2024/03/02/*.json"]).unwrap(),
        ["2024/03/02/ledger.json"]
    );
    std::fs::create_dir(at("linked")).unwrap();
    std::os::unix::fs::symlink(at("2024"), at("linked/year")).unwrap();
    std::os::unix::fs::symlink(at("2024/03/01/b.csv"), at("linked/b.csv")).unwrap();
    let told = flow_files(&[at("linked")]).unwrap();
    assert_eq!(told.files, [at("linked/b.csv")]);
    assert!(
        told.passed_over[0].ends_with("year is a link to a folder"),
        "{told:?}"
    );
    // An existing file with that name takes precedence over the pattern. A missing file is an error
    // only when it is opened.
    assert_eq!(
        found(&["2024/[x].csv", "none.csv"]).unwrap(),
        ["2024/[x].csv", "none.csv"]
    );
    std::fs::create_dir(at("empty")).unwrap();
    for nothing in ["empty", "*.parquet"] {
        let message = found(&[nothing]).unwrap_err();
        assert!(
            message.contains("no file of flow records found"),
            "{message}"
        );
    }
    assert!(found(&["a[.csv"]).unwrap_err().contains("not a pattern"));
}

/// A run with several outputs writes the same records into each of them.
#[test]
fn of_one_stem_in_several_formats_one_file_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for name in [
        "a.csv",
        "a.jsonl.zst",
        "a.parquet",
        "b.csv.gz",
        "b.jsonl",
        "c.ipfix",
        "c.csv.part",
        "d.csv",
        "d.csv.part",
        "e.csv",
        "e.csv.gz",
        "f.parquet.part",
        "f.ipfix",
        "g.1.csv",
        "g.2.parquet",
        "h/a.csv",
    ] {
        std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
        std::fs::write(at(name), "bytes\n1\n").unwrap();
    }
    let found = |given: &[&str]| {
        let given: Vec<_> = given.iter().map(|name| at(name)).collect();
        let found = flow_files(&given).unwrap();
        let relative = |path: &std::path::PathBuf| {
            let path = path.strip_prefix(directory.path()).unwrap();
            path.display().to_string()
        };
        let files: Vec<String> = found.files.iter().map(relative).collect();
        (files.join(" "), found.read_once)
    };
    for given in [&["."][..], &["*"], &["**/*"]] {
        let given: Vec<_> = given.iter().map(|name| at(name)).collect();
        let files = flow_files(&given).unwrap();
        let name = |path: &std::path::PathBuf| {
            path.display()
                .to_string()
                .rsplit("/")
                .next()
                .unwrap()
                .to_owned()
        };
        let names: Vec<String> = files.files.iter().map(name).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names.join(" "),
            "a.csv a.parquet b.csv.gz c.ipfix d.csv d.csv.part e.csv f.ipfix g.1.csv g.2.parquet",
            "{given:?}"
        );
        let [told] = files.read_once.as_slice() else {
            panic!("{files:?}");
        };
        assert!(told.starts_with("6 files are not read"), "{told}");
    }
    // What is reported about a few copies.
    let (files, told) = found(&["a.*"]);
    assert_eq!(files, "a.parquet");
    assert_eq!(told.len(), 1);
    for words in [
        "a.csv and ",
        "a.jsonl.zst are not read",
        "a.parquet",
        "name every file",
    ] {
        assert!(told[0].contains(words), "{told:?}");
    }
    // Files that are named are read, and replace their copies in folders.
    let named = ["a.csv", "a.parquet"];
    assert_eq!(found(&named), ("a.csv a.parquet".to_owned(), Vec::new()));
    assert_eq!(found(&["a.csv", "a.*"]).0, "a.csv");
    assert_eq!(
        found(&["a.*", "a.csv", "a.jsonl.zst"]).0,
        "a.csv a.jsonl.zst"
    );
    // A file that is named twice is read once.
    std::os::unix::fs::symlink(at("a.csv"), at("link.csv")).unwrap();
    let (files, told) = found(&["a.csv", "a.csv", "link.csv"]);
    assert_eq!(files, "a.csv");
    assert!(
        told[0].ends_with("a.csv is named several times: it is read once"),
        "{told:?}"
    );
    assert!(told[1].contains("link.csv is the same file as"), "{told:?}");
}

/// An IPFIX message with a template of one-octet fields, and one record with these values.
fn message(fields: &[(u16, u8)]) -> Vec<u8> {
    let be = |numbers: &[u16]| {
        numbers
            .iter()
            .flat_map(|n| n.to_be_bytes())
            .collect::<Vec<_>>()
    };
    let count = fields.len() as u16;
    let mut sets = be(&[2, 8 + 4 * count, 256, count]);
    sets.extend(fields.iter().flat_map(|(id, _)| be(&[*id, 1])));
    sets.extend(be(&[256, 4 + count]));
    sets.extend(fields.iter().map(|(_, value)| *value));
    let length = 16 + sets.len() as u16;
    [be(&[10, length, 0, 0, 0, 0, 0, 1]), sets].concat()
}

/// Templates omit absent fields, so files of one run may have different columns.
#[test]
fn ipfix_files_are_joined_by_the_names_of_their_columns() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, fields: &[(u16, u8)]| {
        let path = directory.path().join(name);
        std::fs::write(&path, message(fields)).unwrap();
        path
    };
    // octetDeltaCount, protocolIdentifier, packetDeltaCount.
    let files = [
        write("a.ipfix", &[(1, 7)]),
        write("b.ipfix", &[(4, 17), (1, 8)]),
        write("c.ipfix", &[(2, 3), (4, 6)]),
    ];
    let input = Input::open(&files).unwrap();
    let names: Vec<String> = input.schema().iter().map(|c| c.name.clone()).collect();
    assert_eq!(names.len(), 3);
    let at = |name: &str| names.iter().position(|its| its == name).unwrap();
    let columns = ["bytes", "protocol", "packets"].map(at);
    let mut rows = Vec::new();
    for batch in input {
        let batch = batch.unwrap();
        for row in 0..batch.rows() {
            rows.push(columns.map(|column| match batch.value(row, column) {
                Value::Unsigned(number) => Some(number),
                _ => None,
            }));
        }
    }
    assert_eq!(
        rows,
        [
            [Some(7), None, None],
            [Some(8), Some(17), None],
            [None, Some(6), Some(3)],
        ]
    );
    let csv = directory.path().join("d.csv");
    std::fs::write(&csv, "bytes,protocol\n1,6\n").unwrap();
    let other = [files[0].clone(), csv];
    assert!(Input::open(&other).is_err(), "texts have their own columns");
}

#[test]
fn what_is_found_and_is_no_file_is_passed_over_by_those_who_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("a.csv"), "bytes\n1\n").unwrap();
    // If it were taken for a pipe, reading it would block.
    let _socket = std::os::unix::net::UnixListener::bind(at("b.csv")).unwrap();
    std::os::unix::fs::symlink(at("gone"), at("c.csv")).unwrap();
    for given in [at(""), at("*.csv")] {
        let found = flow_files_so_far(&[given]).unwrap();
        assert_eq!(found.files, [at("a.csv")]);
        let told = found.passed_over.join("\n");
        assert!(told.contains("b.csv is a pipe or a device"), "{told}");
        assert!(told.contains("c.csv cannot be reached"), "{told}");
    }
    // A pipe that a pattern finds is read once.
    assert_eq!(flow_files(&[at("b*.csv")]).unwrap().files, [at("b.csv")]);
    let named = flow_files(&[at("b.csv")]).unwrap();
    assert_eq!(named.files, [at("b.csv")]);
}

#[test]
fn a_folder_may_have_no_file_yet() {
    let directory = tempfile::tempdir().unwrap();
    let [full, empty] = ["full", "empty"].map(|name| directory.path().join(name));
    for folder in [&full, &empty] {
        std::fs::create_dir(folder).unwrap();
    }
    std::fs::write(full.join("a.csv"), "bytes\n1\n").unwrap();
    let given = [empty.clone(), full.clone()];
    let found = flow_files_so_far(&given).unwrap();
    assert_eq!(found.files, [full.join("a.csv")]);
    assert_eq!(found.empty, std::slice::from_ref(&empty));
    let refused = flow_files(&given).unwrap_err().to_string();
    assert!(
        refused.starts_with(&empty.display().to_string()),
        "{refused}"
    );
}
