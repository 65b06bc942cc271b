// SPDX-License-Identifier: Apache-2.0
//! Counters that only one engine has.

/// A counter of one engine, in addition to those that all engines have. Like them, it is written to
/// the ledger file and the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnCount {
    /// Its name, which begins with the engine's name. If an output has metrics that begin with the
    /// same word, `engine_` precedes it.
    pub name: &'static str,
    /// What it counts, in a few words.
    pub about: &'static str,
    /// Whether the value may also fall.
    pub is_gauge: bool,
    /// The current value.
    pub count: u64,
}
