// SPDX-License-Identifier: Apache-2.0
//! The limits of an inspection, and its counters.

use std::ops::AddAssign;
use std::path::PathBuf;

use thiserror::Error;

/// Limits of an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectConfig {
    /// Maximum flows under inspection at a time. Each takes 1 to 2 KB in the process, some much
    /// more for a moment. When there are more, the oldest inspection ends with what is known.
    pub max_flows: usize,
    /// Maximum packets inspected per flow, by protocol.
    pub packets: PacketLimits,
    /// Address space of the process in bytes. Inspections are dropped before it is full.
    pub memory_bytes: u64,
    /// Bytes of packets that may be on their way to the process. A packet for which there is no
    /// room is not inspected, unless `is_lossless`.
    pub queue_bytes: usize,
    /// Whether to wait for the process instead of losing packets: for files.
    pub is_lossless: bool,
    /// A flow other than TCP is inspected anew after it was silent for this long, in nanoseconds.
    pub idle_ns: u64,
    /// Whether to report which inspections ended ([`Inspection::take_ended`](crate::Inspection)).
    pub tells_ends: bool,
    /// Whether to report what was learned ([`Inspection::take_told`](crate::Inspection)).
    pub tells_verdicts: bool,
    /// The seed for the hash of the tables.
    pub seed: u64,
    /// The program that calls [`child_main`](crate::child_main); `None` means this program.
    pub program: Option<PathBuf>,
}

/// Maximum number of packets to inspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLimits {
    /// Of a TCP flow. In nDPI's own test captures, the last name was found in packet 27.
    pub tcp: u8,
    /// Of a UDP flow. In these captures the last name was found in packet 7, in a longer capture in
    /// packet 17.
    pub udp: u8,
    /// Of any other flow.
    pub other: u8,
}

impl Default for PacketLimits {
    fn default() -> Self {
        Self {
            tcp: 32,
            udp: 24,
            other: 24,
        }
    }
}

impl Default for InspectConfig {
    fn default() -> Self {
        Self {
            max_flows: 65_536,
            packets: PacketLimits::default(),
            memory_bytes: 512 << 20,
            queue_bytes: 4 << 20,
            is_lossless: false,
            idle_ns: 60_000_000_000,
            tells_ends: false,
            tells_verdicts: false,
            seed: 0,
            program: None,
        }
    }
}

/// Number of places for flows whose inspection has ended, per flow under inspection.
const KNOWN_FLOWS_EACH: usize = 4;

impl InspectConfig {
    /// Number of flows that are remembered, whether under inspection or complete. A forgotten flow
    /// is inspected anew if it continues.
    #[must_use]
    pub const fn remembered_flows(&self) -> usize {
        self.max_flows.saturating_mul(KNOWN_FLOWS_EACH)
    }

    /// Upper bound on the memory of the inspection, in the meter and in its process, in bytes.
    #[must_use]
    pub fn memory_bound_bytes(&self) -> u64 {
        let places = self.remembered_flows();
        let tables =
            crate::admission::memory_bytes(places) + crate::verdict::Verdicts::memory_bytes(places);
        self.memory_bytes + (tables + 2 * self.queue_bytes) as u64
    }
}

/// The counters of an inspection.
///
/// `taps = packets_inspected + packets_late + taps_lost` once it is settled, and
/// `opened = decided + gave_up + dropped` once it is finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InspectCounters {
    /// Packets that were to be inspected.
    pub taps: u64,
    /// Packets that were inspected.
    pub packets_inspected: u64,
    /// Packets that reached the process after the inspection of their flow was complete.
    pub packets_late: u64,
    /// Packets that were lost because the queue was full or the process had ended.
    pub taps_lost: u64,
    /// Inspections that began.
    pub inspections_opened: u64,
    /// Inspections that ended with an application found in the payload.
    pub inspections_decided: u64,
    /// Inspections that ended with a guess or without a result: at the limit of packets, or when
    /// the flow ended.
    pub inspections_gave_up: u64,
    /// Inspections that were dropped in favour of newer ones, or because memory was short.
    pub inspections_dropped: u64,
    /// How often the process was restarted.
    pub restarts: u64,
}

impl AddAssign<&Self> for InspectCounters {
    fn add_assign(&mut self, other: &Self) {
        self.taps += other.taps;
        self.packets_inspected += other.packets_inspected;
        self.packets_late += other.packets_late;
        self.taps_lost += other.taps_lost;
        self.inspections_opened += other.inspections_opened;
        self.inspections_decided += other.inspections_decided;
        self.inspections_gave_up += other.inspections_gave_up;
        self.inspections_dropped += other.inspections_dropped;
        self.restarts += other.restarts;
    }
}

/// Why inspection is not possible.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The program has no inspector.
    #[error("{}", crate::NOT_BUILT)]
    NotBuilt,
    /// The process could not be started.
    #[error("the inspector's process cannot be started: {0}")]
    Start(#[source] std::io::Error),
    /// The process ended before it was ready.
    #[error(
        "the inspector's process ended before it was ready; the limit of its memory may be too small"
    )]
    Ended,
    /// The process reported why it cannot work.
    #[error("the inspector's process cannot work: {0}")]
    Failed(String),
}
