// SPDX-License-Identifier: Apache-2.0
//! `--dpi`: records with applications.

use std::collections::BTreeMap;

use turboflow_testing::{Need, is_missing};

use crate::support::{Folder, office, turboflow};

const LIBRARY: Need<'static> = Need::Engine("libndpi", cfg!(feature = "dpi"));
/// Columns after those of the default definition and before the end reason.
const COLUMNS: [&str; 4] = [
    "application",
    "application_category",
    "application_confidence",
    "server_name",
];

/// The records of the sample, one per line.
fn recorded(more: &[&str]) -> Vec<String> {
    let office = office();
    let args = ["record", "-q", "-r", &office, "-w", "-", "--format", "csv"];
    let text = turboflow(args.iter().chain(more)).exits(0).stdout;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[1..].sort();
    lines
}

/// The lines without the columns of applications, and the number of records per application.
fn split(lines: &[String]) -> (Vec<String>, BTreeMap<String, usize>) {
    let first = lines[0].split(',').position(|name| name == COLUMNS[0]);
    let first = first.unwrap();
    let mut named = BTreeMap::new();
    let rest = lines.iter().map(|line| {
        let mut fields: Vec<&str> = line.split(',').collect();
        let application = fields.drain(first..first + COLUMNS.len()).next();
        *named.entry(application.unwrap().to_owned()).or_default() += 1;
        fields.join(",")
    });
    (rest.collect(), named)
}

#[test]
fn records_get_columns_of_applications_and_nothing_else_changes() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let with = recorded(&["--dpi"]);
    let header: Vec<&str> = with[0].split(',').collect();
    assert_eq!(header[15..19], COLUMNS);
    let (mut rest, named) = split(&with);
    rest[1..].sort();
    assert_eq!(rest, recorded(&[]));
    for (application, records) in [("HTTP", 398), ("SSH", 18), ("DNS", 52), ("TLS", 156)] {
        assert_eq!(named.get(application), Some(&records), "{named:?}");
    }
    // Every flow was inspected.
    assert_eq!(named.get(""), None, "{named:?}");
}

#[test]
fn applications_do_not_depend_on_threads_tables_or_the_run() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let expected = recorded(&["--dpi"]);
    for more in [
        &["--dpi"][..],
        &["--dpi", "--threads", "2"],
        &["--dpi", "--microflow-slots", "1"],
        &["--dpi", "--seed", "7"],
    ] {
        assert_eq!(recorded(more), expected, "{more:?}");
    }
}

#[test]
fn both_directions_of_a_biflow_have_one_application() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let lines = recorded(&["--dpi", "--biflow"]);
    let header: Vec<&str> = lines[0].split(',').collect();
    let columns = header.iter().filter(|name| name.contains("application"));
    assert_eq!(columns.count(), 3, "{header:?}");
    assert!(lines.iter().any(|line| line.contains(",SSH,")));
}

#[test]
fn every_format_holds_applications_and_reads_them_back() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let folder = Folder::new();
    let mut answers = Vec::new();
    for name in ["flows.csv", "flows.jsonl", "flows.parquet", "flows.ipfix"] {
        let path = folder.file(name);
        let office = office();
        turboflow(["record", "-q", "--dpi", "-r", &office, "-w", &path]).exits(0);
        let show = [
            "show",
            &path,
            "--group-by",
            "application",
            "--format",
            "csv",
        ];
        let answer = turboflow(show).exits(0).stdout;
        assert!(answer.contains("SSH,18,"), "{name}: {answer}");
        // IPFIX has times in milliseconds by default.
        let sums = answer.lines().map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            fields[..4].join(",")
        });
        answers.push(sums.collect::<Vec<_>>());
    }
    assert!(
        answers.iter().all(|answer| *answer == answers[0]),
        "{answers:#?}"
    );
}

#[test]
fn the_summary_and_the_ledger_say_what_was_inspected() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let folder = Folder::new();
    let ledger = folder.file("ledger.json");
    let office = office();
    let summary = turboflow(["record", "--dpi", "-r", &office, "--ledger", &ledger]).exits(0);
    let summary = summary.stdout;
    for words in ["Applications:", "HTTP ", "packets inspected", "SSH "] {
        assert!(summary.contains(words), "{words}: {summary}");
    }
    let ledger: serde_json::Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    let inspection = &ledger["inspection"];
    let count = |name: &str| inspection[name].as_u64().unwrap();
    assert_eq!(ledger["balanced"], true);
    assert_eq!(count("records_named"), 742);
    assert_eq!(
        count("packets_tapped"),
        count("packets_inspected") + count("packets_late")
    );
    assert!(count("packets_inspected") < 13_004);
    assert_eq!(count("packets_lost") + count("inspector_restarts"), 0);
}

/// The screen shows applications with their flows and bytes.
#[test]
fn the_screen_has_the_applications_of_the_records() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let office = office();
    let rows = |more: &[&str]| -> BTreeMap<String, String> {
        let top = [
            "top",
            "-r",
            &office,
            "--batch",
            "1",
            "--dpi",
            "--view",
            "applications",
        ];
        let screen = turboflow(top.iter().chain(more)).exits(0).stdout;
        let rows = screen.lines().skip(5).filter(|line| !line.is_empty());
        let row = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            (fields[0].to_owned(), fields[4].to_owned())
        };
        rows.map(row).collect()
    };
    let all = rows(&[]);
    for (application, flows) in [
        ("HTTP", "398"),
        ("SSH", "18"),
        ("DNS", "52"),
        ("TLS", "156"),
    ] {
        assert_eq!(
            all.get(application).map(String::as_str),
            Some(flows),
            "{all:?}"
        );
    }
    assert_eq!(rows(&["--threads", "3"]), all);
    let only = rows(&["--where", "application = DNS"]);
    assert_eq!(only, BTreeMap::from([("DNS".to_owned(), "52".to_owned())]));
}

#[test]
fn what_cannot_be_inspected_is_refused() {
    let folder = Folder::new();
    let text = "[[feature]]\nname = \"site\"\nop = \"last\"\nof = \"server_name\"\n";
    let path = folder.write("d.toml", text);
    let office = office();
    turboflow(["record", "-r", &office, "--definition", &path])
        .exits(2)
        .says(&["d.toml, line 4", "`server_name`", "--dpi"]);
    let pairs = "[key]\nfields = [\"source_address\", \"destination_address\"]\n\
                 [[feature]]\nname = \"packets\"\nop = \"count\"\n";
    let pairs = folder.write("pairs.toml", pairs);
    turboflow(["record", "-r", &office, "--definition", &pairs, "--dpi"])
        .exits(2)
        .says(&["5-tuple", "`source_port` is not in the key", "--dpi"]);
    let view = [
        "top",
        "-r",
        &office,
        "--batch",
        "1",
        "--view",
        "applications",
    ];
    turboflow(view).exits(2).says(&["--dpi"]);
    turboflow(["record", "-i", "lo", "--dpi", "--engine", "xdp"])
        .exits(2)
        .says(&[
            "engine `xdp` does not see payload",
            "--dpi",
            "--engine software",
        ]);
    turboflow(["record", "-r", &office, "--dpi-flows", "9"])
        .exits(2)
        .says(&["--dpi"]);
    if !cfg!(feature = "dpi") {
        turboflow(["record", "-r", &office, "--dpi"])
            .exits(2)
            .says(&["built without", "libndpi-dev"]);
    }
}
