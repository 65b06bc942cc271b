// SPDX-License-Identifier: Apache-2.0
//! Files that come and go, a program that runs, ledgers, and the program that makes records.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use turboflow_dashboard::{DashboardError, Server};

use crate::client::{Running, options, records, started};

/// Captures of this project, and options of `turboflow record`.
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

/// The program, where tests are built.
fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().and_then(Path::parent).unwrap();
    Some(folder.join("turboflow")).filter(|program| program.is_file())
}

/// Makes records of a capture; false where the program is not built.
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

/// A stream of events.
struct Events(BufReader<std::net::TcpStream>);

impl Events {
    fn of(dashboard: &Running) -> Self {
        let mut stream = dashboard.connect();
        let host = dashboard.address;
        write!(stream, "GET /api/live HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        Self(BufReader::new(stream))
    }

    /// The data of the next event of that name.
    fn next(&mut self, name: &str) -> Value {
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
    assert_eq!(events.next("files")["files"], json!([]));
    records(&given.join(".a.csv.1-1.tmp"), 10);
    std::fs::rename(given.join(".a.csv.1-1.tmp"), given.join("a.csv")).unwrap();
    let files = events.next("files");
    assert_eq!(files["files"].as_array().unwrap().len(), 1);
    let all = json!({ "panels": [{ "group_by": "protocol" }] });
    let matched = |answer: &Value| answer["totals"]["matched"]["records"].clone();
    assert_eq!(matched(&dashboard.panels(&all)[0]), 10);
    records(&given.join("b.csv"), 5);
    assert_eq!(events.next("files")["snapshot"], 3);
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

#[test]
fn ledgers_are_found_beside_their_records_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    records(&at("a.csv"), 5);
    let ledger = |output: &str| json!({ "balanced": true, "packets_received": 5, "outputs": [{ "name": output }] });
    std::fs::write(at("a.json"), ledger("elsewhere/a.csv").to_string()).unwrap();
    std::fs::write(at("b.json"), ledger("b.csv").to_string()).unwrap();
    std::fs::write(at("secret.json"), r#"{"password": "x"}"#).unwrap();
    let found = |dashboard: &Running| {
        let ledgers = dashboard.get("/api/ledger").json()["ledgers"].clone();
        let ledgers = ledgers.as_array().unwrap().clone();
        let names = ledgers
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned());
        names
            .map(|name| name.rsplit('/').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let of_file = started(options(&[at("a.csv")]));
    assert_eq!(found(&of_file), ["a.json"]);
    let of_folder = started(options(&[folder.path().to_owned()]));
    assert_eq!(found(&of_folder), ["a.json", "b.json"]);
    let named = started(turboflow_dashboard::Options {
        ledgers: vec![at("b.json")],
        ..options(&[at("a.csv")])
    });
    assert_eq!(found(&named), ["b.json", "a.json"]);
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
