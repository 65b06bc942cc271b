// SPDX-License-Identifier: Apache-2.0
//! Reloading the rules file.

use std::collections::BTreeSet;

use super::{DNS, NETWORK, TLS, TLS_NETFLIX, VIDEO, WEB, complete, fresh, names, rules, tuple};
use crate::{Action, Facts, RuleId, Rules};

fn named(names: &[&str]) -> String {
    let rule =
        |name: &&str| format!("[[rule]]\nname = \"{name}\"\nport = [7]\naction = \"drop\"\n");
    names.iter().map(rule).collect()
}

fn numbers(rules: &Rules) -> Vec<u16> {
    rules
        .rules()
        .iter()
        .map(|rule| rule.id().number())
        .collect()
}

#[test]
fn a_name_keeps_its_number_and_a_number_its_name() {
    let first = rules(&named(&["a", "b", "c"]));
    assert_eq!(numbers(&first), [1, 2, 3]);
    let read = |text: &str, before| Rules::parse(text, Some(&names()), Some(before)).unwrap();
    let second = read(&named(&["d", "c", "a"]), &first);
    assert_eq!(numbers(&second), [4, 3, 1]);
    // Records of the removed rule can still be named, and its number is not reused.
    assert_eq!(second.name(RuleId::of(2).unwrap()), Some("b"));
    let third = read(&named(&["e", "b"]), &second);
    assert_eq!(numbers(&third), [5, 2]);
    assert_eq!(third.name(RuleId::of(6).unwrap()), None);
    assert_eq!(
        (RuleId::of(0), Action::Pass.number(), Action::Drop.number()),
        (None, 1, 2)
    );
}

#[test]
fn numbers_end() {
    let mut before = rules("");
    before
        .numbers
        .insert("last".to_owned(), RuleId::of(u16::MAX).unwrap());
    let read = |text: &str| Rules::parse(text, None, Some(&before));
    assert_eq!(numbers(&read(&named(&["last"])).unwrap()), [u16::MAX]);
    let said = read(&named(&["one-more"])).unwrap_err().to_string();
    assert!(said.contains("restart the bridge"), "{said}");
}

/// 100,000 flows of all kinds are decided again: exactly those that change are returned, once each.
#[test]
fn open_flows_are_decided_anew() {
    let before = rules(
        "[[rule]]\nname = \"no-netflix\"\napplication = [\"NetFlix\"]\naction = \"drop\"\n\
         [[rule]]\nname = \"dns\"\napplication = [\"DNS\"]\naction = \"pass\"\n",
    );
    let text = "[[rule]]\nname = \"dns\"\napplication = [\"DNS\"]\naction = \"pass\"\n\
         [[rule]]\nname = \"no-web\"\ncategory = [\"Web\"]\naction = \"drop\"\n";
    let after = Rules::parse(text, Some(&names()), Some(&before)).unwrap();
    let kinds = [
        fresh(),
        complete(TLS_NETFLIX, VIDEO),
        complete(TLS, WEB),
        complete(DNS, NETWORK),
        complete(0, 0),
    ];
    let facts = |flow: usize| {
        let address = format!("10.{}.{}.{}", flow >> 16, flow >> 8 & 255, flow & 255);
        Facts {
            tuple: tuple(&address, "192.0.2.1", (1024, 443), 6),
            ..kinds[flow % kinds.len()]
        }
    };
    let flows = (0..100_000).map(|flow| (flow, facts(flow)));
    let flows: Vec<_> = flows
        .map(|(flow, facts)| (flow, facts, before.decide(&facts)))
        .collect();
    let changed: Vec<_> = after.redecide(flows.iter().copied()).collect();
    let once: BTreeSet<usize> = changed.iter().map(|(flow, _)| *flow).collect();
    assert_eq!((changed.len(), once.len()), (40_000, 40_000));
    for (flow, decision) in changed {
        match flow % kinds.len() {
            1 => assert_eq!((decision.action, decision.rule), (Action::Pass, None)),
            2 => assert_eq!((decision.action, decision.rule_number()), (Action::Drop, 3)),
            kind => panic!("{kind} does not change"),
        }
    }
    // A file that is equal to the one before changes nothing.
    let again = Rules::parse(text, Some(&names()), Some(&after)).unwrap();
    let decided = flows
        .iter()
        .map(|(flow, facts, _)| (*flow, *facts, after.decide(facts)));
    assert_eq!(again.redecide(decided).count(), 0);
}
