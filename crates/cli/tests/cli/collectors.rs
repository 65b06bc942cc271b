// SPDX-License-Identifier: Apache-2.0
//! Flow records sent to collectors: real ones where they are installed, and badly behaved ones.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{Folder, Ran, command, finish, office, project, turboflow, udp_capture};

/// Captures whose flows travel: all families, TCP, UDP, ICMP, odd protocols.
const CAPTURES: [&str; 2] = ["samples/office.pcap", "samples/backbone.pcap"];

fn captures() -> Vec<String> {
    let there = CAPTURES.into_iter().map(project);
    there
        .filter(|path| std::path::Path::new(path).exists())
        .collect()
}

/// Whether a program that a test needs is there, asked by `version`; says loudly that the test does
/// nothing where not; in CI it fails.
pub(crate) fn is_installed(program: &str, version: &str) -> bool {
    let found = Command::new(program)
        .arg(version)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if found.is_err() {
        let in_ci = std::env::var_os("TURBOFLOW_CI").is_some();
        assert!(!in_ci, "{program} is not installed");
        eprintln!("SKIPPED: {program} is not installed, nothing was compared with it");
    }
    found.is_ok()
}

/// A port of UDP that nobody uses at the moment.
pub(crate) fn free_port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.local_addr().unwrap().port()
}

/// Waits without a clock: until nothing came on a socket for that long.
pub(crate) fn wait(ms: u64) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(ms)))
        .unwrap();
    assert!(socket.recv(&mut [0]).is_err());
}

/// An nfcapd that listens.
struct Nfcapd {
    child: Child,
    folder: Folder,
    port: u16,
}

impl Nfcapd {
    fn start() -> Self {
        let (folder, port) = (Folder::new(), free_port());
        let child = Command::new("nfcapd")
            .args(["-w", &folder.path().display().to_string()])
            .args(["-b", "127.0.0.1", "-t", "3600", "-p", &port.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            wait(20);
        }
        Self {
            child,
            folder,
            port,
        }
    }

    /// Ends it, and gives the folder and name of its one file.
    fn stop(mut self) -> (Folder, String) {
        wait(500);
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-TERM", &id])
                .status()
                .unwrap()
                .success()
        );
        self.child.wait().unwrap();
        let names = self.folder.names();
        assert_eq!(names.len(), 1, "{names:?}");
        let file = self.folder.file(&names[0]);
        (self.folder, file)
    }
}

fn nfdump(args: &[&str]) -> String {
    let Ran {
        code,
        stdout,
        stderr,
    } = finish(Command::new("nfdump").args(args));
    assert_eq!(code, Some(0), "{stderr}");
    stdout
}

/// What a flow is, as far as every format tells it: addresses, ports, protocol, packets, bytes,
/// first and last ms, flags, end reason.
type Flow = Vec<String>;

/// The flows in nfdump's raw text.
fn flows_of_nfdump(file: &str, has_end_reason: bool) -> Vec<Flow> {
    let text = nfdump(&["-q", "-6", "-N", "-r", file, "-o", "raw"]);
    let records = text.split("Flow Record:").skip(1);
    let flow = |record: &str| -> Flow {
        let field = |name: &str| {
            let line = record
                .lines()
                .find(|line| line.trim_start().starts_with(name));
            let value = line
                .and_then(|line| line.split_once('='))
                .map_or("", |(_, value)| value);
            value.split_whitespace().next().unwrap_or("0").to_owned()
        };
        let mut flow = [
            "src addr",
            "dst addr",
            "src port",
            "dst port",
            "proto",
            "in packets",
        ]
        .map(field)
        .to_vec();
        flow.extend(["in bytes", "first ", "last "].map(field));
        let flags = field("tcp flags");
        let flags = u16::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(0);
        flow.push((flags & 0xff).to_string());
        if has_end_reason {
            let reason = field("end reason");
            flow.push(
                reason
                    .trim_start_matches("0x")
                    .trim_start_matches('0')
                    .to_owned(),
            );
        }
        flow
    };
    let mut flows: Vec<_> = records.map(flow).collect();
    flows.sort();
    flows
}

/// The same of our own CSV.
fn flows_of_csv(csv: &str, v4_only: bool, has_end_reason: bool) -> Vec<Flow> {
    let lines = csv
        .lines()
        .skip(1)
        .filter(|line| !v4_only || !line.contains("::"));
    let lines = lines.filter(|line| !v4_only || line.split(',').next().unwrap().contains('.'));
    let flow = |line: &str| -> Flow {
        let fields: Vec<_> = line.split(',').collect();
        let ms = |field: &str| (field.parse::<u64>().unwrap() / 1_000_000).to_string();
        let mut flow: Flow = fields[..7]
            .iter()
            .map(|field| (*field).to_owned())
            .collect();
        flow.extend([ms(fields[7]), ms(fields[8])]);
        flow.push((fields[9].parse::<u64>().unwrap() & 0xff).to_string());
        if has_end_reason {
            flow.push(fields[15].to_owned());
        }
        flow
    };
    let mut flows: Vec<_> = lines.map(flow).collect();
    flows.sort();
    flows
}

#[test]
fn nfcapd_gets_every_flow_as_it_is() {
    if !is_installed("nfcapd", "-V") {
        return;
    }
    for capture in captures() {
        for (scheme, exit, v4_only, has_end_reason) in [
            ("ipfix+udp", 0, false, true),
            ("netflow9+udp", 0, false, false),
            ("netflow5+udp", 1, true, false),
        ] {
            let (collector, folder) = (Nfcapd::start(), Folder::new());
            let url = format!("{scheme}://127.0.0.1:{}", collector.port);
            let csv = folder.file("flows.csv");
            let args = [
                "record",
                "-r",
                &capture,
                "-w",
                &csv,
                "-w",
                &url,
                "--export-rate",
                "20k",
            ];
            turboflow(args).exits(exit);
            let (_kept, file) = collector.stop();
            let sent = flows_of_csv(&folder.read("flows.csv"), v4_only, has_end_reason);
            assert!(sent.len() > 100);
            assert_eq!(
                flows_of_nfdump(&file, has_end_reason),
                sent,
                "{scheme} of {capture}"
            );
            let about = nfdump(&["-I", "-r", &file]);
            assert!(about.contains("Sequence failures: 0"), "{scheme}: {about}");
        }
    }
}

#[test]
fn a_restarted_exporter_makes_no_sequence_error() {
    if !is_installed("nfcapd", "-V") {
        return;
    }
    let collector = Nfcapd::start();
    let url = format!("ipfix+udp://127.0.0.1:{}", collector.port);
    for _ in 0..3 {
        let capture = office();
        turboflow([
            "record",
            "-q",
            "-r",
            &capture,
            "-w",
            &url,
            "--export-rate",
            "20k",
        ])
        .exits(0);
    }
    let (_kept, file) = collector.stop();
    let about = nfdump(&["-I", "-r", &file]);
    assert!(about.contains("Sequence failures: 0"), "{about}");
    assert!(about.contains("Flows: 2226"), "three times 742: {about}");
}

#[test]
fn tshark_reads_ipfix_files_without_a_complaint() {
    if !is_installed("tshark", "--version") {
        return;
    }
    let folder = Folder::new();
    let definition = folder.write(
        "rich.toml",
        "[key]\nfields = [\"source_address\", \"destination_address\", \"protocol\", \"vlan\"]\n\
         [[feature]]\nname = \"packets\"\nop = \"count\"\n\
         [[feature]]\nname = \"window\"\nop = \"max\"\nof = \"tcp_window\"\n\
         [[feature]]\nname = \"lengths\"\nop = \"list\"\nof = \"ip_length\"\nk = 20\n",
    );
    let (capture, plain, rich) = (office(), folder.file("p.ipfix"), folder.file("r.ipfix"));
    turboflow([
        "record",
        "-q",
        "-r",
        &capture,
        "-w",
        &plain,
        "--export-time",
        "ns",
    ])
    .exits(0);
    turboflow([
        "record",
        "-q",
        "-r",
        &capture,
        "-w",
        &rich,
        "--definition",
        &definition,
    ])
    .exits(0);
    for file in [plain, rich] {
        let fields = [
            "-T",
            "fields",
            "-e",
            "_ws.malformed",
            "-e",
            "_ws.expert.message",
        ];
        let read = finish(Command::new("tshark").args(["-r", &file]).args(fields));
        assert_eq!(read.code, Some(0), "{}", read.stderr);
        assert!(
            read.stdout.lines().count() > 2 && read.stdout.trim().is_empty(),
            "{}",
            read.stdout
        );
    }
}

#[test]
fn the_same_capture_gives_the_same_ipfix_file() {
    let folder = Folder::new();
    let capture = folder.write("c.pcap", udp_capture(200));
    for name in ["a.ipfix", "b.ipfix"] {
        let file = folder.file(name);
        turboflow(["record", "-q", "-r", &capture, "-w", &file, "--seed", "1"]).exits(0);
    }
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("a.ipfix").len() > 200 * 60);
    assert_eq!(read("a.ipfix"), read("b.ipfix"));
}

/// The messages of an IPFIX stream: of each its sequence number, its first set's id, and whether
/// it has flow records (sets from 260 on).
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
            has_flows |= two(at, message) >= 260;
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
    // Sampling, two kinds of statistics, then the flows; the last message has statistics again.
    assert_eq!(messages.last().unwrap().0, 3 + 5_000);
}

#[test]
fn a_collector_that_comes_back_gets_templates_again() {
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
        "a new session: {ran:?}"
    );
    assert!(messages.iter().any(|message| message.2));
}

#[test]
fn a_collector_that_is_not_there_is_said_and_stalls_nothing() {
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
            .says(&["refused", "not written", &url]);
        assert_eq!(
            folder.read("flows.csv").lines().count(),
            743,
            "the file has everything"
        );
        assert!(folder.read("ledger.json").contains("\"balanced\": true"));
    }
}

#[test]
fn a_collector_that_does_not_read_ends_in_a_count() {
    let (listener, folder) = (TcpListener::bind("127.0.0.1:0").unwrap(), Folder::new());
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    // More than the buffers of a connection hold, less than those of a few connections and the
    // queue: a second connection to the backlog would take the rest, and nothing would seem lost.
    let mut capture = udp_capture(60_000);
    for _ in 0..2 {
        let more = udp_capture(60_000);
        capture.write_all(&more[24..]).unwrap();
    }
    let capture = folder.write("c.pcap", capture);
    let idle = ["--idle-timeout", "1ms", "--linger", "none"];
    let ran = finish(command(["record", "-q", "-r", &capture, "-w", &url]).args(idle));
    // Nobody accepted: connections wait in the listener's backlog.
    drop(listener);
    ran.exits(1).says(&["not written", "does not read"]);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_starts() {
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
    // What UDP over IPv4 holds is the most.
    for mtu in ["100", "65508"] {
        let mtu = ["record", "-r", &capture, "-w", v9, "--export-mtu", mtu];
        turboflow(mtu).exits(2).says(&["--export-mtu"]);
    }
}
