// SPDX-License-Identifier: Apache-2.0
//! The counters of a learner.

/// The counters of a learner.
///
/// `rows_begun = rows_idle + rows_removed + rows_open`: every row ends once.
/// `taps_read = taps_decided + taps_undecided + taps_unheard`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LearnerCounts {
    /// Tapped packets that were read.
    pub taps_read: u64,
    /// Tapped packets with which a flow was decided.
    pub taps_decided: u64,
    /// Tapped packets after which their flow was still undecided.
    pub taps_undecided: u64,
    /// Tapped packets that were not given to the decider, because it was gone.
    pub taps_unheard: u64,
    /// Flows that got a row by a decision.
    pub flows_decided: u64,
    /// Flows that got a row because further packets would not have helped to decide.
    pub flows_gave_up: u64,
    /// Orders of any kind.
    pub orders: u64,
    /// Orders to add a row that already existed, for packets that came while the row was being
    /// written.
    pub orders_repeated: u64,
    /// Rows refused because the table was full.
    pub refused_full: u64,
    /// Rows refused because there were more per second than the table learns.
    pub refused_too_fast: u64,
    /// Orders refused for another reason.
    pub refused_failed: u64,
    /// Rows that were added.
    pub rows_begun: u64,
    /// Rows that ended because their flow was silent, or because its connection had been over for
    /// some time.
    pub rows_idle: u64,
    /// Rows that ended because another connection began with their key.
    pub rows_removed: u64,
    /// 1 if the decider is gone.
    pub decider_gone: u64,
}

impl LearnerCounts {
    /// Number of rows in the table.
    #[must_use]
    pub const fn rows_open(&self) -> u64 {
        self.rows_begun - self.rows_idle - self.rows_removed
    }

    /// Rows refused, for any reason.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused_full + self.refused_too_fast + self.refused_failed
    }
}
