// SPDX-License-Identifier: Apache-2.0
//! `turboflow replay`: stored flow records to collectors and into other formats.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::process::{Command, Stdio};

use rustix::io::ioctl_fionread;
use turboflow_testing::{Blocked, is_blocked, until};

use crate::support::{Folder, command, finish, office, rows, signal, turboflow};

#[test]
fn a_replayed_file_is_what_record_would_have_written() {
    let folder = Folder::new();
    let files = ["a.csv", "a.jsonl.gz", "a.parquet", "a.ipfix"].map(|name| folder.file(name));
    let outputs = files
        .iter()
        .flat_map(|file| ["-w".to_owned(), file.clone()]);
    let args = ["record", "-q", "-r", &office()].map(str::to_owned);
    turboflow(args.into_iter().chain(outputs)).exits(0);
    for from in &files[..3] {
        for to in ["b.csv", "b.ipfix", "b.parquet"] {
            let written = folder.file(to);
            let ran = turboflow(["replay", from, "-w", &written]).exits(0);
            assert!(ran.stderr.contains("742 flow records"), "{}", ran.stderr);
        }
        assert_eq!(folder.read("a.csv"), folder.read("b.csv"), "{from}");
        let shown = |name: &str| {
            let args = ["show", &folder.file(name), "--format", "csv"];
            rows(&turboflow(args).exits(0).stdout)
        };
        assert_eq!(shown("b.parquet"), shown("a.parquet"), "{from}");
    }
    // IPFIX has another order of records.
    turboflow(["replay", &files[3], "-w", &folder.file("b.csv")]).exits(0);
    let whole = turboflow(["show", &files[3], "--format", "csv"]).exits(0);
    assert_eq!(rows(&folder.read("b.csv")), rows(&whole.stdout));
    // The templates agree too: the definition determines which values are never absent.
    for from in &files[..3] {
        turboflow(["replay", from, "-w", &folder.file("b.ipfix")]).exits(0);
        let bytes = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        assert!(
            bytes("a.ipfix") == bytes("b.ipfix"),
            "{from}: the messages are the same"
        );
    }
}

#[test]
fn a_collector_gets_the_records_that_match() {
    let folder = Folder::new();
    let parquet = folder.file("a.parquet");
    turboflow(["record", "-q", "-r", &office(), "-w", &parquet]).exits(0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix+tcp://{}", listener.local_addr().unwrap());
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        listener
            .accept()
            .unwrap()
            .0
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    });
    let hidden = folder.file("hidden.csv");
    let key = folder.write("key", [9; 32]);
    let ran = turboflow([
        "replay",
        &parquet,
        "--where",
        "udp port domain",
        "-w",
        &url,
        "-w",
        &hidden,
        "--anonymize",
        &key,
    ])
    .exits(0);
    let written = rows(&folder.read("hidden.csv")).len();
    assert!(written > 10, "{written}");
    assert!(
        ran.stderr
            .contains(&format!("{url}: {written} flow records")),
        "{}",
        ran.stderr
    );
    // What arrived is a valid IPFIX file with the same values.
    let came = folder.write("came.ipfix", reader.join().unwrap());
    let columns = "src_addr,dst_addr,src_port,dst_port,protocol,packets,bytes,end_reason";
    let values = |file: &str| {
        let args = ["show", file, "--format", "csv", "--select", columns];
        rows(&turboflow(args).exits(0).stdout)
    };
    assert_eq!(values(&came), values(&hidden));
}

/// The datagrams that have arrived.
pub(crate) fn datagrams(socket: &UdpSocket) -> Vec<Vec<u8>> {
    socket.set_nonblocking(true).unwrap();
    let mut buffer = [0; 65_536];
    let next = || {
        let length = socket.recv(&mut buffer).ok()?;
        Some(buffer[..length].to_vec())
    };
    std::iter::from_fn(next).collect()
}

fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[test]
fn collectors_over_udp_get_every_value() {
    let folder = Folder::new();
    let stored = ["a.parquet", "a.csv", "a.jsonl", "a.ipfix"].map(|name| folder.file(name));
    let mut record = command(["record", "-q", "-r", &office()]);
    finish(record.args(stored.iter().flat_map(|file| ["-w", file]))).exits(0);
    for from in &stored {
        collectors_get_every_value(from, &stored[0]);
    }
}

fn collectors_get_every_value(stored: &str, parquet: &str) {
    let [v5, v9] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let at = |socket: &UdpSocket| socket.local_addr().unwrap();
    let [to_v5, to_v9] = [
        format!("netflow5+udp://{}", at(&v5)),
        format!("netflow9+udp://{}", at(&v9)),
    ];
    // Few enough records that the sockets' buffers hold one datagram each.
    let question = ["--where", "(ip and tcp) and dst port https"];
    let args = ["replay", stored, "-w", &to_v5, "-w", &to_v9, "--rate", "1k"];
    turboflow(args.iter().chain(&question)).exits(0);
    let columns = "src_addr,dst_addr,src_port,dst_port,packets,bytes";
    let shown = ["show", parquet, "--format", "csv", "--select", columns];
    let expected = rows(&turboflow(shown.iter().chain(&question)).exits(0).stdout);
    assert!(expected.len() > 20, "{}", expected.len());
    let mut found = Vec::new();
    for datagram in datagrams(&v5) {
        assert_eq!(number(&datagram[..2]), 5);
        for record in datagram[24..].chunks_exact(48) {
            let address = |at: usize| record[at..at + 4].iter().map(u8::to_string);
            let address = |at: usize| address(at).collect::<Vec<_>>().join(".");
            found.push(format!(
                "{},{},{},{},{},{}",
                address(0),
                address(4),
                number(&record[32..34]),
                number(&record[34..36]),
                number(&record[16..20]),
                number(&record[20..24]),
            ));
        }
    }
    found.sort();
    assert_eq!(found, expected);
    // Counts the records by the headers of NetFlow v9. Its values come from the encoder, which the
    // tests of the formats cover.
    let came = datagrams(&v9);
    let domains: std::collections::BTreeSet<u64> = came
        .iter()
        .map(|datagram| number(&datagram[16..20]))
        .collect();
    assert_eq!(domains.len(), 1);
    assert!(!domains.contains(&1), "the source id is drawn");
    let counts = came.iter().map(|datagram| number(&datagram[2..4]));
    assert!(
        counts.sum::<u64>() > expected.len() as u64,
        "records and templates"
    );
}

#[test]
fn a_signal_ends_a_replay_as_a_loss() {
    let folder = Folder::new();
    let csv = folder.file("a.csv");
    turboflow(["record", "-q", "-r", &office(), "-w", &csv]).exits(0);
    let text = folder.read("a.csv");
    let (header, records) = text.split_once('\n').unwrap();
    let mut child = command(["replay", "-", "-w", &folder.file("b.csv")])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = child.stdin.take().unwrap();
    writeln!(pipe, "{header}").unwrap();
    // More than is inspected to determine the kinds of columns.
    for _ in 0..(3 << 20) / records.len() {
        pipe.write_all(records.as_bytes()).unwrap();
    }
    until("all of it is read", || {
        ioctl_fionread(&pipe).unwrap() == 0 && is_blocked(child.id(), Blocked::Reading(0))
    });
    signal(&child, "TERM");
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("once more aborts") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended early");
    }
    drop(pipe);
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("stopped by a signal"), "{rest}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert!(folder.read("b.csv").lines().count() > 742);
}

#[test]
fn outputs_are_checked_as_those_of_record() {
    let folder = Folder::new();
    let csv = folder.file("a.csv");
    turboflow(["record", "-q", "-r", &office(), "-w", &csv]).exits(0);
    let out = folder.file("b.csv");
    turboflow(["replay", &csv, "-w", &out, "-w", &out])
        .exits(2)
        .says(&["b.csv would be written twice"]);
    for option in ["--rate=5k", "--observation-domain=7"] {
        let (name, _) = option.split_once('=').unwrap();
        let words = format!("{name} is of no use with {out}: it is for collectors");
        turboflow(["replay", &csv, "-w", &out, option])
            .exits(2)
            .says(&[&words]);
        turboflow(["replay", &csv, "-w", "kafka://127.0.0.1:9/t", option])
            .exits(2)
            .says(&["records go to Kafka while they are made"]);
    }
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let collector = format!("netflow9+udp://{}", socket.local_addr().unwrap());
    let both = ["replay", &csv, "-w", &out, "-w", &collector, "--rate=50k"];
    turboflow(both).exits(0);
    let ipfix = folder.file("b.ipfix");
    let both = ["replay", &csv, "-w", &out, "-w", &ipfix];
    turboflow(both.into_iter().chain(["--observation-domain=7"])).exits(0);
    let folder_of_it = folder.path().display().to_string();
    turboflow(["replay", &folder_of_it, "-w", &csv])
        .exits(2)
        .says(&["a.csv would be read and written"]);
    folder.write("b.csv", "before");
    let link = folder.file("link.csv");
    std::os::unix::fs::symlink(&out, &link).unwrap();
    let ran = turboflow(["replay", &csv, "-w", &link]);
    if rustix::process::geteuid().is_root() {
        ran.exits(2).says(&["link.csv", "symbolic link"]);
        turboflow(["replay", &csv, "-w", &link, "--follow-links", "--sync"]).exits(0);
    } else {
        ran.exits(0);
    }
    assert_eq!(folder.read("a.csv"), folder.read("b.csv"));
}

#[test]
fn numbers_that_no_field_holds_are_counted() {
    let folder = Folder::new();
    let csv = folder.file("a.csv");
    turboflow(["record", "-q", "-r", &office(), "-w", &csv]).exits(0);
    let text = folder.read("a.csv");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut fields: Vec<&str> = lines[1].split(',').collect();
    let place = lines[0].split(',').position(|name| name == "dst_port");
    fields[place.unwrap()] = "70000";
    lines[1] = fields.join(",");
    let wide = folder.write("wide.csv", lines.join("\n") + "\n");
    for to in ["b.csv", "b.ipfix", "b.parquet"] {
        let out = folder.file(to);
        turboflow(["replay", &wide, "-w", &out]).exits(1).says(&[
            "1 flow record left out",
            "65535",
            "741 flow records",
        ]);
    }
    assert_eq!(rows(&folder.read("b.csv")).len(), 741);
    assert!(
        !folder.read("b.csv").contains("65535,"),
        "no number is cut to fit"
    );
}

#[test]
fn a_cut_file_is_replayed_to_its_last_whole_record() {
    let folder = Folder::new();
    let files = ["a.csv", "a.ipfix"].map(|name| folder.file(name));
    let [csv, ipfix] = &files;
    turboflow(["record", "-q", "-r", &office(), "-w", csv, "-w", ipfix]).exits(0);
    for (from, cut_bytes, least) in [(csv, 20, 741), (ipfix, 5_000, 400)] {
        let bytes = std::fs::read(from).unwrap();
        let name = from.replace("/a.", "/cut.");
        std::fs::write(&name, &bytes[..bytes.len() - cut_bytes]).unwrap();
        let out = folder.file("b.csv");
        turboflow(["replay", &name, "-w", &out])
            .exits(1)
            .says(&["cut.", "the file ends within"]);
        let replayed = rows(&folder.read("b.csv")).len();
        assert!((least..742).contains(&replayed), "{replayed}");
        let shown = turboflow(["show", &name, "--format", "csv"]).exits(1);
        assert_eq!(rows(&shown.stdout).len(), replayed);
        shown.says(&["the flow records before that were read"]);
    }
}

#[test]
fn standard_output_gets_records_in_any_format() {
    let folder = Folder::new();
    let csv = folder.file("a.csv");
    turboflow(["record", "-q", "-r", &office(), "-w", &csv]).exits(0);
    let ran = turboflow(["replay", &csv, "-w", "-"]).exits(0);
    assert_eq!(ran.stdout, folder.read("a.csv"));
    let ran = turboflow(["replay", &csv, "-w", "-", "--format", "jsonl"]).exits(0);
    assert_eq!(ran.stdout.lines().count(), 742);
    assert!(ran.stdout.starts_with("{\"src_addr\":"), "{}", ran.stdout);
    // It is not a loss if the reader stops reading.
    let program = command(["replay", &csv, "-w", "-"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", "{ \"$@\"; echo $? >&2; } | head -n 1", "sh"]);
    shell.arg(program.get_program()).args(program.get_args());
    assert!(finish(&mut shell).stderr.ends_with("0\n"));
    let parquet = folder.file("a.parquet");
    for option in [&["--names"][..], &["--time", "iso"], &["--format", "csv"]] {
        let refused = ["replay", &csv, "-w", &parquet].into_iter();
        let ran = turboflow(refused.chain(option.iter().copied())).exits(2);
        ran.says(&[option[0]]);
    }
}

#[test]
fn incomplete_records_are_counted_apart() {
    let folder = Folder::new();
    let csv = folder.file("a.csv");
    turboflow(["record", "-q", "-r", &office(), "-w", &csv]).exits(0);
    let text = folder.read("a.csv");
    let (head, rows) = text.split_once('\n').unwrap();
    let (first, rest) = rows.split_once('\n').unwrap();
    let (_, behind_address) = first.split_once(',').unwrap();
    let lacking = folder.write("lacking.csv", format!("{head}\n,{behind_address}\n{rest}"));
    let out = folder.file("b.csv");
    turboflow(["replay", &lacking, "-w", &out]).exits(1).says(&[
        "1 flow record left out",
        "address",
        "741 flow records",
    ]);
}

#[test]
fn what_cannot_be_replayed_is_refused_or_said() {
    let folder = Folder::new();
    let own = folder.write("own.csv", "src_addr,bytes\n10.0.0.1,5\n");
    let out = folder.file("out.csv");
    turboflow(["replay", &own, "-w", &out])
        .exits(2)
        .says(&["default definition", "Parquet"]);
    turboflow(["replay", &own]).exits(2).says(&["--write"]);
    let csv = folder.file("a.csv");
    turboflow(["record", "-q", "-r", &office(), "-w", &csv]).exits(0);
    turboflow(["replay", &csv, "-w", &out, "--rate", "5"])
        .exits(2)
        .says(&["for collectors"]);
    turboflow(["replay", &csv, "-w", &folder.file("out.xyz")])
        .exits(2)
        .says(&["csv", "parquet"]);
    turboflow(["replay", &csv, "-w", &out, "--where", "byts > 1"])
        .exits(2)
        .says(&["byts", "^"]);
    let since = [
        "replay",
        &csv,
        "-w",
        &out,
        "--where",
        "first_ns > -1h",
        "--now",
    ];
    for (now, records) in [
        ("2300-01-01", "0 flow records"),
        ("1970-01-02", "742 flow records"),
    ] {
        turboflow(since.iter().chain(&[now]))
            .exits(0)
            .says(&[records]);
    }
    // Damage after the start: records before it are written, but the run fails.
    let text = folder.read("a.csv");
    let half: Vec<&str> = text.lines().take(300).collect();
    let damaged = folder.write("damaged.csv", half.join("\n") + "\n1,2\n");
    let ran = turboflow(["replay", &damaged, "-w", &out]).exits(1);
    assert!(ran.stderr.contains("line 301"), "{}", ran.stderr);
}
