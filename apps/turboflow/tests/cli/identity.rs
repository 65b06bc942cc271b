// SPDX-License-Identifier: Apache-2.0
//! `--identity`: the exporter, the run, and the sequence number of each record.

use crate::support::{Folder, office, turboflow};

/// The values of a column of a CSV text.
fn column<'a>(csv: &'a str, name: &str) -> Vec<&'a str> {
    let mut lines = csv.lines();
    let mut names = lines.next().unwrap().split(',');
    let index = names.position(|its| its == name).unwrap();
    lines
        .map(|line| line.split(',').nth(index).unwrap())
        .collect()
}

#[test]
fn identities_are_one_for_each_record_and_the_same_in_every_output() {
    let folder = Folder::new();
    let office = office();
    let [csv, jsonl, parquet, plain] =
        ["a.csv", "a.jsonl", "a.parquet", "plain.csv"].map(|name| folder.file(name));
    let meter = ["record", "-q", "-r", &office, "--seed", "1"];
    let named = ["--identity", "--exporter", "tap-7", "--threads", "3"];
    let outputs = ["-w", &csv, "-w", &jsonl, "-w", &parquet];
    turboflow(meter.iter().chain(&named).chain(&outputs)).exits(0);
    let text = folder.read("a.csv");
    let mut numbers: Vec<u64> = column(&text, "sequence")
        .iter()
        .map(|number| number.parse().unwrap())
        .collect();
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(1..=742), "{numbers:?}");
    let runs = column(&text, "run");
    assert!(runs.iter().all(|run| *run == runs[0]));
    assert!(
        column(&text, "exporter")
            .iter()
            .all(|name| *name == "tap-7")
    );
    // The other formats have the same records with the same numbers.
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    for other in [&jsonl, &parquet] {
        let shown = turboflow(["show", other, "--format", "csv"]).exits(0);
        assert_eq!(sorted(&shown.stdout), sorted(&text));
    }
    // Another run has another number. Without a given name, the exporter is the host.
    turboflow(meter.iter().chain(&["--identity", "-w", &plain])).exits(0);
    let again = folder.read("plain.csv");
    assert_ne!(column(&again, "run")[0], runs[0]);
    let host = rustix::system::uname();
    assert_eq!(
        column(&again, "exporter")[0],
        host.nodename().to_str().unwrap()
    );
}

#[test]
fn identities_are_refused_where_they_have_no_place() {
    let folder = Folder::new();
    let office = office();
    let taken = folder.write(
        "taken.toml",
        "[[feature]]\nname = \"run\"\nop = \"count\"\n",
    );
    let [csv, ipfix] = ["a.csv", "a.ipfix"].map(|name| folder.file(name));
    for (further, words) in [
        (
            ["-w", &ipfix, "--exporter", "a"],
            "for CSV, JSON lines, Parquet and Arrow",
        ),
        (
            ["-w", &csv, "--exporter", ""],
            "--exporter: \"\" is not a name",
        ),
        (["-w", &csv, "--definition", &taken], "a column `run`"),
    ] {
        let args = ["record", "-r", &office, "--identity"];
        turboflow(args.iter().chain(&further))
            .exits(2)
            .says(&[words]);
    }
    for output in [&csv, &ipfix] {
        turboflow(["record", "-r", &office, "-w", output, "--exporter", "a"])
            .exits(2)
            .says(&["leave --exporter out, or add --identity to an output in CSV"]);
    }
    assert_eq!(folder.names(), ["taken.toml"]);
    let service = format!(
        "[source]\ninterfaces = [\"lo\"]\n[service]\nexporter = \"a\"\n[[output]]\nto = {csv:?}\n"
    );
    let service = folder.write("service.toml", service);
    turboflow(["run", "--check", "--config", &service])
        .exits(2)
        .says(&["leave `exporter` in [service] out, or add `identity` in [[output]]"]);
}

#[test]
fn arrow_beside_other_files_is_passed_over_and_alone_it_is_named() {
    let folder = Folder::new();
    let office = office();
    let [parquet, arrow] = ["a.parquet", "b.arrow"].map(|name| folder.file(name));
    turboflow(["record", "-q", "-r", &office, "-w", &parquet, "-w", &arrow]).exits(0);
    let place = folder.path().to_str().unwrap();
    let shown = turboflow(["show", place, "--format", "csv"]).exits(0);
    assert_eq!(shown.stdout.lines().count(), 743);
    turboflow(["show", &arrow])
        .exits(2)
        .says(&["b.arrow is Arrow", "pyarrow"]);
    let stream = turboflow(["record", "-q", "-r", &office, "-w", "-", "--format", "csv"]).exits(0);
    assert_eq!(stream.stdout.lines().count(), 743);
}
