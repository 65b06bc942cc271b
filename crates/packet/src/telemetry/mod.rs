// SPDX-License-Identifier: Apache-2.0
//! In-band telemetry: what the hops of a packet wrote into it, as `docs/telemetry.md` specifies.
//!
//! ```text
//! mark of INT ─▶ int ──┐
//! IPv6 option ─▶ ioam ─┼─▶ Hops: one hop after the other, first hop first ─▶ inputs
//! report port ─▶ report┘
//! ```
//!
//! Nothing here rejects a packet. Telemetry that cannot be read leaves its inputs absent, and is
//! counted by its reason.

mod config;
mod counters;
mod hops;
mod int;
mod ioam;
mod report;

pub use config::{DscpMark, TelemetryConfig, UnknownDscp};
pub use counters::{TelemetryCounters, TelemetryFault};

use turboflow_record::{Input, InputSet, InputValues, Packet};

use crate::Frame;
use crate::transport::protocol;
use crate::walk::Walk;
use hops::Hops;

/// The inputs that in-band telemetry provides.
pub const TELEMETRY_INPUTS: InputSet = InputSet::of(&[
    Input::EgressInterface,
    Input::QueueDepth,
    Input::HopLatency,
    Input::Path,
    Input::HopCount,
]);

/// The number of no port.
const NO_PORT: u32 = u32::MAX;

/// Reads in-band telemetry. Exists only in a parser whose definition wants it.
pub(crate) struct Telemetry {
    wanted: InputSet,
    dscp: DscpMark,
    int_port: u32,
    report_port: u32,
    pub(crate) counters: TelemetryCounters,
}

/// What telemetry changes of a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// What the hops wrote, if it could be read.
    hops: Option<Hops>,
    /// The destination port before INT took its place.
    destination_port: Option<u16>,
    /// Bytes of INT between the transport header and the payload.
    stack_bytes: u32,
}

impl Telemetry {
    /// A reader for the wanted inputs; `None` if telemetry provides none of them.
    pub(crate) fn new(config: Option<TelemetryConfig>, wanted: InputSet) -> Option<Self> {
        let config = config?;
        let port = |port: Option<u16>| port.map_or(NO_PORT, u32::from);
        wanted.intersects(TELEMETRY_INPUTS).then(|| Self {
            wanted,
            dscp: config.int_dscp,
            int_port: port(config.int_port),
            report_port: port(config.int_report_port),
            counters: TelemetryCounters::default(),
        })
    }

    /// Whether a plain packet is marked as one with telemetry. IOAM is in no plain packet.
    #[inline(always)]
    pub(crate) fn is_marked(&self, packet: &Packet) -> bool {
        let is_udp = packet.tuple.protocol() == protocol::UDP;
        let port = u32::from(packet.tuple.destination_port());
        self.dscp.matches(packet.tos)
            || is_udp && (port == self.int_port || port == self.report_port)
    }

    /// Reads the telemetry of a packet. The walk continues to the packet that it is about: behind
    /// the headers that INT added, or inside a report.
    ///
    /// Returns that packet, and sets its inputs by `fill` and then those of telemetry.
    pub(crate) fn read(
        &mut self,
        frame: &Frame<'_>,
        walk: &mut Walk,
        icmp_ports: bool,
        values: &mut InputValues,
        fill: impl FnOnce(&mut InputValues, &Walk, &Packet),
    ) -> Packet {
        let outcome = self.find(frame, walk);
        let found = match outcome {
            Ok(found) => found,
            Err(fault) => {
                self.counters.unread[fault as usize] += 1;
                Found::default()
            }
        };
        let mut packet = walk.packet(frame, icmp_ports);
        if let Some(port) = found.destination_port {
            let [a, b] = packet.tuple.source_port().to_be_bytes();
            let [c, d] = port.to_be_bytes();
            packet.tuple = walk.ip.tuple(frame.bytes, [a, b, c, d]);
        }
        fill(values, walk, &packet);
        if let Some(length) = values.get(Input::PayloadLength) {
            let without = length.saturating_sub(found.stack_bytes.into());
            values.set(Input::PayloadLength, without);
        }
        if let Some(hops) = found.hops.filter(|hops| hops.count > 0) {
            self.counters.read += 1;
            self.counters.incomplete += u64::from(hops.is_incomplete);
            self.set(&hops, values);
        }
        packet
    }

    fn set(&self, hops: &Hops, values: &mut InputValues) {
        for (input, value) in [
            (Input::EgressInterface, hops.egress_interface()),
            (Input::QueueDepth, hops.queue_depth),
            (Input::HopLatency, hops.latency_ns()),
            (Input::Path, hops.path()),
            (Input::HopCount, Some(hops.count)),
        ] {
            if let Some(value) = value.filter(|_| self.wanted.contains(input)) {
                values.set(input, value);
            }
        }
    }

    /// The telemetry of a packet, or of the packet inside a report.
    fn find(&mut self, frame: &Frame<'_>, walk: &mut Walk) -> Result<Found, TelemetryFault> {
        if !self.is_to(self.report_port, frame, walk) {
            return self.in_packet(frame, walk);
        }
        let report = report::read(frame, walk)?;
        self.counters.reports_skipped += u64::from(report.has_more);
        let mut found = self.in_packet(frame, walk)?;
        if let Some(hop) = &report.hop {
            found.hops.get_or_insert_default().add(hop);
        }
        Ok(found)
    }

    fn in_packet(&self, frame: &Frame<'_>, walk: &mut Walk) -> Result<Found, TelemetryFault> {
        let mut found = Found::default();
        if walk.ip.is_later_fragment() {
            return Ok(found);
        }
        found.hops = ioam::read(frame.bytes, &walk.ip)?;
        if self.is_to(self.int_port, frame, walk) {
            let bytes = walk.transport(frame);
            let stack = int::behind(bytes, 8, int::Mark::Port)?;
            match stack.next {
                int::Next::Payload => {}
                int::Next::UdpPayload(port) => found.destination_port = Some(port),
                int::Next::Transport(original) => {
                    walk.ip.protocol = original;
                    walk.ip.transport += 8 + stack.bytes as usize;
                }
            }
            found.take(stack, int::Next::is_payload);
        } else if self.dscp.matches(walk.ip.tos) {
            let bytes = walk.transport(frame);
            if let Some(stack) = int::behind_header(walk.ip.protocol, bytes)? {
                found.take(stack, |_| true);
            }
        }
        Ok(found)
    }

    /// Whether the walk ended at a UDP header to that port.
    fn is_to(&self, port: u32, frame: &Frame<'_>, walk: &Walk) -> bool {
        port != NO_PORT
            && walk.ip.protocol == protocol::UDP
            && crate::bytes::u16_at(walk.transport(frame), 2).map(u32::from) == Some(port)
    }
}

impl Found {
    fn take(&mut self, stack: int::Stack, counts_as_payload: impl Fn(&int::Next) -> bool) {
        if counts_as_payload(&stack.next) {
            self.stack_bytes = stack.bytes;
        }
        self.hops = Some(stack.hops);
    }
}
