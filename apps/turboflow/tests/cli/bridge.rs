// SPDX-License-Identifier: Apache-2.0
//! `turboflow applications` and `turboflow bridge --check`.

use std::collections::BTreeSet;

use serde_json::Value;
use turboflow_testing::{Need, is_missing};

use crate::support::{Folder, Ran, office, turboflow};

const LIBRARY: Need<'static> = Need::Engine("libndpi", cfg!(feature = "dpi"));

/// The example of `docs/bridge.md`.
fn example() -> String {
    let page = include_str!("../../../../docs/bridge.md");
    let lines = page
        .lines()
        .skip_while(|line| *line != "    default = \"pass\"");
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.map(|line| format!("{}\n", line.trim())).collect()
}

fn check(folder: &Folder, text: &str) -> Ran {
    let path = folder.write("rules.toml", text);
    turboflow(["bridge", "--check", "--rules", &path])
}

#[test]
fn the_example_of_the_page_is_valid_and_told_in_words() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let ran = check(&Folder::new(), &example()).exits(0);
    assert_eq!(ran.stderr, "");
    for words in [
        "rules.toml is valid: 2 rules\n",
        "1  no-netflix",
        "drops a flow if the application is NetFlix, unless the first packet came from \
         10.0.5.0/24\n",
        "2  no-downloads",
        "drops a flow if the category is Download\n",
        "everything passes, through a Linux bridge of both ports",
    ] {
        assert!(
            ran.stdout.contains(words),
            "{words:?} is missing in {}",
            ran.stdout
        );
    }
}

/// `docs/bridge.md` says that its example states the defaults.
#[test]
fn the_example_has_the_defaults() {
    let folder = Folder::new();
    let settings = |text: &str| {
        let said = check(&folder, text).exits(0).stdout;
        said.split_once("setting").unwrap().1.to_owned()
    };
    let example = example();
    let keys = example.split("[[rule]]").next().unwrap();
    assert_eq!(keys.lines().filter(|line| line.contains(" = ")).count(), 5);
    assert_eq!(settings(keys), settings(""));
}

#[test]
fn wrong_rules_are_refused_with_file_line_and_mend() {
    let folder = Folder::new();
    let rule = |line: &str| format!("[[rule]]\nname = \"a\"\naction = \"drop\"\n{line}\n");
    for (text, words) in [
        (
            rule("src = [\"10.0.5.1/24\"]"),
            &["rules.toml, line 4: rule `a`:", "10.0.5.0/24"][..],
        ),
        (
            rule("aplication = []"),
            &["line 4", "unknown key `aplication`"],
        ),
        (rule(""), &["line 1", "no condition"]),
        (
            "default = \"drop\"\nundecided = \"drop\"\n".to_owned(),
            &["line 2", "undecided = \"pass\""],
        ),
        ("[[rule]\n".to_owned(), &["line 1"]),
    ] {
        let ran = check(&folder, &text).exits(2).says(words);
        assert_eq!(
            (ran.stderr.lines().count(), ran.stdout.as_str()),
            (1, ""),
            "{ran:?}"
        );
    }
    turboflow(["bridge", "--check", "--rules", "/nonexistent.toml"])
        .exits(2)
        .says(&["cannot read the rules /nonexistent.toml"]);
    turboflow(["bridge", "--check"]).exits(2).says(&["--rules"]);
}

/// Errors that follow from the command line alone.
#[test]
fn a_bridge_has_two_ports_and_no_source_of_records_beside() {
    for (options, words) in [
        ("--in eth0", &["add --out"][..]),
        ("--out eth0", &["add --in"]),
        ("--in lo --out eth0 -r x.pcap", &["leave out --read"]),
        ("--in lo --out eth0 -i eth1", &["leave out --interface"]),
        (
            "--in lo --out eth0 --engine xdp",
            &["leave out --engine xdp"],
        ),
        ("--in lo --out eth0 --biflow", &["leave out --biflow"]),
        ("--in lo --check --dry-run", &["--dry-run"]),
    ] {
        let options = ["bridge", "--rules", "x.toml"]
            .into_iter()
            .chain(options.split(' '));
        turboflow(options).exits(2).says(words);
    }
}

#[test]
fn named_ports_are_checked_beside_the_rules() {
    let folder = Folder::new();
    let path = folder.write("rules.toml", "");
    let checked = |ports: &str| {
        let options = ["bridge", "--check", "--rules", &path].into_iter();
        turboflow(options.chain(ports.split(' '))).exits(2)
    };
    checked("--in lo").says(&["add --out"]);
    checked("--out lo").says(&["add --in"]);
    checked("--in lo --out lo").says(&["both ports are interface lo"]);
    checked("--in lo --out no-such-port").says(&["no-such-port"]);
}

#[test]
fn its_options_are_a_section_of_a_configuration() {
    let folder = Folder::new();
    let options = "bridge --rules r.toml --in e0 --out e1 --dry-run -w f.csv --print-config";
    let printed = turboflow(options.split(' ')).exits(0).stdout;
    for words in ["[bridge]", "in = \"e0\"", "out = \"e1\"", "dry-run = true"] {
        assert!(printed.contains(words), "{words:?} is missing in {printed}");
    }
    let other = printed.replace("interfaces = [\"e0\", \"e1\"]", "interfaces = [\"e2\"]");
    for (text, words) in [
        (other, &["has its ports in", "`interfaces` in [source]"][..]),
        (
            printed.replace("out = \"e1\"", ""),
            &["`out = \"eth1\"` in [bridge]"],
        ),
    ] {
        let config = folder.write("turboflow.toml", &text);
        turboflow(["run", "--check", "--config", &config])
            .exits(2)
            .says(words);
    }
}

/// Only a bridge has verdicts.
#[test]
fn records_without_a_bridge_have_no_verdicts() {
    let folder = Folder::new();
    let text = "[[feature]]\nname = \"verdict\"\nop = \"last\"\nof = \"verdict\"\n";
    let definition = folder.write("mine.toml", text);
    turboflow(["record", "-r", &office(), "--definition", &definition])
        .exits(2)
        .says(&["line 4", "`verdict`", "`turboflow bridge`"]);
}

/// Verdicts are text columns like any other.
#[test]
fn verdicts_and_rules_are_grouped_and_filtered_by_name() {
    let folder = Folder::new();
    let flows = folder.write(
        "flows.csv",
        "src_addr,dst_addr,src_port,dst_port,protocol,packets,bytes,first_ns,last_ns,tcp_flags,\
         min_length,max_length,min_ttl,max_ttl,tos,end_reason,verdict,rule\n\
         10.0.0.1,10.0.0.2,1,443,6,5,500,1,2,0,100,100,64,64,0,1,dropped,no-netflix\n\
         10.0.0.1,10.0.0.3,1,443,6,7,700,1,2,0,100,100,64,64,0,1,passed,\n\
         10.0.0.1,10.0.0.4,1,443,6,2,200,1,2,0,100,100,64,64,0,1,dropped,no-netflix\n",
    );
    let by_rule = turboflow(["show", &flows, "--group-by", "rule"])
        .exits(0)
        .stdout;
    let line = by_rule.lines().find(|line| line.starts_with("no-netflix"));
    assert!(line.unwrap().contains("700 B"), "{by_rule}");
    let where_rule = [
        "show",
        &flows,
        "--where",
        "rule = no-netflix",
        "--format",
        "csv",
    ];
    let found = turboflow(where_rule).exits(0).stdout;
    assert_eq!(found.lines().count(), 3, "{found}");
    let where_passed = [
        "show",
        &flows,
        "--where",
        "verdict = passed",
        "--format",
        "csv",
    ];
    assert_eq!(turboflow(where_passed).exits(0).stdout.lines().count(), 2);
}

#[test]
fn what_is_probably_not_meant_is_warned_of() {
    let rule = |name: &str, line: &str| {
        format!("[[rule]]\nname = \"{name}\"\naction = \"drop\"\n{line}\n")
    };
    let text = rule("all", "src = [\"10.0.0.0/8\"]") + &rule("part", "src = [\"10.1.0.0/16\"]");
    check(&Folder::new(), &text).exits(0).says(&[
        "warning",
        "rules.toml, line 5: rule `part` never matches: rule `all`",
    ]);
}

#[test]
fn names_are_those_of_the_library() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let lines = turboflow(["applications", "--format", "json"])
        .exits(0)
        .stdout;
    let all: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| {
        all.iter()
            .filter(|it| it["kind"] == kind)
            .collect::<Vec<_>>()
    };
    let (applications, categories, risks) = (of("application"), of("category"), of("risk"));
    assert_eq!(
        applications.len() + categories.len() + risks.len(),
        all.len()
    );
    assert!(applications.len() > 200 && categories.len() > 20 && risks.len() > 20);
    let netflix = applications
        .iter()
        .find(|it| it["name"] == "NetFlix")
        .unwrap();
    let categories_of: BTreeSet<_> = applications
        .iter()
        .map(|it| it["category"].as_str().unwrap())
        .collect();
    let named: BTreeSet<_> = categories
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert!(categories_of.is_subset(&named), "{categories_of:?}");
    let csv = turboflow(["applications", "--format", "csv"])
        .exits(0)
        .stdout;
    assert_eq!(csv.lines().count(), all.len() + 1);
    assert!(
        csv.contains(&format!("application,{},NetFlix,", netflix["number"])),
        "{csv}"
    );
    let table = turboflow(["applications"]).exits(0).stdout;
    for words in [
        "Applications of nDPI ",
        "Categories of nDPI ",
        "Risks of nDPI ",
        "NetFlix",
    ] {
        assert!(table.contains(words), "{words:?} is missing in {table}");
    }
}

/// Every listed name and every number is valid in rules.
#[test]
fn rules_may_name_all_that_is_listed() {
    if is_missing(&[LIBRARY]) {
        return;
    }
    let lines = turboflow(["applications", "--format", "json"])
        .exits(0)
        .stdout;
    let all: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let list = |kind: &str, what: &str| {
        let of_kind = all.iter().filter(|it| it["kind"] == kind);
        let values: Vec<_> = of_kind.map(|it| it[what].to_string()).collect();
        format!("{kind} = [{}]\n", values.join(", "))
    };
    for what in ["name", "number"] {
        let rule = |kind: &str| {
            let list = list(kind, what);
            format!("[[rule]]\nname = \"{kind}\"\naction = \"drop\"\n{list}")
        };
        let text = ["application", "category", "risk"].map(rule).concat();
        let ran = check(&Folder::new(), &text).exits(0);
        assert!(ran.stdout.contains("3 rules"), "{}", ran.stdout);
    }
}

#[test]
fn without_inspection_names_are_refused_and_addresses_are_not() {
    let folder = Folder::new();
    let plain = "[[rule]]\nname = \"a\"\naction = \"drop\"\nport = [23]\n";
    check(&folder, plain).exits(0);
    if !cfg!(feature = "dpi") {
        let named = plain.replace("port = [23]", "application = [\"TLS\"]");
        let words = [
            "line 4",
            "`application`",
            "built without inspection",
            "libndpi-dev",
        ];
        check(&folder, &named).exits(2).says(&words);
        let words = ["cannot list applications", "built without inspection"];
        turboflow(["applications"]).exits(2).says(&words);
    }
}
