// SPDX-License-Identifier: Apache-2.0
//! The engines that sent the records: their counters, and what was received from them.

use std::collections::BTreeMap;

use turboflow_engine::EngineCounters;
use turboflow_engine::wire::{Decoded, Decoder};

/// The state of one sending engine.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    watermark_ns: u64,
    has_ended: bool,
    counters: EngineCounters,
}

/// All sending engines, by id.
#[derive(Clone, Debug, Default)]
pub(crate) struct Senders {
    senders: BTreeMap<u32, Sender>,
    complete_ns: u64,
    records: u64,
    packets: u64,
    bytes: u64,
}

impl Senders {
    /// Notes a message. Returns the time up to which all senders have sent everything, if that has
    /// advanced.
    pub(crate) fn note(&mut self, decoded: &Decoded) -> Option<u64> {
        self.records += decoded.records as u64;
        self.packets += decoded.packets;
        self.bytes += decoded.bytes;
        let sender = self.senders.entry(decoded.engine_id).or_default();
        sender.counters = decoded.counters.unwrap_or(sender.counters);
        sender.has_ended |= decoded.is_end;
        sender.watermark_ns = decoded.watermark_ns.unwrap_or(sender.watermark_ns);
        let go_on = self.senders.values().filter(|sender| !sender.has_ended);
        let slowest = go_on.map(|sender| sender.watermark_ns).min()?;
        (slowest > 0 && slowest != self.complete_ns).then(|| {
            self.complete_ns = slowest;
            slowest
        })
    }

    /// The counters of the senders, with the losses on the way. While records arrive, a sender's
    /// counters may be ahead of them or behind. At the end, counted packets that did not arrive are
    /// lost.
    pub(crate) fn counters(&self, decoder: &Decoder, is_over: bool) -> EngineCounters {
        let mut sum = EngineCounters::default();
        for sender in self.senders.values() {
            sum += &sender.counters;
        }
        let lost = decoder.lost();
        let sent = self.records + lost;
        // Records that their sender has not counted yet, or never counts.
        sum.evicted.age += (sent + sum.microflows_dropped).saturating_sub(sum.evicted.total());
        sum.microflows_dropped += lost;
        sum.microflows_unnamed = sum.microflows_dropped;
        let packets_here = self.packets + sum.packets_dropped;
        let bytes_here = self.bytes + sum.bytes_dropped;
        sum.packets_metered = sum.packets_metered.max(packets_here);
        sum.bytes_metered = sum.bytes_metered.max(bytes_here);
        if is_over && lost > 0 {
            sum.packets_dropped = sum.packets_metered - self.packets;
            sum.bytes_dropped = sum.bytes_metered - self.bytes;
        }
        sum
    }
}
