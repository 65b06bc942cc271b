// SPDX-License-Identifier: Apache-2.0
//! `turboflow plan --offload`: what a flow table in a card or in the kernel saves.

use std::fs;

use serde_json::Value;

use crate::support::{Folder, Ran, office, project, turboflow};

/// 10 M packets/s of 100 bytes: 1 M flows of 100 packets, a tenth of which is born every second.
const RATES: [&str; 6] = [
    "--packets-per-second=10M",
    "--flows-per-second=100k",
    "--active-flows=1M",
    "--idle-timeout=10s",
    "--mean-packet-bytes=100",
    "--assume=link_bits_per_second=100G",
];

fn plan(more: &[&str]) -> Ran {
    turboflow(["plan"].iter().chain(&RATES).chain(more))
}

fn answer(more: &[&str]) -> Value {
    let words = [&["--json"], more].concat();
    serde_json::from_str(&plan(&words).exits(0).stdout).unwrap()
}

fn close(value: &Value, expected: f64) {
    let value = value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is not a number"));
    assert!(
        (value / expected - 1.0).abs() < 1e-9,
        "{value} is not {expected}"
    );
}

/// The need for a resource, and its share of the limit.
fn used<'a>(plan: &'a Value, of: &str) -> &'a Value {
    let uses = plan["offload"]["uses"].as_array().unwrap();
    uses.iter().find(|one| one["of"] == of).unwrap()
}

#[test]
fn a_card_takes_all_but_the_first_packets() {
    let plan = answer(&["--offload", "napatech"]);
    let offload = &plan["offload"];
    // Four packets, and those of 10 us at 10 packets/s.
    let first = 4.0 + 10.0 * 10e-6;
    close(&offload["inspected"]["packet_share"], first / 100.0);
    close(
        &offload["uninspected"]["packet_share"],
        (first - 3.0) / 100.0,
    );
    close(&used(&plan, "rows")["needed"], 1.1e6);
    close(&used(&plan, "births")["share"], 100e3 / 3e6);
    close(&used(&plan, "bus")["available"], 100e9);
    close(&used(&plan, "bus")["needed"], first * 100e3 * 800.0);
    // 14 M packets/s per core, 2 us per flow, 4 packets of 1.55 us; 80 % of a core are usable.
    let metered = first * 100e3 / 14e6;
    close(&offload["inspected"]["cores"], (metered + 0.2 + 0.62) / 0.8);
    close(
        &offload["software_inspected"]["cores"],
        (10.0 / 14.0 + 0.62) / 0.8,
    );
    close(&offload["host_bytes"], 1.7e9);
    assert_eq!(offload["first_limit"], "host_cores");
    assert_eq!(offload["offloaded_share"], 1.0);
}

#[test]
fn the_answer_names_what_limits_first() {
    let ask = |card: &str, active: &str| {
        let rates = ["plan", "--packets-per-second=20M", "--flows-per-second=2M"];
        let more = ["--idle-timeout=100ms", "--assume=server_cores=64"];
        let words = rates.iter().chain(&more);
        let ran = turboflow(words.chain(&["--active-flows", active, "--offload", card]));
        ran.exits(0).stdout
    };
    let says = |text: &str, all: &[&str]| {
        for words in all {
            assert!(text.contains(words), "{words:?} is missing in {text}");
        }
    };
    let full = ask("kernel", "500k");
    says(
        full.lines().next().unwrap(),
        &[
            "With the flow table of kernel, 10.0 % of the flows get a row, and 94.4 % of the packets",
            "The first limit is rows: 10.5 M needed, 1.0 M available.",
        ],
    );
    let folder = Folder::new();
    let kernel = fs::read_to_string(project("apps/turboflow/cards/kernel.toml")).unwrap();
    let larger = folder.write("larger.toml", kernel.replace("1_048_576", "16_000_000"));
    says(
        &ask(&larger, "200k"),
        &[
            "The first limit is new flows: 2.0 M/s needed, 800 k/s available.",
            "Flows that get a row: 40.0 %.",
            "every packet crosses the bus",
            "The host, with the table and without it",
        ],
    );
}

#[test]
fn a_capture_is_planned_for_all_links_together() {
    let office = office();
    let ask = |links: &str| {
        let words = [
            "plan",
            "-r",
            &office,
            "--links",
            links,
            "--offload",
            "kernel",
            "--json",
        ];
        let plan: Value = serde_json::from_str(&turboflow(words).exits(0).stdout).unwrap();
        used(&plan, "rows")["needed"].as_f64().unwrap()
    };
    let (one, forty) = (ask("1"), ask("40"));
    assert!((forty / one - 40.0).abs() < 1e-9, "{one} and {forty}");
    assert!((830.0..860.0).contains(&one), "{one}");
    let without = turboflow(["plan", "-r", &office, "--json"]).exits(0).stdout;
    assert!(!without.contains("\"offload\""), "{without}");
}

#[test]
fn a_wrong_card_is_refused_with_its_place_and_what_to_write() {
    let folder = Folder::new();
    let card = "place = \"card\"\ncapacity = 1000\nlearning_rate = 10\ndelay = \"1ms\"\n";
    for (text, said) in [
        (card.to_owned(), "mine.toml: the key `event_lag` is missing"),
        (
            format!("{card}event_lag = \"soon\"\n"),
            "mine.toml, line 5: `event_lag` is \"soon\": write a number and a unit",
        ),
        (
            card.replace("1000", "-1") + "event_lag = \"1s\"\n",
            "mine.toml, line 2: `capacity` is -1: a number above 0 is needed",
        ),
        (
            format!("{card}event_lag = \"1s\"\nrows = 5\n"),
            "mine.toml, line 6: there is no key `rows`; write one of `place`",
        ),
        (
            format!("{card}event_lag = \"1s\"\nways = 2\n"),
            "mine.toml, line 6: a cuckoo table has",
        ),
    ] {
        let path = folder.write("mine.toml", text);
        let ran = plan(&["--offload", &path]).exits(2);
        assert_eq!(ran.stdout, "");
        ran.says(&[said]);
    }
    plan(&["--offload", "napatec"]).exits(2).says(&[
        "--offload napatec: there is no such card and no such file; write kernel, napatech",
    ]);
}

#[test]
fn options_of_offload_are_refused_where_they_are_of_no_use() {
    plan(&["--assume", "offload_ns_per_flow=7000"])
        .exits(2)
        .says(&["--assume offload_ns_per_flow=7000 is of no use without --offload"]);
    turboflow(["plan", "--paper", "--offload", "kernel"])
        .exits(2)
        .says(&["--offload is of no use with --paper"]);
    let words = [
        "plan",
        "--assumptions",
        "--assume",
        "offload_ns_per_flow=7000",
    ];
    let ran = turboflow(words).exits(0);
    assert!(ran.stdout.contains("7000"), "{ran:?}");
}

#[test]
fn the_document_shows_the_built_in_cards() {
    let document = fs::read_to_string(project("docs/planning.md")).unwrap();
    for card in ["kernel", "napatech"] {
        let path = format!("apps/turboflow/cards/{card}.toml");
        let text = fs::read_to_string(project(&path)).unwrap();
        assert!(
            document.contains(&format!("```toml\n{text}```\n")),
            "{path}"
        );
    }
}
