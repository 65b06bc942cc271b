// SPDX-License-Identifier: Apache-2.0
//! The behaviour of a card.

/// The behaviour of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardProfile {
    /// Maximum number of rows, for both families together.
    pub rows: u32,
    /// Maximum number of rows learned per second.
    pub learning_rate: u64,
    /// Accesses to the card's memory per second. The fuller the table, the more accesses a new row
    /// needs.
    pub accesses_per_second: u64,
    /// Number of buckets in which a row may be.
    pub ways: u32,
    /// Number of slots per bucket.
    pub slots: u32,
    /// Time from the execution of an order until packets see its effect, in nanoseconds.
    pub programming_delay_ns: u64,
    /// Time from the end of a row until the card reports it, in nanoseconds.
    pub event_lag_ns: u64,
    /// Time for which packets may still count in a row after its flow was handed to the host, in
    /// nanoseconds.
    pub drain_ns: u64,
    /// Longest wait of an order, in nanoseconds. Orders that would wait longer are refused.
    pub longest_wait_ns: u64,
    /// Time between two scans for silent rows, in nanoseconds.
    pub scan_ns: u64,
    /// Seed of the card's hashes.
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
