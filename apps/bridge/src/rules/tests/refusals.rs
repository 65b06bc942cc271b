// SPDX-License-Identifier: Apache-2.0
//! Every refusal is a single clear error with its line and what to write instead.

use super::{names, rules};
use crate::{MAX_RULES, Rules};

/// A file with one rule of these lines, which begin in line 1.
fn rule(lines: &str) -> String {
    format!("[[rule]]\nname = \"a\"\naction = \"drop\"\n{lines}\n")
}

#[track_caller]
fn refused(text: &str, words: &[&str]) {
    let said = Rules::parse(text, Some(&names()), None)
        .unwrap_err()
        .to_string();
    for words in words {
        assert!(
            said.contains(words),
            "{words:?} is missing in {said:?}\n{text}"
        );
    }
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    for (lines, words) in [
        (
            "application = [\"TLS\",\n  \"Netflx\"]",
            &[
                "line 5: rule `a`: unknown application `Netflx`",
                "`NetFlix`",
                "turboflow applications",
            ][..],
        ),
        (
            "application = [\"TLS.Netflx\"]",
            &["unknown application `TLS.Netflx`"],
        ),
        ("application = [4242]", &["unknown application `4242`"]),
        ("application = [-1]", &["unknown application `-1`"]),
        ("application = [\"\"]", &["unknown application ``"]),
        (
            "category = [\"Vide\"]",
            &["line 4", "unknown category `Vide`", "`Video`"],
        ),
        ("category = [99]", &["unknown category `99`"]),
        (
            "risk = [\"Weak TLS Ciper\"]",
            &["unknown risk", "`Weak TLS Cipher`"],
        ),
        (
            "protocol = [\"tcpp\"]",
            &["unknown protocol `tcpp`", "`tcp`"],
        ),
        (
            "protocol = [256]",
            &["unknown protocol `256`", "number up to 255"],
        ),
    ] {
        refused(&rule(lines), words);
    }
    let confidence = "min_confidence = \"dip\"\n";
    refused(
        confidence,
        &["line 1: unknown confidence `dip`", "\"port\"", "or \"dpi\""],
    );
}

#[test]
fn unknown_keys_and_values_of_the_wrong_kind_are_refused() {
    for (text, words) in [
        (
            rule("aplication = [\"TLS\"]"),
            &["line 4", "unknown key `aplication`", "`application`"][..],
        ),
        (
            rule("src = [\"::1\"]\nexcept = { sni = [\"x\"] }"),
            &["line 5", "unknown key `sni`"],
        ),
        (
            "\ndefalt = \"pass\"\n".to_owned(),
            &["line 2", "unknown key `defalt`", "`default`"],
        ),
        (
            "default = \"accept\"\n".to_owned(),
            &["line 1", "there is no `accept`", "\"pass\" or \"drop\""],
        ),
        (
            "fail = \"close\"\n".to_owned(),
            &["\"open\", \"frozen\" or \"closed\""],
        ),
        (
            rule("application = \"TLS\""),
            &["line 4", "\"TLS\"", "a list, in square brackets"],
        ),
        (
            rule("application = [true]"),
            &["line 4", "true", "a name in quotes or a number"],
        ),
        (
            "[[rule]]\nname = \"a\"\nport = [1]\n".to_owned(),
            &["line 1", "`action` is missing"],
        ),
        (
            "[[rule]]\naction = \"drop\"\nport = [1]\n".to_owned(),
            &["line 1", "`name` is missing"],
        ),
        ("[[rule]\n".to_owned(), &["line 1"]),
        (rule("port = [1]\nport = [2]"), &["line 5", "duplicate key"]),
    ] {
        refused(&text, words);
    }
}

#[test]
fn bad_networks_ports_and_server_names_are_refused() {
    for (lines, words) in [
        (
            "src = [\"10.0.0.0/33\"]",
            &["line 4: rule `a`: `10.0.0.0/33` is not a network"][..],
        ),
        (
            "dst = [\"office\"]",
            &["`office` is not a network", "2001:db8::/32"],
        ),
        ("src = [10]", &["`10` is not a network"]),
        (
            "src = [\"10.0.5.1/24\"]",
            &["write 10.0.5.0/24", "or 10.0.5.1 for one host"],
        ),
        ("src = [\"2001:db8::1/64\"]", &["write 2001:db8::/64"]),
        ("port = [0]", &["`0` is not a port"]),
        ("port = [65536]", &["`65536` is not a port"]),
        ("port = [-7]", &["`-7` is not a port"]),
        ("port = [\"99-9\"]", &["`99-9` is not a port", "8000-8099"]),
        ("port = [\"+9\"]", &["`+9` is not a port"]),
        ("port = [\"http\"]", &["`http` is not a port"]),
        (
            "server_name = [\"*\"]",
            &["`*` is not a server name", "*.example.com"],
        ),
        (
            "server_name = [\"a.*.com\"]",
            &["`a.*.com` is not a server name"],
        ),
        ("server_name = [\"*.\"]", &["`*.` is not a server name"]),
        ("server_name = [\"bücher.example\"]", &["xn--"]),
        ("server_name = [\"\"]", &["`` is not a server name"]),
        ("server_name = [7]", &["`7` is not a server name"]),
    ] {
        refused(&rule(lines), words);
    }
}

#[test]
fn rules_have_names_of_their_own_and_conditions() {
    let twice = rule("port = [1]").repeat(2);
    refused(
        &twice,
        &["line 6: rule `a`: the name is taken by the rule in line 1"],
    );
    for name in ["", "a b", "-a", "rül", &"x".repeat(65)] {
        let text = rule("port = [1]").replace("\"a\"", &format!("\"{name}\""));
        refused(&text, &["line 2: bad name"]);
    }
    for name in ["default", "undecided", "unknown", "other"] {
        let text = rule("port = [1]").replace("\"a\"", &format!("\"{name}\""));
        refused(&text, &["stands for flows that no rule matches"]);
    }
    refused(
        &rule(""),
        &[
            "line 1: rule `a`: it has no condition",
            "default = \"drop\"",
        ],
    );
    refused(&rule("port = []"), &["line 4: rule `a`: `port` is empty"]);
    refused(
        &rule("port = [1]\nexcept = {}"),
        &["line 5", "`except` has no condition"],
    );
    refused(
        &rule("port = [1]\nexcept = { src = [] }"),
        &["`src` is empty"],
    );
    refused(
        "default = \"drop\"\nundecided = \"drop\"\n",
        &["line 2", "undecided = \"pass\""],
    );
    let many = (0..=MAX_RULES)
        .map(|number| rule("port = [1]").replace("\"a\"", &format!("\"r{number}\"")));
    refused(&many.collect::<String>(), &["there are 4097 rules"]);
}

/// Without inspection, rules can use addresses but not names.
#[test]
fn names_need_an_inspection() {
    for lines in ["application = [\"TLS\"]", "category = [1]", "risk = [3]"] {
        let said = Rules::parse(&rule(lines), None, None)
            .unwrap_err()
            .to_string();
        assert!(said.contains("line 4: rule `a`: `"), "{said}");
        assert!(said.contains("built without inspection"), "{said}");
    }
    let plain = rule("src = [\"10.0.0.0/8\"]\nport = [1]\nprotocol = [\"tcp\"]");
    assert!(Rules::parse(&plain, None, None).is_ok());
}

#[track_caller]
fn warned(text: &str, words: &[&str]) {
    let rules = rules(text);
    let said: Vec<_> = rules.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(
        said.len(),
        usize::from(!words.is_empty()),
        "{said:?}\n{text}"
    );
    for words in words {
        assert!(said[0].contains(words), "{words:?} is missing in {said:?}");
    }
}

/// A rule `a` with these lines and action, followed by a rule `b`.
fn pair(first: (&str, &str), second: (&str, &str)) -> String {
    let one = |name: &str, (lines, action): (&str, &str)| {
        format!("[[rule]]\nname = \"{name}\"\naction = \"{action}\"\n{lines}\n")
    };
    one("a", first) + &one("b", second)
}

#[test]
fn rules_that_no_flow_reaches_are_warned_of() {
    let tls = "application = [\"TLS\"]";
    let both = "application = [\"TLS.NetFlix\"]";
    let covered = ["line 5: rule `b` never matches: rule `a` in line 1"];
    warned(&pair((tls, "drop"), (both, "drop")), &covered);
    warned(&pair((both, "drop"), (tls, "drop")), &[]);
    // A low-confidence match is not dropped by the first rule, so the second one can pass it.
    warned(&pair((tls, "drop"), (tls, "pass")), &[]);
    let late = ["line 5: rule `b` matches only flows that are recognised with less than"];
    warned(&pair((tls, "drop"), (both, "pass")), &late);
    warned(&pair((tls, "pass"), (tls, "drop")), &covered);
    let net = "src = [\"10.0.0.0/8\"]";
    let part = "src = [\"10.1.0.0/16\"]\nport = [\"80-81\"]";
    warned(&pair((net, "drop"), (part, "pass")), &covered);
    warned(&pair((part, "drop"), (net, "pass")), &[]);
    let excepting = format!("{net}\nexcept = {{ port = [80] }}");
    warned(&pair((&excepting, "drop"), (part, "pass")), &[]);
    let names = "server_name = [\"*.example.com\"]";
    let below = "server_name = [\"a.b.example.com\"]\nrisk = [3]";
    warned(&pair((names, "drop"), (below, "drop")), &covered);
    warned(&pair(("risk = [3, 63]", "drop"), (below, "drop")), &covered);
    warned(
        &pair(
            ("category = [\"Web\"]", "drop"),
            ("category = [\"Web\", \"Video\"]", "drop"),
        ),
        &[],
    );
}

#[test]
fn rules_that_contradict_themselves_are_warned_of() {
    warned(
        &rule("port = [80]\nprotocol = [\"icmp\"]"),
        &["line 1", "have no ports"],
    );
    warned(
        &rule("src = [\"10.0.0.0/8\"]\ndst = [\"::/0\"]"),
        &["one of `src` and `dst`"],
    );
    let own = "application = [\"TLS\"]\nexcept = { application = [\"TLS\", \"DNS\"] }";
    warned(&rule(own), &["its exceptions cover all that it matches"]);
    // In a rule that passes, low-confidence matches remain.
    warned(&rule(own).replace("drop", "pass"), &[]);
    let undecided = format!("undecided = \"drop\"\n{}", rule("port = [80]"));
    warned(&undecided, &["line 1", "undecided = \"pass\""]);
}
