// SPDX-License-Identifier: Apache-2.0
//! Chosen times: how they are written, and that the answers are restricted to them.

use serde_json::{Value, json};

use crate::answers::{compare, compare_series, text};
use crate::client::{Running, options, records, started};

const SECOND: u64 = 1_000_000_000;

/// A record that lasts a day at 1 MB/s, and one of 3 MB within half a second, at 60 s.
fn long_and_short() -> (tempfile::TempDir, Running) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.csv");
    let day = 86_400;
    let text = format!(
        "src_addr,packets,bytes,first_ns,last_ns\n\
         10.0.0.1,{day},{},0,{}\n\
         10.0.0.2,50,3000000,{},{}\n",
        day * 1_000_000,
        day * SECOND - 1,
        60 * SECOND,
        60 * SECOND + SECOND / 2 - 1,
    );
    std::fs::write(&file, text).unwrap();
    let dashboard = started(options(&[file]));
    (folder, dashboard)
}

#[test]
fn the_largest_of_a_plot_are_those_with_most_in_the_chosen_time() {
    let (_folder, dashboard) = long_and_short();
    let panel = json!({ "kind": "series", "group_by": "src_addr", "by": "bytes", "top": 1 });
    let largest = |request: Value| {
        let series = dashboard.panels(&request).remove(0);
        compare_series(&series);
        (
            series["series"][0]["text"][0].clone(),
            series["series"][0]["sum"].clone(),
        )
    };
    let whole = largest(json!({ "panels": [panel] }));
    assert_eq!(whole, (json!("10.0.0.1"), json!(86_400_000_000u64)));
    let chosen = json!({
        "from": (60 * SECOND).to_string(),
        "to": (61 * SECOND).to_string(),
        "panels": [panel],
    });
    assert_eq!(largest(chosen), (json!("10.0.0.2"), json!(3_000_000)));
}

#[test]
fn sums_of_a_chosen_time_are_those_of_its_part_of_each_record() {
    let (_folder, dashboard) = long_and_short();
    let panel = json!({ "group_by": "first_ns:36500d", "by": "records", "select": "packets,bytes", "clip": true });
    let sums = |request: Value| {
        let answer = dashboard.panels(&request).remove(0);
        compare(&answer);
        answer["rows"][0].as_array().unwrap()[1..].to_vec()
    };
    let chosen = json!({ "within": "1970-01-01T00:01..1970-01-01T00:01:10", "panels": [panel] });
    assert_eq!(sums(chosen), [json!(60), json!(13_000_000)]);
    let all = sums(json!({ "panels": [panel] }));
    assert_eq!(all, [json!(86_450), json!(86_403_000_000u64)]);
}

#[test]
fn a_time_is_written_as_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made.csv");
    records(&file, 100);
    let dashboard = started(options(&[file]));
    let ask = |within: &str| {
        let body = json!({ "within": within, "panels": [{ "group_by": "protocol" }] });
        dashboard.ask("POST", "/api/query", &body.to_string())
    };
    let files = dashboard.get("/api/files").json();
    let last: u64 = text(&files["last_ns"]).parse().unwrap();
    let time = |ns: u64| json!(turboflow_query::time_text(ns));
    for (within, from, to) in [
        (
            "2023-11-14T22:13:20..2023-11-14T22:13:40",
            time(1_700_000_000 * SECOND),
            time(1_700_000_020 * SECOND),
        ),
        ("-10s..", time(last - 10 * SECOND), Value::Null),
        ("..now", Value::Null, time(last)),
    ] {
        let said = ask(within);
        assert_eq!(said.status, 200, "{within}");
        let json = said.json();
        assert_eq!((&json["from"], &json["to"]), (&from, &to), "{within}");
        let command = text(&json["panels"][0]["command"]);
        assert!(command.contains("--within"), "{command}");
        compare(&json["panels"][0]);
    }
    for (within, reason) in [
        ("yesterday..", "write 2024-03-01T12:30..2024-03-01T13:00"),
        ("..", "or only one of them with the dots"),
        ("now..-1h", "this time ends before it begins"),
    ] {
        let said = ask(within);
        let error = said.json()["error"].clone();
        assert_eq!(
            (said.status, &error["part"]),
            (400, &json!("within")),
            "{within}"
        );
        assert!(text(&error["reason"]).contains(reason), "{error}");
    }
}
