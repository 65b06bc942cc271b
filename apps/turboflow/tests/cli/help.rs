// SPDX-License-Identifier: Apache-2.0
//! Help texts are complete and readable.

use crate::support::turboflow;

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
    let version = turboflow(["--version"]).exits(0).stdout;
    assert_eq!(
        version,
        format!("turboflow {}\n", env!("CARGO_PKG_VERSION"))
    );
}

/// Lines of a terminal window of today.
const SCREEN_LINES: usize = 50;

#[test]
fn every_command_has_examples_and_exit_codes() {
    for name in [
        "record",
        "run",
        "show",
        "top",
        "generate",
        "plan",
        "definition",
    ] {
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
        let short = turboflow([name, "-h"]).exits(0).stdout;
        let lines = short.lines().count();
        assert!(lines <= SCREEN_LINES, "{name} -h has {lines} lines");
        assert!(short.contains("--help"), "{name} -h does not lead on");
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

/// These commands used to be here, so users may look for them.
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
