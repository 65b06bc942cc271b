// SPDX-License-Identifier: Apache-2.0
//! Describes rules in words.

use std::fmt;

use super::decision::{Action, FailMode};
use super::file::{CONFIDENCES, Key};
use super::{Rule, Rules};

/// Number of values of a condition that are listed; the rest are only counted.
const SHOWN_VALUES: usize = 8;

/// `a, b or c`.
pub(super) fn one_of(values: &[String]) -> String {
    match values {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A condition in words.
pub(super) fn condition(key: Key, values: &[String]) -> String {
    let shown = match values.len() {
        0..=SHOWN_VALUES => one_of(values),
        all => {
            let first = values[..SHOWN_VALUES].join(", ");
            format!("{first} or one of {} more", all - SHOWN_VALUES)
        }
    };
    match key {
        Key::Application => format!("the application is {shown}"),
        Key::Category => format!("the category is {shown}"),
        Key::ServerName => format!("the server name is {shown}"),
        Key::Port => format!("one of its ports is {shown}"),
        Key::Src => format!("the first packet came from {shown}"),
        Key::Dst => format!("the first packet went to {shown}"),
        Key::Protocol => format!("the protocol is {shown}"),
        Key::Risk => format!("a risk is {shown}"),
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let does = match self.action {
            Action::Pass => "passes",
            Action::Drop => "drops",
        };
        write!(f, "{does} a flow if {}", self.when.words.join(", and "))?;
        match &self.except {
            Some(except) => write!(f, ", unless {}", except.words.join(", and ")),
            None => Ok(()),
        }
    }
}

impl fmt::Display for FailMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Frozen => "frozen",
            Self::Closed => "closed",
        })
    }
}

impl Rules {
    /// The settings for flows that no rule matches and for confidence: what each is about, and what
    /// it does.
    #[must_use]
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let named = |action: Action| action.name().to_owned();
        let confidence = CONFIDENCES.iter().find(|it| it.1 == self.min_confidence);
        let confidence = confidence.map_or("", |(name, _)| name);
        let fail = match self.fail {
            FailMode::Open => "everything passes, through a Linux bridge of both ports",
            FailMode::Frozen => {
                "the decisions so far stay in force; `undecided` and `other` apply to flows \
                 without one"
            }
            FailMode::Closed => "nothing passes",
        };
        vec![
            ("default: a flow that no rule matches", named(self.default)),
            (
                "undecided: a flow of which too little was seen",
                named(self.undecided),
            ),
            (
                "other: what is neither TCP nor UDP, and no rule matches",
                named(self.other),
            ),
            (
                "min_confidence: the least confidence with which a name leads to a drop",
                confidence.to_owned(),
            ),
            (
                "fail: when the process is gone",
                format!("{}: {fail}", self.fail),
            ),
        ]
    }
}
