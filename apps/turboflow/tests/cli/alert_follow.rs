// SPDX-License-Identifier: Apache-2.0
//! `turboflow alert --follow`: evaluates each file once the log announces it as complete.

use std::io::Write;
use std::process::Stdio;

use crate::alert::{records, scan, shipped};
use crate::support::{Folder, Ran, command, turboflow};

/// Runs `turboflow alert --follow` on a log.
fn followed(log: &[u8], args: &[&str]) -> Ran {
    let mut child = command(["alert", "--follow"].iter().chain(args))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(log).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn completed(file: &str) -> String {
    format!("{{\"event\":\"file_completed\",\"file\":{file:?},\"records\":150}}\n")
}

#[test]
fn files_are_asked_and_other_lines_are_passed_on() {
    let folder = Folder::new();
    let file = records(&folder, "scan", 1_700_000_000, &scan(150));
    let others = "{\"event\":\"started\"}\n\
                  {\"event\":\"packets_dropped\",\"level\":\"error\", \"packets\":7}\n";
    let log = format!("{others}{}{}", completed(&file), completed("gone.parquet"));
    let ran = followed(log.as_bytes(), &["--rules", &shipped()]);
    let ran = ran.exits(1).says(&["gone.parquet", others]);
    assert_eq!(ran.stdout.lines().count(), 1, "{ran:?}");
    assert!(ran.stdout.contains("\"port-scan\""));
    assert!(!ran.stderr.contains("file_completed"), "{ran:?}");
    assert!(!ran.stderr.contains("--log-format"), "{ran:?}");
}

#[test]
fn a_log_that_is_no_json_is_told_once() {
    let text = "turboflow: started\nturboflow: a.parquet is complete: 7 flow records\n";
    let ran = followed(text.as_bytes(), &["--rules", &shipped()]);
    let ran = ran.exits(2).says(&["turboflow: a.parquet is complete"]);
    assert_eq!(
        ran.stderr.matches("--log-format json").count(),
        1,
        "{ran:?}"
    );
}

#[test]
fn a_line_that_is_no_utf_8_does_not_end_it() {
    let folder = Folder::new();
    let file = records(&folder, "scan", 1_700_000_000, &scan(150));
    let log = [b"\xff\n", completed(&file).as_bytes()].concat();
    let ran = followed(&log, &["--rules", &shipped()]).exits(0);
    assert!(ran.stdout.contains("\"port-scan\""), "{ran:?}");
}

#[test]
fn rules_that_are_passed_over_are_said_once() {
    let folder = Folder::new();
    let file = records(&folder, "scan", 1_700_000_000, &scan(5));
    let rules = shipped();
    let told = "lack a column: \"exfiltration-in-answers\" (reverse_bytes), \"new-answerer\" \
                (reverse_packets), \"silent-exporter\" (exporter)\n";
    let ran = followed(completed(&file).repeat(3).as_bytes(), &["--rules", &rules]);
    let ran = ran.exits(0);
    assert_eq!(ran.stderr.matches(told).count(), 1, "{ran:?}");
    let args = ["alert", &file, "--rules", &rules];
    turboflow(args).exits(0).says(&[told]);
}
