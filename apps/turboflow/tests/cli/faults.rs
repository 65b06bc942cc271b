// SPDX-License-Identifier: Apache-2.0
//! Collectors that are killed and come back while records are sent: what they got has no gap and no
//! record twice, and the ledger says what they did not get.

use std::net::{TcpListener, UdpSocket};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::reader::Reader;
use crate::support::{Folder, Ran, free_port, turboflow, udp_capture, wait};

const FLOWS: u16 = 40_000;

/// Sends all flows to a collector, in about two seconds.
fn sending(folder: &Folder, url: &str) -> JoinHandle<Ran> {
    let capture = folder.write("c.pcap", udp_capture(FLOWS));
    let (ledger, url) = (folder.file("ledger.json"), url.to_owned());
    std::thread::spawn(move || {
        let fixed = ["record", "-r", &capture, "-w", &url, "--ledger", &ledger];
        turboflow(fixed.iter().chain(&["--export-rate", "20k"]))
    })
}

/// Records sent and dropped, as the ledger has them; it balances.
fn ledger(folder: &Folder) -> (u64, u64) {
    let ledger: Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    assert_eq!(ledger["balanced"], true);
    let number = |name: &str| ledger["outputs"][0][name].as_u64().unwrap();
    (number("records"), number("records_dropped"))
}

#[test]
fn a_tcp_collector_is_killed_and_comes_back() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sending = sending(&folder, &format!("ipfix+tcp://{address}"));
    let (mut before, mut after) = (Reader::default(), Reader::default());
    let (mut stream, _) = listener.accept().unwrap();
    before.read(&mut stream, 10);
    drop((stream, listener));
    wait(600);
    let listener = TcpListener::bind(address).unwrap();
    after.read(&mut listener.accept().unwrap().0, u64::MAX);
    let said = ["tried again", "takes records again"];
    sending.join().unwrap().exits(0).says(&said);
    for reader in [&before, &after] {
        assert_eq!(reader.first_set, 2, "templates first");
        assert!(reader.flows > 1_000, "{}", reader.flows);
    }
    let all = u64::from(FLOWS);
    assert_eq!(ledger(&folder), (all, 0));
    // What the first collector had not read when it was killed counts as sent: a few messages.
    let got = before.flows + after.flows;
    assert!((all - 2_000..=all).contains(&got), "{got}");
}

#[test]
fn a_udp_collector_is_away_and_comes_back() {
    let (folder, port) = (Folder::new(), free_port());
    let url = format!("ipfix+udp://127.0.0.1:{port}");
    let sending = sending(&folder, &url);
    wait(300);
    let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let patience = Some(Duration::from_secs(20));
    socket.set_read_timeout(patience).unwrap();
    let (mut reader, mut datagram, mut before) = (Reader::default(), [0; 2_048], 0);
    loop {
        let length = socket.recv(&mut datagram).unwrap();
        let message = &datagram[..length];
        // Templates come within a second; what comes before cannot be read.
        if reader.messages == 0 && message[16..18] != [0, 2] {
            before += 1;
            continue;
        }
        reader.message(message);
        // The last message has the statistics alone.
        if message[16..18] == [1, 1] {
            break;
        }
    }
    sending.join().unwrap().exits(1).says(&["refused"]);
    let (sent, lost) = ledger(&folder);
    assert_eq!(sent + lost, u64::from(FLOWS));
    assert!(lost > 0 && reader.flows > 1_000, "{lost}, {}", reader.flows);
    // A message holds some 20 flows; all that was sent arrived.
    let unread = sent - reader.flows;
    assert!(
        (before * 10..=before * 30).contains(&unread),
        "{before}: {unread}"
    );
}
