// SPDX-License-Identifier: Apache-2.0
//! Whether the microflow table pays.
//!
//! A hit in the table saves the aggregator a merge; every packet pays for the lookup. On real
//! traffic, with its packet trains, nine packets in ten hit; on uniformly random traffic over
//! more flows than slots almost none do, and the table only costs. So the engine counts hits over
//! a window of packets and stands aside while they are too few, with a trial window now and then.
//! The decision follows packet counts alone, never a clock: a seed repeats a run exactly.

/// How large the microflow table is, and who decides whether it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizing {
    /// The default size; stands aside when hits are too few to pay.
    Adaptive,
    /// Exactly this many slots, always used.
    Fixed(u32),
    /// No table: every packet goes straight to the aggregator.
    Off,
}

impl Sizing {
    /// Slots of the adaptive table: 2 MB of IPv4 records, which fits a second-level cache.
    pub const ADAPTIVE_SLOTS: u32 = 32_768;

    /// How many slots the table has.
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
/// Packets that pass by between two trial windows.
const ASIDE_PACKETS: u64 = 1 << 20;

/// Counts hits and decides.
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

    /// Counts a batch. `hits_needed_percent` says how many packets must hit for the table to pay.
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
