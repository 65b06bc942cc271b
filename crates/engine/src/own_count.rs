// SPDX-License-Identifier: Apache-2.0
//! Counters that only one engine has.

/// A counter of one engine, beside those that all engines have. It is written where those are: into
/// the ledger's file and the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnCount {
    /// Its name, which begins with that of the engine; with `engine_` before that, where outputs
    /// have metrics that begin with the same word.
    pub name: &'static str,
    /// What it counts, in a few words.
    pub about: &'static str,
    /// Whether it may also fall.
    pub is_gauge: bool,
    /// The count.
    pub count: u64,
}
