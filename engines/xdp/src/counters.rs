// SPDX-License-Identifier: Apache-2.0
//! The program's counters, in the layout of the kernel's map.

use turboflow_engine::{EngineCounters, Evicted};
use turboflow_record::Rejected;

use crate::layout::{COUNTER_WORDS, INTERFACES, words};

/// What the engine did with the frames it received, over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCounters {
    /// Packets that were merged into a table.
    pub packets_metered: u64,
    /// Bytes of these packets, according to their IP headers.
    pub bytes_metered: u64,
    /// Records evicted by another flow.
    pub evicted_collision: u64,
    /// Records taken out after the end of their cell, or evicted by the first packet of a later
    /// cell.
    pub evicted_age: u64,
    /// Records evicted because the next packet of their flow had to start a new one.
    pub evicted_cut: u64,
    /// Records in the tables when the engine ended.
    pub evicted_flush: u64,
    /// Evicted records for which the ring had no room.
    pub microflows_dropped: u64,
    /// Packets of the dropped records.
    pub packets_dropped: u64,
    /// IP bytes of the dropped records.
    pub bytes_dropped: u64,
    /// Dropped records of flows beyond the limit of `KernelEngine::short_flows`.
    pub microflows_unnamed: u64,
    /// Metered packets that declare more bytes than their frame has.
    pub packets_longer_than_frame: u64,
    /// Frames that are not packets, by [`Rejected::index`].
    pub rejected_packets: [u64; Rejected::COUNT],
    /// Bytes of these frames on the wire.
    pub rejected_bytes: [u64; Rejected::COUNT],
    /// Frames received, by the interface's index in `KernelConfig::interfaces`.
    pub packets_received: [u64; INTERFACES],
    /// Bytes of these frames on the wire.
    pub bytes_received: [u64; INTERFACES],
    /// Received frames longer than `KernelConfig::longest_frame_bytes`.
    pub packets_merged: [u64; INTERFACES],
}

impl KernelCounters {
    /// Frames received on all interfaces.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.packets_received.iter().sum()
    }

    /// The counters that all engines have.
    #[must_use]
    pub fn in_common(&self) -> EngineCounters {
        EngineCounters {
            packets_received: self.received(),
            bytes_received: self.bytes_received.iter().sum(),
            packets_metered: self.packets_metered,
            bytes_metered: self.bytes_metered,
            packets_longer_than_frame: self.packets_longer_than_frame,
            evicted: Evicted {
                collision: self.evicted_collision,
                age: self.evicted_age,
                cut: self.evicted_cut,
                flush: self.evicted_flush,
                bypass: 0,
            },
            microflows_dropped: self.microflows_dropped,
            packets_dropped: self.packets_dropped,
            bytes_dropped: self.bytes_dropped,
            microflows_unnamed: self.microflows_unnamed,
            rejected_packets: self.rejected_packets,
            rejected_bytes: self.rejected_bytes,
            source_dropped: 0,
        }
    }

    /// Adds the counters of one CPU, in the kernel's layout.
    pub(crate) fn add_cpu(&mut self, bytes: &[u8]) {
        debug_assert_eq!(bytes.len(), 8 * COUNTER_WORDS);
        let mut words = words(bytes);
        // The program keeps the start and end of its cell there.
        let mut cell = [0, 0];
        let [cell_start_ns, cell_end_ns] = &mut cell;
        let totals = [
            &mut self.packets_metered,
            &mut self.bytes_metered,
            cell_start_ns,
            cell_end_ns,
            &mut self.evicted_collision,
            &mut self.evicted_age,
            &mut self.evicted_cut,
            &mut self.microflows_dropped,
            &mut self.packets_dropped,
            &mut self.bytes_dropped,
            &mut self.microflows_unnamed,
            &mut self.packets_longer_than_frame,
        ];
        let rejected = self
            .rejected_packets
            .iter_mut()
            .chain(&mut self.rejected_bytes)
            .chain(&mut self.packets_received)
            .chain(&mut self.bytes_received)
            .chain(&mut self.packets_merged);
        for total in totals.into_iter().chain(rejected) {
            *total += words.next().unwrap_or_default();
        }
    }
}
