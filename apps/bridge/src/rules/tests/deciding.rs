// SPDX-License-Identifier: Apache-2.0
//! What rules decide, example by example.

use turboflow_inspect::{Confidence, Progress};

use super::{
    BITTORRENT, DNS, DOWNLOAD, NETFLIX, NETWORK, TLS, TLS_NETFLIX, VIDEO, WEB, complete, fresh,
    known, rules, tuple,
};
use crate::{Action, Application, Decision, Facts, FailMode, Rules, Why};

/// The example of the reference documentation.
const EXAMPLE: &str = r#"
default = "pass"
undecided = "pass"
other = "pass"
min_confidence = "dpi"
fail = "open"

[[rule]]
name = "no-netflix"
application = ["NetFlix"]
except = { src = ["10.0.5.0/24"] }
action = "drop"

[[rule]]
name = "no-downloads"
category = ["Download"]
action = "drop"
"#;

/// The decision's action and the name of its rule, or why there is none.
fn said(rules: &Rules, facts: &Facts<'_>) -> String {
    let Decision { action, rule, why } = rules.decide(facts);
    let by = match rule.and_then(|rule| rules.name(rule)) {
        Some(name) => name.to_owned(),
        None => format!("{why:?}").to_lowercase(),
    };
    format!("{} {by}", action.name())
}

fn guessed(facts: Facts<'static>, confidence: Confidence) -> Facts<'static> {
    let application = facts.application.map(|it| Application { confidence, ..it });
    Facts {
        application,
        ..facts
    }
}

#[test]
fn an_empty_file_passes_everything() {
    let rules = rules("");
    assert_eq!(said(&rules, &fresh()), "pass default");
    assert_eq!(said(&rules, &complete(0, 0)), "pass unknown");
    assert_eq!(
        (rules.other(), rules.fail()),
        (Action::Pass, FailMode::Open)
    );
    assert!(!rules.need_inspection() && rules.rules().is_empty());
}

#[test]
fn the_first_rule_that_matches_decides() {
    let rules = rules(EXAMPLE);
    assert!(rules.need_inspection());
    assert_eq!(said(&rules, &fresh()), "pass undecided");
    assert_eq!(said(&rules, &known(TLS_NETFLIX, VIDEO)), "drop no-netflix");
    assert_eq!(said(&rules, &known(NETFLIX, VIDEO)), "drop no-netflix");
    assert_eq!(
        said(&rules, &complete(BITTORRENT, DOWNLOAD)),
        "drop no-downloads"
    );
    assert_eq!(said(&rules, &complete(TLS, WEB)), "pass default");
    let excepted = Facts {
        tuple: tuple("10.0.5.9", "192.0.2.1", (50_000, 443), 6),
        ..known(TLS_NETFLIX, VIDEO)
    };
    assert_eq!(said(&rules, &excepted), "pass default");
}

/// A rule that further packets may make match holds up all rules after it.
#[test]
fn no_rule_overtakes_one_that_may_still_match() {
    let order = |first: &str, second: &str| rules(&format!("{first}{second}"));
    let pass_zoom = "[[rule]]\nname = \"video\"\naction = \"pass\"\napplication = [\"NetFlix\"]\n";
    let drop_tls = "[[rule]]\nname = \"tls\"\naction = \"drop\"\napplication = [\"TLS\"]\n";
    // TLS may turn out to be TLS.NetFlix.
    let rules = order(pass_zoom, drop_tls);
    assert_eq!(said(&rules, &known(TLS, WEB)), "pass undecided");
    assert_eq!(said(&rules, &complete(TLS, WEB)), "drop tls");
    assert_eq!(said(&rules, &known(TLS_NETFLIX, VIDEO)), "pass video");
    let rules = order(drop_tls, pass_zoom);
    assert_eq!(said(&rules, &known(TLS, WEB)), "drop tls");
    // An application with two parts does not change any more.
    let dns = "[[rule]]\nname = \"dns\"\naction = \"drop\"\napplication = [\"DNS\"]\n";
    let rules = order(dns, drop_tls);
    assert_eq!(said(&rules, &known(TLS_NETFLIX, VIDEO)), "drop tls");
    assert_eq!(said(&rules, &known(TLS, WEB)), "pass undecided");
}

#[test]
fn a_rule_of_addresses_and_ports_needs_no_inspection() {
    let rules = rules(
        r#"
        [[rule]]
        name = "quiet-hosts"
        src = ["10.9.0.0/16", "2001:db8::/32"]
        action = "drop"
        [[rule]]
        name = "no-telnet"
        protocol = ["tcp"]
        port = [23, "2300-2399"]
        action = "drop"
        "#,
    );
    assert!(!rules.need_inspection());
    let flow = |from, to, ports, protocol| Facts {
        tuple: tuple(from, to, ports, protocol),
        ..fresh()
    };
    for (facts, expected) in [
        (flow("10.9.1.1", "192.0.2.1", (1, 2), 6), "drop quiet-hosts"),
        (flow("2001:db8::1", "::1", (1, 2), 17), "drop quiet-hosts"),
        // The direction matters: source is the initiator.
        (flow("192.0.2.1", "10.9.1.1", (1, 2), 6), "pass default"),
        // A port counts on either side, because a flow may have begun before the bridge did.
        (
            flow("192.0.2.1", "192.0.2.2", (5000, 23), 6),
            "drop no-telnet",
        ),
        (
            flow("192.0.2.1", "192.0.2.2", (23, 5000), 6),
            "drop no-telnet",
        ),
        (
            flow("192.0.2.1", "192.0.2.2", (5000, 2350), 6),
            "drop no-telnet",
        ),
        (
            flow("192.0.2.1", "192.0.2.2", (5000, 2400), 6),
            "pass default",
        ),
        (
            flow("192.0.2.1", "192.0.2.2", (5000, 23), 17),
            "pass default",
        ),
    ] {
        assert_eq!(said(&rules, &facts), expected, "{:?}", facts.tuple);
    }
}

#[test]
fn what_is_neither_tcp_nor_udp_has_a_default_of_its_own() {
    let text = r#"
        default = "drop"
        [[rule]]
        name = "no-gre"
        protocol = ["gre"]
        action = "drop"
        [[rule]]
        name = "port-8"
        port = [8]
        action = "drop"
        "#;
    let rules = rules(text);
    let flow = |protocol| Facts {
        // In ICMP, the port fields may hold the type.
        tuple: tuple("10.0.0.1", "10.0.0.2", (8, 8), protocol),
        ..fresh()
    };
    assert_eq!(said(&rules, &flow(1)), "pass other");
    assert_eq!(said(&rules, &flow(47)), "drop no-gre");
    assert_eq!(said(&rules, &flow(132)), "drop port-8");
    assert_eq!(said(&rules, &flow(17)), "drop port-8");
    let dropping = super::rules(&format!("other = \"drop\"\n{text}"));
    assert_eq!(said(&dropping, &flow(1)), "drop other");
    assert_eq!(dropping.other(), Action::Drop);
}

#[test]
fn a_guess_drops_nothing_unless_the_file_says_so() {
    let with = |confidence: &str, action: &str| {
        rules(&format!(
            "{confidence}\n[[rule]]\nname = \"dns\"\naction = \"{action}\"\napplication = [\"DNS\"]"
        ))
    };
    let by = |confidence| guessed(complete(DNS, NETWORK), confidence);
    let default = with("", "drop");
    for (confidence, expected) in [
        (Confidence::Port, "pass default"),
        (Confidence::Address, "pass default"),
        (Confidence::Cache, "pass default"),
        (Confidence::Payload, "drop dns"),
        (Confidence::Rule, "drop dns"),
    ] {
        assert_eq!(said(&default, &by(confidence)), expected, "{confidence:?}");
    }
    let partial = with("min_confidence = \"partial\"", "drop");
    assert_eq!(said(&partial, &by(Confidence::Partial)), "drop dns");
    assert_eq!(said(&partial, &by(Confidence::Address)), "pass default");
    let port = with("min_confidence = \"port\"", "drop");
    assert_eq!(said(&port, &by(Confidence::Port)), "drop dns");
    // A guess that may still change decides nothing.
    let early = Facts {
        progress: Progress::Undecided,
        ..by(Confidence::Port)
    };
    assert_eq!(said(&port, &early), "pass undecided");
    // Later packets may confirm it.
    let doubted = guessed(known(DNS, NETWORK), Confidence::Partial);
    assert_eq!(said(&default, &doubted), "pass undecided");
    // A guess is enough to pass a flow.
    assert_eq!(said(&with("", "pass"), &by(Confidence::Port)), "pass dns");
}

/// An exception from a rule that passes may lead to a drop by a later rule.
#[test]
fn an_exception_by_a_guess_leads_to_no_drop() {
    let rules = rules(
        r#"
        [[rule]]
        name = "office"
        src = ["10.0.0.0/8"]
        except = { application = ["BitTorrent"] }
        action = "pass"
        [[rule]]
        name = "rest"
        protocol = ["tcp"]
        action = "drop"
        "#,
    );
    let sure = complete(BITTORRENT, DOWNLOAD);
    assert_eq!(said(&rules, &sure), "drop rest");
    assert_eq!(
        said(&rules, &guessed(sure, Confidence::Port)),
        "pass office"
    );
    assert_eq!(said(&rules, &complete(DNS, NETWORK)), "pass office");
    assert_eq!(said(&rules, &fresh()), "pass undecided");
}

#[test]
fn unknown_is_what_inspection_gave_up_on() {
    let rules =
        rules("[[rule]]\nname = \"nameless\"\napplication = [\"Unknown\"]\naction = \"drop\"\n");
    assert_eq!(said(&rules, &fresh()), "pass undecided");
    assert_eq!(
        said(&rules, &guessed(complete(0, 0), Confidence::Unknown)),
        "drop nameless"
    );
    let nothing = Facts {
        application: None,
        ..complete(0, 0)
    };
    assert_eq!(said(&rules, &nothing), "drop nameless");
    // An application without a carrier does not match the unknown application.
    assert_eq!(
        said(&rules, &complete(BITTORRENT, DOWNLOAD)),
        "pass default"
    );
    assert_eq!(said(&rules, &known(BITTORRENT, DOWNLOAD)), "pass default");
}

/// The category belongs to the last part of an application, which is recognised after its carrier.
#[test]
fn a_category_counts_once_it_cannot_change() {
    let rules = rules("[[rule]]\nname = \"no-web\"\ncategory = [\"Web\"]\naction = \"drop\"\n");
    assert_eq!(said(&rules, &known(TLS, WEB)), "pass undecided");
    assert_eq!(said(&rules, &known(TLS_NETFLIX, VIDEO)), "pass default");
    assert_eq!(said(&rules, &known(TLS_NETFLIX, WEB)), "drop no-web");
    assert_eq!(said(&rules, &complete(TLS, WEB)), "drop no-web");
}

#[test]
fn names_and_risks_count_from_when_they_are_seen() {
    let rules = rules(
        r#"
        [[rule]]
        name = "no-example"
        server_name = ["*.example.com", "example.net"]
        action = "drop"
        [[rule]]
        name = "no-weak"
        risk = ["Weak TLS Cipher"]
        action = "drop"
        "#,
    );
    let named = |name, risk, facts| Facts {
        server_name: name,
        risk,
        ..facts
    };
    let weak = 1 << 63;
    for (facts, expected) in [
        (
            named(Some("WWW.Example.COM"), 0, fresh()),
            "drop no-example",
        ),
        (named(Some("example.com"), 0, fresh()), "pass undecided"),
        (named(Some("example.com"), weak, fresh()), "drop no-weak"),
        (
            named(Some("example.com"), 1 << 3, complete(TLS, WEB)),
            "pass default",
        ),
        (named(None, weak, fresh()), "pass undecided"),
        (named(None, weak, complete(TLS, WEB)), "drop no-weak"),
    ] {
        assert_eq!(said(&rules, &facts), expected, "{facts:?}");
    }
}

#[test]
fn defaults_may_drop_what_no_rule_lets_through() {
    let rules = rules(
        "default = \"drop\"\n[[rule]]\nname = \"dns\"\napplication = [\"dns\"]\n\
         action = \"pass\"\n",
    );
    assert_eq!(said(&rules, &fresh()), "pass undecided");
    assert_eq!(said(&rules, &complete(DNS, NETWORK)), "pass dns");
    assert_eq!(said(&rules, &complete(TLS, WEB)), "drop default");
    assert_eq!(said(&rules, &complete(0, 0)), "drop unknown");
    assert_eq!(rules.decide(&fresh()).why, Why::Undecided);
}

#[test]
fn applications_are_named_as_the_library_names_them() {
    for (written, number) in [
        ("\"TLS.NetFlix\"", TLS_NETFLIX),
        ("\"tls.netflix\"", TLS_NETFLIX),
        ("\"91.133\"", TLS_NETFLIX),
        ("5963909", TLS_NETFLIX),
        ("133", TLS_NETFLIX),
        ("\"My.Own\"", 260),
        ("\"TLS.My.Own\"", TLS << 16 | 260),
        ("0", 0),
    ] {
        let text =
            format!("[[rule]]\nname = \"a\"\napplication = [{written}]\naction = \"drop\"\n");
        assert_eq!(
            said(&rules(&text), &complete(number, WEB)),
            "drop a",
            "{written}"
        );
        let other = said(&rules(&text), &complete(BITTORRENT, WEB));
        assert_eq!(other, "pass default", "{written}");
    }
}

#[test]
fn rules_are_told_in_words() {
    let rules = rules(EXAMPLE);
    let words: Vec<_> = rules.rules().iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "drops a flow if the application is NetFlix, unless the first packet came from \
             10.0.5.0/24",
            "drops a flow if the category is Download",
        ]
    );
    let many = (1..=12).map(|port| port.to_string()).collect::<Vec<_>>();
    let text = format!(
        "[[rule]]\nname = \"p\"\nport = [{}]\nprotocol = [17, \"TCP\", 6]\naction = \"pass\"\n",
        many.join(", ")
    );
    assert_eq!(
        super::rules(&text).rules()[0].to_string(),
        "passes a flow if the protocol is udp, tcp or tcp, and one of its ports is 1, 2, 3, 4, 5, \
         6, 7, 8 or one of 4 more"
    );
    let settings = rules.settings();
    assert!(
        settings
            .iter()
            .any(|(about, is)| about.starts_with("default") && is == "pass")
    );
    assert!(
        settings
            .iter()
            .any(|(about, is)| about.starts_with("min") && is == "dpi")
    );
}
