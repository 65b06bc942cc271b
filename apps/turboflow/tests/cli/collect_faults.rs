// SPDX-License-Identifier: Apache-2.0
//! `turboflow collect` with files that it cannot read, and with messages that arrive damaged.

use std::fs;
use std::net::UdpSocket;
use std::process::Stdio;

use crate::collecting::{Collecting, send};
use crate::replay::datagrams;
use crate::support::{Folder, command, finish, office, turboflow};

#[test]
fn files_of_other_kinds_are_refused_before_any_output_is_touched() {
    let folder = Folder::new();
    let names = ["a.csv", "a.parquet", "a.ipfix"];
    let [csv, parquet, ipfix] = names.map(|name| folder.file(name));
    let office = office();
    turboflow([
        "record", "-q", "-r", &office, "-w", &csv, "-w", &parquet, "-w", &ipfix,
    ])
    .exits(0);
    let definition = folder.write(
        "other.toml",
        "[key]\nfields = [\"source_address\"]\n\
         [[feature]]\nname = \"packets\"\nop = \"count\"\n",
    );
    let records = folder.file("other.records");
    turboflow([
        "record",
        "-q",
        "-r",
        &office,
        "--definition",
        &definition,
        "-w",
        &records,
    ])
    .exits(0);
    let start = fs::read(&ipfix).unwrap()[..30].to_vec();
    for (file, words) in [
        (
            office.clone(),
            "it is a capture of packets: `turboflow record -r FILE` meters it",
        ),
        (csv, "`turboflow show` and `turboflow replay` read them"),
        (parquet, "`turboflow show` and `turboflow replay` read them"),
        (
            folder.write("a.gz", [0x1f, 0x8b, 8, 0].repeat(9)),
            "compressed: unpack it first",
        ),
        (
            folder.write("a.txt", "neither of these".repeat(2)),
            "no IPFIX message",
        ),
        (folder.write("cut.ipfix", start), "ends within a message"),
        (records, "other.records, at byte 0: "),
    ] {
        let out = folder.write("out.csv", "before");
        turboflow(["collect", "-r", &file, "-w", &out])
            .exits(2)
            .says(&[words]);
        assert_eq!(folder.read("out.csv"), "before", "{file}");
    }
    // A pipe is not opened again to see what it is.
    let out = folder.write("out.csv", "before");
    let capture = Stdio::from(fs::File::open(office).unwrap());
    let mut collect = command(["collect", "-r", "-", "-w", &out]);
    finish(collect.stdin(capture))
        .exits(2)
        .says(&["no IPFIX message"]);
    assert_eq!(folder.read("out.csv"), "before");
    turboflow(["collect", "-q", "-r", &ipfix, "-w", &folder.file("out.csv")]).exits(0);
}

#[test]
fn options_about_packets_are_refused() {
    let no_use = "`turboflow collect` receives flow records, not packets; leave it out";
    for (args, words) in [
        (&["-i", "lo"][..], no_use),
        (&["--biflow"], no_use),
        (&["--dpi"], no_use),
        (&["--microflow-slots", "64k"], no_use),
        (&["--p4-program", "a.spec"], no_use),
        (&["--records-from", "a.records"], no_use),
        (&["--dpi-flows", "10"], no_use),
        (&["--ring-size", "8MiB"], no_use),
        (&["--no-promiscuous"], no_use),
        (
            &["--flows-from", "a"],
            "--flows-from is of no use here: write --read FILE",
        ),
        (
            &["--only-microflows", "--scale-sampled"],
            "--only-microflows refuses those: leave one out",
        ),
        (
            &["--listen", "udp://127.0.0.1:0"],
            "udp://127.0.0.1:0 is named twice",
        ),
        (&["--engine", "xdp"], "invalid value 'xdp' for '--engine"),
    ] {
        let all = ["collect", "--listen", "udp://127.0.0.1:0"]
            .iter()
            .chain(args);
        turboflow(all).exits(2).says(&[words]);
    }
    turboflow(["collect"])
        .exits(2)
        .says(&["add --listen udp://:4739 or --read FILE"]);
    turboflow(["collect", "--listen", "udp://192.0.2.7:2055"])
        .exits(2)
        .says(&["no interface has this address"]);
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = format!("udp://{}", taken.local_addr().unwrap());
    turboflow(["collect", "--listen", &address])
        .exits(2)
        .says(&["a program uses this port"]);
    let folder = Folder::new();
    let ipfix = folder.file("a.ipfix");
    turboflow(["record", "-q", "-r", &office(), "-w", &ipfix]).exits(0);
    turboflow(["collect", &ipfix])
        .exits(2)
        .says(&["Did you mean --read ", "a.ipfix?"]);
    turboflow(["collect", "-r", &ipfix, "--collector-lag", "1s"])
        .exits(2)
        .says(&["--collector-lag is for records from a network"]);
    turboflow(["collect", "-r", &ipfix, "--print-config"])
        .exits(2)
        .says(&["add --listen udp://:4739 instead of --read"]);
    // Engines for packets are not suggested for records.
    let engine = [
        "record",
        "--engine",
        "collector",
        "--listen",
        "udp://127.0.0.1:0",
    ];
    let packets = ["--decapsulate", "--ring-size", "8MiB"];
    turboflow(engine.iter().chain(&packets))
        .exits(2)
        .says(&["does not support --decapsulate, --ring-size; leave them out\n"]);
}

/// NetFlow v9 numbers messages and not records, so what a damaged one lacked is unknown.
#[test]
fn a_damaged_message_of_netflow_v9_is_a_loss() {
    let folder = Folder::new();
    let csv = folder.file("a.csv");
    turboflow(["record", "-q", "-r", &office(), "-w", &csv]).exits(0);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("netflow9+udp://{}", socket.local_addr().unwrap());
    turboflow(["replay", &csv, "-w", &url]).exits(0);
    let mut messages = datagrams(&socket);
    // Within the last record: a cut between two sets cannot be seen, and where sets begin is as
    // random as the order of the records.
    let cut = messages[2].len() - 7;
    for is_damaged in [false, true] {
        if is_damaged {
            messages[2].truncate(cut);
        }
        let mut collecting = Collecting::at("udp://127.0.0.1:0", &[]);
        send(collecting.address(), &messages);
        let ended = collecting.end("INT");
        let words = "1 NetFlow v9 messages that end early";
        assert_eq!(ended.code, Some(i32::from(is_damaged)), "{}", ended.said);
        assert_eq!(ended.said.contains(words), is_damaged, "{}", ended.said);
        // No exporter says where its records begin and end.
        let whole = "; everything that arrived is accounted for";
        assert!(ended.said.contains(whole), "{}", ended.said);
        assert!(!ended.said.contains("every packet"), "{}", ended.said);
    }
}

#[test]
fn records_whose_template_did_not_arrive_are_one_loss() {
    let folder = Folder::new();
    let csv = folder.file("a.csv");
    turboflow(["record", "-q", "-r", &office(), "-w", &csv]).exits(0);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("ipfix+udp://{}", socket.local_addr().unwrap());
    turboflow(["replay", &csv, "-w", &url]).exits(0);
    // The first message has the templates.
    let mut messages = datagrams(&socket);
    messages.remove(0);
    let mut collecting = Collecting::at("udp://127.0.0.1:0", &[]);
    send(collecting.address(), &messages);
    let ended = collecting.end("INT");
    assert_eq!(ended.code, Some(1), "{}", ended.said);
    let losses = ended.said.lines().filter(|line| line.contains("unknown"));
    let losses: Vec<&str> = losses.collect();
    let [loss] = &losses[..] else {
        panic!("{}", ended.said)
    };
    for words in [
        "could not be read",
        "their template did not; let the exporter send its",
    ] {
        assert!(loss.contains(words), "{words}: {}", ended.said);
    }
    assert!(!ended.said.contains("sequence numbers"), "{}", ended.said);
}

#[test]
fn the_summary_says_which_bytes_it_counts() {
    let folder = Folder::new();
    let ipfix = folder.file("a.ipfix");
    turboflow(["record", "-q", "-r", &office(), "-w", &ipfix]).exits(0);
    let summary = turboflow(["collect", "-r", &ipfix]).exits(0).stdout;
    for words in [
        "; everything that was read is accounted for",
        "  IP bytes\n",
        "packets that arrived in records, were rejected by probes, or are missing",
        "The ledger balances: everything that was read is in a flow record or in a counter.",
    ] {
        assert!(summary.contains(words), "{words}: {summary}");
    }
    for words in ["on the wire", "at the interfaces", "every packet and byte"] {
        assert!(!summary.contains(words), "{words}: {summary}");
    }
}

#[test]
fn a_collector_that_would_collect_its_own_records_is_refused() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let listen = [format!("udp://127.0.0.1:{port}"), format!("udp://:{port}")];
    for listen in &listen {
        let to = format!("ipfix+udp://localhost:{port}");
        turboflow(["collect", "--listen", listen, "-w", &to])
            .exits(2)
            .says(&[&to, listen, "it would receive its own records"]);
    }
}

#[test]
fn a_sender_that_is_refused_again_and_again_is_named_once() {
    let mut collecting = Collecting::at("udp://127.0.0.1:0", &["--only-microflows"]);
    let netflow9 = [&[0, 9][..], &[0; 18]].concat();
    send(collecting.address(), &vec![netflow9; 50]);
    let ended = collecting.end("INT");
    let lines = ended
        .said
        .matches("sent a message that was refused")
        .count();
    // A minute may end in between.
    assert!((1..=3).contains(&lines), "{}", ended.said);
    let counts = &ended.ledger()["engine_counts"];
    assert_eq!(counts["engine_collector_flows_refused"], 50, "{counts:#}");
}
