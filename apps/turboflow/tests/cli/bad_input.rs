// SPDX-License-Identifier: Apache-2.0
//! Bad input: each case gives one clear error, and no recorded packet is lost.

use std::fs;
use std::process::Command;

use crate::support::{
    Folder, Ran, finish, office, pcap_header, pcap_packet, rows, turboflow, udp_capture, udp_frame,
};

/// Meters a capture into `a.csv`.
fn record(folder: &Folder, capture: &str) -> Ran {
    turboflow(["record", "-r", capture, "-w", &folder.file("a.csv")])
}

/// Asserts that a run is refused: exit code 2, one error, no file.
#[track_caller]
fn refused(args: &[&str], words: &[&str]) {
    let folder = Folder::new();
    let output = folder.file("a.csv");
    let ran = turboflow(args.iter().copied().chain(["-w", &output]))
        .exits(2)
        .says(words);
    assert_eq!(ran.stdout, "");
    assert_eq!(folder.names(), [""; 0], "no output remains");
    let errors = ran
        .stderr
        .lines()
        .filter(|l| l.starts_with("turboflow: ") || l.starts_with("error"));
    assert_eq!(errors.count(), 1, "not one error: {}", ran.stderr);
}

#[test]
fn one_of_several_files_that_is_no_capture_is_passed_over() {
    for (name, bytes, words) in [
        ("empty.pcap", vec![], "is empty"),
        (
            "text.pcap",
            b"this is no capture at all, is it?".to_vec(),
            "not a pcap",
        ),
        (
            "cut.pcap",
            pcap_header(1)[..20].to_vec(),
            "ends inside its pcap header",
        ),
        ("radio.pcap", pcap_header(127), "link type 127"),
        (
            "bad.pcap.gz",
            vec![0x1f, 0x8b, 9, 9, 9, 9, 9, 9],
            "does not decompress",
        ),
    ] {
        let folder = Folder::new();
        let odd = folder.write(name, bytes);
        let first = folder.write("first.pcap", udp_capture(10));
        let last = folder.write("last.pcap", udp_capture(20));
        let (csv, ledger) = (folder.file("a.csv"), folder.file("l.json"));
        let files = ["record", "-r", &first, "-r", &odd, "-r", &last];
        let outputs = ["-w", &csv, "--ledger", &ledger];
        let ran = turboflow(files.iter().chain(&outputs)).exits(1);
        ran.says(&["skipped", name, words, "30 packets"]);
        assert!(rows(&folder.read("a.csv")).len() >= 20);
        let ledger: serde_json::Value = serde_json::from_str(&folder.read("l.json")).unwrap();
        let told = ledger["passed_over"][0].as_str().unwrap();
        assert!(told.contains(name) && told.contains(words), "{told}");
        assert_eq!(ledger["balanced"], true);
        refused(&["record", "-r", &odd, "-r", &odd], &[words]);
    }
}

#[test]
fn files_that_are_no_captures_are_refused() {
    let folder = Folder::new();
    let missing = folder.file("none.pcap");
    refused(&["record", "-r", &missing], &["none.pcap does not exist"]);
    let empty = folder.write("empty.pcap", "");
    refused(&["record", "-r", &empty], &["is empty"]);
    let text = folder.write("text.pcap", "this is no capture at all, is it? it is not");
    refused(&["record", "-r", &text], &["not a pcap or pcapng file"]);
    let none = Folder::new();
    refused(
        &["record", "-r", &none.path().display().to_string()],
        &["no capture found", "pcapng"],
    );
    refused(
        &["record", "-r", &none.file("*.pcap")],
        &["no capture found"],
    );
    let cut = folder.write("cut.pcap", &pcap_header(1)[..20]);
    refused(&["record", "-r", &cut], &["ends inside its pcap header"]);
    let radio = folder.write("radio.pcap", pcap_header(127));
    refused(
        &["record", "-r", &radio],
        &["link type 127", "IEEE802_11_RADIOTAP"],
    );
    refused(
        &["record", "-r", &office(), &missing],
        &["none.pcap does not exist"],
    );
    refused(&["record", "-r", "-", "-r", "-"], &["only once"]);
}

#[test]
fn runs_without_a_source_say_what_to_add() {
    refused(
        &["record"],
        &["nothing to meter: add --read FILE or --interface IFACE"],
    );
    let office = office();
    refused(
        &["record", &office],
        &[&format!("Did you mean --read {office}?")],
    );
    refused(
        &["record", "-r", &office, "--print-config"],
        &["a service meters interfaces"],
    );
}

#[test]
fn a_capture_cut_inside_a_packet_keeps_all_packets_before_it() {
    let folder = Folder::new();
    let mut bytes = udp_capture(100);
    bytes.truncate(bytes.len() - 10);
    let capture = folder.write("cut.pcap", bytes);
    let ledger = folder.file("l.json");
    turboflow([
        "record",
        "-r",
        &capture,
        "-w",
        &folder.file("a.csv"),
        "--ledger",
        &ledger,
    ])
    .exits(1)
    .says(&["cut.pcap: packet 100 at byte", "the file ends inside"]);
    assert_eq!(rows(&folder.read("a.csv")).len(), 99);
    let json: serde_json::Value = serde_json::from_str(&folder.read("l.json")).unwrap();
    assert_eq!(json["damaged"][0]["packet"], 100);
    assert_eq!(json["packets_recorded"], 99);
    assert_eq!(json["balanced"], true);
}

#[test]
fn an_absurd_length_ends_the_file() {
    let folder = Folder::new();
    let mut bytes = udp_capture(10);
    let mut record = pcap_packet(1, &udp_frame(1));
    record[8..12].copy_from_slice(&0xffff_fff0_u32.to_le_bytes());
    bytes.extend(record);
    let capture = folder.write("absurd.pcap", bytes);
    record_fails_softly(
        &folder,
        &capture,
        &["packet 11 at byte", "captured length of 4294967280"],
    );
    assert_eq!(rows(&folder.read("a.csv")).len(), 10);
}

#[track_caller]
fn record_fails_softly(folder: &Folder, capture: &str, words: &[&str]) {
    record(folder, capture).exits(1).says(words);
}

#[test]
fn the_file_after_a_damaged_one_is_read() {
    let folder = Folder::new();
    let mut bytes = udp_capture(10);
    bytes.truncate(bytes.len() - 1);
    let cut = folder.write("cut.pcap", bytes);
    let ran = turboflow(["record", "-r", &cut, &office()])
        .exits(1)
        .says(&["packet 10"]);
    assert!(ran.stdout.contains("13,044 packets"), "{}", ran.stdout);
}

#[test]
fn a_clock_that_runs_backwards_is_counted_and_nothing_is_lost() {
    let folder = Folder::new();
    let mut bytes = pcap_header(1);
    for second in [1_000, 5_000, 1_000, 900, 1_700_000_000, 3] {
        bytes.extend(pcap_packet(second * 1_000_000, &udp_frame(7)));
    }
    let capture = folder.write("back.pcap", bytes);
    let ledger = folder.file("l.json");
    turboflow([
        "record",
        "-r",
        &capture,
        "-w",
        &folder.file("a.csv"),
        "--ledger",
        &ledger,
    ])
    .exits(0);
    let json: serde_json::Value = serde_json::from_str(&folder.read("l.json")).unwrap();
    assert_eq!(json["packets_recorded"], 6);
    assert!(json["clock_steps"].as_u64().unwrap() > 0);
    assert_eq!(json["balanced"], true);
}

/// A pcapng file with packets from an Ethernet and from a radio interface.
fn two_interfaces() -> Vec<u8> {
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (12 + body.len().next_multiple_of(4)) as u32;
        let mut bytes = [kind.to_le_bytes(), length.to_le_bytes()].concat();
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(length.to_le_bytes());
        bytes
    }
    let section = [0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
    let mut bytes = block(0x0a0d_0d0a, &[&section[..], &[0xff; 8]].concat());
    for link_type in [1_u8, 127] {
        bytes.extend(block(1, &[link_type, 0, 0, 0, 0, 0, 4, 0]));
    }
    for interface in [0_u32, 1, 1, 0] {
        let frame = udp_frame(9);
        let mut body = [interface.to_le_bytes(), [0; 4], [0; 4]].concat();
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend((frame.len() as u32).to_le_bytes());
        body.extend(frame);
        bytes.extend(block(6, &body));
    }
    bytes
}

#[test]
fn packets_of_unknown_link_types_are_counted_and_reported() {
    let folder = Folder::new();
    let capture = folder.write("radio.pcapng", two_interfaces());
    record(&folder, &capture)
        .exits(1)
        .says(&["2 packets", "link type turboflow does not read"]);
    assert!(
        folder.read("a.csv").contains(",9,53,17,2,92,"),
        "{}",
        folder.read("a.csv")
    );
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let office = office();
    let with = |more: &[&'static str], words: &[&str]| {
        refused(&[&["record", "-r", &office], more].concat(), words);
    };
    with(&["--idle-timeout", "0"], &["--idle-timeout", "none"]);
    with(&["--active-timeout", "0s"], &["--active-timeout", "none"]);
    with(&["--idle-timeout", "30"], &["unit is missing"]);
    with(&["--idle-timeout", "abc"], &["30s"]);
    with(&["--linger=-1s"], &["--linger"]);
    with(&["--active-timeout", "1000000d"], &["292 years"]);
    with(
        &["--threads", "0"],
        &["--threads must be from 1 to 256, not 0"],
    );
    with(&["--threads", "100k"], &["--threads"]);
    with(&["--max-flows", "0"], &["--max-flows must be from 1"]);
    with(
        &["--microflow-slots", "0"],
        &["--microflow-slots must be from 1"],
    );
    with(&["--microflow-slots", "99G"], &["--microflow-slots"]);
    with(&["--seed", "x"], &["--seed"]);
    with(
        &["--decapsulate=gre,nonsense"],
        &["unknown tunnel `nonsense`", "vxlan"],
    );
    with(
        &["--definition", "/nonexistent/d.toml"],
        &["/nonexistent/d.toml"],
    );
    with(&["--no-such-option"], &["--no-such-option"]);
    refused(&["record"], &["--read"]);
    with(&["-i", "lo"], &["cannot be used with"]);
    with(
        &["--duration", "10s"],
        &["cannot be used with", "it is for interfaces (-i)"],
    );
    with(
        &["--ring-size", "1MiB"],
        &["cannot be used with", "it is for interfaces (-i)"],
    );
    with(
        &["--readers", "2"],
        &["cannot be used with", "it is for interfaces (-i)"],
    );
    with(
        &["--initiator", "first"],
        &["only biflows (--biflow) have an initiator: leave --initiator out"],
    );
    with(&["tcp prt 443"], &["filter"]);
    with(&["--ring-size", "64M"], &["--ring-size", "64MiB"]);
}

/// Options of collectors that no output has.
#[test]
fn options_for_no_output_are_refused() {
    let (capture, folder) = (office(), Folder::new());
    for (option, outputs) in [
        ("--export-rate=50k", "collectors"),
        (
            "--template-interval=5s",
            "collectors of IPFIX and NetFlow v9",
        ),
        ("--no-export-options", "IPFIX and NetFlow v9"),
        ("--export-time=ns", "IPFIX"),
        ("--observation-domain=7", "collectors and IPFIX files"),
        ("--enterprise-number=7", "IPFIX"),
    ] {
        let (name, _) = option.split_once('=').unwrap_or((option, ""));
        let csv = folder.file("a.csv");
        let words = format!("{name} is of no use with {csv}: it is for {outputs}, such as ");
        turboflow(["record", "-r", &capture, "-w", &csv, option])
            .exits(2)
            .says(&[&words]);
        let ipfix = folder.file("a.ipfix");
        let for_both = ["record", "-r", &capture, "-w", &csv, "-w", &ipfix, option];
        let is_for_files = !["--export-rate", "--template-interval"].contains(&name);
        turboflow(for_both).exits(if is_for_files { 0 } else { 2 });
        assert_eq!(folder.names().is_empty(), !is_for_files, "{option}");
        for file in folder.names() {
            fs::remove_file(folder.file(&file)).unwrap();
        }
    }
    for to in [
        &folder.file("a.csv"),
        &folder.file("a.ipfix"),
        "ipfix+tcp://127.0.0.1:9",
    ] {
        turboflow(["record", "-r", &capture, "-w", to, "--export-mtu=600"])
            .exits(2)
            .says(&["--export-mtu is for collectors over UDP: -w ipfix+udp://HOST:PORT"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn interfaces_that_cannot_be_captured_are_refused() {
    for (interface, words) in [
        ("nosuch0", &["there is no interface nosuch0", "lo"][..]),
        ("a-name-longer-than-any", &["there is no interface"]),
        ("any", &["name the interfaces"]),
    ] {
        refused(&["record", "-i", interface], words);
    }
    let many = ["record", "-i", "lo", "--readers", "65"];
    refused(&many, &["--readers must be from 1 to 64"]);
    let tunnels = ["record", "-i", "lo", "--readers", "2", "--decapsulate"];
    refused(&tunnels, &["--readers 2 does not go with --decapsulate"]);
    let small = ["record", "-i", "lo", "--ring-size", "1KiB"];
    refused(&small, &["--ring-size must be from 65536"]);
}

#[test]
fn wrong_definitions_are_refused() {
    let folder = Folder::new();
    let office = office();
    let feature = |text: &str| format!("[[feature]]\nname = \"x\"\n{text}\n");
    for (text, words) in [
        (
            feature("op = \"summ\"\nof = \"ip_length\""),
            &["line 3", "unknown op `summ`", "`sum`"][..],
        ),
        (
            feature("op = \"sum\"\nof = \"ip_lenght\""),
            &["line 4", "unknown input", "ip_length"],
        ),
        (
            feature("op = \"max\"\nof = \"receive_queue\""),
            &["receive_queue", "engine `software`", "ip_length"],
        ),
        (
            feature("op = \"first\"\nof = \"direction\""),
            &["direction"],
        ),
        ("[key\n".to_owned(), &["line 1", "not TOML"]),
        (String::new(), &["no features"]),
    ] {
        let path = folder.write("d.toml", text);
        refused(
            &["record", "-r", &office, "--definition", &path],
            &[&["d.toml"], words].concat(),
        );
    }
    let binary = folder.write("b.toml", [0xff, 0xfe, 0]);
    refused(
        &["record", "-r", &office, "--definition", &binary],
        &["b.toml"],
    );
}

#[test]
fn an_error_is_one_line() {
    let ran = turboflow(["record", "-r", "/nonexistent.pcap"]).exits(2);
    assert_eq!(
        ran.stderr,
        "turboflow: /nonexistent.pcap does not exist: check the path\n"
    );
}

#[test]
fn a_truncated_capture_of_every_length_never_loses_whole_packets() {
    let folder = Folder::new();
    let whole = udp_capture(3);
    let packet = 16 + udp_frame(0).len();
    for length in (24..whole.len()).step_by(19) {
        let capture = folder.write("cut.pcap", &whole[..length]);
        let packets = (length - 24) / packet;
        let ran = record(&folder, &capture);
        let expected = if (length - 24) % packet == 0 { 0 } else { 1 };
        ran.exits(expected);
        assert_eq!(rows(&folder.read("a.csv")).len(), packets, "{length} bytes");
        fs::remove_file(folder.path().join("a.csv")).unwrap();
    }
}

/// A count of 0 would do nothing, or the opposite of what was requested.
#[test]
fn counts_of_0_are_refused() {
    let office = office();
    let live = ["record", "-i", "lo", "-w", "-", "--format", "csv"];
    let sent = ["record", "-r", &office, "-w", "ipfix+udp://127.0.0.1"];
    let top = ["top", "-r", &office];
    for (base, option) in [
        (&live[..], "--packets"),
        (&sent, "--export-rate"),
        (&top, "--batch"),
    ] {
        let ran = turboflow(base.iter().chain(&[option, "0"])).exits(2);
        ran.says(&[option, "write 1 or more"]);
    }
}

/// A week of captures may be more files than a process may have open.
#[test]
fn more_files_are_read_than_may_be_open_at_once() {
    let folder = Folder::new();
    // Larger than files that are read at once.
    assert!(fs::metadata(office()).unwrap().len() > 1 << 20);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 32; exec \"$0\" \"$@\""]);
    limited.arg(env!("CARGO_BIN_EXE_turboflow"));
    limited.args(["record", "-q", "--ledger", &folder.file("ledger.json")]);
    limited.args(["-r", &office()].repeat(60));
    finish(&mut limited).exits(0);
    let ledger = fs::read_to_string(folder.file("ledger.json")).unwrap();
    assert!(ledger.contains(&(60 * 13_035).to_string()), "{ledger}");
}

/// A file of flow records is not a capture, but the error names the command for it.
#[test]
fn flow_records_given_as_a_capture_are_shown_the_way() {
    let folder = Folder::new();
    for name in ["flows.csv", "flows.jsonl", "flows.parquet"] {
        let file = folder.file(name);
        turboflow(["record", "-q", "-r", &office(), "-w", &file]).exits(0);
        turboflow(["record", "-r", &file])
            .exits(2)
            .says(&[name, "turboflow show FILE"]);
    }
}
