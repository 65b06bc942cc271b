// SPDX-License-Identifier: Apache-2.0
//! Open flows and the rules for closing them: `docs/decisions/0001-cells.md`.
//!
//! All arithmetic is in `u128`, in which no sum of a time and a timeout overflows.

use turboflow_record::{EndReason, InputValues, Packet, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};

use super::MeterOptions;

/// One packet of a flow.
#[derive(Clone, Debug)]
pub(super) struct SeenPacket {
    pub(super) packet: Packet,
    pub(super) values: InputValues,
    /// Whether the packet runs against the flow's key; only in biflows.
    pub(super) reversed: bool,
}

impl SeenPacket {
    pub(super) fn is_syn_without_ack(&self) -> bool {
        self.packet.tcp_flags & (TCP_SYN | TCP_ACK) == TCP_SYN
    }

    pub(super) const fn is_reversed(&self) -> bool {
        self.reversed
    }

    fn has(&self, flag: u16) -> bool {
        self.packet.tcp_flags & flag != 0
    }
}

/// The current cell of the clock, in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// W: the watermark, which is the start of the current cell.
    pub(super) start_ns: u128,
    /// E: the start of the next cell.
    pub(super) end_ns: u128,
}

/// All packets of an open flow, in order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenFlow {
    pub(super) packets: Vec<SeenPacket>,
}

/// Stands for a disabled timeout. It is never reached.
const NEVER: u128 = u128::MAX / 4;

fn or_never(timeout_ns: Option<u64>) -> u128 {
    timeout_ns.map_or(NEVER, u128::from)
}

impl OpenFlow {
    pub(super) fn push(&mut self, seen: SeenPacket) {
        self.packets.push(seen);
    }

    fn times_ns(&self) -> impl Iterator<Item = u128> {
        self.packets
            .iter()
            .map(|seen| u128::from(seen.packet.timestamp_ns))
    }

    fn first_ns(&self) -> u128 {
        self.times_ns().min().expect("an open flow has packets")
    }

    fn last_ns(&self) -> u128 {
        self.times_ns().max().expect("an open flow has packets")
    }

    /// Whether the flow has seen RST, or FIN from every direction that counts. Without a linger,
    /// neither ends it.
    pub(super) fn has_ended(&self, options: &MeterOptions) -> bool {
        let rst = self.packets.iter().any(|seen| seen.has(TCP_RST));
        let fin = |reversed| {
            self.packets
                .iter()
                .any(|seen| seen.has(TCP_FIN) && seen.reversed == reversed)
        };
        options.linger_ns.is_some() && (rst || fin(false) && (!options.biflow || fin(true)))
    }

    /// The silence that closes the flow, in ns.
    fn limit_ns(&self, options: &MeterOptions) -> u128 {
        if self.has_ended(options) {
            // Law 5: no record holds a silence longer than the idle timeout, even after its end.
            or_never(options.linger_ns).min(or_never(options.idle_timeout_ns))
        } else {
            or_never(options.idle_timeout_ns)
        }
    }

    fn reason_of_silence(&self, options: &MeterOptions) -> EndReason {
        if self.has_ended(options) {
            EndReason::EndOfFlow
        } else {
            EndReason::IdleTimeout
        }
    }

    /// Rule 1: whether the clock alone closes the flow, and why.
    pub(super) fn due(&self, clock: &Clock, options: &MeterOptions) -> Option<EndReason> {
        let silent_ns = self.last_ns() + self.limit_ns(options);
        let too_long_ns = self.first_ns() + or_never(options.active_timeout_ns);
        // The last moment of the record's window.
        let window_ns = options.align_ns.map_or(NEVER, |align_ns| {
            let align_ns = u128::from(align_ns);
            (self.first_ns() / align_ns + 1) * align_ns - 1
        });
        let too_long_ns = too_long_ns.min(window_ns);
        if silent_ns.min(too_long_ns) >= clock.start_ns {
            None
        } else if silent_ns <= too_long_ns {
            Some(self.reason_of_silence(options))
        } else {
            Some(EndReason::ActiveTimeout)
        }
    }

    /// Rules 1 and 2: why `next` cannot join the flow; `None` if it can.
    pub(super) fn export_before(
        &self,
        next: &SeenPacket,
        clock: &Clock,
        options: &MeterOptions,
    ) -> Option<EndReason> {
        if let Some(reason) = self.due(clock, options) {
            return Some(reason);
        }
        let next_ns = u128::from(next.packet.timestamp_ns);
        let opens = next.is_syn_without_ack() && next_ns >= self.last_ns();
        if self.has_ended(options) && opens {
            return Some(EndReason::EndOfFlow);
        }
        if next_ns > self.last_ns() + self.limit_ns(options) {
            return Some(self.reason_of_silence(options));
        }
        // Compared as a sum, because the end of the cell is beyond both times only if the clock is.
        let first_ns = self.first_ns().min(next_ns);
        if clock.end_ns > first_ns + or_never(options.active_timeout_ns) {
            return Some(EndReason::ActiveTimeout);
        }
        if let Some(align_ns) = options.align_ns.map(u128::from)
            && first_ns / align_ns != clock.start_ns / align_ns
        {
            return Some(EndReason::ActiveTimeout);
        }
        None
    }
}
