// SPDX-License-Identifier: Apache-2.0
//! The name of a collector starts to resolve to another address: records then go there, beginning
//! with the templates. The names are in a hosts file of the test.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};

use turboflow_testing::until;

use crate::link::{Ended, Link, Recording};
use crate::reader::Reader;
use crate::support::{Folder, udp_capture};

const NAME: &str = "collector.turboflow.test";
const PORT: u16 = 4_739;
const FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
/// Flows before and after the change.
const FLOWS: u64 = 200;
/// In its own mount namespace, the program reads the hosts file of the test.
const BY: [&str; 5] = [
    "unshare",
    "--mount",
    "sh",
    "-c",
    "mount --bind hosts /etc/hosts && exec \"$0\" \"$@\"",
];

/// Overwrites the file in place, because the mount refers to the file, not to its name.
fn lead_to(folder: &Folder, address: Ipv4Addr) {
    let hosts = folder.path().join("hosts");
    let file = fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .open(hosts);
    file.unwrap()
        .write_all(format!("{address} {NAME}\n").as_bytes())
        .unwrap();
}

/// The program, exporting to the name.
fn sending(link: &Link, scheme: &str) -> Recording {
    let folder = Folder::new();
    lead_to(&folder, FIRST);
    folder.write("flows.pcap", udp_capture(FLOWS as u16));
    let url = format!("{scheme}://{NAME}:{PORT}");
    let args = ["record", "-i", "vb", "-w", &url, "--ledger", "ledger.json"];
    let args: Vec<&str> = args
        .iter()
        .chain(&["--idle-timeout", "1s"])
        .copied()
        .collect();
    link.start_by(&BY, folder, &args, &[])
}

fn replay(link: &Link, running: &Recording) {
    let capture = running.folder.file("flows.pcap");
    assert!(link.replay(&capture, &["--pps", "10000"]));
}

/// Checks that the two collectors together got every record, each beginning with templates.
fn has_all(ended: Ended, readers: [&Reader; 2]) {
    for reader in readers {
        assert_eq!(reader.first_set, 2, "templates first");
    }
    let ended = ended.balanced(0);
    let flows = readers.map(|reader| reader.flows);
    let got = flows.iter().sum::<u64>();
    assert_eq!(got, ended.count("records_written"), "{flows:?}");
    // Usually one packet per record. If the kernel delivers a round's packets late, shortly before
    // the next round's, a record has two.
    assert!(got >= FLOWS && got <= ended.count("packets_received"));
    assert_eq!(ended.count("records_dropped"), 0);
}

#[test]
fn udp_follows_a_name_within_half_a_minute() {
    let Some(link) = Link::new() else { return };
    let [first, second] =
        [FIRST, SECOND].map(|address| link.open(move || UdpSocket::bind((address, PORT)).unwrap()));
    let running = sending(&link, "ipfix+udp");
    let (mut before, mut after) = (Reader::default(), Reader::default());
    let mut datagram = [0; 2_048];
    replay(&link, &running);
    while before.flows < FLOWS {
        let length = first.recv(&mut datagram).unwrap();
        before.message(&datagram[..length]);
    }
    lead_to(&running.folder, SECOND);
    // Flows continue, and from some moment on they arrive at the second collector.
    for socket in [&first, &second] {
        socket.set_nonblocking(true).unwrap();
    }
    let mut rounds = 1;
    while after.flows == 0 {
        replay(&link, &running);
        rounds += 1;
        until("the flows of this round have come", || {
            read_datagrams(&first, &mut before);
            read_datagrams(&second, &mut after);
            before.flows + after.flows >= rounds * FLOWS
        });
    }
    running.signal("TERM");
    let ended = running.end();
    // The last ones to the first address may have arrived just before the first one to the second.
    read_datagrams(&first, &mut before);
    read_datagrams(&second, &mut after);
    has_all(ended, [&before, &after]);
}

/// Reads everything that has arrived.
fn read_datagrams(socket: &UdpSocket, reader: &mut Reader) {
    let mut datagram = [0; 2_048];
    while let Ok(length) = socket.recv(&mut datagram) {
        reader.message(&datagram[..length]);
    }
}

#[test]
fn tcp_follows_a_name_with_its_next_connection() {
    let Some(link) = Link::new() else { return };
    let [first, second] = [FIRST, SECOND]
        .map(|address| link.open(move || TcpListener::bind((address, PORT)).unwrap()));
    let running = sending(&link, "ipfix+tcp");
    let (mut before, mut after) = (Reader::default(), Reader::default());
    let (mut stream, _) = first.accept().unwrap();
    replay(&link, &running);
    read_flows(&mut before, &mut stream);
    lead_to(&running.folder, SECOND);
    drop((stream, first));
    let (mut stream, _) = second.accept().unwrap();
    replay(&link, &running);
    read_flows(&mut after, &mut stream);
    // The program waits until its collector has read everything and closes the connection.
    let reading = std::thread::spawn(move || {
        after.read(&mut stream, u64::MAX);
        after
    });
    running.signal("TERM");
    let ended = running.end();
    has_all(ended, [&before, &reading.join().unwrap()]);
}

fn read_flows(reader: &mut Reader, stream: &mut TcpStream) {
    while reader.flows < FLOWS {
        let messages = reader.messages;
        reader.read(stream, messages + 1);
        assert!(reader.messages > messages, "the connection ended early");
    }
}
