// SPDX-License-Identifier: Apache-2.0
//! `turboflow collect` receives from exporters: TurboFlow itself, in every format and over every
//! transport. The sums are those of the capture.

use crate::daemon::Daemon;
use crate::flow::{Flow, as_shown, captures, equal, of_csv, send};
use crate::support::{Folder, command, office, rows, turboflow};
use turboflow_testing::free_port;

/// A running `turboflow collect`, which writes `flows.csv` and `ledger.json`.
pub(crate) struct Collecting(Daemon);

impl Collecting {
    pub(crate) fn start(more: &[&str]) -> Self {
        let (folder, port) = (Folder::new(), free_port());
        let (csv, ledger) = (folder.file("flows.csv"), folder.file("ledger.json"));
        let listen = format!("udp://127.0.0.1:{port},tcp://127.0.0.1:{port}");
        let args = [
            "collect", "--listen", &listen, "-w", &csv, "--ledger", &ledger,
        ];
        let mut command = command(args.iter().chain(more));
        Self(Daemon::start(&mut command, folder, port))
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.port
    }

    /// Ends it as Ctrl-C does. Everything received by then is processed.
    pub(crate) fn end(self) -> Folder {
        self.0.end("INT")
    }
}

/// The flows without end reasons, which a collector determines anew.
pub(crate) fn flows(csv: &str) -> Vec<Flow> {
    as_shown(of_csv(csv), false, false)
}

/// The sums of packets and bytes.
pub(crate) fn sums(flows: &[Flow]) -> (u64, u64) {
    let packets = flows.iter().map(|flow| flow.packets).sum();
    (packets, flows.iter().map(|flow| flow.octets).sum())
}

pub(crate) fn ledger(folder: &Folder) -> serde_json::Value {
    serde_json::from_str(&folder.read("ledger.json")).unwrap()
}

#[test]
fn our_own_exports_come_back_equal() {
    for capture in captures() {
        for scheme in ["ipfix+udp", "ipfix+tcp", "netflow9+udp", "netflow5+udp"] {
            let what = format!("{scheme} of {capture}");
            let collecting = Collecting::start(&["-q", "--collector-lag", "1h"]);
            let url = format!("{scheme}://127.0.0.1:{}", collecting.port());
            let sent = send(&capture, &url, &["--export-rate", "20k"]);
            let folder = collecting.end();
            let got = flows(&folder.read("flows.csv"));
            let sent = as_shown(sent, scheme.starts_with("netflow5"), false);
            let found = ledger(&folder);
            assert_eq!(found["balanced"], true, "{what}");
            assert_eq!(found["microflows_dropped"], 0, "{what}");
            assert_eq!(sums(&got), sums(&sent), "{what}");
            // With times in whole ms, a collector may merge flows that were less than 1 ms apart.
            if !capture.contains("shared") {
                equal(&got, &sent, &what);
            }
        }
    }
}

#[test]
fn files_with_all_digits_come_back_equal_column_by_column() {
    for capture in captures() {
        let folder = Folder::new();
        let [csv, ipfix, back] = ["a.csv", "a.ipfix", "b.csv"].map(|name| folder.file(name));
        let record = ["record", "-q", "-r", &capture, "-w", &csv, "-w", &ipfix];
        turboflow(record.iter().chain(&["--export-time", "ns"])).exits(0);
        let ran = turboflow(["collect", "-q", "-r", &ipfix, "-w", &back]).exits(0);
        let [before, after] = ["a.csv", "b.csv"].map(|name| rows(&folder.read(name)));
        let differ = before
            .iter()
            .zip(&after)
            .find(|(before, after)| before != after);
        assert_eq!(differ, None, "{capture}: {ran:?}");
        assert_eq!(before.len(), after.len(), "{capture}");
    }
}

/// As a service, with one file of flow records per hour.
#[test]
fn files_may_rotate_while_it_listens() {
    let (folder, port) = (Folder::new(), free_port());
    let listen = format!("udp://127.0.0.1:{port}");
    let [hourly, csv] = ["hour-%Y%m%dT%H%M%S.csv", "sent.csv"].map(|name| folder.file(name));
    let args = [
        "collect",
        "-q",
        "--listen",
        &listen,
        "-w",
        &hourly,
        "--rotate",
        "1h",
        "--collector-lag",
        "1h",
    ];
    let collecting = Daemon::start(&mut command(args), folder, port);
    let url = format!("ipfix+udp://127.0.0.1:{port}");
    let sent = as_shown(
        send(&office(), &url, &["--export-rate", "20k"]),
        false,
        false,
    );
    let folder = collecting.end("INT");
    let names = folder.names();
    let hour = names.iter().filter(|name| name.starts_with("hour-2"));
    let got: Vec<Flow> = hour.flat_map(|name| flows(&folder.read(name))).collect();
    assert_eq!(sums(&got), sums(&sent), "{names:?} {csv}");
}

#[test]
fn cut_records_are_one_flow_again() {
    let folder = Folder::new();
    let [ipfix, back, whole] = ["a.ipfix", "b.csv", "c.csv"].map(|name| folder.file(name));
    let cut = ["record", "-q", "-r", &office(), "-w", &ipfix];
    turboflow(
        cut.iter()
            .chain(&["--active-timeout", "1s", "--export-time", "ns"]),
    )
    .exits(0);
    turboflow(["record", "-q", "-r", &office(), "-w", &whole]).exits(0);
    turboflow(["collect", "-q", "-r", &ipfix, "-w", &back]).exits(0);
    assert_eq!(rows(&folder.read("b.csv")), rows(&folder.read("c.csv")));
}

#[test]
fn a_lost_datagram_is_in_the_ledger() {
    let folder = Folder::new();
    let ipfix = folder.file("a.ipfix");
    turboflow(["record", "-q", "-r", &office(), "-w", &ipfix]).exits(0);
    let whole = std::fs::read(&ipfix).unwrap();
    let mut messages = Vec::new();
    let mut rest = &whole[..];
    while rest.len() >= 16 {
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        messages.push(&rest[..length]);
        rest = &rest[length..];
    }
    // Not the first, which has the templates, nor the last, whose loss would go unnoticed.
    let at = messages.len() / 2;
    assert!(at >= 1 && at + 1 < messages.len(), "{}", messages.len());
    let sequence = |at: usize| {
        let message: &[u8] = messages[at];
        u32::from_be_bytes([message[8], message[9], message[10], message[11]])
    };
    let missing = sequence(at + 1) - sequence(at);
    messages.remove(at);
    let short = folder.write("short.ipfix", messages.concat());
    let (csv, ledger_file) = (folder.file("flows.csv"), folder.file("ledger.json"));
    let args = [
        "collect",
        "-r",
        &short,
        "-w",
        &csv,
        "--ledger",
        &ledger_file,
    ];
    turboflow(args).exits(1).says(&["sequence numbers"]);
    let found = ledger(&folder);
    assert_eq!(found["microflows_dropped"], missing);
    assert_eq!(
        found["engine_counts"]["engine_collector_records_lost"],
        missing
    );
}

#[test]
fn a_definition_that_no_record_can_fill_is_refused_by_name() {
    let folder = Folder::new();
    let base = turboflow(["definition"]).exits(0).stdout;
    let with = |feature: &str| folder.write("d.toml", format!("{base}[[feature]]\n{feature}"));
    for (feature, words) in [
        (
            "name = \"w\"\nop = \"max\"\nof = \"tcp_window\"\n",
            "tcp_window",
        ),
        (
            "name = \"l\"\nop = \"list\"\nk = 3\nof = \"ip_length\"\n",
            "a list of `ip_length`",
        ),
    ] {
        let definition = with(feature);
        let args = ["collect", "-r", "absent.ipfix", "--definition", &definition];
        turboflow(args).exits(2).says(&[words]);
    }
    turboflow(["collect"])
        .exits(2)
        .says(&["--listen", "needs exporters"]);
    turboflow(["collect", "--listen", "sctp://:1"])
        .exits(2)
        .says(&["udp://"]);
}

#[test]
fn sampling_is_a_column() {
    let folder = Folder::new();
    let base = turboflow(["definition"]).exits(0).stdout;
    let feature = "[[feature]]\nname = \"sampling\"\nop = \"max\"\nof = \"sampling_interval\"\n";
    let definition = folder.write("d.toml", base + feature);
    let (ipfix, csv) = (folder.file("a.ipfix"), folder.file("b.csv"));
    turboflow(["record", "-q", "-r", &office(), "-w", &ipfix]).exits(0);
    let collect = ["collect", "-q", "-r", &ipfix, "-w", &csv];
    turboflow(collect.iter().chain(&["--definition", &definition])).exits(0);
    let csv = folder.read("b.csv");
    let mut names = csv.lines().next().unwrap().split(',');
    let place = names.position(|name| name == "sampling").unwrap();
    let all_seen = |row: &String| row.split(',').nth(place) == Some("1");
    assert!(rows(&csv).len() > 700 && rows(&csv).iter().all(all_seen));
}
