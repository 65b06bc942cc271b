// SPDX-License-Identifier: Apache-2.0
//! Several outputs in one configuration, each with options of its own, checked at the receivers.

use std::fs::{self, File};
use std::net::UdpSocket;
use std::process::{Child, Stdio};

use turboflow_testing::{Need, is_missing};

use crate::link::Link;
use crate::support::{Folder, office};

/// A certificate authority, and its certificates for a collector on this host and for the exporter.
const CERTIFICATES: &str = "
for name in a b; do
    new='openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
    $new -x509 -days 2 -subj /CN=$name-ca -keyout $name-ca.key -out $name-ca.pem
    for end in server client; do
        $new -subj /CN=$name-$end -keyout $name-$end.key -out $end.csr
        echo subjectAltName=DNS:$end.example,IP:127.0.0.1 > extensions
        openssl x509 -req -in $end.csr -CA $name-ca.pem -CAkey $name-ca.key -CAcreateserial -days 2 \
            -extfile extensions -out $name-$end.pem
    done
done 2>/dev/null";

/// A TLS server that accepts only clients of its own authority and stores what it receives.
struct Server(Child);

impl Server {
    fn start(link: &Link, folder: &Folder, name: &str, port: u16) -> Self {
        let got = File::create(folder.path().join(format!("{name}.got"))).unwrap();
        let mut command = link.inside("openssl");
        command.args(["s_server", "-quiet", "-verify_return_error", "-Verify", "1"]);
        command.args(["-accept", &format!("127.0.0.1:{port}")]);
        command.args(["-cert", &format!("{name}-server.pem")]);
        command.args(["-key", &format!("{name}-server.key")]);
        command.args(["-CAfile", &format!("{name}-ca.pem")]);
        command.current_dir(folder.path());
        // Standard input stays open, because the server exits at its end.
        command
            .stdin(Stdio::piped())
            .stdout(got)
            .stderr(Stdio::null());
        let server = Self(command.spawn().unwrap());
        link.shell(&format!(
            "until ss -Hltn 'sport = {port}' | grep -q .; do sleep 0.05; done"
        ));
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `theirs`: for each of two collectors, whose authority and client certificate to use.
fn configuration(theirs: [&str; 2]) -> String {
    let collectors = theirs.iter().zip([4803, 4804]).map(|(name, port)| {
        format!(
            "[[output]]\nto = \"ipfix+tls://127.0.0.1:{port}\"\ntls-ca = \"{name}-ca.pem\"\n\
             tls-cert = \"{name}-client.pem\"\ntls-key = \"{name}-client.key\"\n"
        )
    });
    "[source]\ninterfaces = [\"vb\"]\n[service]\nmetrics = \"none\"\nledger = \"ledger.json\"\n\
     [[output]]\nto = \"ipfix+udp://127.0.0.1:4801\"\nmtu = 512\nobservation-domain = 1\n\
     [[output]]\nto = \"ipfix+udp://127.0.0.1:4802\"\nmtu = 1400\nobservation-domain = 2\n"
        .to_owned()
        + &collectors.collect::<String>()
}

/// The sizes and observation domains of all received datagrams.
fn datagrams(socket: &UdpSocket) -> Vec<(usize, u32)> {
    socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 2_048];
    let mut came = Vec::new();
    while let Ok(size) = socket.recv(&mut buffer) {
        let domain = buffer[12..16].try_into().unwrap();
        came.push((size, u32::from_be_bytes(domain)));
    }
    came
}

#[test]
fn each_collector_has_its_own_mtu_and_certificates() {
    let Some(link) = Link::new() else { return };
    if is_missing(&[Need::Tool("openssl")]) {
        return;
    }
    // Used by both runs, because a process that another test starts may briefly inherit a socket.
    let sockets = [4801_u16, 4802]
        .map(|port| link.open(move || UdpSocket::bind(("127.0.0.1", port)).unwrap()));
    let run = |theirs: [&str; 2]| {
        let folder = Folder::new();
        link.shell(&format!("cd {} && {CERTIFICATES}", folder.path().display()));
        let servers = [("a", 4803), ("b", 4804)]
            .map(|(name, port)| Server::start(&link, &folder, name, port));
        folder.write("turboflow.toml", configuration(theirs));
        let running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
        assert!(link.replay(&office(), &["--pps", "10000", "--limit", "400"]));
        running.signal("TERM");
        let ended = running.end();
        drop(servers);
        (ended, [0, 1].map(|at: usize| datagrams(&sockets[at])))
    };

    let (ended, [small, large]) = run(["a", "b"]);
    let ended = ended.balanced(0);
    assert!(
        small
            .iter()
            .all(|(size, domain)| *size <= 512 && *domain == 1),
        "{small:?}"
    );
    assert!(large.iter().all(|(_, domain)| *domain == 2), "{large:?}");
    assert!(large.iter().any(|(size, _)| *size > 512), "{large:?}");
    for name in ["a", "b"] {
        // An IPFIX message begins with version 10.
        let got = fs::read(ended.folder.file(&format!("{name}.got"))).unwrap();
        assert_eq!(got.get(..2), Some(&[0, 10][..]), "{name}: {}", ended.said);
    }

    // With swapped certificates both are refused, so each has used its own before.
    let (ended, _) = run(["b", "a"]);
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    for port in [4803, 4804] {
        let said = format!("127.0.0.1:{port}: the collector's certificate is not signed by");
        assert!(ended.said.contains(&said), "{}", ended.said);
    }
}

#[test]
fn an_output_restarts_only_when_its_own_options_change() {
    let Some(link) = Link::new() else { return };
    let _sockets = [4801_u16, 4802]
        .map(|port| link.open(move || UdpSocket::bind(("127.0.0.1", port)).unwrap()));
    let folder = Folder::new();
    let config = "[source]\ninterfaces = [\"vb\"]\n[service]\nmetrics = \"none\"\nledger = \"ledger.json\"\n\
                  [[output]]\nto = \"ipfix+udp://127.0.0.1:4801\"\nmtu = 512\n\
                  [[output]]\nto = \"ipfix+udp://127.0.0.1:4802\"\n";
    folder.write("turboflow.toml", config);
    let mut running = link.start(folder, &["run", "--config", "turboflow.toml"], &[]);
    let other = config.replace("mtu = 512", "mtu = 600");
    let waits = format!("{other}[timeouts]\nidle = \"1s\"\nlinger = \"2000ms\"\n");
    for (text, said) in [
        (&other, "kept: 1, begun: 1, ended: 1"),
        (
            &waits,
            "turboflow.toml: timeouts.idle: takes effect at the next start",
        ),
    ] {
        running.folder.write("turboflow.toml", text);
        running.signal("HUP");
        running.wait_for(said);
    }
    running.signal("TERM");
    running.end().balanced(0);
}
