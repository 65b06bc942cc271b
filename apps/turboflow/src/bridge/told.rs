// SPDX-License-Identifier: Apache-2.0
//! The state of this process's bridge, for the metrics and health pages.

use std::sync::OnceLock;

/// The counters of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleCount {
    /// The name of the rule.
    pub(crate) rule: String,
    /// `pass`, `drop` or, in a dry run, `would_drop`; `gone` if the rule no longer exists.
    pub(crate) action: &'static str,
    /// Flows that the rule decided.
    pub(crate) flows: u64,
    /// Packets and IP bytes of these flows, if the engine counts them per rule.
    pub(crate) packets: Option<(u64, u64)>,
}

/// The state of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// The counters of each rule.
    pub(crate) rules: Vec<RuleCount>,
    /// Normal conditions, one line each.
    pub(crate) notes: Vec<String>,
    /// Problems, one line each.
    pub(crate) problems: Vec<String>,
}

type Tell = Box<dyn Fn() -> Told + Send + Sync>;

static TELL: OnceLock<Tell> = OnceLock::new();

/// Registers the bridge of this process. `tell` returns its current state.
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub(crate) fn begin(tell: impl Fn() -> Told + Send + Sync + 'static) {
    // A process has at most one bridge.
    let _ = TELL.set(Box::new(tell));
}

/// The current state of the bridge, if there is one.
pub(crate) fn told() -> Option<Told> {
    TELL.get().map(|tell| tell())
}
