// SPDX-License-Identifier: Apache-2.0
//! Collectors over TCP and TLS that accept connections but do not read everything. Records that may
//! not have arrived are counted as lost and reported, never as sent.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use serde_json::Value;
use turboflow_testing::until;

use crate::certificates::Certificates;
use crate::reader::Reader;
use crate::support::{Folder, Ran, turboflow, udp_capture};

const FLOWS: u16 = 40_000;

/// What happens to a connection after this many octets from the exporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Closed(usize),
    /// Closed such that the exporter sees a reset.
    Reset(usize),
    /// Neither read nor closed until the exporter closes it.
    Ignored(usize),
}

impl Fate {
    const fn octets(self) -> usize {
        match self {
            Self::Closed(octets) | Self::Reset(octets) | Self::Ignored(octets) => octets,
        }
    }

    fn befall(self, stream: TcpStream) {
        match self {
            Self::Closed(_) => {}
            Self::Reset(_) => set_socket_linger(&stream, Some(Duration::ZERO)).unwrap(),
            Self::Ignored(_) => {
                // It must not read, so it waits until the kernel has noted the end.
                let ours = stream.local_addr().unwrap();
                until("the exporter closes", || has_closed(ours));
            }
        }
        drop(stream);
    }
}

/// Whether the peer of a connection at this address has closed it (/proc/net/tcp: state 08,
/// CLOSE_WAIT), or the connection is gone.
fn has_closed(ours: SocketAddr) -> bool {
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let ours = format!(":{:04X}", ours.port());
    !table.lines().any(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        fields[1].ends_with(&ours) && fields[3] == "01"
    })
}

/// Accepts every connection. Forwards what it reads before `fate` to a server at port `onward`.
fn collector(fate: Fate, onward: Option<u16>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let server = onward.map(|port| passed_on(&stream, port));
            let (mut left, mut octets) = (fate.octets(), vec![0; 1 << 14]);
            while left > 0 {
                let most = left.min(octets.len());
                let Ok(count @ 1..) = stream.read(&mut octets[..most]) else {
                    break;
                };
                if let Some(mut server) = server.as_ref() {
                    server.write_all(&octets[..count]).unwrap();
                }
                left -= count;
            }
            fate.befall(stream);
            if let Some(server) = server {
                // The server then closes its side, which ends the answers.
                server.shutdown(Shutdown::Write).unwrap();
            }
        }
    });
    address
}

/// A connection to the server, whose answers are sent back.
fn passed_on(stream: &TcpStream, port: u16) -> TcpStream {
    let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut from, mut to) = (server.try_clone().unwrap(), stream.try_clone().unwrap());
    spawn(move || std::io::copy(&mut from, &mut to));
    server
}

/// Sends all flows. Returns how many count as sent: not all do, and the program reports that.
fn sent(url: &str, options: &[&str]) -> u64 {
    let folder = Folder::new();
    let capture = folder.write("c.pcap", udp_capture(FLOWS));
    let ledger = folder.file("ledger.json");
    let fixed = [
        "record", "-q", "-r", &capture, "-w", url, "--ledger", &ledger,
    ];
    let ran: Ran = turboflow(fixed.iter().chain(options)).exits(1);
    let ran = ran.says(&[url, "count as lost"]);
    let ledger: Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    assert_eq!(ledger["balanced"], true);
    let number = |name: &str| ledger["outputs"][0][name].as_u64().unwrap();
    let (sent, lost) = (number("records"), number("records_dropped"));
    assert_eq!(sent + lost, u64::from(FLOWS), "{ran:?}");
    assert!(lost > 0, "{ran:?}");
    sent
}

/// The flow records in the complete messages of consecutive sessions, each of which may be cut.
fn flows(stream: &[u8]) -> u64 {
    let (mut reader, mut rest) = (Reader::default(), stream);
    let mut before = 0;
    while let [_, _, high, low, ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((message, after)) = rest.split_at_checked(length) else {
            break;
        };
        // A session counts from 0, and begins with templates.
        if message[8..12] == [0; 4] && message[16..18] == [0, 2] {
            before += std::mem::take(&mut reader).flows;
        }
        reader.message(message);
        rest = after;
    }
    before + reader.flows
}

#[test]
fn a_collector_that_accepts_and_closes_has_no_record() {
    let address = collector(Fate::Closed(0), None);
    assert_eq!(sent(&format!("ipfix+tcp://{address}"), &[]), 0);
}

#[test]
fn a_collector_that_reads_nothing_has_no_record() {
    let address = collector(Fate::Ignored(0), None);
    assert_eq!(sent(&format!("ipfix+tcp://{address}"), &[]), 0);
}

#[test]
fn what_a_collector_had_not_read_when_it_reset_the_connection_is_counted() {
    let folder = Folder::new();
    let got = folder.file("got");
    let mut file = fs::File::create(&got).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    let reading: JoinHandle<()> = spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        drop(listener);
        let mut octets = vec![0; 1 << 20];
        stream.read_exact(&mut octets).unwrap();
        file.write_all(&octets).unwrap();
        Fate::Reset(0).befall(stream);
    });
    let sent = sent(&url, &[]);
    reading.join().unwrap();
    let read = flows(&fs::read(&got).unwrap());
    assert!(read > 10_000 && sent <= read, "{sent} sent, {read} read");
}

/// A relay between the exporter and OpenSSL's server breaks the session.
#[test]
fn over_tls_nothing_counts_as_sent_that_was_not_read() {
    let Some(made) = Certificates::make() else {
        return;
    };
    for fate in [
        Fate::Closed(20_000),
        Fate::Reset(1 << 20),
        Fate::Ignored(20_000),
    ] {
        let server = made.serve("server", &[]);
        let address = collector(fate, Some(server.port));
        let url = format!("ipfix+tls://localhost:{}", address.port());
        let sent = sent(&url, &["--tls-ca", &made.file("ca.pem")]);
        until("openssl has written what counts as sent", || {
            flows(&fs::read(server.got.path().join("got.ipfix")).unwrap()) >= sent
        });
    }
}
