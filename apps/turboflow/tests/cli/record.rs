// SPDX-License-Identifier: Apache-2.0
//! `turboflow record` in normal operation.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{
    Folder, command, finish, make_pipe, office, pcap_header, pcap_packet, project, rows, turboflow,
    udp_capture, udp_frame,
};
use crate::terminal::Terminal;

/// Tries every limit, from one too small for the program to start to one that is large enough.
#[test]
fn memory_that_is_refused_at_the_start_is_an_error_with_its_limit() {
    let office = office();
    let mut refused = 0;
    for (limit, name) in [("-v", "(ulimit -v)"), ("-d", "(ulimit -d)")] {
        for mib in [40, 50, 60, 70, 80, 90, 100, 120, 160, 400] {
            let run = command(["record", "-q", "-r", &office, "-w", "-", "--format", "csv"]);
            let mut limited = Command::new("sh");
            let shell = format!("ulimit {limit} {}; exec \"$@\"", mib << 10);
            limited.args(["-c", &shell, "sh"]);
            limited.arg(run.get_program()).args(run.get_args());
            let ran = finish(limited.args(["--microflow-slots", "500k", "--threads", "2"]));
            assert!(!ran.stderr.contains("panicked"), "{mib}: {ran:?}");
            if ran.stderr.contains(name) && ran.stderr.contains("at its start") {
                let ran = ran.exits(2).says(&["raise the limit", "--microflow-slots"]);
                assert_eq!(ran.stdout, "");
                refused += 1;
            }
        }
    }
    assert!(refused >= 2, "{refused}");
}

/// The output of `record` for a capture, without the time that it took.
#[test]
fn every_line_of_the_summary_is_at_its_place() {
    let stdout = turboflow(["record", "-q", "-r", &office()]).exits(0).stdout;
    let (first, rest) = stdout.split_once('\n').unwrap();
    let (before, after) = first.split_once(" in ").unwrap();
    assert!(before.starts_with("13,035 packets ("), "{stdout}");
    let after = after.split_once("/s: ").unwrap().1;
    assert!(after.contains(" recorded in 742 flow records"), "{stdout}");
    // The largest flows come last, where the reader of a terminal looks first.
    let heads = [
        "\nProtocols:\nprotocol ",
        "\nWhy records ended:\nend reason ",
        "\nWhere every packet went:\npackets ",
        "\nThe ledger balances: every packet and byte is in a flow record or in a counter.\n",
        "\nIP traffic from 2026-11-21 20:37:45 to 2026-11-21 20:38:19 UTC, 34.",
        "\nLargest flow records by bytes (a flow cut by a timeout has several):\nsrc_addr ",
    ];
    let places: Vec<_> = heads.iter().map(|head| rest.find(head)).collect();
    assert!(places.is_sorted() && places[0].is_some(), "{stdout}");
    // Only rows of the ledger are indented.
    assert!(!rest[..places[2].unwrap()].contains("\n "), "{stdout}");
}

/// A terminal has 80 columns.
#[test]
fn no_line_of_the_tables_is_wider_than_the_terminal() {
    let mut run = command(["record", "-q", "-r", &office()]);
    run.env("NO_COLOR", "1");
    let mut terminal = Terminal::start(&run, 100, 80);
    assert_eq!(terminal.ends(), 0);
    let screen = terminal.text();
    let head = "Largest flow records by bytes (a flow cut by a timeout has several):";
    let lines: Vec<_> = screen.lines().map(str::trim_end).collect();
    let head = lines.iter().position(|line| *line == head).unwrap();
    // A header, a rule and ten rows: a line that is too wide takes two.
    assert_eq!(
        lines[head..].iter().position(|line| line.is_empty()),
        Some(13),
        "{screen}"
    );
    for head in [
        "Protocols:",
        "Why records ended:",
        "Where every packet went:",
    ] {
        assert!(lines.contains(&head), "{head:?} is missing in {screen}");
    }
}

#[test]
fn without_outputs_it_prints_a_summary() {
    let ran = turboflow(["record", "-r", &office()])
        .exits(0)
        .says(&["seed", "MiB", "1 thread"]);
    let processors = std::thread::available_parallelism().unwrap().get();
    let apart = "1 thread and one that reads";
    assert_eq!(ran.stderr.contains(apart), processors > 1, "{}", ran.stderr);
    let told = turboflow(["record", "-r", &office(), "--threads", "1"]).exits(0);
    assert!(!told.stderr.contains(apart), "{}", told.stderr);
    for words in [
        "13,035 packets",
        "742 flow records",
        "Largest flow records by bytes",
        "2103102",
        "tcp (6)",
        "udplite (136)",
        "end_of_flow (3): FIN or RST",
        "idle_timeout",
        "recorded in flows",
        "arp",
        "The ledger balances",
    ] {
        assert!(
            ran.stdout.contains(words),
            "{words:?} is missing in {}",
            ran.stdout
        );
    }
    assert!(
        !ran.stderr.contains('\u{1b}'),
        "without a terminal there is no progress bar"
    );
}

#[test]
fn quiet_prints_nothing_without_errors() {
    let folder = Folder::new();
    let ran = turboflow(["record", "-q", "-r", &office(), "-w", &folder.file("a.csv")]).exits(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert_eq!(folder.names(), ["a.csv"]);
}

#[test]
fn all_formats_hold_the_same_records() {
    let folder = Folder::new();
    let files = ["a.csv", "a.jsonl", "a.parquet"].map(|name| folder.file(name));
    turboflow([
        "record",
        "-r",
        &office(),
        "-w",
        &files[0],
        "-w",
        &files[1],
        "-w",
        &files[2],
    ])
    .exits(0)
    .says(&[
        "13,035 packets",
        "742 flow records",
        "a.parquet has",
        "accounted for",
    ]);
    let shown = files.map(|file| {
        turboflow(["show", &file, "--format", "csv"])
            .exits(0)
            .stdout
    });
    assert_eq!(rows(&shown[0]).len(), 742);
    assert!(shown[0].starts_with(
        "src_addr,dst_addr,src_port,dst_port,protocol,packets,bytes,first_ns,last_ns,tcp_flags,\
         min_length,max_length,min_ttl,max_ttl,tos,end_reason\n"
    ));
    assert_eq!(shown[0], shown[1]);
    assert_eq!(shown[0], shown[2]);
    assert_eq!(shown[0], folder.read("a.csv"));
}

#[test]
fn standard_output_has_only_data() {
    let folder = Folder::new();
    turboflow([
        "record",
        "-r",
        &office(),
        "--seed",
        "1",
        "-w",
        &folder.file("a.csv"),
    ])
    .exits(0);
    let args = [
        "record",
        "-r",
        &office(),
        "--seed",
        "1",
        "-w",
        "-",
        "--format",
        "csv",
    ];
    let ran = turboflow(args).exits(0).says(&["742 flow records"]);
    assert_eq!(ran.stdout, folder.read("a.csv"));
    let jsonl = turboflow(["record", "-r", &office(), "-w", "-", "--format", "jsonl"]).exits(0);
    assert!(
        jsonl
            .stdout
            .lines()
            .all(|line| line.starts_with('{') && line.ends_with('}'))
    );
}

#[test]
fn parquet_goes_through_a_pipe_and_names_its_origin() {
    let folder = Folder::new();
    let args = ["record", "-r", &office(), "-w", "-", "--format", "parquet"];
    let output = command(args).output().unwrap();
    let path = folder.write("a.parquet", &output.stdout);
    let shown = turboflow(["show", &path, "--format", "csv"]).exits(0);
    assert_eq!(rows(&shown.stdout).len(), 742);
    for key in ["turboflow.version", "turboflow.definition"] {
        let found = output
            .stdout
            .windows(key.len())
            .any(|bytes| bytes == key.as_bytes());
        assert!(found, "{key} is missing in the footer");
    }
}

#[test]
fn several_files_are_one_stream() {
    let folder = Folder::new();
    let bytes = fs::read(office()).unwrap();
    let copy = folder.write("copy.pcap", &bytes);
    let two = turboflow(["record", "-r", &office(), &copy]).exits(0);
    let again = turboflow(["record", "-r", &office(), "-r", &copy]).exits(0);
    for ran in [two, again] {
        assert!(ran.stdout.contains("26,070 packets"), "{}", ran.stdout);
    }
}

#[test]
fn reads_standard_input_and_compressed_files() {
    let ran = finish(
        command(["record", "-r", "-"]).stdin(Stdio::from(fs::File::open(office()).unwrap())),
    )
    .exits(0);
    assert!(ran.stdout.contains("742 flow records"));
    let other = turboflow(["record", "-r", &project("samples/two-links.pcapng")]).exits(0);
    assert!(other.stdout.contains("86 flow records"));
}

#[test]
fn the_ledger_file_has_every_counter() {
    let folder = Folder::new();
    let (csv, ledger) = (folder.file("a.csv"), folder.file("ledger.json"));
    turboflow([
        "record",
        "-r",
        &office(),
        "-w",
        &csv,
        "--ledger",
        &ledger,
        "--seed",
        "7",
    ])
    .exits(0);
    let json: serde_json::Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    let number = |key: &str| {
        json[key]
            .as_u64()
            .unwrap_or_else(|| panic!("{key} is missing in {json}"))
    };
    assert_eq!(number("packets_received"), 13_035);
    assert_eq!(number("packets_recorded"), 13_004);
    assert_eq!(number("packets_non_ip"), 31);
    assert_eq!(number("bytes_recorded"), 10_393_335);
    assert_eq!(number("records_written"), 742);
    assert_eq!(number("seed"), 7);
    for key in [
        "packets_malformed",
        "packets_truncated",
        "packets_filtered",
        "source_dropped",
        "microflows_merged",
        "microflows_dropped",
        "flows_opened",
        "records_dropped",
        "bytes_received",
        "bytes_non_ip",
        "bytes_malformed",
        "microflow_table_bytes",
        "flow_cache_max_bytes",
        "threads",
        "max_flows",
        "packets_unknown_link_type",
    ] {
        number(key);
    }
    assert_eq!(json["balanced"], true);
    assert_eq!(json["stopped"], false);
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["damaged"].as_array().unwrap().len(), 0);
    assert_eq!(json["outputs"][0]["records"], 742);
    let exported = json["flows_exported"].as_object().unwrap();
    assert_eq!(
        exported
            .values()
            .map(|count| count.as_u64().unwrap())
            .sum::<u64>(),
        742
    );
    assert!(json["microflows_evicted"]["flush"].is_u64());
    assert_eq!(folder.names(), ["a.csv", "ledger.json"]);
}

#[test]
fn a_full_cache_is_reported_and_loses_nothing() {
    let folder = Folder::new();
    let capture = folder.write("many.pcap", udp_capture(5_000));
    let ledger = folder.file("l.json");
    turboflow(
        [
            "record",
            "-r",
            &capture,
            "-w",
            &folder.file("a.csv"),
            "--max-flows",
            "100",
        ]
        .into_iter()
        .chain(["--ledger", &ledger]),
    )
    .exits(0)
    .says(&["warning", "--max-flows"]);
    let json: serde_json::Value = serde_json::from_str(&folder.read("l.json")).unwrap();
    assert_eq!(json["packets_recorded"], 5_000);
    assert!(
        json["flows_exported"]["lack_of_resources"]
            .as_u64()
            .unwrap()
            > 4_000
    );
}

#[test]
fn definition_biflow_and_icmp_ports_change_the_columns() {
    let folder = Folder::new();
    let definition = folder.write(
        "d.toml",
        "[key]\nfields = [\"source_address\"]\n[[feature]]\nname = \"n\"\nop = \"count\"\n",
    );
    let csv = |args: &[&str]| {
        let office = office();
        let all = ["record", "-r", &office, "-w", "-", "--format", "csv"];
        turboflow(all.iter().chain(args)).exits(0).stdout
    };
    let own = csv(&["--definition", &definition]);
    assert!(own.starts_with("src_addr,n,end_reason\n"), "{own}");
    let biflow = csv(&["--biflow"]);
    assert!(biflow.lines().next().unwrap().contains("reverse_packets"));
    assert!(rows(&biflow).len() < 742);
    let icmp = csv(&["--icmp-ports"]);
    assert!(
        icmp.lines().any(|line| line.contains(",0,2048,1,")),
        "echo requests: 8 * 256"
    );
    let summary = turboflow(["record", "-r", &office(), "--definition", &definition]).exits(0);
    assert!(summary.stdout.contains("by packets"), "{}", summary.stdout);
}

#[test]
fn help_states_the_memory_of_max_flows() {
    let ran = turboflow(["record", "-r", &office()]).exits(0);
    let said: u64 = ran
        .stderr
        .split("at most ")
        .nth(1)
        .unwrap()
        .split(" MiB")
        .next()
        .unwrap()
        .replace(',', "")
        .parse()
        .unwrap();
    let per_flow = (said << 20) as f64 / 10e6;
    assert!(
        (235.0..265.0).contains(&per_flow),
        "the help says about 245 bytes: {per_flow}"
    );
}

/// The software engine would ignore them silently.
#[test]
fn options_of_the_other_engine_are_refused() {
    for options in [
        &["--table", "row-lock"][..],
        &["--xdp-mode", "generic"],
        &["--xdp-clock", "coarse"],
        &["--xdp-drop"],
        &["--replace"],
        &["--unparsed-to", "frames.pcap"],
    ] {
        turboflow(["record", "-i", "lo"].iter().chain(options))
            .exits(2)
            .says(&[options[0], "--engine xdp"]);
    }
}

/// Memory that the system refuses bounds the open flows as `--max-flows` does.
#[test]
fn refused_memory_cuts_flows_and_loses_nothing() {
    let folder = Folder::new();
    let capture = folder.file("many.pcap");
    turboflow([
        "generate",
        "-q",
        "-w",
        &capture,
        "--packets",
        "1M",
        "--flows",
        "1M",
    ])
    .exits(0);
    let (csv, ledger) = (folder.file("a.csv"), folder.file("l.json"));
    let run = command(["record", "-r", &capture, "-w", &csv, "--ledger", &ledger]);
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 400000; exec \"$@\"", "sh"]);
    let ran = finish(limited.arg(run.get_program()).args(run.get_args())).exits(0);
    ran.says(&[
        "the tables may take 2,399 MiB, but the limit on address space",
        "the system refused memory for more than",
        "(end reason 5)",
    ]);
    let ledger: Value = serde_json::from_str(&folder.read("l.json")).unwrap();
    let number = |name: &str| ledger[name].as_u64().unwrap();
    assert_eq!(ledger["balanced"], true);
    assert!(number("growths_refused") > 0);
    assert!(
        ledger["flows_exported"]["lack_of_resources"]
            .as_u64()
            .unwrap()
            > 0
    );
    assert_eq!(number("packets_recorded"), number("packets_received"));
}

#[test]
fn folders_and_patterns_stand_for_their_captures() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path().join("day/01")).unwrap();
    folder.write("day/01/a.pcap", udp_capture(10));
    folder.write("day/b.PCAP", udp_capture(20));
    // As `tcpdump -C 1 -w ring.pcap` names the second file of a ring.
    folder.write("day/ring.pcap1", udp_capture(30));
    folder.write("day/notes.txt", "no capture");
    let day = folder.file("day");
    for given in [
        vec![day.clone()],
        vec![folder.file("day/**/*")],
        vec![folder.file("day/01/*.pcap"), day.clone()],
    ] {
        let out = folder.file("a.csv");
        let read = given.iter().flat_map(|path| ["-r", path]);
        let ran = turboflow(["record", "-w", &out].into_iter().chain(read)).exits(0);
        ran.says(&["60 packets", "are not captures", "notes.txt"]);
    }
    folder.write("day/c.pcap.xz", b"\xfd7zXZ\0");
    let ran = turboflow(["record", "-r", &day, "-w", &folder.file("a.csv")]).exits(1);
    ran.says(&["60 packets", "c.pcap.xz", "skipped"]);
}

/// A capture in a folder that cannot be read is as much a loss as a named one.
#[test]
fn a_capture_in_a_folder_that_cannot_be_metered_is_passed_over_with_an_error() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path().join("day")).unwrap();
    folder.write("day/ok.pcap", udp_capture(10));
    let day = folder.file("day");
    let out = folder.file("a.csv");
    for bytes in [pcap_header(147), pcap_header(1)[..20].to_vec()] {
        folder.write("day/bad.pcap1", bytes);
        let ran = turboflow(["record", "-r", &day, "-w", &out]).exits(1);
        ran.says(&["skipped", "bad.pcap1", "10 packets"]);
    }
    // A file that is not a capture is skipped without an error.
    folder.write("day/bad.pcap1", "a note");
    let ran = turboflow(["record", "-q", "-r", &day, "-w", &out]).exits(0);
    assert_eq!(ran.stderr, "");
}

/// A pipe can be read only once, so its first bytes must not be inspected.
#[test]
fn pipes_among_captures_are_left_whole() {
    let folder = Folder::new();
    let pipe = make_pipe(&folder, "stream0");
    let capture = udp_capture(30);
    let writer = std::thread::spawn(move || std::fs::write(pipe, capture));
    let out = folder.file("a.csv");
    let pattern = folder.file("str*");
    turboflow(["record", "-r", &pattern, "-w", &out])
        .exits(0)
        .says(&["30 packets"]);
    writer.join().unwrap().unwrap();
    // A file with the name of standard input is not standard input.
    folder.write("-", "no capture");
    let other = folder.write("b.pcap", udp_capture(20));
    let mut run = command(["record", "-r", "-", &other, "-w", &out]);
    run.current_dir(folder.path())
        .stdin(std::process::Stdio::piped());
    run.stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = run.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, &udp_capture(10)).unwrap();
    drop(stdin);
    let ran = child.wait_with_output().unwrap();
    let said = String::from_utf8(ran.stderr).unwrap();
    assert!(
        ran.status.success() && said.contains("30 packets"),
        "{said}"
    );
}

#[test]
fn captures_are_read_in_the_order_of_their_first_packets() {
    let folder = Folder::new();
    // The name of the last part sorts before that of the second, but its packets are a minute
    // later.
    let names = ["p/p-1.pcap", "p/p-2.pcap", "p/p-10.pcap"];
    std::fs::create_dir(folder.path().join("p")).unwrap();
    let mut all = pcap_header(1);
    for (minute, name) in (0..).zip(names) {
        let times = [0, 20, 40].map(|second| (1_700_000_000 + minute * 60 + second) * 1_000_000);
        let packets = times.map(|time| pcap_packet(time, &udp_frame(7))).concat();
        all.extend(&packets);
        folder.write(name, [pcap_header(1), packets].concat());
    }
    let [first, second, last] = names.map(|name| folder.file(name));
    let whole = folder.file("whole.csv");
    let all = folder.write("all.pcap", all);
    turboflow(["record", "-q", "-r", &all, "-w", &whole]).exits(0);
    for given in [
        vec![folder.file("p")],
        vec![first.clone(), last.clone(), second.clone()],
    ] {
        let out = folder.file("a.csv");
        let read = given.iter().flat_map(|path| ["-r", path]);
        let ran = turboflow(["record", "-w", &out].into_iter().chain(read)).exits(0);
        assert_eq!(
            ran.stderr.contains("order of their first packets"),
            given.len() > 1
        );
        assert_eq!(folder.read("a.csv"), folder.read("whole.csv"));
        assert!(!ran.stderr.contains("set back"), "{}", ran.stderr);
    }
    let ran = turboflow(["record", "-r", &folder.file("none.pcap"), "-r", &first]);
    let ran = ran.exits(2).says(&["none.pcap does not exist"]);
    assert!(!ran.stderr.contains("order"), "{}", ran.stderr);
}

#[test]
fn a_run_over_files_ends_after_so_many_packets() {
    let folder = Folder::new();
    let ledger = folder.file("l.json");
    let run = ["record", "-q", "-c", "100", "--ledger", &ledger, "-w"];
    let rest = [folder.file("a.csv"), "-r".to_owned(), office()];
    turboflow(run.into_iter().chain(rest.iter().map(String::as_str))).exits(0);
    let ledger: serde_json::Value = serde_json::from_str(&folder.read("l.json")).unwrap();
    assert_eq!(ledger["packets_received"], 100);
    assert_eq!(ledger["balanced"], true);
}
