// SPDX-License-Identifier: Apache-2.0
//! Compares decisions with the naive evaluation of the written rules.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::sample::select;
use turboflow_inspect::{Confidence, Progress};

use super::naive::{
    APPLICATIONS, Asked, CATEGORIES, CONFIDENCES, KEYS, PAIRS, PORTS, PROTOCOLS, RISKS, SERVERS,
    Written, matching, text,
};
use super::{rules, tuple};
use crate::{Action, Application, Facts, Rules, Why};

fn conditions(at_most: usize) -> impl Strategy<Value = Vec<Asked>> {
    let asked = |(key, values): (&'static str, &'static [&'static str])| {
        let chosen = proptest::collection::vec(select(values), 1..=2);
        chosen.prop_map(move |values| Asked { key, values })
    };
    let keys = proptest::sample::subsequence(KEYS.to_vec(), 0..=at_most);
    keys.prop_flat_map(move |keys| keys.into_iter().map(asked).collect::<Vec<_>>())
}

fn written(with_exceptions: bool) -> impl Strategy<Value = Written> {
    let when = conditions(3).prop_filter("a rule has a condition", |when| !when.is_empty());
    let except = match with_exceptions {
        true => conditions(2).boxed(),
        false => Just(Vec::new()).boxed(),
    };
    (select(vec![Action::Pass, Action::Drop]), when, except).prop_map(|(action, when, except)| {
        Written {
            action,
            when,
            except,
        }
    })
}

fn floor() -> impl Strategy<Value = (&'static str, Confidence)> {
    select(vec![
        ("port", Confidence::Port),
        ("partial", Confidence::Partial),
        ("dpi", Confidence::Payload),
    ])
}

fn flow() -> impl Strategy<Value = Facts<'static>> {
    let headers = (
        select(&PAIRS[..]),
        select(&PORTS[..]),
        select(&PROTOCOLS[..]),
    );
    let application = (
        select(&APPLICATIONS[..]),
        select(&CATEGORIES[..]),
        select(&CONFIDENCES[..]),
    );
    let progress = select(vec![
        Progress::Undecided,
        Progress::Known,
        Progress::Complete,
    ]);
    let seen = (select(&SERVERS[..]), select(&RISKS[..]), progress);
    (headers, application, seen).prop_map(|(headers, application, seen)| {
        let (number, category, confidence) = application;
        let (server_name, risk, progress) = seen;
        let ((from, to), ports, protocol) = headers;
        // A recognised application is never the unknown one.
        let number = match progress {
            Progress::Known if number == 0 => 91,
            _ => number,
        };
        Facts {
            tuple: tuple(from, to, ports, protocol),
            progress,
            application: Some(Application {
                number,
                category,
                confidence,
            }),
            server_name,
            risk,
        }
    })
}

/// All final states of knowledge that can follow from the present one.
fn ends(now: &Facts<'static>) -> Vec<Facts<'static>> {
    let found = now.application.unwrap();
    let one_part = found.number >> 16 == 0;
    let is_open = now.progress == Progress::Undecided;
    let applications: Vec<u32> = match now.progress {
        Progress::Undecided => APPLICATIONS.to_vec(),
        Progress::Known if one_part => {
            let carried = [5, 37, 91, 133].map(|own| found.number << 16 | own);
            // If an application carries itself, the library reports a single part.
            let carried = carried.into_iter().filter(|it| it >> 16 != it & 0xffff);
            carried.chain([found.number]).collect()
        }
        _ => vec![found.number],
    };
    let categories = match is_open || now.progress == Progress::Known && one_part {
        true => CATEGORIES.to_vec(),
        false => vec![found.category],
    };
    let is_final = now.progress == Progress::Complete;
    let may_be = |confidence: &Confidence| match is_final {
        true => *confidence == found.confidence,
        false => is_open || *confidence >= found.confidence,
    };
    let confidences: Vec<_> = CONFIDENCES.into_iter().filter(may_be).collect();
    let servers = match now.server_name {
        None if !is_final => SERVERS.to_vec(),
        seen => vec![seen],
    };
    let may_be = |risk: &u64| match is_final {
        true => *risk == now.risk,
        false => risk & now.risk == now.risk,
    };
    let risks: Vec<_> = RISKS.into_iter().filter(may_be).collect();
    let mut ends = Vec::new();
    for &number in &applications {
        for &category in &categories {
            for &confidence in &confidences {
                for &server_name in &servers {
                    ends.extend(risks.iter().map(|&risk| Facts {
                        progress: Progress::Complete,
                        application: Some(Application {
                            number,
                            category,
                            confidence,
                        }),
                        server_name,
                        risk,
                        ..*now
                    }));
                }
            }
        }
    }
    ends
}

/// The position of the rule that decided.
fn decided(rules: &Rules, facts: &Facts<'_>) -> Option<usize> {
    let decision = rules.decide(facts);
    decision.rule.map(|rule| usize::from(rule.number()) - 1)
}

proptest! {
    /// Hundreds of rules, of which the index selects the few that may match.
    #[test]
    fn the_index_leaves_out_only_what_does_not_match(
        written in proptest::collection::vec(written(true), 60..200),
        floor in floor(),
        flows in proptest::collection::vec(flow(), 1..60),
    ) {
        let rules = rules(&text(&written, floor.0));
        for facts in &flows {
            let in_turn = rules.first_of(rules.rules().iter(), facts);
            prop_assert_eq!(rules.decide(facts), in_turn);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn what_is_known_is_decided_as_written(
        written in proptest::collection::vec(written(true), 1..5),
        floor in floor(),
        flow in flow(),
    ) {
        let rules = rules(&text(&written, floor.0));
        let flow = Facts { progress: Progress::Complete, ..flow };
        let expected = matching(&written, floor.1, &flow);
        prop_assert_eq!(decided(&rules, &flow), expected);
        let decision = rules.decide(&flow);
        prop_assert_ne!(decision.why, Why::Undecided);
        let action = expected.map_or(Action::Pass, |place| written[place].action);
        prop_assert_eq!(decision.action, action);
    }

    /// An early decision equals the final one, whatever packets follow.
    #[test]
    fn what_is_decided_early_stays(
        written in proptest::collection::vec(written(true), 1..5),
        floor in floor(),
        flow in flow(),
    ) {
        let rules = rules(&text(&written, floor.0));
        if rules.decide(&flow).why != Why::Undecided {
            let early = decided(&rules, &flow);
            for end in ends(&flow) {
                prop_assert_eq!(matching(&written, floor.1, &end), early, "{:?}", end);
            }
        }
    }

    /// An undecided flow has several possible outcomes, except that exceptions may make them equal.
    #[test]
    fn nothing_is_left_open_without_need(
        written in proptest::collection::vec(written(false), 1..5),
        floor in floor(),
        flow in flow(),
    ) {
        let rules = rules(&text(&written, floor.0));
        if rules.decide(&flow).why == Why::Undecided {
            let ends = ends(&flow);
            let ends: BTreeSet<_> =
                ends.iter().map(|end| matching(&written, floor.1, end)).collect();
            prop_assert!(ends.len() > 1, "{:?}", ends);
        }
    }

    /// Rules that are reported as never matching never match.
    #[test]
    fn rules_that_are_warned_of_never_match(
        written in proptest::collection::vec(written(true), 1..5),
        floor in floor(),
        flow in flow(),
    ) {
        let rules = rules(&text(&written, floor.0));
        let Some(place) = decided(&rules, &flow) else { return Ok(()) };
        let line = rules.rules()[place].line();
        prop_assert!(rules.warnings().iter().all(|warning| warning.line != line));
    }
}
