// SPDX-License-Identifier: Apache-2.0
//! IPFIX over TLS to OpenSSL's server: exported records arrive, certificates are checked, and
//! refusals are reported.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use turboflow_testing::{Need, is_missing, until};

use crate::certificates::Certificates;
use crate::support::{Folder, Ran, finish, office, turboflow};

const FIELDS: [&str; 13] = [
    "srcaddr",
    "dstaddr",
    "srcaddrv6",
    "dstaddrv6",
    "srcport",
    "dstport",
    "protocol",
    "packets",
    "octets",
    "abstimestart",
    "abstimeend",
    "tcpflags",
    "flow_end_reason",
];

impl Certificates {
    /// Starts a server with this certificate, which writes what it receives to a file.
    pub(crate) fn serve(&self, certificate: &str, more: &[&str]) -> Server {
        // If another process takes the port first, the server exits at once.
        let mut attempts = (0..10).map(|_| self.attempt(certificate, more));
        let server = attempts.find_map(Server::listening);
        server.expect("a port stays free")
    }

    fn attempt(&self, certificate: &str, more: &[&str]) -> Server {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let (got, said) = (Folder::new(), Folder::new());
        let output = std::fs::File::create(got.path().join("got.ipfix")).unwrap();
        let errors = std::fs::File::create(said.path().join("said")).unwrap();
        let child = Command::new("openssl")
            .args(["s_server", "-quiet", "-accept"])
            .arg(format!("127.0.0.1:{port}"))
            .args(["-cert", &format!("{certificate}.pem")])
            .args(["-key", &format!("{certificate}.key")])
            .args(more)
            .current_dir(self.0.path())
            // Standard input stays open, because the server exits at its end.
            .stdin(Stdio::piped())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .unwrap();
        Server {
            child,
            port,
            got,
            said,
        }
    }
}

/// Killed at the end of the test.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) got: Folder,
    said: Folder,
}

impl Server {
    /// Waits until the server listens; `None` if it exits.
    fn listening(mut self) -> Option<Self> {
        // A test connection would appear in the server's output.
        let address = format!(":{:04X} 00000000:0000 0A", self.port);
        let (mut listens, mut has_ended) = (false, false);
        until("openssl listens", || {
            has_ended = self.child.try_wait().unwrap().is_some();
            let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
            listens = sockets.contains(&address);
            listens || has_ended
        });
        (listens && !has_ended).then_some(self)
    }

    fn url(&self, host: &str) -> String {
        format!("ipfix+tls://{host}:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The flows in an IPFIX file as tshark reads them: one column per field, and two for expert
/// messages.
fn flows(file: &Path) -> Vec<Vec<String>> {
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(file).args(["-T", "fields"]);
    for field in FIELDS {
        tshark.args(["-e", &format!("cflow.{field}")]);
    }
    tshark.args(["-e", "_ws.malformed", "-e", "_ws.expert.message"]);
    let ran = finish(&mut tshark);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // tshark prints one line per message, with the values of its flows as columns. Joining the
    // lines makes the columns independent of the distribution of flows over messages.
    let mut columns = vec![Vec::new(); FIELDS.len() + 2];
    for line in ran.stdout.lines() {
        for (column, values) in columns.iter_mut().zip(line.split('\t')) {
            column.extend(
                values
                    .split(',')
                    .filter(|value| !value.is_empty())
                    .map(str::to_owned),
            );
        }
    }
    columns
}

#[test]
fn a_collector_over_tls_gets_the_records_of_a_file() {
    let Some(made) = Certificates::make() else {
        return;
    };
    if is_missing(&[Need::Tool("tshark")]) {
        return;
    }
    for version in ["-tls1_2", "-tls1_3"] {
        let (server, folder) = (made.serve("server", &[version]), Folder::new());
        let (capture, file, url) = (
            office(),
            folder.file("flows.ipfix"),
            server.url("localhost"),
        );
        let args = [
            "record",
            "-q",
            "-r",
            &capture,
            "-w",
            &file,
            "-w",
            &url,
            "--tls-ca",
            &made.file("ca.pem"),
            "--seed",
            "1",
        ];
        turboflow(args).exits(0);
        // The server closes its side after the client, when it has written everything. (The file
        // also holds the definition.)
        let (file, got) = (Path::new(&file), server.got.path().join("got.ipfix"));
        until("openssl has written what it got", || {
            flow_octets(&got) >= flow_octets(file)
        });
        let (sent, got) = (flows(file), flows(&got));
        assert_eq!(sent[12].len(), 742, "every flow has an end reason");
        assert!(sent[13..].iter().all(Vec::is_empty), "{:?}", &sent[13..]);
        assert_eq!(sent, got, "{version}: {}", server.said.read("said"));
    }
}

/// Octets of flow records in the complete messages of an IPFIX file: the contents of sets from 261
/// on.
fn flow_octets(file: &Path) -> usize {
    let bytes = std::fs::read(file).unwrap();
    let two = |at: usize| usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    let (mut start, mut octets) = (0, 0);
    while bytes.len() - start >= 16 && bytes.len() - start >= two(start + 2) {
        let end = start + two(start + 2);
        let mut at = start + 16;
        while at < end {
            let length = two(at + 2);
            octets += if two(at) < 261 { 0 } else { length - 4 };
            at += length;
        }
        start = end;
    }
    octets
}

/// Sends to a collector that refuses the session. Checks that this is reported once and that the
/// records are counted, and returns the run.
fn refused(url: &str, options: &[&str]) -> Ran {
    let capture = office();
    let args = ["record", "-q", "-r", &capture, "-w", url];
    let ran = turboflow(args.iter().chain(options)).exits(1);
    let told = ran.stderr.matches("tried again").count();
    assert_eq!(told, 1, "{}", ran.stderr);
    ran.says(&["742 records count as lost"])
}

#[test]
fn untrusted_collectors_get_no_records_and_the_reason_is_reported() {
    let Some(made) = Certificates::make() else {
        return;
    };
    let (ca, other) = (made.file("ca.pem"), made.file("other.pem"));
    let wants_us: &[&str] = &["-Verify", "2", "-CAfile", "ca.pem", "-verify_return_error"];
    let wants_us_1_2 = [wants_us, &["-tls1_2"]].concat();
    // In parallel, because each run waits for its collector at the end.
    std::thread::scope(|scope| {
        for (certificate, server_options, ca, words) in [
            ("server", &[][..], &other, "not signed by a trusted"),
            ("elsewhere", &[], &ca, "not valid for name \"localhost\""),
            ("expired", &[], &ca, "has expired"),
            ("ca", &[], &ca, "CA:TRUE"),
            ("server", wants_us, &ca, "another client certificate"),
            ("server", &wants_us_1_2, &ca, "another client certificate"),
        ] {
            let made = &made;
            scope.spawn(move || {
                let server = made.serve(certificate, server_options);
                refused(&server.url("localhost"), &["--tls-ca", ca]).says(&[words]);
                assert_eq!(server.got.read("got.ipfix"), "");
            });
        }
    });
}

#[test]
fn a_client_certificate_is_presented_on_request() {
    let Some(made) = Certificates::make() else {
        return;
    };
    let file = |name: &str| made.file(name);
    let (ca, certificate, key) = (file("ca.pem"), file("client.pem"), file("client.key"));
    let wants_us = ["-Verify", "2", "-CAfile", "ca.pem", "-verify_return_error"];
    let (server, capture) = (made.serve("server", &wants_us), office());
    // The certificate also covers the address.
    let url = server.url("127.0.0.1");
    let mut args = vec!["record", "-q", "-r", &capture, "-w", &url, "--tls-ca", &ca];
    args.extend(["--tls-cert", &certificate, "--tls-key", &key]);
    let ran = turboflow(args).exits(0);
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_port_without_tls_delays_no_exit() {
    let Some(made) = Certificates::make() else {
        return;
    };
    let ca = made.file("ca.pem");
    // One server speaks another protocol. One never answers, because its connections wait in the
    // backlog.
    let (talks, silent) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        TcpListener::bind("127.0.0.1:0").unwrap(),
    );
    let url = |listener: &TcpListener| format!("ipfix+tls://{}", listener.local_addr().unwrap());
    let urls = [url(&talks), url(&silent)];
    std::thread::spawn(move || {
        use std::io::Write;
        for stream in talks.incoming() {
            let _ = stream.unwrap().write_all(b"220 mail.example ESMTP\r\n");
        }
    });
    std::thread::scope(|scope| {
        for (url, words) in urls.iter().zip(["does not speak TLS", "does not answer"]) {
            let options = ["--tls-ca", &ca];
            scope.spawn(move || refused(url, &options).says(&[words]));
        }
    });
}

#[test]
fn wrong_certificate_files_are_refused_at_the_start() {
    let Some(made) = Certificates::make() else {
        return;
    };
    let (capture, folder) = (office(), Folder::new());
    made.0.write("empty.pem", "");
    made.0.write(
        "junk.pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    made.openssl("pkcs8 -topk8 -in client.key -passout pass:x -out locked.key");
    for (options, words) in [
        ("--tls-ca absent.pem", "--tls-ca: "),
        ("--tls-ca empty.pem", "no certificate"),
        ("--tls-ca junk.pem", "is not a certificate"),
        ("--tls-ca ca.key", "no certificate"),
        ("--tls-cert client.pem", "--tls-key"),
        ("--tls-key client.key", "--tls-cert"),
        (
            "--tls-cert client.pem --tls-key server.key",
            "not the key of that",
        ),
        ("--tls-cert client.pem --tls-key client.pem", "--tls-key: "),
        (
            "--tls-cert client.pem --tls-key locked.key",
            "without a password",
        ),
        ("--tls-cert client.key --tls-key client.key", "--tls-cert: "),
    ] {
        let csv = folder.file("flows.csv");
        let mut args = vec![
            "record",
            "-r",
            &capture,
            "-w",
            &csv,
            "-w",
            "ipfix+tls://localhost:1",
        ];
        if !options.contains("--tls-ca") {
            args.extend(["--tls-ca", "ca.pem"]);
        }
        args.extend(options.split(' '));
        let mut program = crate::support::command(args);
        let ran = finish(program.current_dir(made.0.path()));
        ran.exits(2).says(&[words]);
        assert!(folder.names().is_empty(), "{options}: {:?}", folder.names());
    }
    let url = "ipfix+tls://localhost:1";
    let mut program = crate::support::command(["record", "-r", &capture, "-w", url]);
    let nothing = ["SSL_CERT_FILE", "SSL_CERT_DIR"];
    program.envs(nothing.map(|name| (name, "/nonexistent")));
    finish(&mut program).exits(2).says(&["--tls-ca", "system"]);
    let plain = "ipfix+tcp://localhost:1";
    let args = ["record", "-r", &capture, "-w", plain, "--tls-ca", "ca.pem"];
    turboflow(args).exits(2).says(&["--tls-ca", "ipfix+tls://"]);
}
