// SPDX-License-Identifier: Apache-2.0
//! What can be wrong with a file of rules. Messages say what to write instead.

use thiserror::Error;

/// The most rules of a file.
pub const MAX_RULES: usize = 4096;
/// The longest name of a rule, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// The first error in a file of rules.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {subject}{fault}")]
pub struct RulesError {
    /// The line, counted from 1.
    pub line: usize,
    /// The rule in words, ending in a colon and a space; may be empty.
    pub subject: String,
    /// What is wrong there.
    pub fault: RulesFault,
}

/// An error in a file of rules.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RulesFault {
    /// The text is not TOML, or a value is of the wrong kind.
    #[error("{0}")]
    Syntax(String),
    /// A name that inspection does not know.
    #[error("unknown {kind} `{name}`{hint}`turboflow applications` lists them")]
    UnknownName {
        /// `application`, `category` or `risk`.
        kind: &'static str,
        /// The name as written.
        name: String,
        /// The name that was probably meant, followed by a semicolon.
        hint: String,
    },
    /// A rule needs inspection, but the program has none.
    #[error("`{0}` cannot be used here: {not_built}", not_built = turboflow_inspect::NOT_BUILT)]
    NotInspected(&'static str),
    /// An unknown protocol.
    #[error("unknown protocol `{name}`{hint}write a name such as tcp, or a number up to 255")]
    UnknownProtocol {
        /// The name as written.
        name: String,
        /// The name that was probably meant, followed by a semicolon.
        hint: String,
    },
    /// An unknown confidence.
    #[error("unknown confidence `{name}`; write {known}")]
    UnknownConfidence {
        /// The name as written.
        name: String,
        /// The valid confidences.
        known: String,
    },
    /// Not a network.
    #[error("`{0}` is not a network; write for example 10.0.0.0/8, 192.0.2.7 or 2001:db8::/32")]
    BadNetwork(String),
    /// A network with bits set after its prefix.
    #[error("`{written}` has bits set after its prefix; write {network}, or {host} for one host")]
    BitsBehindPrefix {
        /// The network as written.
        written: String,
        /// The network that was probably meant.
        network: String,
        /// The host that was probably meant.
        host: String,
    },
    /// Not a port or range of ports.
    #[error(
        "`{0}` is not a port; write a number from 1 to 65535, or a range such as \"8000-8099\""
    )]
    BadPort(String),
    /// Not a server name.
    #[error(
        "`{0}` is not a server name; write for example \"www.example.com\", or \"*.example.com\" \
         for all names below it; write letters beyond ASCII as certificates do (xn--...)"
    )]
    BadServerName(String),
    /// Not a valid name for a rule.
    #[error(
        "bad name `{0}`; write letters, digits, `-`, `_` and `.`, a letter or digit first, at most \
         {MAX_NAME_BYTES} in all"
    )]
    BadName(String),
    /// A name that is reserved for flows without a rule.
    #[error("`{0}` stands for flows that no rule matches; choose another name")]
    ReservedName(String),
    /// Two rules have the same name.
    #[error("the name is taken by the rule in line {0}; choose another")]
    TakenName(usize),
    /// A rule without conditions.
    #[error(
        "it has no condition, so it would match every flow; write default = \"{action}\" above all \
         rules for that, or add a condition such as application = [\"TLS\"]"
    )]
    NoConditions {
        /// The rule's action.
        action: &'static str,
    },
    /// Exceptions without conditions.
    #[error("`except` has no condition, so the rule would never match; add one, or remove it")]
    NoExceptions,
    /// A list without values.
    #[error("`{0}` is empty, so nothing would match; add a value, or remove it")]
    EmptyList(&'static str),
    /// With these settings, nothing could ever pass.
    #[error(
        "default = \"drop\" with undecided = \"drop\" drops the packets by which an application is \
         recognised; write undecided = \"pass\""
    )]
    NothingPasses,
    /// Too many rules.
    #[error(
        "there are {0} rules; at most {MAX_RULES} are possible: list several values in one rule"
    )]
    TooManyRules(usize),
    /// Too many different rule names since the process started.
    #[error(
        "the rule files read since the start have 65535 different names of rules, which is the \
         maximum: restart the bridge"
    )]
    TooManyNames,
}

/// Something that is valid but probably not intended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesWarning {
    /// The line, counted from 1.
    pub line: usize,
    /// What is suspicious, and what to do.
    pub what: String,
}

impl std::fmt::Display for RulesWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}
