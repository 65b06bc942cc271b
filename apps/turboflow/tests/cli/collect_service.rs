// SPDX-License-Identifier: Apache-2.0
//! `turboflow run` with the engine `collector`: configured by a file, queried while it runs,
//! reloaded, and ended.

use std::os::unix::net::UnixDatagram;

use turboflow_testing::{PATIENCE, until};

use crate::collecting::{Collecting, metric, page};
use crate::support::{Folder, command, rows, turboflow, udp_capture};

/// Records wait until the end, because their packets are not older than the lag.
const CONFIG: &str = r#"
[engine]
name = "collector"

[engine.collector]
listen = ["udp://127.0.0.1:0", "tcp://127.0.0.1:0"]
lag = "20000d"

[service]
metrics = "127.0.0.1:0"
ledger = "ledger.json"

[[output]]
to = "all-%Y%m%dT%H%M%S.csv"
rotate = "1h"

[[output]]
to = "before.jsonl"
"#;

#[test]
fn a_collector_is_a_service() {
    let folder = Folder::new();
    folder.write("turboflow.toml", CONFIG);
    let notify = UnixDatagram::bind(folder.path().join("notify")).unwrap();
    notify.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut program = command(["run", "--config", "turboflow.toml"]);
    program.env("NOTIFY_SOCKET", folder.path().join("notify"));
    let mut running = Collecting::start(&mut program, folder);
    let (udp, tcp, pages) = (running.address(), running.address(), running.pages());
    let told = |words: &str| {
        let mut bytes = [0; 64];
        until(words, || {
            let length = notify.recv(&mut bytes).unwrap();
            &bytes[..length] == words.as_bytes()
        });
    };
    told("READY=1");
    assert_eq!(page(pages, "/healthz"), "ok\n");

    let send = |url: &str, capture: Vec<u8>| {
        let folder = Folder::new();
        let capture = folder.write("c.pcap", capture);
        let args = ["record", "-q", "-r", &capture, "-w", url];
        turboflow(args.iter().chain(&["--export-rate", "20k"])).exits(0);
    };
    send(&format!("ipfix+udp://{udp}"), udp_capture(500));
    until("they have come", || {
        metric(pages, "engine_collector_flows_total") == 500
    });
    assert_eq!(metric(pages, "engine_collector_records_waiting"), 500);
    assert_eq!(metric(pages, "ledger_imbalances"), 0);

    // Outputs are changed and files rotate; options of the engine wait for the next start.
    let other = CONFIG.replace("before.jsonl", "after.csv");
    let other = other.replace("lag = \"20000d\"", "lag = \"2h\"");
    running.folder.write("turboflow.toml", &other);
    running.signal("HUP");
    let waits = "engine.collector.lag: takes effect at the next start";
    running.talk.wait_for(waits);
    running.talk.wait_for("kept: 1, begun: 1, ended: 1");
    let wrong = other.replace("lag =", "leg =");
    running.folder.write("turboflow.toml", wrong);
    running.signal("HUP");
    running.talk.wait_for("everything stays as it was");

    send(&format!("ipfix+tcp://{tcp}"), udp_capture(700));
    until("they have come", || {
        metric(pages, "engine_collector_flows_total") == 1_200
    });
    let ended = running.end("TERM");
    told("STOPPING=1");
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let ledger = ended.ledger();
    assert_eq!(ledger["balanced"], true, "{ledger:#}");
    assert_eq!(ledger["packets_recorded"], 1_200, "{ledger:#}");
    assert_eq!(
        ledger["engine_counts"]["engine_collector_records_waiting"],
        0
    );
    let names = ended.folder.names();
    let files = names.iter().filter(|name| name.starts_with("all-"));
    let counts: Vec<usize> = files
        .map(|name| rows(&ended.folder.read(name)).len())
        .collect();
    assert!(
        counts.len() >= 2 && counts.iter().sum::<usize>() == 700,
        "{names:?}"
    );
    assert_eq!(rows(&ended.folder.read("after.csv")).len(), 700);
    assert_eq!(ended.folder.read("before.jsonl"), "", "its records waited");
}

#[test]
fn configurations_of_collectors_are_checked() {
    let folder = Folder::new();
    let output = format!("[[output]]\nto = \"{}\"\n", folder.file("a.csv"));
    let collector = "[engine]\nname = \"collector\"\n";
    let with = |options: &str| format!("{collector}{options}\n{output}");
    let listen = "[engine.collector]\nlisten = \"udp://127.0.0.1:2055\"\n";
    for (text, words) in [
        (
            with(""),
            "the key `listen` in [engine.collector] is missing",
        ),
        (with("[engine.collector]\nlisten = []"), "`listen` is empty"),
        (
            with(&format!("{listen}from = \"a.ipfix\"")),
            "`from` in [engine.collector]: a service does not read input files",
        ),
        (
            with(&format!("{listen}[source]\ninterfaces = \"lo\"")),
            "(`listen` in [engine.collector]): leave out `interfaces` in [source]",
        ),
        (
            format!("[source]\ninterfaces = \"lo\"\n{listen}{output}"),
            "is for engine `collector`: leave it out",
        ),
        (
            with(&format!("{listen}[flow]\nbiflow = true")),
            "does not support `biflow` in [flow]",
        ),
        (
            with("[engine.collector]\nlisten = \"tls://127.0.0.1:4740\""),
            "add `tls-cert = \"FILE.pem\"` in [engine.collector]",
        ),
        (
            with(&format!("{listen}tls-ca = \"a.pem\"")),
            "`tls-ca` in [engine.collector] is for exporters over TLS",
        ),
        (
            format!("[engine]\nname = \"records\"\n{output}"),
            "engine `records` is for `turboflow record`",
        ),
    ] {
        let config = folder.write("turboflow.toml", &text);
        let ran = turboflow(["run", "--config", &config, "--check"]).exits(2);
        assert_eq!(ran.says(&[words]).stderr.lines().count(), 1, "{text}");
    }
    let csv = folder.file("b-%H.csv");
    let flags = ["collect", "--listen", "udp://:2055,tcp://:4739", "-w", &csv];
    let more = ["--rotate", "1h", "--print-config"];
    let printed = turboflow(flags.iter().chain(&more)).exits(0).stdout;
    let config = folder.write("printed.toml", &printed);
    turboflow(["run", "--config", &config, "--check"])
        .exits(0)
        .says(&["is valid"]);
}
