// SPDX-License-Identifier: Apache-2.0
//! What an inspection may take, and what it counted.

use std::ops::AddAssign;
use std::path::PathBuf;

use thiserror::Error;

/// Limits of an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectConfig {
    /// Flows under inspection at a time. Each takes 1 to 2 KB in the process, and some much more
    /// for a moment. Where there are more, the oldest inspection ends with what is known.
    pub max_flows: usize,
    /// Packets of a flow that are looked at, at most, by protocol.
    pub packets: PacketLimits,
    /// Address space of the process in bytes. Inspections leave before it is full.
    pub memory_bytes: u64,
    /// Packets on their way to the process, in bytes. A packet that has no room is not looked at
    /// unless `is_lossless`.
    pub queue_bytes: usize,
    /// Whether to wait for the process rather than to lose packets: for files.
    pub is_lossless: bool,
    /// After a silence of this, a flow that is not TCP is looked at anew.
    pub idle_ns: u64,
    /// Whether to tell which inspections ended ([`Inspection::take_ended`](crate::Inspection)).
    pub tells_ends: bool,
    /// Whether to tell what was found out ([`Inspection::take_told`](crate::Inspection)).
    pub tells_verdicts: bool,
    /// Seeds the hash of the tables.
    pub seed: u64,
    /// The program that calls [`child_main`](crate::child_main): by default this one.
    pub program: Option<PathBuf>,
}

/// Packets that are looked at, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLimits {
    /// Of a TCP flow. In nDPI's own test captures the last name came with packet 27.
    pub tcp: u8,
    /// Of a UDP flow. There it came with packet 7, in a longer capture with 17.
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

/// Places for flows whose inspection is over, for each flow under inspection.
const KNOWN_FLOWS_EACH: usize = 4;

impl InspectConfig {
    /// Flows that are remembered, under inspection or known. A flow that is forgotten is looked at
    /// anew if it goes on.
    #[must_use]
    pub const fn remembered_flows(&self) -> usize {
        self.max_flows.saturating_mul(KNOWN_FLOWS_EACH)
    }

    /// The most bytes that the inspection takes, in the meter and in its process.
    #[must_use]
    pub fn memory_bound_bytes(&self) -> u64 {
        let places = self.remembered_flows();
        let tables =
            crate::admission::memory_bytes(places) + crate::verdict::Verdicts::memory_bytes(places);
        self.memory_bytes + (tables + 2 * self.queue_bytes) as u64
    }
}

/// What an inspection counted.
///
/// `taps = packets_inspected + packets_late + taps_lost` once it is settled, and
/// `opened = decided + gave_up + dropped` once it is finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InspectCounters {
    /// Packets that were to be looked at.
    pub taps: u64,
    /// Those that were.
    pub packets_inspected: u64,
    /// Those that reached the process when it had said all about their flow.
    pub packets_late: u64,
    /// Those that found the queue full, or the process gone.
    pub taps_lost: u64,
    /// Inspections that began.
    pub inspections_opened: u64,
    /// Inspections that ended with an application that the payload told.
    pub inspections_decided: u64,
    /// Inspections that ended with a guess or nothing: at the limit of packets, or with the flow.
    pub inspections_gave_up: u64,
    /// Inspections that left for newer ones, or because memory was short.
    pub inspections_dropped: u64,
    /// How often the process was started again.
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

/// Why there is no inspection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The program has no inspector.
    #[error("{}", crate::NOT_BUILT)]
    NotBuilt,
    /// The process could not be started.
    #[error("the inspector's process cannot be started: {0}")]
    Start(#[source] std::io::Error),
    /// It ended before it was ready.
    #[error(
        "the inspector's process ended before it was ready; the limit of its memory may be too small"
    )]
    Ended,
    /// It said why it cannot work.
    #[error("the inspector's process cannot work: {0}")]
    Failed(String),
}
