// SPDX-License-Identifier: Apache-2.0
//! What the bridge of this process tells of itself, for the pages of metrics and health.

use std::sync::OnceLock;

/// What a rule did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RuleCount {
    /// Its name.
    pub(crate) rule: String,
    /// `pass`, `drop` or, in a dry run, `would_drop`; `gone` if the rules have it no more.
    pub(crate) action: &'static str,
    /// Flows that it decided about.
    pub(crate) flows: u64,
    /// Packets and IP bytes of these, if the engine counts them by rule.
    pub(crate) packets: Option<(u64, u64)>,
}

/// The state of a bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// What each rule did.
    pub(crate) rules: Vec<RuleCount>,
    /// What is as it should be, a line each.
    pub(crate) notes: Vec<String>,
    /// What is not.
    pub(crate) problems: Vec<String>,
}

type Tell = Box<dyn Fn() -> Told + Send + Sync>;

static TELL: OnceLock<Tell> = OnceLock::new();

/// From now on, there is a bridge in this process that tells this of itself.
#[cfg(all(target_os = "linux", feature = "kernel"))]
pub(crate) fn begin(tell: impl Fn() -> Told + Send + Sync + 'static) {
    // A process has one bridge.
    let _ = TELL.set(Box::new(tell));
}

/// What the bridge tells, if there is one.
pub(crate) fn told() -> Option<Told> {
    TELL.get().map(|tell| tell())
}
