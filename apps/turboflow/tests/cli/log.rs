// SPDX-License-Identifier: Apache-2.0
//! Log lines on standard error, for people and for programs.

use serde_json::Value;
use turboflow_testing::{Need, is_missing};

use crate::support::{Folder, office, turboflow};

/// Parses every line as a JSON object.
fn objects(stderr: &str) -> Vec<Value> {
    let lines = stderr.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

fn events(objects: &[Value]) -> Vec<&str> {
    objects
        .iter()
        .filter_map(|object| object["event"].as_str())
        .collect()
}

#[test]
fn a_run_is_logged_as_events_with_numbers() {
    let folder = Folder::new();
    let to = folder.file("flows.csv");
    let more = [
        "--log-format",
        "json",
        "--ledger",
        &folder.file("ledger.json"),
    ];
    let ran = turboflow(
        ["record", "-r", &office(), "-w", &to]
            .into_iter()
            .chain(more),
    )
    .exits(0);
    let said = objects(&ran.stderr);
    assert_eq!(events(&said), ["started", "finished"]);
    let finished = &said[1];
    assert_eq!(finished["level"], "info");
    let ledger: Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    for number in ["packets_received", "bytes_received", "packets_recorded"] {
        assert_eq!(finished[number], ledger[number], "{number}");
        assert_ne!(finished[number], 0);
    }
    assert!(finished["time"].as_str().unwrap().ends_with('Z'));
    assert!(
        finished["message"]
            .as_str()
            .unwrap()
            .contains("every packet is accounted for")
    );
}

#[test]
fn errors_are_events_too() {
    let folder = Folder::new();
    let mut bytes = std::fs::read(office()).unwrap();
    bytes.truncate(bytes.len() - 7);
    let cut = folder.write("cut.pcap", bytes);
    let to = folder.file("flows.csv");
    let run = |from: &str| {
        turboflow([
            "record",
            "--quiet",
            "--log-format",
            "json",
            "-r",
            from,
            "-w",
            &to,
        ])
    };
    let damaged = objects(&run(&cut).exits(1).stderr);
    assert_eq!(events(&damaged), ["capture_damaged"]);
    assert_eq!(damaged[0]["level"], "error");
    let missing = objects(&run(&folder.file("missing.pcap")).exits(2).stderr);
    assert_eq!(events(&missing), ["could_not_run"]);
}

#[test]
fn names_are_escaped_in_messages() {
    let folder = Folder::new();
    let odd = folder.write("a\u{1b}[31mred\nturboflow: forged.pcap", "");
    let to = folder.file("flows.csv");
    let ran = turboflow(["record", "-r", &odd, "-r", &office(), "-w", &to]).exits(1);
    assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
    let forged = |line: &str| line.starts_with("turboflow: forged");
    assert!(!ran.stderr.lines().any(forged), "{}", ran.stderr);
    ran.says(&["a\\u{1b}[31mred"]);
}

#[test]
fn arguments_are_escaped_in_errors() {
    let forged = "a\u{1b}[2J\nturboflow: forged";
    for args in [
        &[forged][..],
        &["record", "--packets", forged],
        &["record", "-r", "a", "--color", forged],
        &["record", &format!("--{forged}")],
        &["show", "a", "--format", forged],
        &["help", forged],
        &["completions", forged],
    ] {
        let ran = turboflow(args).exits(2);
        assert!(!ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
        let is_forged = |line: &str| line.starts_with("turboflow: forged");
        assert!(!ran.stderr.lines().any(is_forged), "{}", ran.stderr);
        assert!(ran.stderr.ends_with('\n') && !ran.stderr.ends_with("  \n"));
    }
}

#[test]
fn arguments_that_are_not_utf_8_are_errors() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let odd = OsStr::from_bytes(b"a\xffb");
    let unknown = OsStr::from_bytes(b"--a\xffb");
    for args in [
        &[odd][..],
        &[OsStr::new("record"), OsStr::new("--packets"), odd],
        &[OsStr::new("record"), unknown],
        &[OsStr::new("record"), OsStr::new("--unknown"), odd],
    ] {
        let ran = turboflow(args).exits(2);
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
    // A file may have such a name.
    let folder = Folder::new();
    let name = folder.path().join(odd);
    std::fs::copy(office(), &name).unwrap();
    turboflow([
        OsStr::new("record"),
        OsStr::new("-q"),
        OsStr::new("-r"),
        name.as_os_str(),
    ])
    .exits(0);
}

#[test]
fn lines_of_a_run_on_interfaces_have_times() {
    if is_missing(&[Need::Root]) {
        return;
    }
    let folder = Folder::new();
    let to = folder.file("flows.csv");
    let live = ["record", "-i", "lo", "--duration", "10ms", "-w", &to];
    let ran = turboflow(live);
    let stamped = |line: &str| {
        line.split_once(" turboflow: ")
            .is_some_and(|(time, _)| time.len() == 24 && time.ends_with('Z'))
    };
    assert!(ran.stderr.lines().all(stamped), "{}", ran.stderr);
    assert!(ran.stderr.lines().count() >= 2);
    let file = turboflow(["record", "-r", &office(), "-w", &to]).exits(0);
    assert!(file.stderr.starts_with("turboflow: "), "{}", file.stderr);
}
