// SPDX-License-Identifier: Apache-2.0
//! nfacctd, the collector of pmacct. It sums flows with equal keys and times, and times of NetFlow
//! v5 and v9 have only seconds. Both sides are compared in that form.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;
use turboflow_testing::{Need, free_port, is_missing, until};

use crate::daemon::Daemon;
use crate::flow::{Collector, Flow, Got, OVER_UDP, captures, protocol_of, send, send_with_lists};
use crate::support::Folder;

/// A listening nfacctd.
pub(crate) struct Nfacctd(pub(crate) Daemon);

/// Appends rows every second, with times since 1970. Checks sequence numbers.
const CONFIG: &str = "daemonize: false\n\
    nfacctd_ip: 127.0.0.1\n\
    nfacctd_disable_checks: false\n\
    nfacctd_pipe_size: 4194304\n\
    aggregate: src_host,dst_host,src_port,dst_port,proto,tcpflags,timestamp_start,timestamp_end\n\
    plugins: print\n\
    plugin_pipe_size: 16777216\n\
    print_output: json\n\
    print_output_file_append: true\n\
    print_refresh_time: 1\n\
    print_cache_entries: 16411\n\
    timestamps_since_epoch: true\n";

impl Collector for Nfacctd {
    fn start(port: u16) -> Option<Self> {
        if is_missing(&[Need::Tool("nfacctd")]) {
            return None;
        }
        let folder = Folder::new();
        let rows = folder.file("flows.jsonl");
        let config = format!("{CONFIG}nfacctd_port: {port}\nprint_output_file: {rows}\n");
        let config = folder.write("nfacctd.conf", config);
        let mut command = Command::new("nfacctd");
        command.args(["-f", &config]);
        Some(Self(Daemon::start(&mut command, folder, port)))
    }

    fn end(self, all: bool) -> Got {
        if all {
            self.0.wait_until_handled();
            // Another process prints the rows. Flows that are still in its queue appear a second
            // later.
            let empty = || self.0.folder.read("talk").matches("QN: 0/0").count();
            let before = empty();
            until("it has shown everything", || empty() >= before + 2);
        }
        let folder = self.0.end("INT");
        let rows = fs::read_to_string(folder.path().join("flows.jsonl")).unwrap_or_default();
        let talk = folder.read("talk");
        let said = talk.lines().filter(|line| is_complaint(line));
        Got {
            flows: rows.lines().map(flow).collect(),
            complaints: said.map(str::to_owned).collect(),
        }
    }
}

/// nfacctd logs malformed templates and sequence errors as INFO.
fn is_complaint(line: &str) -> bool {
    let words = [
        "ERROR",
        "WARN",
        "malformed",
        "expecting",
        "unknown",
        "discarded",
    ];
    words.iter().any(|word| line.contains(word))
}

fn flow(line: &str) -> Flow {
    let row: Value = serde_json::from_str(line).unwrap();
    let text = |name: &str| row[name].as_str().unwrap();
    let ms = |name: &str| -> u64 {
        let (seconds, fraction) = text(name).split_once('.').unwrap();
        let milliseconds: u64 = fraction[..3].parse().unwrap();
        seconds.parse::<u64>().unwrap() * 1_000 + milliseconds
    };
    Flow {
        addresses: ["ip_src", "ip_dst"].map(|name| text(name).parse().unwrap()),
        ports: ["port_src", "port_dst"].map(|name| row[name].as_u64().unwrap()),
        protocol: protocol_of(text("ip_proto")),
        packets: row["packets"].as_u64().unwrap(),
        octets: row["bytes"].as_u64().unwrap(),
        first_ms: ms("timestamp_start"),
        last_ms: ms("timestamp_end"),
        tcp_flags: text("tcp_flags").parse().unwrap(),
        end_reason: 0,
    }
}

/// Merges flows with equal keys, and with `by_times` also equal times: sums, earliest and latest
/// time, and all flags.
fn added_up(flows: Vec<Flow>, by_times: bool) -> Vec<Flow> {
    let mut sums: BTreeMap<Flow, Flow> = BTreeMap::new();
    for flow in flows {
        let mut key = Flow {
            packets: 0,
            octets: 0,
            tcp_flags: 0,
            ..flow.clone()
        };
        if !by_times {
            (key.first_ms, key.last_ms) = (0, 0);
        }
        let sum = sums.entry(key).or_insert_with(|| Flow {
            packets: 0,
            octets: 0,
            tcp_flags: 0,
            ..flow.clone()
        });
        sum.packets += flow.packets;
        sum.octets += flow.octets;
        sum.tcp_flags |= flow.tcp_flags;
        sum.first_ms = sum.first_ms.min(flow.first_ms);
        sum.last_ms = sum.last_ms.max(flow.last_ms);
    }
    sums.into_values().collect()
}

#[test]
fn nfacctd_passes_over_lists() {
    let Some(nfacctd) = Nfacctd::start(free_port()) else {
        return;
    };
    let (_, packets) = send_with_lists(&format!("ipfix+udp://127.0.0.1:{}", nfacctd.0.port));
    let got = nfacctd.end(true);
    assert!(got.complaints.is_empty(), "{:?}", got.complaints);
    assert_eq!(
        got.flows.iter().map(|flow| flow.packets).sum::<u64>(),
        packets
    );
}

#[test]
fn nfacctd_decodes_every_flow() {
    for scheme in OVER_UDP {
        let Some(nfacctd) = Nfacctd::start(free_port()) else {
            return;
        };
        let url = format!("{scheme}://127.0.0.1:{}", nfacctd.0.port);
        let mut sent = Vec::new();
        for capture in captures() {
            sent.extend(send(&capture, &url, &["--export-rate", "20k"]));
        }
        let got = nfacctd.end(true);
        assert!(got.complaints.is_empty(), "{scheme}: {:#?}", got.complaints);
        for flow in &mut sent {
            flow.end_reason = 0;
            // It ignores TCP flags of two octets.
            let is_read = scheme != "ipfix+udp" || flow.tcp_flags <= 0xff;
            flow.tcp_flags = if is_read { flow.tcp_flags & 0xff } else { 0 };
        }
        let (by_times, apart_ms) = match scheme {
            "ipfix+udp" => (true, 0),
            _ => (false, 999),
        };
        let (got, sent) = (added_up(got.flows, by_times), added_up(sent, by_times));
        assert_eq!(got.len(), sent.len(), "{scheme}");
        for (got, sent) in got.into_iter().zip(sent) {
            let at = [got.first_ms, got.last_ms, sent.first_ms, sent.last_ms];
            assert!(
                at[0].abs_diff(at[2]) <= apart_ms,
                "{scheme}: {got:?}, sent {sent:?}"
            );
            assert!(
                at[1].abs_diff(at[3]) <= apart_ms,
                "{scheme}: {got:?}, sent {sent:?}"
            );
            let got = Flow {
                first_ms: sent.first_ms,
                last_ms: sent.last_ms,
                ..got
            };
            assert_eq!(got, sent, "{scheme}");
        }
    }
}
