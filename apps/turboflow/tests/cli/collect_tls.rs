// SPDX-License-Identifier: Apache-2.0
//! A collector over TLS: our own exports come back equal, certificates are checked on both sides,
//! and silent connections cost little.

use std::io::{Read, Write};
use std::net::TcpStream;

use turboflow_testing::PATIENCE;

use crate::certificates::Certificates;
use crate::collecting::Collecting;
use crate::support::{office, rows, turboflow};

/// A collector with the server certificate of `made`, which demands client certificates from the
/// same authority.
fn collector(made: &Certificates) -> Collecting {
    let [cert, key, ca] = ["server.pem", "server.key", "ca.pem"].map(|name| made.file(name));
    let identity = [
        "--listen-cert",
        &cert,
        "--listen-key",
        &key,
        "--listen-ca",
        &ca,
    ];
    Collecting::at("tls://127.0.0.1:0", &identity)
}

#[test]
fn our_own_exports_over_tls_come_back_equal() {
    let Some(made) = Certificates::make() else {
        return;
    };
    let mut collecting = collector(&made);
    let address = collecting.address();
    // More than the limit of open handshakes, so that the oldest are dropped.
    let silent: Vec<TcpStream> = (0..70)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let (csv, url) = (
        collecting.folder.file("sent.csv"),
        format!("ipfix+tls://{address}"),
    );
    let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|name| made.file(name));
    let record = ["record", "-q", "-r", &office(), "-w", &csv, "-w", &url];
    let tls = ["--tls-ca", &ca, "--tls-cert", &cert, "--tls-key", &key];
    turboflow(record.iter().chain(&tls).chain(&["--export-time", "ns"])).exits(0);
    let ended = collecting.end("INT");
    drop(silent);
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let [sent, got] = ["sent.csv", "flows.csv"].map(|name| rows(&ended.folder.read(name)));
    assert_eq!(sent.len(), 742);
    assert_eq!(sent, got, "{}", ended.said);
    let ledger = ended.ledger();
    assert_eq!(ledger["balanced"], true, "{ledger:#}");
    assert_eq!(ledger["microflows_dropped"], 0, "{ledger:#}");
    let failed = ledger["engine_counts"]["engine_collector_handshakes_failed"].as_u64();
    assert!(failed >= Some(70 + 1 - 64), "{ledger:#}");
    assert!(
        ended.said.contains("too many handshakes are in progress"),
        "{}",
        ended.said
    );
}

#[test]
fn exporters_with_wrong_certificates_are_refused_and_silent_ones_cut_off() {
    let Some(made) = Certificates::make() else {
        return;
    };
    let mut collecting = collector(&made);
    let address = collecting.address();
    let url = format!("ipfix+tls://{address}");
    let mut silent = TcpStream::connect(address).unwrap();
    let mut other = TcpStream::connect(address).unwrap();
    other.write_all(b"220 mail.example ESMTP\r\n").unwrap();
    let file = |name: &str| made.file(name);
    let (office, ca, strange) = (office(), file("ca.pem"), file("other.pem"));
    let strange_client = ["--tls-cert", &strange, "--tls-key", &file("other.key")];
    std::thread::scope(|scope| {
        for (authority, client) in [
            // It trusts another authority, has no certificate, or has one of another authority.
            (&strange, &[][..]),
            (&ca, &[][..]),
            (&ca, &strange_client[..]),
        ] {
            let args = [
                "record", "-q", "-r", &office, "-w", &url, "--tls-ca", authority,
            ];
            let args: Vec<&str> = args.into_iter().chain(client.iter().copied()).collect();
            scope.spawn(move || {
                turboflow(args)
                    .exits(1)
                    .says(&["742 records count as lost"])
            });
        }
        // Both are cut off within seconds.
        for stream in [&mut silent, &mut other] {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut alert = Vec::new();
            // The connection may be reset, because not everything sent was read.
            let _ = stream.read_to_end(&mut alert);
        }
    });
    let ended = collecting.end("INT");
    for words in [
        "does not accept the certificate of this collector",
        "the exporter has no certificate, which --listen-ca asks for",
        "the exporter's certificate",
        "the exporter does not speak TLS",
    ] {
        assert!(ended.said.contains(words), "{words}: {}", ended.said);
    }
    assert_eq!(rows(&ended.folder.read("flows.csv")).len(), 0);
    // Exporters retry often: each attempt is counted, but not each is logged.
    let failed = ended.ledger()["engine_counts"]["engine_collector_handshakes_failed"].as_u64();
    assert!(failed >= Some(5), "{failed:?}");
}

#[test]
fn certificates_that_do_not_fit_are_refused_at_the_start() {
    let Some(made) = Certificates::make() else {
        return;
    };
    let [cert, key, other] = ["server.pem", "server.key", "client.key"].map(|name| made.file(name));
    for (given, words) in [
        (
            ["--listen-cert", &cert, "--listen-key", &other],
            "not the key of that certificate",
        ),
        (
            ["--listen-cert", &key, "--listen-key", &key],
            "--listen-cert: ",
        ),
        (
            ["--listen-cert", &cert, "--listen-key", "/absent.key"],
            "--listen-key: ",
        ),
    ] {
        let collect = ["collect", "--listen", "tls://127.0.0.1:0"];
        turboflow(collect.iter().chain(&given))
            .exits(2)
            .says(&[words]);
    }
    let collect = [
        "collect",
        "--listen",
        "tls://127.0.0.1:0",
        "--listen-cert",
        &cert,
    ];
    turboflow(collect)
        .exits(2)
        .says(&["add --listen-key FILE.pem"]);
}
