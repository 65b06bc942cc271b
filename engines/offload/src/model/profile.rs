// SPDX-License-Identifier: Apache-2.0
//! How a card behaves.

/// The behaviour of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardProfile {
    /// Rows, for both families together.
    pub rows: u32,
    /// Rows that it learns in a second, at most.
    pub learning_rate: u64,
    /// Accesses to its memory in a second, of which a row takes more the fuller the table is.
    pub accesses_per_second: u64,
    /// Buckets in which a row may be.
    pub ways: u32,
    /// Rows of a bucket.
    pub slots: u32,
    /// Time from an order's execution until packets meet it, in nanoseconds.
    pub programming_delay_ns: u64,
    /// Time until the end of a row is told, in nanoseconds.
    pub event_lag_ns: u64,
    /// Time after which no packet counts in a row any more that was turned to the host, in
    /// nanoseconds.
    pub drain_ns: u64,
    /// Orders that wait are refused beyond this, in nanoseconds.
    pub longest_wait_ns: u64,
    /// How often it looks for silent rows, in nanoseconds.
    pub scan_ns: u64,
    /// Seeds its hashes.
    pub seed: u64,
}

impl Default for CardProfile {
    /// As the authors describe their card: 140 M rows, 1 M rows a second, and a table whose rate
    /// falls beyond 90 % (`docs/decisions/0007-offload.md`). Delays are guesses within what vendors
    /// say.
    fn default() -> Self {
        Self {
            rows: 140_000_000,
            learning_rate: 1_000_000,
            accesses_per_second: 63_000_000,
            ways: 2,
            slots: 4,
            programming_delay_ns: 10_000,
            event_lag_ns: 100_000_000,
            drain_ns: 10_000,
            longest_wait_ns: 10_000_000,
            scan_ns: 1_000_000_000,
            seed: 1,
        }
    }
}
