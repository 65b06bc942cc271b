// SPDX-License-Identifier: Apache-2.0
//! What the program counts, as it lies in the kernel.

use turboflow_engine::{EngineCounters, Evicted};
use turboflow_record::Rejected;

use crate::layout::{COUNTER_WORDS, INTERFACES, words};

/// What the engine did with the frames it saw, over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCounters {
    /// Packets that went into a table.
    pub packets_metered: u64,
    /// Bytes their IP headers declare.
    pub bytes_metered: u64,
    /// Records displaced by another flow.
    pub evicted_collision: u64,
    /// Records taken out when their cell had ended, or displaced by the first packet of their slot in a later one.
    pub evicted_age: u64,
    /// Records that left because their next packet had to start a new one.
    pub evicted_cut: u64,
    /// Records that were in a table at the end.
    pub evicted_flush: u64,
    /// Of the evicted ones, those for which the ring had no room.
    pub microflows_dropped: u64,
    /// Packets in them.
    pub packets_dropped: u64,
    /// IP bytes in them.
    pub bytes_dropped: u64,
    /// Records of them whose flow `KernelEngine::short_flows` does not name, for there were too many.
    pub microflows_unnamed: u64,
    /// Frames that are no packet, by [`Rejected::index`].
    pub rejected_packets: [u64; Rejected::COUNT],
    /// Their bytes on the wire.
    pub rejected_bytes: [u64; Rejected::COUNT],
    /// Frames seen, by the interface's place in `KernelConfig::interfaces`.
    pub packets_received: [u64; INTERFACES],
    /// Their bytes, as long as they were on the wire.
    pub bytes_received: [u64; INTERFACES],
    /// Of the frames seen, those longer than `KernelConfig::longest_frame_bytes`.
    pub packets_merged: [u64; INTERFACES],
}

impl KernelCounters {
    /// Frames seen at all interfaces.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.packets_received.iter().sum()
    }

    /// What every engine counts.
    #[must_use]
    pub fn in_common(&self) -> EngineCounters {
        EngineCounters {
            packets_received: self.received(),
            bytes_received: self.bytes_received.iter().sum(),
            packets_metered: self.packets_metered,
            bytes_metered: self.bytes_metered,
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
        }
    }

    /// Adds the counters of one CPU, as the kernel keeps them.
    pub(crate) fn add_cpu(&mut self, bytes: &[u8]) {
        debug_assert_eq!(bytes.len(), 8 * COUNTER_WORDS);
        let mut words = words(bytes);
        // Where the program keeps start and end of its cell.
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
