// SPDX-License-Identifier: Apache-2.0
//! goflow2, the collector of the netsampler project.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use serde_json::Value;
use turboflow_testing::{Need, free_port, is_missing, until};

use crate::daemon::Daemon;
use crate::flow::{
    Collector, Flow, Got, OVER_UDP, as_shown, captures, equal, protocol_of, send, send_with_lists,
};
use crate::support::{Folder, project};

/// A listening goflow2.
pub(crate) struct Goflow2 {
    pub(crate) daemon: Daemon,
    metrics_port: u16,
}

/// The path that `scripts/install-test-tools.sh` uses, or the program in `PATH`.
fn program() -> String {
    let ours = project("target/tools/goflow2");
    match std::path::Path::new(&ours).exists() {
        true => ours,
        false => "goflow2".to_owned(),
    }
}

impl Collector for Goflow2 {
    fn start(port: u16) -> Option<Self> {
        let program = program();
        if is_missing(&[Need::Tool(&program)]) {
            return None;
        }
        let metrics = TcpListener::bind("127.0.0.1:0").unwrap();
        let metrics_port = metrics.local_addr().unwrap().port();
        drop(metrics);
        let folder = Folder::new();
        let mut command = Command::new(program);
        // Several workers might decode a flow before a template that arrived earlier.
        let listen = format!("netflow://127.0.0.1:{port}?workers=1");
        command.args(["-listen", &listen]);
        command.args(["-addr", &format!("127.0.0.1:{metrics_port}")]);
        command.args(["-format", "json", "-transport", "file"]);
        command.args(["-transport.file", &folder.file("flows.jsonl")]);
        let daemon = Daemon::start(&mut command, folder, port);
        Some(Self {
            daemon,
            metrics_port,
        })
    }

    fn end(self, all: bool) -> Got {
        if all {
            self.daemon.wait_until_handled();
            // Datagrams may also wait in the collector's own queue.
            until("it has decoded everything", || {
                let metrics = self.metrics();
                let decoded = sum(&metrics, "goflow2_flow_decoding_time_seconds_count");
                decoded == sum(&metrics, "goflow2_flow_traffic_packets_total")
            });
        }
        let metrics = self.metrics();
        let folder = self.daemon.end("TERM");
        let talk = folder.read("talk");
        let said = talk.lines().filter(|line| !line.contains("level=INFO"));
        let counted = metrics
            .iter()
            .filter(|(name, count)| name.contains("error") && **count > 0.0);
        let counted = counted.map(|(name, count)| format!("{name} {count}"));
        // Its threads may write newlines between the lines of other threads.
        let rows = folder.read("flows.jsonl");
        let rows = serde_json::Deserializer::from_str(&rows).into_iter::<Value>();
        let mut flows: Vec<_> = rows.map(|row| flow(&row.unwrap())).collect();
        flows.sort();
        Got {
            flows,
            complaints: said.map(str::to_owned).chain(counted).collect(),
        }
    }
}

impl Goflow2 {
    fn metrics(&self) -> BTreeMap<String, f64> {
        let mut page = String::new();
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics_port)).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        stream.read_to_string(&mut page).unwrap();
        let samples = page.lines().filter(|line| line.starts_with("goflow2_"));
        let samples = samples.filter_map(|line| line.rsplit_once(' '));
        samples
            .map(|(name, value)| (name.to_owned(), value.parse().unwrap_or(0.0)))
            .collect()
    }
}

/// Sums a metric over all labels.
fn sum(metrics: &BTreeMap<String, f64>, name: &str) -> f64 {
    let named = metrics.iter().filter(|(key, _)| key.starts_with(name));
    named.map(|(_, value)| value).sum()
}

fn flow(row: &Value) -> Flow {
    let number = |name: &str| row[name].as_u64().unwrap();
    let protocol = row["proto"].as_str().unwrap();
    Flow {
        addresses: ["src_addr", "dst_addr"]
            .map(|name| row[name].as_str().unwrap().parse().unwrap()),
        ports: ["src_port", "dst_port"].map(number),
        protocol: protocol_of(protocol),
        packets: number("packets"),
        octets: number("bytes"),
        first_ms: number("time_flow_start_ns") / 1_000_000,
        last_ms: number("time_flow_end_ns") / 1_000_000,
        tcp_flags: number("tcp_flags"),
        end_reason: 0,
    }
}

#[test]
fn goflow2_passes_over_lists() {
    let Some(goflow2) = Goflow2::start(free_port()) else {
        return;
    };
    let url = format!("ipfix+udp://127.0.0.1:{}", goflow2.daemon.port);
    let (sent, _) = send_with_lists(&url);
    let got = goflow2.end(true);
    assert!(got.complaints.is_empty(), "{:?}", got.complaints);
    equal(&got.flows, &as_shown(sent, false, false), "lists");
}

#[test]
fn goflow2_decodes_every_flow() {
    for capture in captures() {
        for scheme in OVER_UDP {
            let Some(goflow2) = Goflow2::start(free_port()) else {
                return;
            };
            let url = format!("{scheme}://127.0.0.1:{}", goflow2.daemon.port);
            let sent = send(&capture, &url, &["--export-rate", "20k"]);
            let (got, what) = (goflow2.end(true), format!("{scheme} of {capture}"));
            assert!(got.complaints.is_empty(), "{what}: {:?}", got.complaints);
            let sent = as_shown(sent, scheme != "ipfix+udp", false);
            equal(&got.flows, &sent, &what);
        }
    }
}
