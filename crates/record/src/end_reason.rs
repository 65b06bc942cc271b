// SPDX-License-Identifier: Apache-2.0
//! Why a flow record ended.

/// Why a flow record ended, numbered as flowEndReason (IPFIX information element 136).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum EndReason {
    /// No packet arrived for the idle timeout.
    IdleTimeout = 1,
    /// The record would have lasted longer than the active timeout, or beyond the end of its
    /// window.
    ActiveTimeout = 2,
    /// FIN or RST, after the linger time.
    EndOfFlow = 3,
    /// End of file, shutdown, or a clock that went backwards.
    ForcedEnd = 4,
    /// The flow cache was full.
    LackOfResources = 5,
}

impl EndReason {
    /// Every reason, in numeric order.
    pub const ALL: [Self; 5] = [
        Self::IdleTimeout,
        Self::ActiveTimeout,
        Self::EndOfFlow,
        Self::ForcedEnd,
        Self::LackOfResources,
    ];

    /// The name used in ledgers and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::IdleTimeout => "idle_timeout",
            Self::ActiveTimeout => "active_timeout",
            Self::EndOfFlow => "end_of_flow",
            Self::ForcedEnd => "forced_end",
            Self::LackOfResources => "lack_of_resources",
        }
    }
}
