// SPDX-License-Identifier: Apache-2.0
//! `--align`: no record has packets of two windows.

use crate::support::{Folder, office, rows, turboflow};

const SECOND_NS: u64 = 1_000_000_000;

/// First time, last time, packets and bytes of every record.
fn spans(csv: &str) -> Vec<[u64; 4]> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at = |name| names.iter().position(|its| *its == name).unwrap();
    let columns = ["first_ns", "last_ns", "packets", "bytes"].map(at);
    let span = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        columns.map(|column| fields[column].parse().unwrap())
    };
    lines.map(span).collect()
}

fn sum(spans: &[[u64; 4]], of: usize) -> u64 {
    spans.iter().map(|span| span[of]).sum()
}

#[test]
fn records_lie_in_one_window_and_add_up() {
    let (folder, office) = (Folder::new(), office());
    let recorded = |options: &[&str]| {
        let csv = folder.file("a.csv");
        let args = ["record", "-q", "-r", &office, "-w", &csv, "--ledger"];
        let ledger = folder.file("ledger.json");
        turboflow(
            args.iter()
                .copied()
                .chain([ledger.as_str()])
                .chain(options.iter().copied()),
        )
        .exits(0);
        folder.read("a.csv")
    };
    let whole = spans(&recorded(&[]));
    let mut before = None;
    for further in [
        &["--threads", "1"][..],
        &["--threads", "3", "--seed", "5"],
        &["--microflow-slots", "1"],
        &["--idle-timeout", "700ms", "--active-timeout", "none"],
    ] {
        let csv = recorded(&[&["--align", "2s"], further].concat());
        let cut = spans(&csv);
        assert!(cut.len() > whole.len());
        for [first, last, ..] in &cut {
            assert_eq!(
                first / (2 * SECOND_NS),
                last / (2 * SECOND_NS),
                "{further:?}"
            );
        }
        assert_eq!(
            [2, 3].map(|of| sum(&cut, of)),
            [2, 3].map(|of| sum(&whole, of))
        );
        if further[0] != "--idle-timeout" {
            let sorted = rows(&csv);
            assert_eq!(*before.get_or_insert_with(|| sorted.clone()), sorted);
        }
    }
}

#[test]
fn windows_that_are_no_windows_are_refused() {
    let office = office();
    for (length, words) in [
        ("1500ms", "whole seconds"),
        ("2d", "1s to 1d"),
        ("0", "--align"),
    ] {
        turboflow(["record", "-r", &office, "--align", length])
            .exits(2)
            .says(&[words]);
    }
    let engine = ["--engine", "records", "--records-from", "a.records"];
    turboflow(["record", "--align", "1m"].iter().chain(&engine))
        .exits(2)
        .says(&["engine `records` does not support --align"]);
}
