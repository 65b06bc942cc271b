// SPDX-License-Identifier: Apache-2.0
//! Files that appear and vanish, a running program, ledgers, and the program that makes records.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use turboflow_dashboard::{DashboardError, Server};

use crate::client::{Running, options, records, started};

/// Sample captures of this project, and options of `turboflow record` for each.
pub(crate) fn captures() -> [(&'static str, &'static [&'static str]); 6] {
    [
        ("samples/office.pcap", &[]),
        ("samples/office.pcap", &["--biflow"]),
        ("samples/two-links.pcapng", &["--decapsulate"]),
        ("samples/office.pcap", &["--identity", "--exporter", "a"]),
        ("samples/two-links.pcapng", &["--active-timeout", "1s"]),
        (
            "samples/office.pcap",
            &["--align", "10s", "--idle-timeout", "1s"],
        ),
    ]
}

/// Path of the program, if it was built with the tests.
fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().and_then(Path::parent).unwrap();
    Some(folder.join("turboflow")).filter(|program| program.is_file())
}

/// Makes records of a capture; false if the program is not built.
pub(crate) fn recorded(capture: &Path, file: &Path, options: &[&str]) -> bool {
    let Some(program) = program() else {
        assert!(
            std::env::var_os("TURBOFLOW_CI").is_none(),
            "the program is not built: cargo build --package turboflow"
        );
        eprintln!("not tested: the program is not built (cargo build --package turboflow)");
        return false;
    };
    let mut command = Command::new(program);
    command.args(["record", "--quiet", "-r"]).arg(capture);
    let ledger = file.with_extension("json");
    command.arg("-w").arg(file).arg("--ledger").arg(ledger);
    let outcome = command.args(options).output().unwrap();
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success(), "{capture:?}: {said}");
    true
}

/// Makes a capture; false if the program is not built.
pub(crate) fn generated(capture: &Path, options: &[&str]) -> bool {
    // `recorded` reports that it is missing.
    let Some(program) = program() else {
        return recorded(capture, capture, &[]);
    };
    let mut command = Command::new(program);
    command.args(["generate", "--quiet", "-w"]).arg(capture);
    let outcome = command.args(options).output().unwrap();
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success(), "{said}");
    true
}

/// The program's plan, in JSON.
pub(crate) fn planned(words: &[&str]) -> Value {
    let mut command = Command::new(program().unwrap());
    let outcome = command.args(words).arg("--json").output().unwrap();
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success(), "{words:?}: {said}");
    serde_json::from_slice(&outcome.stdout).unwrap()
}

/// An event stream.
pub(crate) struct Events(BufReader<std::net::TcpStream>);

impl Events {
    pub(crate) fn of(dashboard: &Running) -> Self {
        let mut stream = dashboard.connect();
        let host = dashboard.address;
        write!(stream, "GET /api/live HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        Self(BufReader::new(stream))
    }

    /// The data of the next event with that name.
    pub(crate) fn next(&mut self, name: &str) -> Value {
        let mut is_it = false;
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream ended");
            let line = line.trim_end();
            if let Some(event) = line.strip_prefix("event: ") {
                is_it = event == name;
            }
            if let Some(data) = line.strip_prefix("data: ").filter(|_| is_it) {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

#[test]
fn new_files_of_a_folder_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let given = folder.path().to_owned();
    let dashboard = started(options(std::slice::from_ref(&given)));
    let mut events = Events::of(&dashboard);
    let first = events.next("files");
    assert_eq!(first["files"], json!([]));
    records(&given.join(".a.csv.1-1.tmp"), 10);
    std::fs::rename(given.join(".a.csv.1-1.tmp"), given.join("a.csv")).unwrap();
    let files = events.next("files");
    assert_eq!(files["files"].as_array().unwrap().len(), 1);
    let all = json!({ "panels": [{ "group_by": "protocol" }] });
    let matched = |answer: &Value| answer["totals"]["matched"]["records"].clone();
    assert_eq!(matched(&dashboard.panels(&all)[0]), 10);
    records(&given.join("b.csv"), 5);
    let second = first["snapshot"].as_u64().unwrap() + 2;
    assert_eq!(events.next("files")["snapshot"], second);
    assert_eq!(matched(&dashboard.panels(&all)[0]), 15);
}

#[test]
fn a_running_program_is_followed() {
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = metrics.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for (number, stream) in metrics.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut request = [0; 512];
            let _ = stream.read(&mut request).unwrap();
            let dropped = number * 5;
            let answer = format!(
                "HTTP/1.1 200 OK\r\n\r\nturboflow_packets_received_total 7\n\
                 turboflow_source_dropped_total {dropped}\n"
            );
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let dashboard = started(turboflow_dashboard::Options {
        live: Some(address.clone()),
        ..options(&[])
    });
    let mut events = Events::of(&dashboard);
    assert_eq!(events.next("files")["live"], json!(address));
    let counters = |sample: Value| sample["counters"]["source_dropped_total"].as_u64().unwrap();
    let first = counters(events.next("live"));
    assert!(counters(events.next("live")) > first);
    let history = &dashboard.get("/api/ledger").json()["live"];
    assert!(history.as_array().unwrap().len() >= 2, "{history}");
}

/// A ledger of five packets that lists these outputs.
fn ledger(outputs: &[&str]) -> String {
    let outputs = outputs.iter().map(|name| json!({ "name": name }));
    let outputs = outputs.collect::<Vec<_>>();
    json!({ "balanced": true, "packets_received": 5, "outputs": outputs }).to_string()
}

/// The file names of the ledgers found, and of the files that have none.
fn ledgers_of(dashboard: &Running) -> (Vec<String>, Vec<String>) {
    let ledgers = dashboard.get("/api/ledger").json()["ledgers"].clone();
    let last = |name: &Value| {
        let name = name.as_str().unwrap();
        name.rsplit('/').next().unwrap().to_owned()
    };
    let found = ledgers["found"].as_array().unwrap().iter();
    let without = &ledgers["without"];
    let names: Vec<_> = without["names"]
        .as_array()
        .unwrap()
        .iter()
        .map(last)
        .collect();
    assert_eq!(without["files"], names.len());
    (found.map(|it| last(&it["name"])).collect(), names)
}

fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

/// A program that is not a meter answers at the metrics address.
#[test]
fn metrics_of_others_are_no_ledger() {
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = metrics.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in metrics.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 512];
            let _ = stream.read(&mut request).unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nnode_load1 0.5\n");
        }
    });
    let dashboard = started(turboflow_dashboard::Options {
        live: Some(address),
        ..options(&[])
    });
    let sample = Events::of(&dashboard).next("live");
    assert!(sample["counters"].is_null(), "{sample}");
    assert_eq!(sample["error"], "it has no metrics of a run");
}

#[test]
fn ledgers_are_found_beside_their_records_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    records(&at("a.csv"), 5);
    std::fs::write(at("a.json"), ledger(&["elsewhere/a.csv"])).unwrap();
    std::fs::write(at("b.json"), ledger(&["b.csv"])).unwrap();
    std::fs::write(at("secret.json"), r#"{"password": "x"}"#).unwrap();
    let of_file = started(options(&[at("a.csv")]));
    assert_eq!(ledgers_of(&of_file), (names(["a.json"]), vec![]));
    let of_folder = started(options(&[folder.path().to_owned()]));
    assert_eq!(
        ledgers_of(&of_folder),
        (names(["a.json", "b.json"]), vec![])
    );
    let named = started(turboflow_dashboard::Options {
        ledgers: vec![at("b.json")],
        ..options(&[at("a.csv")])
    });
    assert_eq!(ledgers_of(&named), (names(["b.json", "a.json"]), vec![]));
}

/// "Complete" is a statement about all records, so files without a ledger must be known.
#[test]
fn a_file_has_a_ledger_in_its_own_folder_or_above_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["left/day", "right"] {
        std::fs::create_dir_all(at(name)).unwrap();
    }
    for name in [
        "left/day/flows-20240301T1200.csv",
        "left/day/flows-20240301T1200-1.csv",
        "left/day/other.csv",
        "right/flows-20240301T1200.csv",
    ] {
        records(&at(name), 5);
    }
    std::fs::write(
        at("left/run.json"),
        ledger(&["flows/%d/flows-%Y%m%dT%H%M.csv"]),
    )
    .unwrap();
    let given = [at("left"), at("right")];
    let dashboard = started(options(&given));
    let mut events = Events::of(&dashboard);
    let before = events.next("files")["snapshot"].as_u64().unwrap();
    let without = names(["other.csv", "flows-20240301T1200.csv"]);
    assert_eq!(ledgers_of(&dashboard), (names(["run.json"]), without));
    // A run writes its ledger after its files.
    std::fs::write(at("right/run.json"), ledger(&["flows-20240301T1200.csv"])).unwrap();
    assert_eq!(events.next("files")["snapshot"], before + 1);
    let (found, without) = ledgers_of(&dashboard);
    assert_eq!(found, names(["run.json", "run.json"]));
    assert_eq!(without, names(["other.csv"]));
}

#[test]
fn what_is_no_ledger_or_too_large_a_one_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    records(&at("a.csv"), 5);
    std::fs::write(at("large.json"), vec![b' '; 5 << 20]).unwrap();
    std::fs::write(at("other.json"), "{}").unwrap();
    let dashboard = started(turboflow_dashboard::Options {
        ledgers: vec![
            at("other.json"),
            at("gone.json"),
            folder.path().to_owned(),
            at("large.json"),
        ],
        ..options(&[folder.path().to_owned()])
    });
    let found = dashboard.get("/api/ledger").json()["ledgers"]["found"].clone();
    let errors: Vec<&str> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["error"].as_str().unwrap())
        .collect();
    assert_eq!(errors.len(), 4, "{errors:?}");
    for (error, part) in errors.iter().zip([
        "not a ledger",
        "cannot be read",
        "cannot be read",
        "4194304 bytes",
    ]) {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(ledgers_of(&dashboard).1, names(["a.csv"]));
}

#[test]
fn an_empty_folder_hides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [full, empty] = ["full", "empty"].map(|name| folder.path().join(name));
    for folder in [&full, &empty] {
        std::fs::create_dir(folder).unwrap();
    }
    records(&full.join("a.csv"), 5);
    // If it were taken for a pipe, reading it would block.
    let _socket = std::os::unix::net::UnixListener::bind(full.join("b.csv")).unwrap();
    let dashboard = started(options(&[empty, full]));
    let files = dashboard.get("/api/files").json();
    assert_eq!(files["files"].as_array().unwrap().len(), 1);
    let notes = files["notes"].to_string();
    assert!(notes.contains("has no file of flow records yet"), "{notes}");
    assert!(notes.contains("b.csv is a pipe or a device"), "{notes}");
}

#[test]
fn a_cut_file_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    records(&file, 5);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &text[..text.len() - 20]).unwrap();
    let dashboard = started(options(&[file]));
    let damages = dashboard.get("/api/files").json()["damages"].clone();
    assert_eq!(damages.as_array().unwrap().len(), 1, "{damages}");
}

/// All numbers of a page must be about the same records.
#[test]
fn a_file_that_is_replaced_is_not_mixed_with_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    records(&at("a.csv"), 5);
    let dashboard = started(options(&[at("a.csv")]));
    let mut events = Events::of(&dashboard);
    let before = events.next("files")["snapshot"].as_u64().unwrap();
    records(&at("new"), 7);
    std::fs::rename(at("new"), at("a.csv")).unwrap();
    let request = json!({ "panels": [{ "group_by": "protocol" }] });
    let said = dashboard
        .ask("POST", "/api/query", &request.to_string())
        .json();
    let panel = &said["panels"][0];
    // Unless the replacement has already been noticed.
    match said["snapshot"] == before {
        true => {
            let reason = panel["error"]["reason"].as_str().unwrap();
            assert!(reason.contains("it is another file"), "{reason}");
        }
        false => assert_eq!(panel["totals"]["matched"]["records"], 7),
    }
    assert_eq!(events.next("files")["snapshot"], before + 1);
    let matched = &dashboard.panels(&request)[0]["totals"]["matched"]["records"];
    assert_eq!(*matched, 7);
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let refused = |options| runtime.block_on(Server::bind(options)).err().unwrap();
    assert!(matches!(refused(options(&[])), DashboardError::Nothing));
    let pipe = options(&["-".into()]);
    assert!(matches!(refused(pipe), DashboardError::NoFile { .. }));
    let nothing = options(&["/nowhere.parquet".into()]);
    assert!(matches!(refused(nothing), DashboardError::Query(_)));
    let folder = tempfile::tempdir().unwrap();
    let open = turboflow_dashboard::Options {
        listen: "0.0.0.0:0".parse().unwrap(),
        ..options(&[folder.path().to_owned()])
    };
    let said = refused(open).to_string();
    assert!(said.contains("a token is needed"), "{said}");
}
