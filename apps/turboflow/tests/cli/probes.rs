// SPDX-License-Identifier: Apache-2.0
//! Probes that send their microflow records: a collector merges them into the flow records of one
//! meter that sees all packets, and its ledger tells what each probe lost.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};

use turboflow_capture::CaptureFile;
use turboflow_testing::{PATIENCE, until};

use crate::certificates::Certificates;
use crate::collecting::{Collected, Collecting, metric, page, send};
use crate::records::sorted;
use crate::support::{Folder, Ran, office, pcap_header, pcap_packet, turboflow};

/// The frames of the sample, distributed over `parts` captures in turn, so that nearly every flow
/// has packets in each; and one capture of all frames.
fn divided(folder: &Folder, parts: usize) -> (Vec<String>, String) {
    const ETHERNET: u32 = 1;
    let mut captures = vec![pcap_header(ETHERNET); parts + 1];
    let mut file = CaptureFile::open(office().as_ref()).unwrap();
    let mut seen = 0;
    while let Some(batch) = file.next_batch(1_024).unwrap() {
        for frame in batch.frames() {
            let packet = pcap_packet(frame.timestamp_ns / 1_000, frame.bytes);
            captures[seen % parts].extend(&packet);
            captures[parts].extend(&packet);
            seen += 1;
        }
    }
    let captures = captures.into_iter().enumerate();
    let mut names: Vec<String> = captures
        .map(|(at, capture)| folder.write(&format!("{at}.pcap"), capture))
        .collect();
    let whole = names.pop().unwrap();
    (names, whole)
}

/// A probe that meters a capture.
fn probe(capture: &str, to: &str, more: &[&str]) -> Ran {
    let args = ["record", "-q", "-r", capture, "-w", to];
    turboflow(args.iter().chain(more))
}

/// The flow records of one meter that sees all packets.
fn of_all(capture: &str) -> String {
    let args = ["record", "-q", "-r", capture, "-w", "-", "--format", "csv"];
    turboflow(args).exits(0).stdout
}

fn assert_equal(ended: &Collected, capture: &str) {
    let (merged, read) = (ended.folder.read("flows.csv"), of_all(capture));
    let (merged, read) = (sorted(&merged), sorted(&read));
    assert!(read.len() > 700);
    assert_eq!(merged, read, "{}", ended.said);
}

#[test]
fn probes_over_tcp_udp_and_tls_are_merged_into_the_flows_of_one_that_saw_all() {
    let Some(made) = Certificates::make() else {
        return;
    };
    let folder = Folder::new();
    let (parts, whole) = divided(&folder, 3);
    let [cert, key, ca] = ["server.pem", "server.key", "ca.pem"].map(|name| made.file(name));
    let listen = "tcp://127.0.0.1:0,udp://127.0.0.1:0,tls://127.0.0.1:0";
    let identity = ["--listen-cert", &cert, "--listen-key", &key];
    let more: Vec<&str> = identity.into_iter().chain(["--only-microflows"]).collect();
    let mut collecting = Collecting::at(listen, &more);
    let [tcp, udp, tls] = std::array::from_fn(|_| collecting.address());
    probe(&parts[0], &format!("microflows+tcp://{tcp}"), &[]).exits(0);
    probe(
        &parts[1],
        &format!("microflows+udp://{udp}"),
        &["--export-rate", "5k"],
    )
    .exits(0);
    probe(
        &parts[2],
        &format!("microflows+tls://{tls}"),
        &["--tls-ca", &ca],
    )
    .exits(0);
    let ended = collecting.end("INT");
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    assert_equal(&ended, &whole);
    let ledger = ended.ledger();
    assert_eq!(ledger["balanced"], true, "{ledger:#}");
    assert_eq!(ledger["engine_counts"]["engine_collector_probes"], 3);
    // Also what is in no record.
    let read = folder.file("read.json");
    let record = ["record", "-q", "-r", &whole, "-w", &folder.file("a.csv")];
    turboflow(record.iter().chain(&["--ledger", &read])).exits(0);
    let read: serde_json::Value = serde_json::from_str(&folder.read("read.json")).unwrap();
    for name in [
        "packets_received",
        "packets_recorded",
        "bytes_recorded",
        "packets_non_ip",
        "rejected",
    ] {
        assert_eq!(ledger[name], read[name], "{name}: {ledger:#}");
    }
}

/// The datagrams of a probe, up to its last message.
fn datagrams(capture: &str) -> Vec<Vec<u8>> {
    const END: u8 = 5;
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let to = format!("microflows+udp://{}", socket.local_addr().unwrap());
    let mut datagrams: Vec<Vec<u8>> = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| probe(capture, &to, &["--export-rate", "50k"]).exits(0));
        let mut buffer = [0; 1 << 16];
        while datagrams.last().is_none_or(|last| last[3] != END) {
            let length = socket.recv(&mut buffer).unwrap();
            datagrams.push(buffer[..length].to_vec());
        }
    });
    datagrams
}

#[test]
fn a_datagram_that_is_lost_on_the_way_is_in_the_ledger_with_its_records_and_packets() {
    let mut sent = datagrams(&office());
    let sequence = |message: &[u8]| u32::from_be_bytes(message[20..24].try_into().unwrap());
    let records = |at: usize| sequence(&sent[at + 1]) - sequence(&sent[at]);
    let mut inner = sent.len() / 2..sent.len() - 1;
    let at = inner.find(|at| records(*at) > 2).unwrap();
    let missing = u64::from(records(at));
    // Records of the default definition, over IPv4 and IPv6.
    let record_bytes = (sent[at].len() - 32) as u64 / missing;
    let packets = sent[at][32..].chunks(record_bytes as usize);
    let packets: u64 = packets
        .map(|record| u64::from_be_bytes(record[..8].try_into().unwrap()))
        .sum();
    sent.remove(at);
    let mut collecting = Collecting::at("udp://127.0.0.1:0", &["--only-microflows"]);
    let udp = collecting.address();
    send(udp, &sent);
    let ended = collecting.end("INT");
    let ledger = ended.ledger();
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    assert_eq!(ledger["balanced"], true, "{ledger:#}");
    assert_eq!(ledger["microflows_dropped"], missing, "{ledger:#}");
    assert_eq!(ledger["source_dropped"], packets, "{ledger:#}");
    let probe = &ledger["interfaces"][1];
    assert_eq!(probe["packets_dropped"], packets, "{ledger:#}");
    assert!(ended.said.contains("probe 127.0.0.1 "), "{}", ended.said);
}

/// Makes a probe say that it started at this time.
fn start_at(message: &mut [u8], time_ns: u64) {
    // After the header, there may be one other entry before this one.
    for at in [32, 44] {
        if message.get(at..at + 4) == Some(&[0, 67, 0, 0]) {
            message[at + 4..at + 12].copy_from_slice(&time_ns.to_be_bytes());
        }
    }
}

#[test]
fn records_from_before_the_merger_listened_are_not_missing() {
    let sent = datagrams(&office());
    let at = sent.len() / 4;
    let mut collecting = Collecting::at("udp://127.0.0.1:0", &["--only-microflows"]);
    send(collecting.address(), &sent[at..]);
    let ended = collecting.end("INT");
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    let ledger = ended.ledger();
    assert_eq!(ledger["balanced"], true, "{ledger:#}");
    assert_eq!(ledger["microflows_dropped"], 0, "{ledger:#}");
    let words = "of probes were sent before this run listened";
    assert!(ended.said.contains(words), "{}", ended.said);
}

#[test]
fn records_before_the_first_message_that_arrives_are_missing() {
    let mut sent = datagrams(&office());
    for message in &mut sent {
        start_at(message, u64::MAX);
    }
    let sequence = |message: &[u8]| u32::from_be_bytes(message[20..24].try_into().unwrap());
    let at = sent.len() / 4;
    let before = sequence(&sent[at]);
    assert!(before > 100);
    let mut collecting = Collecting::at("udp://127.0.0.1:0", &["--only-microflows"]);
    send(collecting.address(), &sent[at..]);
    let ended = collecting.end("INT");
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    let ledger = ended.ledger();
    assert_eq!(ledger["balanced"], true, "{ledger:#}");
    assert_eq!(ledger["microflows_dropped"], before, "{ledger:#}");
    // Of a capture, also the number of packets is known.
    let recorded = ledger["packets_recorded"].as_u64().unwrap();
    let missing = ledger["source_dropped"].as_u64().unwrap();
    let folder = Folder::new();
    let read = folder.file("read.json");
    let record = ["record", "-q", "-r", &office(), "-w", &folder.file("a.csv")];
    turboflow(record.iter().chain(&["--ledger", &read])).exits(0);
    let read: serde_json::Value = serde_json::from_str(&folder.read("read.json")).unwrap();
    assert_eq!(read["packets_recorded"], recorded + missing, "{ledger:#}");
    for words in [
        "missing before the first message of a probe that arrived: ",
        "their packets are among those missing above",
        "every other packet is accounted for",
    ] {
        assert!(ended.said.contains(words), "{words}: {}", ended.said);
    }
    assert!(!ended.said.contains("unknown"), "{}", ended.said);
}

#[test]
fn a_probe_that_dies_is_named_and_one_that_goes_on_is_no_loss() {
    let sent = datagrams(&office());
    let some = &sent[..sent.len() / 2];
    let more = ["--only-microflows", "--metrics", "127.0.0.1:0"];
    let mut collecting = Collecting::at("tcp://127.0.0.1:0", &more);
    let tcp = collecting.address();
    let pages = collecting.pages();
    let mut stream = TcpStream::connect(tcp).unwrap();
    stream.write_all(&some.concat()).unwrap();
    until("it is heard", || {
        metric(pages, "engine_collector_probes_unended") == 1
    });
    assert!(page(pages, "/healthz").starts_with("ok"));
    drop(stream);
    let words = "its connection ended before its final counters arrived";
    collecting.talk.wait_for(words);
    until("it is ill", || page(pages, "/healthz").contains(words));
    let metrics = page(pages, "/metrics");
    let is_down = |line: &str| {
        line.starts_with("turboflow_interface_up{interface=\"probe 127") && line.ends_with(" 0")
    };
    assert!(metrics.lines().any(is_down), "{metrics}");
    let ended = collecting.end("INT");
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    let ledger = ended.ledger();
    assert_eq!(ledger["interfaces"][1]["ended_early"], "disconnected");
    let words = "its connection or file ended before its final counters arrived";
    assert!(ended.said.contains(words), "{}", ended.said);
    let whole = "everything that arrived is accounted for";
    assert!(ended.said.contains(whole), "{}", ended.said);
    // This one has only not ended yet.
    let mut collecting = Collecting::at("udp://127.0.0.1:0", &["--only-microflows"]);
    send(collecting.address(), some);
    let ended = collecting.end("INT");
    assert_eq!(ended.code, Some(0), "{}", ended.said);
    for words in [whole, "1 probe had not ended when this run did"] {
        assert!(ended.said.contains(words), "{words}: {}", ended.said);
    }
    assert!(ended.ledger()["interfaces"][1]["ended_early"].is_null());
}

#[test]
fn a_probe_whose_collector_dies_says_what_it_lost() {
    let folder = Folder::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("microflows+tcp://{}", listener.local_addr().unwrap());
    let dies = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 4_096]).unwrap();
    });
    let ledger = folder.file("ledger.json");
    let ran = probe(&office(), &to, &["--ledger", &ledger]).exits(1);
    dies.join().unwrap();
    ran.says(&["records count as lost", &to]);
    let ledger: serde_json::Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    assert_eq!(ledger["balanced"], true, "{ledger:#}");
    let dropped = ledger["records_dropped"].as_u64().unwrap();
    let sent = ledger["records_written"].as_u64().unwrap();
    let evicted = ledger["microflows_merged"].as_u64().unwrap();
    assert!(dropped > 0 && sent + dropped == evicted, "{ledger:#}");
}

#[test]
fn a_file_of_a_probe_is_merged_as_its_messages_are() {
    let folder = Folder::new();
    let (parts, whole) = divided(&folder, 2);
    let files = ["east.records", "west.records"].map(|name| folder.file(name));
    for (capture, file) in parts.iter().zip(&files) {
        probe(capture, file, &[]).exits(0);
    }
    let args = ["record", "-q", "--engine", "records", "--records-from"];
    let to = ["-w", "-", "--format", "csv"];
    let all = args.iter().copied().chain(files.iter().map(String::as_str));
    let merged = turboflow(all.chain(to)).exits(0).stdout;
    let read = of_all(&whole);
    assert_eq!(sorted(&merged), sorted(&read));
}

#[test]
fn a_run_sends_records_of_one_kind() {
    let to = "microflows+tcp://127.0.0.1:9";
    let record = ["record", "-r", &office(), "-w", to];
    for (more, words) in [
        (&["-w", "flows.csv"][..], "a run writes only one kind"),
        (&["--biflow"], "leave --biflow out"),
        (
            &["--anonymize", "key"],
            "--anonymize is of no use with microflows+tcp://",
        ),
        (&["--identity"], "--identity"),
    ] {
        let all = record.iter().chain(more);
        let ran = turboflow(all).exits(2).says(&[words]);
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
    let replay = ["replay", "-r", &office(), "-w", to];
    turboflow(replay).exits(2);
}

#[test]
fn a_service_can_be_a_probe() {
    let folder = Folder::new();
    let source = "[source]\ninterfaces = \"lo\"\n";
    let output = "[[output]]\nto = \"microflows+udp://127.0.0.1:9\"\nmtu = 1200\nrate = 5000\n";
    let flows = format!("[[output]]\nto = \"{}\"\n", folder.file("flows.csv"));
    let check = |text: String| {
        let config = folder.write("turboflow.toml", text);
        turboflow(["run", "--config", &config, "--check"])
    };
    check(format!("{source}{output}"))
        .exits(0)
        .says(&["is valid"]);
    check(format!("{source}{output}{flows}"))
        .exits(2)
        .says(&["a run writes only one kind"]);
    check(format!("{source}{output}format = \"csv\"\n"))
        .exits(2)
        .says(&["in [[output]] is of no use with microflows+udp://"]);
    let lasting = output.replace("microflows+udp://127.0.0.1:9", "probe-%H.records");
    let lasting = lasting.replace("mtu = 1200\nrate = 5000\n", "");
    check(format!("{source}{lasting}"))
        .exits(2)
        .says(&["leave the time out of its name"]);
}
