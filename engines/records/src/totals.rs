// SPDX-License-Identifier: Apache-2.0
//! What the sender of a stream counted, and what arrived of it.

use turboflow_engine::EngineCounters;
use turboflow_engine::wire::Decoded;

/// Sums over a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    /// The sender's counters, as last received.
    pub(crate) sent: EngineCounters,
    /// Counters of the sender's earlier starts, including their losses.
    before: EngineCounters,
    /// Records, packets and bytes that arrived since the sender's last start.
    records: u64,
    packets: u64,
    bytes: u64,
    /// Whether the run ended before the stream did.
    is_left: bool,
}

impl Totals {
    /// Counts the records of a message. Returns false if the sums exceed what can be counted.
    pub(crate) const fn arrive(&mut self, decoded: &Decoded) -> bool {
        const MOST: u64 = 1 << 60;
        self.records += decoded.records as u64;
        self.packets = self.packets.saturating_add(decoded.packets);
        self.bytes = self.bytes.saturating_add(decoded.bytes);
        self.packets <= MOST && self.bytes <= MOST
    }

    /// Reports that the sender started again; `lost` records of its last start did not arrive.
    pub(crate) fn begin_anew(&mut self, lost: u64) {
        self.before = self.counters(lost, true);
        self.sent = EngineCounters::default();
        (self.records, self.packets, self.bytes) = (0, 0, 0);
    }

    /// Reports that the rest of the stream is not read: it counts neither as metered nor as lost.
    pub(crate) fn leave_the_rest(&mut self) {
        self.is_left = true;
    }

    /// The counters of the engine. `lost` records are missing in the sequence numbers. At the end,
    /// packets that the sender counted and that did not arrive count as lost.
    pub(crate) fn counters(&self, lost: u64, is_over: bool) -> EngineCounters {
        let mut sum = self.sent;
        let dropped = sum.microflows_dropped.saturating_add(lost);
        // If the sender has not counted its records yet, or never does, they are counted here. The
        // reason for their eviction is then unknown.
        let known = sum.evicted.total().max(sum.microflows_dropped);
        let unknown = self.records.saturating_add(lost).saturating_sub(known);
        sum.evicted.age = sum.evicted.age.saturating_add(unknown);
        sum.microflows_dropped = dropped;
        sum.microflows_unnamed = dropped;
        let packets_here = self.packets.saturating_add(sum.packets_dropped);
        let bytes_here = self.bytes.saturating_add(sum.bytes_dropped);
        if self.is_left {
            // The sender's counters include packets that were not read.
            sum.packets_metered = packets_here;
            sum.bytes_metered = bytes_here;
        }
        sum.packets_metered = sum.packets_metered.max(packets_here);
        sum.bytes_metered = sum.bytes_metered.max(bytes_here);
        if is_over {
            sum.packets_dropped = sum.packets_metered - self.packets;
            sum.bytes_dropped = sum.bytes_metered.saturating_sub(self.bytes);
        }
        let rejected: u64 = sum.rejected_packets.iter().sum();
        sum.packets_received = sum
            .packets_received
            .max(sum.packets_metered.saturating_add(rejected));
        let mut all = self.before;
        all += &sum;
        all
    }
}
