// SPDX-License-Identifier: Apache-2.0
//! `turboflow alert`: what rules may contain, and the files that they apply to.

use std::fs;

use crate::alert::{records, scan, shipped};
use crate::support::{
    Folder, command, finish, make_pipe, office, pcap_header, pcap_packet, turboflow, udp_frame,
};

#[test]
fn a_rule_that_does_not_fit_takes_no_alert_from_others() {
    let folder = Folder::new();
    let file = records(&folder, "scan", 1_700_000_000, &scan(150));
    let strange = "[[rule]]\nname = \"strange\"\nsummary = \"x\"\nwhere = \"colour == 1\"\n\
                   group_by = \"src_addr\"\nabove = 1\n";
    let both = format!("{strange}{}", fs::read_to_string(shipped()).unwrap());
    let rules = folder.write("both.toml", both);
    let ran = turboflow(["alert", "--rules", &rules, &file]).exits(2);
    assert!(ran.stdout.contains("port-scan"), "{}", ran.stdout);
    ran.says(&["rule \"strange\"", "colour"]);
}

#[test]
fn an_answer_without_alerts_says_how_many_rules_were_evaluated() {
    let folder = Folder::new();
    let file = records(&folder, "scan", 1_700_000_000, &scan(150));
    let rule = |name: &str, limit: u64| {
        format!(
            "[[rule]]\nname = \"{name}\"\nsummary = \"x\"\ngroup_by = \"src_addr\"\n\
             distinct = \"dst_port\"\nabove = {limit}\n"
        )
    };
    let asked = |rules: &[String], code| {
        let rules = folder.write("rules.toml", rules.concat());
        turboflow(["alert", "--rules", &rules, &file]).exits(code)
    };
    let note = "no alerts; rules evaluated: ";
    let none = asked(&[rule("a", 1_000), rule("b", 2_000)], 0);
    assert!(
        none.stdout.is_empty() && none.stderr.contains(&format!("{note}2")),
        "{none:?}"
    );
    let some = asked(&[rule("a", 1_000), rule("b", 100)], 0);
    assert!(
        !some.stdout.is_empty() && !some.stderr.contains(note),
        "{some:?}"
    );
    let wrong = rule("c", 1).replace("src_addr", "colour");
    let failed = asked(&[rule("a", 1_000), wrong], 2);
    assert!(!failed.stderr.contains(note), "{failed:?}");
}

#[test]
fn a_file_that_was_cut_is_said() {
    let folder = Folder::new();
    let file = folder.file("cut.csv");
    turboflow(["record", "-q", "-r", &office(), "-w", &file]).exits(0);
    let text = folder.read("cut.csv");
    let cut = folder.write("cut.csv", &text[..text.len() - 20]);
    let ran = turboflow(["alert", "--rules", &shipped(), &cut]).exits(1);
    ran.says(&["cut.csv", "the flow records before that were read"]);
}

#[test]
fn rules_that_cannot_be_are_refused() {
    let folder = Folder::new();
    let file = folder.file("a.csv");
    turboflow(["record", "-q", "-r", &office(), "-w", &file]).exits(0);
    let rule = "[[rule]]\nname = \"a\"\nsummary = \"x\"\ngroup_by = \"src_addr\"\n";
    for (text, words) in [
        (
            "[[rule]]\nnam = 1\n".to_owned(),
            "rules.toml, line 2: unknown key `nam`; write one of `name`",
        ),
        (
            format!("{rule}above = \"1M\"\n"),
            "line 5: found string \"1M\": write a whole number without quotes",
        ),
        (
            rule.replace("\"src_addr\"", "[1]"),
            "line 4: found sequence: write text in quotes",
        ),
        (
            String::new(),
            "there are no rules: begin each with [[rule]]",
        ),
        (
            rule.replace("[[rule]]", "[rule]"),
            "line 1: found map: write [[rule]] before each rule",
        ),
        (
            format!("{rule}above = -5\n"),
            "found integer `-5`: write a whole number without quotes, from 0 to 2^63 - 1",
        ),
        (
            format!("{rule}severity = 5\n"),
            "line 5: write text in quotes",
        ),
        (
            format!("{rule}kind = \"old\"\n"),
            "line 5: there is no `old`; write one of `amount`",
        ),
        (
            "[[rule]]\nname = \"a\"\n".to_owned(),
            "line 1: a rule lacks the key `summary`",
        ),
        (rule.to_owned(), "rule 1, \"a\": write above = the limit"),
        (
            format!("{rule}above = 1\n{rule}above = 1\n"),
            "rule 2, \"a\": another rule has this name",
        ),
        (format!("{rule}kind = \"silent\"\n"), "write period_s"),
        (
            format!("{rule}kind = \"new\"\nabove = 1\n"),
            "leave them out",
        ),
        (
            format!("{rule}kind = \"new\"\nmeasure = \"bytes\"\n"),
            "leave them out",
        ),
        (
            format!("{rule}kind = \"new\"\nperiod_s = 60\n"),
            "period_s is for amounts and silence",
        ),
        (
            format!("{rule}above = 1\nmeasure = \"bytes\"\ndistinct = \"dst_port\"\n"),
            "distinct is instead of measure",
        ),
        (
            rule.replace("\"x\"", "\"{src_addr} asked {dst_addr}\"") + "above = 1\n",
            "summary has {dst_addr}, which is neither {value} nor a field of group_by",
        ),
        (
            format!("{rule}above = 1\nperiod_s = 0\n"),
            "1 second or more",
        ),
        (
            rule.replace("\"a\"", "\"a b\"") + "above = 1\n",
            "letters, digits and hyphens",
        ),
        (
            format!("{rule}above = 1\nwhere = \"colour == red\"\n"),
            "rules.toml, rule \"a\": filter: unknown field \"colour\"",
        ),
        (format!("{rule}above = 1\nmeasure = \"pakets\"\n"), "pakets"),
    ] {
        let rules = folder.write("rules.toml", &text);
        let ran = turboflow(["alert", &file, "--rules", &rules]).exits(2);
        assert!(ran.stderr.contains(words), "{words}\n{}", ran.stderr);
    }
    let rules = shipped();
    for url in [
        "ftp://a:1",
        "http://a",
        "http://a:x/",
        "syslog+udp://a:1/b",
        "a",
    ] {
        let args = ["alert", &file, "--rules", &rules, "--to", url];
        turboflow(args)
            .exits(2)
            .says(&["write http://HOST:PORT/PATH"]);
    }
    let secret = ["--to", "http://user:secret@host:80/"];
    let ran = turboflow(["alert", &file, "--rules", &rules].iter().chain(&secret)).exits(2);
    assert!(!ran.stderr.contains("secret"), "{ran:?}");
    ran.says(&["a user or a password before @"]);
    let state = folder.write("state.json", "[]");
    let args = ["alert", &file, "--rules", &rules, "--state", &state];
    turboflow(args).exits(2).says(&["it is not a state"]);
}

/// Without a state, nothing is known from before.
#[test]
fn rules_that_compare_with_earlier_files_ask_for_a_state() {
    let folder = Folder::new();
    let file = records(&folder, "scan", 1_700_000_000, &scan(150));
    let note = "find nothing without --state FILE";
    let rule = "[[rule]]\nname = \"newcomer\"\nkind = \"new\"\nsummary = \"{src_addr}\"\n\
                group_by = \"src_addr\"\n";
    let rules = folder.write("rules.toml", rule);
    let args = ["alert", &file, "--rules", &rules];
    turboflow(args).exits(0).says(&[note, "newcomer"]);
    let state = folder.file("state.json");
    let ran = turboflow(args.iter().chain(&["--state", &state])).exits(0);
    assert!(!ran.stderr.contains(note), "{}", ran.stderr);
}

#[test]
fn values_in_summaries_have_their_units() {
    let folder = Folder::new();
    let packets = [0, 5_500_000].map(|us| pcap_packet(1_700_000_000_000_000 + us, &udp_frame(7)));
    let capture = folder.write("a.pcap", [pcap_header(1), packets.concat()].concat());
    let file = folder.file("a.parquet");
    turboflow(["record", "-q", "-r", &capture, "-w", &file]).exits(0);
    let rules = folder.write(
        "rules.toml",
        "[[rule]]\nname = \"long\"\nsummary = \"for {value}\"\ngroup_by = \"src_addr\"\n\
         measure = \"duration\"\nabove = 1\n",
    );
    let ran = turboflow(["alert", &file, "--rules", &rules]).exits(0);
    assert!(ran.stdout.contains("\"for 5.5 s\""), "{}", ran.stdout);
}

#[test]
fn rules_may_ask_of_sites() {
    let folder = Folder::new();
    let file = records(&folder, "scan", 1_700_000_000, &scan(150));
    let sites = folder.write("sites.csv", "network,site,owner\n192.0.2.0/24,Bern,IT\n");
    let rule = "[[rule]]\nname = \"to-site\"\nsummary = \"{value} to {dst_site}\"\n\
                where = \"dst_site == Bern\"\ngroup_by = \"dst_site\"\nabove = 1\nneeds = \"dst_site\"\n";
    // For a second rule, the records are read again and enriched again.
    let second = rule.replace("to-site", "to-site-again");
    let rules = folder.write("rules.toml", format!("{rule}{second}"));
    let args = ["alert", &file, "--rules", &rules];
    let ran = turboflow(args.iter().chain(&["--networks", &sites])).exits(0);
    assert_eq!(ran.stdout.matches("150 to Bern").count(), 2, "{ran:?}");
    let ran = turboflow(args).exits(0).says(&["\"to-site\" (dst_site)"]);
    assert_eq!(ran.stdout, "");
}

#[test]
fn labels_are_as_tables_have_them() {
    let folder = Folder::new();
    let mut capture = pcap_header(1);
    capture.extend(pcap_packet(1_700_000_000_000_000, &udp_frame(7)));
    let capture = folder.write("a.pcap", capture);
    let definition = folder.write(
        "macs.toml",
        "[key]\nfields = [\"source_mac\", \"destination_mac\", \"protocol\"]\n\
         [[feature]]\nname = \"packets\"\nop = \"count\"\n\
         [[feature]]\nname = \"first_ns\"\nop = \"min\"\nof = \"timestamp\"\n",
    );
    let file = folder.file("a.parquet");
    let args = ["record", "-q", "-r", &capture, "-w", &file, "--definition"];
    turboflow(args.iter().chain(&[&*definition])).exits(0);
    let rules = folder.write(
        "rules.toml",
        "[[rule]]\nname = \"macs\"\nsummary = \"{source_mac} at {first_ns:1m} by {protocol}\"\n\
         group_by = \"source_mac,first_ns:1m,protocol\"\nabove = 0\n",
    );
    let ran = turboflow(["alert", &file, "--rules", &rules]).exits(0);
    let alert: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(alert["labels"]["source_mac"], "02:00:00:00:00:02");
    assert_eq!(
        alert["summary"],
        "02:00:00:00:00:02 at 2023-11-14T22:13:00Z by udp"
    );
}

#[test]
fn what_can_be_read_once_is_refused() {
    let folder = Folder::new();
    let rules = shipped();
    let pipe = make_pipe(&folder, "pipe.csv");
    for (file, place) in [("-", "standard input"), (&*pipe, &*pipe)] {
        let ran = finish(&mut command(["alert", file, "--rules", &rules])).exits(2);
        ran.says(&[&format!("{place} can be read once"), "write them to a file"]);
    }
}
