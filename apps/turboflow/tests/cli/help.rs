// SPDX-License-Identifier: Apache-2.0
//! Help texts are complete and readable.

use crate::support::{Folder, office, turboflow};

/// All commands, as the overview lists them.
fn commands() -> Vec<String> {
    let help = turboflow(["-h"]).exits(0).stdout;
    let (_, list) = help.split_once("\nCommands:\n").unwrap();
    let names = list.lines().take_while(|line| line.starts_with("  "));
    // A description of several lines is indented further.
    let names = names.filter(|line| !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    let names: Vec<String> = names.filter(|name| name != "help").collect();
    assert!(names.len() >= 19, "{names:?}");
    names
}

#[test]
fn the_overview_names_every_command() {
    let help = turboflow(["--help"]).exits(0).stdout;
    for words in [
        "record",
        "show",
        "top",
        "generate",
        "plan",
        "definition",
        "──▶",
        "Exit codes",
        "Start here",
    ] {
        assert!(help.contains(words), "{words}");
    }
    let none: [&str; 0] = [];
    turboflow(none).exits(2);
}

#[test]
fn the_version_says_what_the_program_was_built_with() {
    let first = format!("turboflow {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(turboflow(["-V"]).exits(0).stdout, first);
    let long = turboflow(["--version"]).exits(0).stdout;
    let lines = long.strip_prefix(&first).unwrap();
    let parts = [
        ("engine xdp", cfg!(feature = "kernel")),
        ("engine offload", cfg!(feature = "kernel")),
        ("engine rtl", cfg!(feature = "rtl")),
        ("applications (--dpi)", cfg!(feature = "dpi")),
        ("Kafka (-w kafka://...)", cfg!(feature = "kafka")),
        ("engine software", true),
        ("engine p4", true),
        ("engine collector", true),
    ];
    for (part, is_built) in parts {
        let word = if is_built { "with: " } else { "without: " };
        let its = |line: &&str| line.starts_with(word) && line.contains(part);
        assert_eq!(lines.lines().filter(its).count(), 1, "{part}: {long}");
    }
}

/// Lines of a usual terminal window.
const SCREEN_LINES: usize = 50;

#[test]
fn every_command_has_examples_and_exit_codes() {
    for name in &commands() {
        for args in [[name, "--help"], ["help", name]] {
            let help = turboflow(args).exits(0).stdout;
            for words in [
                "Examples:",
                "Exit codes:",
                &format!("turboflow {name}"),
                "Usage:",
            ] {
                assert!(help.contains(words), "{name}: {words}");
            }
            assert!(
                help.lines().all(|line| line.chars().count() <= 100),
                "{name} is too wide"
            );
        }
        let short = turboflow([name.as_str(), "-h"]).exits(0).stdout;
        let lines = short.lines().count();
        assert!(lines <= SCREEN_LINES, "{name} -h has {lines} lines");
        assert!(short.contains("--help"), "{name} -h does not lead on");
    }
}

#[test]
fn a_command_has_its_line_of_the_overview_and_all_its_paragraphs() {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let overview = plain(&turboflow(["-h"]).exits(0).stdout);
    for (name, words) in [
        ("record", "Every packet is in a flow record"),
        ("collect", "merged like the microflow records"),
        ("show", "recognised by the content"),
        ("sql", "Runs on DataFusion"),
        ("alert", "a JSON object for each alert"),
        ("classify", "a tree, a forest or a linear model"),
        ("dashboard", "unless a token is set"),
        ("replay", "sent with their own times"),
        ("top", "Nothing is sampled"),
        ("generate", "Writes classic pcap"),
        ("plan", "docs/planning.md explains the model"),
        ("applications", "this system's library nDPI"),
        ("bridge", "in the Linux kernel"),
        ("definition", "docs/definition.md is the reference"),
        ("p4", "is compiled for one record definition"),
    ] {
        let help = turboflow([name, "--help"]).exits(0).stdout;
        let (first, rest) = help.split_once('\n').unwrap();
        assert!(
            overview.contains(first.trim_end_matches('.')),
            "{name}: {first}"
        );
        let rest = plain(rest);
        assert!(rest.contains(words), "{name}: {words} is missing in {rest}");
    }
}

#[test]
fn record_explains_every_option_with_default_and_unit() {
    let help = turboflow(["record", "--help"]).exits(0).stdout;
    for words in [
        "Input and output:",
        "What a flow is:",
        "When flows end:",
        "Memory and speed:",
        "[default: 30s]",
        "[default: 120s]",
        "[default: 2s]",
        "[default: 10M]",
        "[default: 1]",
        "--decapsulate[=<LIST>]",
        "gtp-u",
        "--reassemble-flows",
        "--icmp-ports",
        "--biflow",
        "--ledger <FILE.json>",
        "--microflow-slots <N>",
        "--seed <N>",
        "--quiet",
        "--format",
    ] {
        assert!(help.contains(words), "{words:?} is missing in {help}");
    }
    let plain = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains("Worst-case memory") && plain.contains("245 bytes"));
}

/// These commands were once part of the program, so users may look for them.
#[test]
fn a_command_of_the_laboratory_names_its_program() {
    for (args, tip) in [
        (&["bench"][..], "turboflow-lab bench"),
        (
            &["bench", "aggregate", "--flows", "1K", "--json"],
            "turboflow-lab bench",
        ),
        (&["help", "bench"], "turboflow-lab bench"),
        (&["evaluation", "run"], "turboflow-lab evaluation"),
    ] {
        turboflow(args)
            .exits(2)
            .says(&["unrecognized subcommand", tip]);
    }
    let unknown = turboflow(["benches"]).exits(2);
    assert!(!unknown.stderr.contains("turboflow-lab"), "{unknown:?}");
}

/// A file, folder or interface instead of a command.
#[test]
fn what_was_meant_is_said_in_full() {
    let (folder, office) = (Folder::new(), office());
    let flows = folder.write("flows.csv", "");
    let within = folder.path().display().to_string();
    for (typed, tip) in [
        (&office, format!("turboflow record -r {office}")),
        (&flows, format!("turboflow show {flows}")),
        (&within, format!("turboflow record -r {within}")),
    ] {
        turboflow([typed]).exits(2).says(&[&tip]);
    }
    if cfg!(target_os = "linux") {
        turboflow(["lo"]).exits(2).says(&["turboflow record -i lo"]);
    }
    turboflow(["recrod"]).exits(2).says(&["'record'"]);
}

#[test]
fn shells_get_completions_and_man_gets_pages() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = turboflow(["completions", shell]).exits(0).stdout;
        assert!(script.contains("idle-timeout"), "{shell}: {script}");
    }
    let folder = Folder::new();
    let within = folder.path().display().to_string();
    turboflow(["man", &within]).exits(0);
    for command in &commands() {
        let page = folder.read(&format!("turboflow-{command}.1"));
        assert!(
            page.contains(&format!(".TH turboflow-{command} 1")),
            "{page}"
        );
    }
    let page = folder.read("turboflow-record.1");
    assert!(
        page.contains("idle\\-timeout") && page.contains("Examples"),
        "{page}"
    );
    let page = folder.read("turboflow.1");
    assert!(page.contains("turboflow record"), "{page}");
    let script = turboflow(["completions", "bash"]).exits(0).stdout;
    assert!(script.contains("csv jsonl parquet arrow ipfix"), "{script}");
    turboflow(["man", "/no/such"])
        .exits(2)
        .says(&["create it first"]);
}

/// Options of other tools and commands are answered with what to write here.
#[test]
fn unknown_options_are_answered_with_the_known_ones() {
    for (args, tip) in [
        ("record -r a.pcap -o b.csv", "-w FILE writes to a file"),
        (
            "record -r a.pcap --output b.csv",
            "-w FILE writes to a file",
        ),
        (
            "record -r a.pcap --where tcp",
            "turboflow record -r FILE 'tcp port 443'",
        ),
        ("record -r a.pcap --limit 5", "-c N"),
        ("record -r a.pcap --sample 10", "none is sampled"),
        (
            "record -r a.pcap --group-by host",
            "--group-by is an option of `turboflow show`",
        ),
        ("show a.csv -o b.csv", "> FILE"),
        ("show a.csv -w b.csv", "> FILE"),
        ("show a.csv --limit 5", "--top N limits the rows"),
        ("show a.csv -n 5", "--top N limits the rows"),
        ("show a.csv --sort bytes", "--by FIELD sorts"),
        ("show a.csv --filter tcp", "--where 'tcp port 443'"),
        ("show -r a.csv", "turboflow show FILE"),
        ("show a.csv --json", "--format json"),
        (
            "show a.csv --biflow",
            "--biflow is an option of `turboflow record`",
        ),
        ("top -i lo --limit 5", "--rows N limits the rows"),
        ("top -i lo --by bytes", "--sort COLUMN"),
        (
            "plan -r a.pcap --where tcp",
            "a packet filter goes at the end",
        ),
        ("generate -o b.pcap", "-w FILE writes to a file"),
    ] {
        let ran = turboflow(args.split(' '))
            .exits(2)
            .says(&["unexpected argument", tip]);
        assert!(!ran.stderr.contains("as a value"), "{args}: {}", ran.stderr);
    }
    // A misspelt option is still corrected, and no tip is invented.
    let near = turboflow(["show", "a.csv", "--grup-by", "host"]).exits(2);
    assert!(near.stderr.contains("--group-by"), "{}", near.stderr);
    let far = turboflow(["show", "a.csv", "--xyzzy"]).exits(2);
    assert!(!far.stderr.contains("tip"), "{}", far.stderr);
}
