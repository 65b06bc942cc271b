// SPDX-License-Identifier: Apache-2.0
//! Collectors that are killed and restarted during an export. They receive each record at most
//! once, and the ledger counts the records that they did not receive.

use std::net::{TcpListener, UdpSocket};
use std::process::{Child, Stdio};

use serde_json::Value;
use turboflow_testing::{PATIENCE, Talk, free_port};

use crate::reader::Reader;
use crate::support::{Folder, command, udp_capture};

const FLOWS: u16 = 40_000;

/// Starts to send all flows to a collector, over about two seconds. Returns the program and its
/// log.
fn sending(folder: &Folder, url: &str) -> (Child, Talk) {
    let capture = folder.write("c.pcap", udp_capture(FLOWS));
    let ledger = folder.file("ledger.json");
    let fixed = ["record", "-r", &capture, "-w", url, "--ledger", &ledger];
    let mut program = command(fixed.iter().chain(&["--export-rate", "20k"]));
    let mut child = program.stderr(Stdio::piped()).spawn().unwrap();
    let talk = Talk::of(child.stderr.take().unwrap());
    (child, talk)
}

/// Records sent and dropped according to the ledger, which must balance.
fn ledger(folder: &Folder) -> (u64, u64) {
    let ledger: Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    assert_eq!(ledger["balanced"], true);
    let number = |name: &str| ledger["outputs"][0][name].as_u64().unwrap();
    (number("records"), number("records_dropped"))
}

#[test]
fn a_tcp_collector_is_killed_and_restarted() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (mut child, mut talk) = sending(&folder, &format!("ipfix+tcp://{address}"));
    let (mut before, mut after) = (Reader::default(), Reader::default());
    let (mut stream, _) = listener.accept().unwrap();
    before.read(&mut stream, 10);
    drop((stream, listener));
    talk.wait_for("tried again");
    let listener = TcpListener::bind(address).unwrap();
    after.read(&mut listener.accept().unwrap().0, u64::MAX);
    talk.wait_for("accepts records again");
    let said = talk.rest();
    let (sent, lost) = ledger(&folder);
    // If it had read everything when it was killed, nothing is lost.
    let code = Some(i32::from(lost > 0));
    assert_eq!(child.wait().unwrap().code(), code, "{said}");
    for reader in [&before, &after] {
        assert_eq!(reader.first_set, 2, "templates first");
        assert!(reader.flows > 1_000, "{}", reader.flows);
    }
    let all = u64::from(FLOWS);
    assert_eq!(sent + lost, all);
    // Some of the last messages that the killed collector read may count as lost. Nothing that it
    // had not read counts as sent.
    let got = before.flows + after.flows;
    assert!((sent..=all).contains(&got), "{got} of {sent}");
}

#[test]
fn a_udp_collector_is_away_for_a_time() {
    let (folder, port) = (Folder::new(), free_port());
    let url = format!("ipfix+udp://127.0.0.1:{port}");
    let (mut child, mut talk) = sending(&folder, &url);
    talk.wait_for("refused");
    let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let (mut reader, mut datagram, mut before) = (Reader::default(), [0; 2_048], 0);
    loop {
        let length = socket.recv(&mut datagram).unwrap();
        let message = &datagram[..length];
        // Templates come within a second. Earlier records cannot be decoded.
        if reader.messages == 0 && message[16..18] != [0, 2] {
            before += 1;
            continue;
        }
        reader.message(message);
        // The last message has only statistics.
        if message[16..18] == [1, 1] {
            break;
        }
    }
    let said = talk.rest();
    let code = child.wait().unwrap().code();
    let (sent, lost) = ledger(&folder);
    // The refused message may have contained only templates, and the collector may be back at once.
    assert_eq!(code, Some(i32::from(lost > 0)), "{lost} lost: {said}");
    assert_eq!(sent + lost, u64::from(FLOWS));
    assert!(reader.flows > 1_000, "{}", reader.flows);
    // A message holds about 20 flows, and every message sent has arrived.
    let unread = sent - reader.flows;
    assert!(
        (before * 10..=before * 30).contains(&unread),
        "{before}: {unread}"
    );
}
