// SPDX-License-Identifier: Apache-2.0
//! Lines on standard error, for people and for programs.

use serde_json::Value;

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
