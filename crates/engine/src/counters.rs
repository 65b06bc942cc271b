// SPDX-License-Identifier: Apache-2.0
//! The set of counters that all engines share.

use std::ops::AddAssign;

use serde::Serialize;
use turboflow_record::Rejected;

/// Microflow records that left an engine, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evicted {
    /// Displaced by a packet of another flow.
    pub collision: u64,
    /// Evicted at the end of a clock cell.
    pub age: u64,
    /// Evicted because the next packet of the flow had to start a new record: a SYN, a packet after
    /// the end of a connection, or a late packet. Files and metrics call it `gap`.
    #[serde(rename = "gap")]
    pub cut: u64,
    /// Evicted at the end of the input, or when the table was bypassed.
    pub flush: u64,
    /// Packets that bypassed the table because it did not pay.
    pub bypass: u64,
}

impl Evicted {
    /// The sum over all causes.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.collision
            .saturating_add(self.age)
            .saturating_add(self.cut)
            .saturating_add(self.flush)
            .saturating_add(self.bypass)
    }
}

impl AddAssign for Evicted {
    fn add_assign(&mut self, other: Self) {
        self.collision = self.collision.saturating_add(other.collision);
        self.age = self.age.saturating_add(other.age);
        self.cut = self.cut.saturating_add(other.cut);
        self.flush = self.flush.saturating_add(other.flush);
        self.bypass = self.bypass.saturating_add(other.bypass);
    }
}

/// What a remote engine did with the frames that it received. A packet engine counts only what it
/// evicts, because its packets are counted before they reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineCounters {
    /// Frames received on all ports.
    pub packets_received: u64,
    /// Bytes of these frames on the wire.
    pub bytes_received: u64,
    /// Packets that were lost before the engine received them, as far as the engine is told. For
    /// example, a remote sender reports the packets that its capture dropped.
    pub source_dropped: u64,
    /// Packets metered in the microflow table.
    pub packets_metered: u64,
    /// Bytes of metered packets, according to their IP headers.
    pub bytes_metered: u64,
    /// Metered packets that declare more bytes than their frame on the wire has.
    pub packets_longer_than_frame: u64,
    /// Records evicted from the table, including those lost afterwards.
    pub evicted: Evicted,
    /// Evicted records that could not be handed over.
    pub microflows_dropped: u64,
    /// Packets in dropped records.
    pub packets_dropped: u64,
    /// Bytes in dropped records, according to the IP headers.
    pub bytes_dropped: u64,
    /// Dropped records that [`RemoteEngine::short_flows`](crate::RemoteEngine::short_flows) does
    /// not attribute to a flow.
    pub microflows_unnamed: u64,
    /// Frames that are in no flow, indexed by [`Rejected::index`].
    pub rejected_packets: [u64; Rejected::COUNT],
    /// Bytes of these frames on the wire.
    pub rejected_bytes: [u64; Rejected::COUNT],
}

impl Default for EngineCounters {
    fn default() -> Self {
        Self {
            packets_received: 0,
            bytes_received: 0,
            source_dropped: 0,
            packets_metered: 0,
            bytes_metered: 0,
            packets_longer_than_frame: 0,
            evicted: Evicted::default(),
            microflows_dropped: 0,
            packets_dropped: 0,
            bytes_dropped: 0,
            microflows_unnamed: 0,
            rejected_packets: [0; Rejected::COUNT],
            rejected_bytes: [0; Rejected::COUNT],
        }
    }
}

impl EngineCounters {
    /// Bytes on the wire of the metered frames, which are all received frames except rejected ones.
    #[must_use]
    pub fn frame_bytes_metered(&self) -> u64 {
        let rejected: u64 = self.rejected_bytes.iter().sum();
        // Saturates, because packets arrive between the reads of the counters.
        self.bytes_received.saturating_sub(rejected)
    }
}

impl AddAssign<&Self> for EngineCounters {
    // Saturates, because counters may come from another host.
    fn add_assign(&mut self, other: &Self) {
        self.packets_received = self.packets_received.saturating_add(other.packets_received);
        self.bytes_received = self.bytes_received.saturating_add(other.bytes_received);
        self.source_dropped = self.source_dropped.saturating_add(other.source_dropped);
        self.packets_metered = self.packets_metered.saturating_add(other.packets_metered);
        self.bytes_metered = self.bytes_metered.saturating_add(other.bytes_metered);
        self.packets_longer_than_frame = self
            .packets_longer_than_frame
            .saturating_add(other.packets_longer_than_frame);
        self.evicted += other.evicted;
        self.microflows_dropped = self
            .microflows_dropped
            .saturating_add(other.microflows_dropped);
        self.packets_dropped = self.packets_dropped.saturating_add(other.packets_dropped);
        self.bytes_dropped = self.bytes_dropped.saturating_add(other.bytes_dropped);
        self.microflows_unnamed = self
            .microflows_unnamed
            .saturating_add(other.microflows_unnamed);
        let rejected = self.rejected_packets.iter_mut().zip(other.rejected_packets);
        let rejected_bytes = self.rejected_bytes.iter_mut().zip(other.rejected_bytes);
        for (sum, more) in rejected.chain(rejected_bytes) {
            *sum = sum.saturating_add(more);
        }
    }
}
