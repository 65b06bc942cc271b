// SPDX-License-Identifier: Apache-2.0
//! Decides whether the microflow table pays.
//!
//! A hit in the table saves the aggregator a merge; every packet pays for the lookup. Real traffic
//! comes in packet trains, and nine packets in ten hit. On uniformly random traffic over more flows
//! than slots almost none do, and the table only costs. So the engine counts hits over a window of
//! packets. While they are too few it bypasses the table, with a trial window from time to time.
//! The decision depends on packet counts alone, never on a clock: the same seed gives the same run.

/// Size of the microflow table, and whether it may be bypassed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizing {
    /// The default size; bypassed while hits are too few to pay.
    Adaptive,
    /// Exactly this many slots, always used.
    Fixed(u32),
    /// No table: every packet goes straight to the aggregator.
    Off,
}

impl Sizing {
    /// Slots of the adaptive table: 2 MB of IPv4 records, which fits a second-level cache.
    pub const ADAPTIVE_SLOTS: u32 = 32_768;

    /// Number of slots of the table.
    #[must_use]
    pub const fn slots(self) -> u32 {
        match self {
            Self::Adaptive => Self::ADAPTIVE_SLOTS,
            Self::Fixed(slots) => slots,
            Self::Off => 0,
        }
    }
}

/// Packets over which hits are counted.
const WINDOW_PACKETS: u64 = 1 << 16;
/// Packets that bypass the table between two trial windows.
const ASIDE_PACKETS: u64 = 1 << 20;

/// Counts hits, and decides whether to bypass the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HitWatch {
    adaptive: bool,
    aside: bool,
    packets: u64,
    hits: u64,
}

impl HitWatch {
    pub(crate) const fn new(sizing: Sizing) -> Self {
        let adaptive = matches!(sizing, Sizing::Adaptive);
        let aside = matches!(sizing, Sizing::Off);
        Self {
            adaptive,
            aside,
            packets: 0,
            hits: 0,
        }
    }

    pub(crate) const fn is_aside(&self) -> bool {
        self.aside
    }

    /// Counts a batch. The table pays if at least `hits_needed_percent` of the packets hit.
    pub(crate) fn count(&mut self, packets: usize, hits: u64, hits_needed_percent: u64) {
        if !self.adaptive {
            return;
        }
        self.packets += packets as u64;
        self.hits += hits;
        let window = if self.aside {
            ASIDE_PACKETS
        } else {
            WINDOW_PACKETS
        };
        if self.packets >= window {
            self.aside = !self.aside && self.hits * 100 < self.packets * hits_needed_percent;
            self.packets = 0;
            self.hits = 0;
        }
    }
}
