// SPDX-License-Identifier: Apache-2.0
//! What happens to a flow, and why.

use std::num::NonZeroU16;

use serde::Deserialize;

/// What becomes of a packet. The numbers are part of records and of the kernel's table, where 0 is
/// no action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum Action {
    /// It goes out at the other port.
    Pass = 1,
    /// It ends here.
    Drop = 2,
}

impl Action {
    /// Its number in records and in the kernel's table.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Its name in rules.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Drop => "drop",
        }
    }
}

/// What forwards when the process is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailMode {
    /// A Linux bridge below: everything passes.
    #[default]
    Open,
    /// The program in the kernel goes on with the decisions that it has.
    Frozen,
    /// Nothing.
    Closed,
}

/// The number of a rule. A name keeps its number while the process lives, also when the rules are
/// reloaded. In records, 0 means no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RuleId(NonZeroU16);

impl RuleId {
    /// The rule with that number in records or in the kernel's table; `None` for 0.
    #[must_use]
    pub const fn of(number: u16) -> Option<Self> {
        match NonZeroU16::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The next number; `None` after the last one.
    pub(super) fn next(self) -> Option<Self> {
        self.number().checked_add(1).and_then(Self::of)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0.get()
    }
}

/// The reason for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A rule matched.
    Rule,
    /// Too little is known yet, and a rule may still match when more packets have been seen.
    Undecided,
    /// No rule matches.
    Default,
    /// No rule matches, and the inspection recognised nothing.
    Unknown,
    /// No rule matches, and the flow is neither TCP nor UDP.
    Other,
}

/// What happens to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What happens to its packets.
    pub action: Action,
    /// The rule that matched.
    pub rule: Option<RuleId>,
    /// The reason for the action.
    pub why: Why,
}

impl Decision {
    pub(super) const fn by_rule(action: Action, rule: RuleId) -> Self {
        Self {
            action,
            rule: Some(rule),
            why: Why::Rule,
        }
    }

    pub(super) const fn without_rule(action: Action, why: Why) -> Self {
        Self {
            action,
            rule: None,
            why,
        }
    }

    /// The number of the rule in records and in the kernel's table; 0 for none.
    #[must_use]
    pub fn rule_number(self) -> u16 {
        self.rule.map_or(0, RuleId::number)
    }
}
