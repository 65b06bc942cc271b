// SPDX-License-Identifier: Apache-2.0
//! An open flow and when it closes: the rules of `docs/decisions/0001-cells.md`.
//!
//! All arithmetic is in `u128`, where no sum of a time and a timeout overflows.

use turboflow_record::{EndReason, InputValues, Packet, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN};

use super::MeterOptions;

/// One packet of a flow.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) packet: Packet,
    pub(super) values: InputValues,
    /// It runs against the flow's key; only in biflows.
    pub(super) reversed: bool,
}

impl Seen {
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

/// The cell that the clock is in, in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// W: the watermark.
    pub(super) start_ns: u128,
    /// E: the start of the next cell.
    pub(super) end_ns: u128,
}

/// All packets of an open flow, in order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenFlow {
    pub(super) packets: Vec<Seen>,
}

/// A timeout that is switched off never comes.
const NEVER: u128 = u128::MAX / 4;

fn or_never(timeout_ns: Option<u64>) -> u128 {
    timeout_ns.map_or(NEVER, u128::from)
}

impl OpenFlow {
    pub(super) fn push(&mut self, seen: Seen) {
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

    /// It holds RST, or FIN from every direction that counts. Without a linger these end nothing.
    pub(super) fn has_ended(&self, options: &MeterOptions) -> bool {
        let rst = self.packets.iter().any(|seen| seen.has(TCP_RST));
        let fin = |reversed| {
            self.packets
                .iter()
                .any(|seen| seen.has(TCP_FIN) && seen.reversed == reversed)
        };
        options.linger_ns.is_some() && (rst || fin(false) && (!options.biflow || fin(true)))
    }

    /// The silence that closes it, in ns.
    fn limit_ns(&self, options: &MeterOptions) -> u128 {
        if self.has_ended(options) {
            // Law 5: no record holds a silence longer than the idle timeout, ended or not.
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

    /// Rule 1: what the clock alone says.
    pub(super) fn due(&self, clock: &Clock, options: &MeterOptions) -> Option<EndReason> {
        let silent_ns = self.last_ns() + self.limit_ns(options);
        let too_long_ns = self.first_ns() + or_never(options.active_timeout_ns);
        if silent_ns.min(too_long_ns) >= clock.start_ns {
            None
        } else if silent_ns <= too_long_ns {
            Some(self.reason_of_silence(options))
        } else {
            Some(EndReason::ActiveTimeout)
        }
    }

    /// Rules 1 and 2: why `next` cannot join, or `None` where it joins.
    pub(super) fn export_before(
        &self,
        next: &Seen,
        clock: &Clock,
        options: &MeterOptions,
    ) -> Option<EndReason> {
        if let Some(reason) = self.due(clock, options) {
            return Some(reason);
        }
        let next_ns = u128::from(next.packet.timestamp_ns);
        if self.has_ended(options) && next.is_syn_without_ack() {
            return Some(EndReason::EndOfFlow);
        }
        if next_ns > self.last_ns() + self.limit_ns(options) {
            return Some(self.reason_of_silence(options));
        }
        // Written as a sum: the end of the cell is later than both times only if the clock is.
        let first_ns = self.first_ns().min(next_ns);
        if clock.end_ns > first_ns + or_never(options.active_timeout_ns) {
            return Some(EndReason::ActiveTimeout);
        }
        None
    }
}
