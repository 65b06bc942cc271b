// SPDX-License-Identifier: Apache-2.0
//! Records of six vantage points go through Kafka into ClickHouse, by the tables and the reader of
//! `contrib/clickhouse`. They must give the flows that one machine sees that sees everything.
//! ClickHouse is the package from PyPI; `clickhouse/check.py` has the queries.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use turboflow_testing::{Need, is_missing};

use crate::fabric::{self, SWITCHES};
use crate::kafka::Broker;
use crate::support::{Folder, command, finish, project, turboflow};

/// Timeouts shorter than the flows, and windows of the clock.
const CUTS: [&str; 6] = [
    "--active-timeout",
    "25s",
    "--idle-timeout",
    "8s",
    "--align",
    "1m",
];

fn python() -> String {
    project("target/tools/python-clickhouse/bin/python")
}

/// The start of a minute, an hour ago: the tables delete records older than a week.
#[allow(
    clippy::disallowed_methods,
    reason = "tables with a time to live keep what is recent"
)]
fn begin_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    (now.as_secs() / 60 - 60) * 60 * 1_000_000_000
}

#[test]
fn six_vantage_points_agree_with_one_machine() {
    if is_missing(&[Need::Tool(&python())]) {
        return;
    }
    let Some(mut broker) = Broker::start() else {
        return;
    };
    let folder = Folder::new();
    let fabric = fabric::write(&folder, begin_ns());
    assert!(fabric.lost > 50, "{}", fabric.lost);
    let [all, one] = ["all.pcap", "all.parquet"].map(|name| folder.file(name));
    let args = ["record", "-q", "-r", &all, "-w", &one];
    turboflow(args.iter().chain(&CUTS)).exits(0);
    let topic = broker.target("flows") + "?records=100";
    for switch in SWITCHES {
        let [capture, parquet] =
            ["pcap", "parquet"].map(|end| folder.file(&format!("{switch}.{end}")));
        let args = ["record", "-q", "-r", &capture, "--exporter", switch];
        let outputs = ["-w", &topic, "-w", &parquet, "--identity"];
        let args = args.iter().chain(&CUTS).chain(&outputs);
        if !["leaf3", "spine1", "spine2"].contains(&switch) {
            turboflow(args).exits(0);
            continue;
        }
        // The broker is killed between the two halves of its capture, and restarted.
        let bytes = fs::read(&capture).unwrap();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let mut record = command(args.map(|arg| if *arg == capture { "-" } else { *arg }));
        let mut child = record.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(first).unwrap();
        broker.crash_and_restart();
        stdin.write_all(second).unwrap();
        drop(stdin);
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    let mut check = Command::new(python());
    check.args([
        "-B",
        &project("apps/turboflow/tests/collectors/clickhouse/check.py"),
    ]);
    check.args(["--brokers", &broker.address(), "--topic", "flows"]);
    check.args(["--folder", folder.path().to_str().unwrap()]);
    check.args(["--contrib", &project("contrib")]);
    check.args(["--program", env!("CARGO_BIN_EXE_turboflow")]);
    for (name, number) in [
        ("--packets", fabric.packets),
        ("--sightings", fabric.sightings),
        ("--lost", fabric.countable),
    ] {
        check.args([name, &number.to_string()]);
    }
    let ran = finish(&mut check).exits(0);
    assert!(ran.stdout.contains("all agree"), "{}", ran.stdout);
}
