// SPDX-License-Identifier: Apache-2.0
//! `turboflow plan`: answers are consistent, and the examples of docs/planning.md give the answers
//! shown there.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use turboflow_testing::is_missing_in_part;

use crate::support::{
    Folder, command, finish, libpcap, office, pcap_header, pcap_packet, project, turboflow,
    udp_capture, udp_frame,
};

/// The answer to a question, as JSON.
fn answer(words: &[&str]) -> Value {
    let words = ["plan", "--json"].into_iter().chain(words.iter().copied());
    serde_json::from_str(&turboflow(words).exits(0).stdout).unwrap()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// The value of an assumption in an answer.
fn assumed(plan: &Value, name: &str) -> f64 {
    let assumptions = plan["assumptions"].as_array().unwrap();
    let one = assumptions.iter().find(|one| one["name"] == name);
    number(&one.unwrap()["value"])
}

#[test]
fn the_answer_for_a_capture_is_a_sentence_and_tables() {
    let office = office();
    let ran = turboflow(["plan", "-r", &office, "--links", "40"]).exits(0);
    let first = ran.stdout.lines().next().unwrap();
    assert!(first.starts_with("40 links like this need "), "{first}");
    for words in [
        "of table",
        "cores to aggregate",
        "on the bus",
        "export bandwidth",
        "worst case",
    ] {
        assert!(first.contains(words), "{words:?} is missing in {first}");
    }
    for words in [
        "Links carried, by table memory and cores (measured)",
        "13,004 packets",
        "What it takes",
        "in servers",
        "server_cost_usd",
        "--assume",
    ] {
        assert!(
            ran.stdout.contains(words),
            "{words:?} is missing in {}",
            ran.stdout
        );
    }
    let again = turboflow(["plan", "-r", &office, "--links", "40"]).exits(0);
    assert_eq!(ran.stdout, again.stdout);
}

/// A rate over the whole time would be less than a link carries while it is used.
#[test]
fn pauses_that_no_rate_includes_are_stated() {
    let folder = Folder::new();
    let seconds = [0, 1, 2, 1_000, 1_001];
    let packets = seconds.map(|second| pcap_packet(second * 1_000_000, &udp_frame(7)));
    let capture = folder.write("a.pcap", [pcap_header(1), packets.concat()].concat());
    let answer = turboflow(["plan", "-r", &capture, "--links", "1"]).exits(0);
    for words in [
        "5 packets in 3.000 s",
        "out of every rate: 998.000 s in all",
    ] {
        assert!(answer.stdout.contains(words), "{}", answer.stdout);
    }
    let office = turboflow(["plan", "-r", &office(), "--links", "1"]).exits(0);
    assert!(!office.stdout.contains("Pauses"), "{}", office.stdout);
}

#[test]
fn json_is_consistent() {
    let office = office();
    let plan = answer(&["-r", &office, "--links", "40"]);
    assert_eq!(plan["source"]["packets"], 13_004);
    assert_eq!(plan["source"]["frames_without_flow"], 31);
    let busiest = number(&plan["source"]["busiest_packets_per_second"]);
    assert!(busiest > number(&plan["traffic"]["packets_per_second"]));
    let traffic = &plan["traffic"];
    let seconds = number(&plan["source"]["seconds"]);
    let packets = number(&traffic["packets_per_second"]) * seconds;
    assert!((packets - 13_004.0).abs() < 1e-6, "{packets}");
    let record_bytes = assumed(&plan, "microflow_record_bytes");
    for need in ["measured", "worst_case"] {
        let need = &plan[need];
        let rate = number(&need["microflows_per_second"]);
        let ratio = 40.0 * number(&traffic["packets_per_second"]) / rate;
        assert!((ratio / number(&need["packets_per_microflow"]) - 1.0).abs() < 1e-9);
        assert!(ratio >= 10.0);
        assert_eq!(
            number(&need["bus_bits_per_second"]),
            rate * record_bytes * 8.0
        );
        let slots = number(&need["slots_per_link"]);
        assert_eq!(number(&need["table_bytes"]), slots * 40.0 * record_bytes);
    }
    assert!(number(&plan["measured"]["table_bytes"]) < number(&plan["worst_case"]["table_bytes"]));
    for row in plan["tables"].as_array().unwrap() {
        let measured = number(&row["measured_packets_per_microflow"]);
        assert!(
            measured >= number(&row["worst_case_packets_per_microflow"]),
            "{row}"
        );
    }
    assert_eq!(number(&plan["terabits_per_second"]), 0.4);
}

#[test]
fn several_captures_of_any_format_and_a_pipe_are_one_stream() {
    let (folder, office, links) = (Folder::new(), office(), project("samples/two-links.pcapng"));
    let both = answer(&["-r", &links, &office]);
    let one = answer(&["-r", &links]);
    let packets = |plan: &Value| number(&plan["source"]["packets"]);
    assert_eq!(packets(&both), packets(&one) + 13_004.0);
    let mut piped = command(["plan", "-r", "-", "--json"]);
    let piped = finish(piped.stdin(Stdio::from(fs::File::open(&office).unwrap()))).exits(0);
    let piped: Value = serde_json::from_str(&piped.stdout).unwrap();
    assert_eq!(piped["tables"], answer(&["-r", &office])["tables"]);
    if !is_missing_in_part(&[libpcap()]) {
        let some = answer(&["-r", &office, "tcp", "port", "443"]);
        assert!(packets(&some) > 0.0 && packets(&some) < 13_004.0);
    }
    // A capture that ends inside its last packet.
    let mut cut = udp_capture(100);
    cut.truncate(cut.len() - 5);
    let cut = folder.write("cut.pcap", cut);
    let ran = turboflow(["plan", "-r", &cut, "--target-ratio", "1"]).exits(1);
    assert!(
        ran.stdout.contains("99 packets") && ran.stderr.contains("cut.pcap"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("was not complete"), "{ran:?}");
    let ran = turboflow(["plan", "-r", &cut, "--target-ratio", "1", "--json"]).exits(1);
    let cut: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(cut["source"]["is_whole"], false);
    assert_eq!(both["source"]["is_whole"], true);
}

#[test]
fn stated_rates_give_the_worst_case() {
    let stated = [
        "--packets-per-second",
        "328k",
        "--flows-per-second",
        "8.9k",
        "--active-flows",
        "300k",
    ];
    let ask = |more: &[&str]| answer(&[&stated[..], more].concat());
    let plan = ask(&[
        "--table-memory",
        "1MB",
        "--assume",
        "microflow_record_bytes=24",
    ]);
    assert_eq!(plan["measured"], Value::Null);
    let slots = plan["worst_case"]["slots_per_link"].as_u64().unwrap();
    assert_eq!(slots, 41_666);
    let evicts = 1.0 - (1.0 - 1.0 / slots as f64).powf(300e3);
    let rate = number(&plan["worst_case"]["microflows_per_second"]);
    assert!(
        (rate / (8.9e3 + 319.1e3 * evicts) - 1.0).abs() < 1e-9,
        "{rate}"
    );
    // A machine with twice the resources carries twice as many links.
    let machine = |table: &str, cores: &str| {
        let plan = ask(&["--table-memory", table, "--cores", cores]);
        number(&plan["capacity"]["links_worst_case"])
    };
    let (one, two) = (machine("1GB", "1"), machine("2GB", "2"));
    assert!((two / one - 2.0).abs() < 1e-3, "{one} and {two}");
    // The link is half full of long packets, so a full link has twice the rates.
    let utilized = ask(&["--mean-packet-bytes", "1000", "--utilization", "0.5248"]);
    assert!((number(&utilized["copies"]) - 2.0).abs() < 1e-9);
    assert_eq!(number(&utilized["traffic"]["packets_per_second"]), 656e3);
}

#[test]
fn every_assumption_is_listed_and_can_be_changed() {
    let list = turboflow(["plan", "--assumptions", "--json"])
        .exits(0)
        .stdout;
    let list: Value = serde_json::from_str(&list).unwrap();
    let list = list.as_array().unwrap();
    assert!(list.len() >= 19);
    let office = office();
    for one in list {
        let name = one["name"].as_str().unwrap();
        assert!(one["source"].as_str().unwrap().len() > 10, "{name}");
        let other = number(&one["value"]) * 1.25;
        let other = match name {
            "core_utilization" => 0.5,
            // The capture lasts 35 s, so that only a short timeout has an effect.
            "active_timeout_seconds" => 5.0,
            _ => other,
        };
        let changed = format!("{name}={other}");
        let asked = ["-r", &office, "--offload", "kernel"];
        let plan = answer(&[&asked[..], &["--assume", &changed]].concat());
        let (plan, default) = (&plan, &answer(&asked));
        let kept = |plan: &Value| {
            let mut plan = plan.clone();
            plan["assumptions"] = Value::Null;
            plan
        };
        // Every listed assumption changes the answer.
        assert_ne!(kept(plan), kept(default), "{name}");
    }
}

/// IPv6 records need twice the table memory and bus bandwidth, and more export bandwidth.
#[test]
fn ipv6_needs_more_of_everything() {
    let folder = Folder::new();
    let made = |name: &str, share: &str| {
        let path = folder.file(name);
        let words = ["generate", "-q", "-w", &path, "--packets", "20k"];
        let traffic = ["--flows", "1k", "--ipv6-share", share];
        turboflow(words.into_iter().chain(traffic)).exits(0);
        answer(&["-r", &path, "--table-memory", "1MB"])
    };
    let (of_ipv4, mixed, of_ipv6) = (
        made("4.pcap", "0"),
        made("46.pcap", "0.5"),
        made("6.pcap", "1"),
    );
    let sizes = |plan: &Value| {
        let sizes = ["microflow_record_bytes", "export_record_bytes"];
        sizes.map(|name| assumed(plan, name))
    };
    assert_eq!(sizes(&of_ipv4), [64.0, 58.0]);
    assert_eq!(sizes(&of_ipv6), [128.0, 82.0]);
    let [record_bytes, export_bytes] = sizes(&mixed);
    assert!((90.0..102.0).contains(&record_bytes), "{record_bytes}");
    assert!((68.0..72.0).contains(&export_bytes), "{export_bytes}");
    let slots = |plan: &Value| number(&plan["worst_case"]["slots_per_link"]);
    assert_eq!((slots(&of_ipv4), slots(&of_ipv6)), (15_625.0, 7_812.0));
    // A stated share overrides the measured one.
    let path = folder.file("6.pcap");
    let stated = answer(&["-r", &path, "--assume", "ipv6_share=0.25"]);
    assert_eq!(sizes(&stated), [80.0, 64.0]);
    let stated = answer(&["-r", &path, "--assume", "microflow_record_bytes=24"]);
    assert_eq!(sizes(&stated), [24.0, 82.0]);
}

#[test]
fn short_captures_are_flagged_and_worst_case_answers_are_marked() {
    let folder = Folder::new();
    let few = folder.write("few.pcap", udp_capture(100));
    let ran = turboflow(["plan", "-r", &few, "--target-ratio", "1"]).exits(0);
    assert!(
        ran.stdout.contains("That is little to plan with"),
        "{ran:?}"
    );
    let first = ran.stdout.lines().next().unwrap();
    assert!(
        first.contains("needs no table at all") && first.ends_with("in the worst case too."),
        "{first}"
    );
    let office = turboflow(["plan", "-r", &office()]).exits(0).stdout;
    assert!(!office.contains("That is little"), "{office}");
}

/// The bus has a limit that more cores do not raise.
#[test]
fn the_bus_limits_the_links_of_a_machine_and_the_answer_names_it() {
    let office = office();
    let machine = ["-r", &office, "--cores", "100", "--table-memory", "1MB"];
    let plan = answer(&machine);
    let per_link = number(&plan["traffic"]["packets_per_second"]);
    for (links, limit) in [
        ("links_measured", "limit_measured"),
        ("links_worst_case", "limit_worst_case"),
    ] {
        let links = number(&plan["capacity"][links]);
        assert_eq!(plan["capacity"][limit], "bus");
        // A table makes at least one record per 17.53 packets, and at most one per packet.
        let record_bytes = assumed(&plan, "microflow_record_bytes");
        let least = 31.5e9 / (per_link * record_bytes * 8.0);
        assert!((least..=17.6 * least).contains(&links), "{links}");
    }
    let narrow = [&machine[..], &["--assume", "bus_bits_per_second=3.1G"]].concat();
    let narrow = turboflow(["plan"].iter().chain(&narrow)).exits(0).stdout;
    let first = narrow.lines().next().unwrap();
    assert!(
        first.starts_with("That table, those cores and a bus of 3.1 Gb/s carry "),
        "{first}"
    );
    assert!(first.contains("limited by the bus;"), "{first}");
    assert!(
        narrow.contains("*: limited by the bus of 3.1 Gb/s"),
        "{narrow}"
    );
    for (cores, limit) in [("0.001", "cores"), ("100", "bus")] {
        let words = ["-r", &office, "--cores", cores, "--table-memory", "64MB"];
        assert_eq!(answer(&words)["capacity"]["limit_worst_case"], limit);
    }
    // A need that exceeds the bus.
    let over = ["plan", "-r", &office, "--assume", "bus_bits_per_second=1"];
    let over = turboflow(over).exits(0).stdout;
    let first = over.lines().next().unwrap();
    assert!(
        first.contains("on the bus (more than its 1.00 b/s)"),
        "{first}"
    );
    let plan = answer(&["-r", &office, "--links", "40"]);
    let need = &plan["worst_case"];
    let share = number(&need["bus_bits_per_second"]) / 31.5e9;
    assert!((number(&need["bus_share"]) / share - 1.0).abs() < 1e-9);
}

/// Flows that are too short for the active timeout have one record each.
#[test]
fn flow_records_are_counted_on_a_capture_and_bounded_for_stated_rates() {
    let folder = Folder::new();
    let (capture, ledger) = (folder.file("short.pcap"), folder.file("ledger.json"));
    let traffic = [
        "--flows",
        "50",
        "--births-per-second",
        "1000",
        "--packets-per-second",
        "2000",
    ];
    let words = ["generate", "-q", "-w", &capture, "--duration", "5s"];
    turboflow(words.iter().chain(&traffic)).exits(0);
    turboflow(["record", "-q", "-r", &capture, "--ledger", &ledger]).exits(0);
    let ledger: Value = serde_json::from_str(&folder.read("ledger.json")).unwrap();
    let records = ledger["flows_opened"].as_f64().unwrap();
    let plan = answer(&["-r", &capture, "--target-ratio", "1"]);
    let planned =
        number(&plan["export"]["flow_records_per_second"]) * number(&plan["source"]["seconds"]);
    assert!(
        (planned - records).abs() < 1e-6,
        "{planned} planned, {records} written"
    );
    assert_eq!(plan["export"]["is_upper_bound"], false);
    let stated = [
        "plan",
        "--packets-per-second=2000",
        "--flows-per-second=1000",
        "--active-flows=31k",
    ];
    let ran = turboflow(stated).exits(0).stdout;
    assert!(
        ran.lines().next().unwrap().contains(" and at most "),
        "{ran}"
    );
    assert!(
        ran.contains("Export: at most 1.3 k flow records/s"),
        "{ran}"
    );
}

#[test]
fn the_aggregator_of_this_machine_is_measured_on_request() {
    let plan = answer(&["-r", &office(), "--measure"]);
    let assumptions = plan["assumptions"].as_array().unwrap();
    let name = "aggregator_records_per_second_per_core";
    let measured = assumptions.iter().find(|one| one["name"] == name).unwrap();
    assert_eq!(measured["is_default"], false);
    assert!(
        measured["source"]
            .as_str()
            .unwrap()
            .contains("1000 flows (--measure)")
    );
}

/// The planner assumes the size that a flow record has in IPFIX.
#[test]
fn an_exported_record_has_the_assumed_size() {
    let folder = Folder::new();
    let bytes = |flows: u16| {
        let capture = folder.write("some.pcap", udp_capture(flows));
        let file = folder.file("some.ipfix");
        turboflow(["record", "-q", "-r", &capture, "-w", &file]).exits(0);
        fs::metadata(&file).unwrap().len()
    };
    assert_eq!(bytes(12) - bytes(2), 10 * 58);
    let list = turboflow(["plan", "--assumptions"]).exits(0).stdout;
    let row = list
        .lines()
        .find(|line| line.starts_with("export_record_bytes"));
    assert_eq!(row.unwrap().split_whitespace().nth(1), Some("58"));
}

#[test]
fn the_papers_tables_show_computed_and_printed_values() {
    let text = turboflow(["plan", "--paper"]).exits(0).stdout;
    for words in [
        "0.65 (0.651)",
        "$268 (268.8)",
        "479 W (479.9)",
        "6.4 Tb/s (6.75!)",
        "600 Gb/s (653~)",
        "563.17 Mb/s (571.733~)",
    ] {
        assert!(text.contains(words), "{words:?} is missing in {text}");
    }
    assert!(!text.contains("not listed"), "{text}");
    let paper = turboflow(["plan", "--paper", "--json"]).exits(0).stdout;
    let paper: Value = serde_json::from_str(&paper).unwrap();
    let cells = paper["cells"].as_array().unwrap();
    let of = |agreement: Value| {
        cells
            .iter()
            .filter(move |cell| cell["agreement"] == agreement)
    };
    // The document lists every deviation, with the reason that the program gives.
    let document = fs::read_to_string(project("docs/planning.md")).unwrap();
    let mut reason = "";
    for cell in of("deviates".into()) {
        let percent = 100.0 * number(&cell["deviation"]);
        let row = format!("| {} | {percent:+.1} % |", cell["name"].as_str().unwrap());
        let why = cell["reason"].as_str().unwrap();
        let told = if why == reason { "the same" } else { why };
        let row = format!("{row} {told} |");
        assert!(document.contains(&row), "docs/planning.md has no {row}");
        reason = why;
    }
    for cell in of("within_rounding".into()) {
        let why = cell["reason"].as_str().unwrap();
        assert!(document.contains(why) && text.contains(why), "{why}");
    }
    let counts =
        ["to_the_digit", "within_rounding", "deviates"].map(|name| of(name.into()).count());
    let [exact, within, deviate] = counts;
    assert_eq!(counts, [87, 16, 11]);
    let inputs = of(Value::Null).count();
    let counts = format!(
        "all {} cells. {exact} are as printed to the last digit, {within} within rounding, {inputs} are \
         inputs themselves, and {deviate} deviate.",
        cells.len(),
    );
    // The document has one sentence per line.
    let document = document.replace('\n', " ");
    assert!(document.contains(&counts), "{counts}");
}

/// The code blocks of docs/planning.md: a command after `$`, and its output.
#[test]
fn the_examples_in_the_document_have_the_answers_shown() {
    let folder = Folder::new();
    let samples = fs::canonicalize(project("samples")).unwrap();
    symlink(samples, folder.path().join("samples")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_turboflow")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let document = fs::read_to_string(project("docs/planning.md")).unwrap();
    let blocks: Vec<&str> = document.split("```console\n").skip(1).collect();
    assert!(blocks.len() >= 6);
    for block in blocks {
        let block = block.split("```").next().unwrap();
        let (command, printed) = block.strip_prefix("$ ").unwrap().split_once('\n').unwrap();
        let ran = finish(
            Command::new("sh")
                .args(["-c", command])
                .env("PATH", &path)
                .current_dir(folder.path()),
        )
        .exits(0);
        assert_eq!(ran.stdout, printed, "{command}");
    }
}
