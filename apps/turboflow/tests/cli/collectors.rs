// SPDX-License-Identifier: Apache-2.0
//! Misbehaving and missing collectors. The tests in `tests/collectors` use real ones.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::support::{Folder, command, finish, office, turboflow, udp_capture};
use turboflow_testing::free_port;

#[test]
fn an_ipfix_file_is_reproducible() {
    let folder = Folder::new();
    let capture = folder.write("c.pcap", udp_capture(200));
    for name in ["a.ipfix", "b.ipfix"] {
        let file = folder.file(name);
        turboflow(["record", "-q", "-r", &capture, "-w", &file, "--seed", "1"]).exits(0);
    }
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("a.ipfix").len() > 200 * 50);
    assert_eq!(read("a.ipfix"), read("b.ipfix"));
}

/// The messages of an IPFIX stream: sequence number, id of the first set, and whether the message
/// has flow records (sets from 261 on).
fn messages(mut stream: &[u8]) -> Vec<(u32, u16, bool)> {
    let two = |at: usize, bytes: &[u8]| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let mut messages = Vec::new();
    while stream.len() >= 16 {
        let length = usize::from(two(2, stream));
        if stream.len() < length {
            break;
        }
        let message = &stream[..length];
        let sequence = u32::from_be_bytes([message[8], message[9], message[10], message[11]]);
        let (mut at, mut has_flows) = (16, false);
        while at < length {
            has_flows |= two(at, message) >= 261;
            at += usize::from(two(at + 2, message)).max(4);
        }
        messages.push((sequence, two(16, message), has_flows));
        stream = &stream[length..];
    }
    messages
}

fn read_to_end(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_collector_over_tcp_gets_templates_first_and_everything_once() {
    let (listener, folder) = (TcpListener::bind("127.0.0.1:0").unwrap(), Folder::new());
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    let capture = folder.write("c.pcap", udp_capture(5_000));
    let reader = std::thread::spawn(move || read_to_end(listener.accept().unwrap().0));
    turboflow(["record", "-r", &capture, "-w", &url]).exits(0);
    let messages = messages(&reader.join().unwrap());
    assert_eq!((messages[0].0, messages[0].1), (0, 2));
    assert!(messages.iter().filter(|message| message.2).count() > 10);
    // First sampling and two kinds of statistics, then the flows. The last message has statistics
    // again.
    assert_eq!(messages.last().unwrap().0, 3 + 5_000);
}

#[test]
fn a_reconnected_collector_gets_templates_again() {
    let (listener, folder) = (TcpListener::bind("127.0.0.1:0").unwrap(), Folder::new());
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    let capture = folder.write("c.pcap", udp_capture(20_000));
    let reader = std::thread::spawn(move || {
        let (mut first, _) = listener.accept().unwrap();
        first.read_exact(&mut [0; 1_000]).unwrap();
        drop(first);
        read_to_end(listener.accept().unwrap().0)
    });
    let args = [
        "record",
        "-q",
        "-r",
        &capture,
        "-w",
        &url,
        "--export-rate",
        "40k",
    ];
    let ran = turboflow(args);
    let messages = messages(&reader.join().unwrap());
    assert_eq!(
        (messages[0].0, messages[0].1),
        (0, 2),
        "not a new session: {ran:?}"
    );
    assert!(messages.iter().any(|message| message.2));
}

#[test]
fn a_missing_collector_is_reported_and_stalls_nothing() {
    let (port, folder) = (free_port(), Folder::new());
    let (capture, csv) = (office(), folder.file("flows.csv"));
    for scheme in ["ipfix+tcp", "ipfix+udp"] {
        let url = format!("{scheme}://127.0.0.1:{port}");
        let ledger = folder.file("ledger.json");
        let args = [
            "record", "-r", &capture, "-w", &url, "-w", &csv, "--ledger", &ledger,
        ];
        turboflow(args)
            .exits(1)
            .says(&["refused", "count as lost", &url]);
        assert_eq!(
            folder.read("flows.csv").lines().count(),
            743,
            "the file is complete"
        );
        assert!(folder.read("ledger.json").contains("\"balanced\": true"));
    }
}

#[test]
fn records_for_a_collector_that_does_not_read_are_counted() {
    let (listener, folder) = (TcpListener::bind("127.0.0.1:0").unwrap(), Folder::new());
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    // More than the buffers of one connection hold, but less than those of a few connections plus
    // the queue. A second connection in the backlog would take the rest, and no loss would be seen.
    let mut capture = udp_capture(60_000);
    for _ in 0..2 {
        let more = udp_capture(60_000);
        capture.write_all(&more[24..]).unwrap();
    }
    let capture = folder.write("c.pcap", capture);
    let idle = ["--idle-timeout", "1ms", "--linger", "none"];
    let ran = finish(command(["record", "-q", "-r", &capture, "-w", &url]).args(idle));
    // Connections wait in the listener's backlog, because the test never accepts them.
    drop(listener);
    ran.exits(1).says(&["count as lost", "does not read"]);
}

#[test]
fn collectors_that_make_no_sense_are_refused_at_the_start() {
    let (capture, folder) = (office(), Folder::new());
    let csv = folder.file("flows.csv");
    for (url, words) in [
        ("ipfix+udp://127.0.0.1:0", "port"),
        ("ipfix+sctp://127.0.0.1:4739", "ipfix+udp://"),
        ("ipfix+udp://[::1", "bracket"),
        (
            "ipfix+udp://no-such-host.invalid:4739",
            "no-such-host.invalid",
        ),
    ] {
        let args = ["record", "-r", &capture, "-w", &csv, "-w", url];
        turboflow(args).exits(2).says(&[words]);
        assert!(folder.names().is_empty(), "{url} left {:?}", folder.names());
    }
    let v9 = "netflow9+udp://127.0.0.1:9";
    turboflow(["record", "-r", &capture, "-w", v9, "--biflow"])
        .exits(2)
        .says(&["use IPFIX"]);
    turboflow(["record", "-r", &capture, "-w", v9, "-w", v9])
        .exits(2)
        .says(&["twice"]);
    // Limits that would cause a flood of templates.
    let often = [
        "record",
        "-r",
        &capture,
        "-w",
        v9,
        "--template-interval",
        "9ms",
    ];
    turboflow(often)
        .exits(2)
        .says(&["--template-interval", "at least 1s"]);
    // The maximum is the largest payload of UDP over IPv4.
    for mtu in ["100", "65508"] {
        let mtu = ["record", "-r", &capture, "-w", v9, "--export-mtu", mtu];
        turboflow(mtu).exits(2).says(&["--export-mtu"]);
    }
}

/// NetFlow v9 has no elements of enterprises and one unit of time; v5 has no templates, either.
#[test]
fn options_that_a_protocol_does_not_have_are_refused() {
    let capture = office();
    let [v5, v9, ipfix] =
        ["netflow5", "netflow9", "ipfix"].map(|its| format!("{its}+udp://[::1]:9"));
    for (to, option, words) in [
        (&v9, "--export-time=us", "it is for IPFIX"),
        (&v5, "--enterprise-number=5", "it is for IPFIX"),
        (&v9, "--enterprise-number=5", "it is for IPFIX"),
        (&v5, "--no-export-options", "it is for IPFIX and NetFlow v9"),
        (&v5, "--template-interval=5s", "of IPFIX and NetFlow v9"),
    ] {
        let refused = turboflow(["record", "-r", &capture, "-w", to, option]).exits(2);
        refused.says(&[option.split('=').next().unwrap(), to.as_str(), words]);
        // Another output that has the option is enough.
        let args = [
            "record", "-q", "-r", &capture, "-w", to, "-w", &ipfix, option,
        ];
        assert_ne!(turboflow(args).code, Some(2), "{option}");
    }
}
