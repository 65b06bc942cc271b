// SPDX-License-Identifier: Apache-2.0
//! In-band telemetry: what the hops on a packet's path wrote into it, as `docs/telemetry.md`
//! specifies.
//!
//! ```text
//! mark of INT ─▶ int ──┐
//! IPv6 option ─▶ ioam ─┼─▶ Hops: one hop after the other, first hop first ─▶ inputs
//! report port ─▶ report┘
//! ```
//!
//! Nothing here rejects a packet. Telemetry that cannot be read leaves its inputs absent, and is
//! counted with its reason. It affects neither the packet's flow nor telemetry of another kind.

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
use hops::{Hop, Hops};

/// The inputs that in-band telemetry provides.
pub const TELEMETRY_INPUTS: InputSet = InputSet::of(&[
    Input::EgressInterface,
    Input::QueueDepth,
    Input::HopLatency,
    Input::Path,
    Input::HopCount,
]);

const UDP_BYTES: usize = 8;
/// A value that no UDP port has. It stands for a port that is not configured.
const NO_PORT: u32 = u32::MAX;

/// Reads in-band telemetry. A parser has one only if its definition needs it.
pub(crate) struct Telemetry {
    wanted: InputSet,
    dscp: DscpMark,
    int_port: u32,
    report_port: u32,
    pub(crate) counters: TelemetryCounters,
}

/// What telemetry changes in a packet.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    /// What the hops wrote, if it could be read.
    hops: Option<Hops>,
    /// Why some telemetry could not be read.
    fault: Option<TelemetryFault>,
    /// Whether hops may have written into the first fragment of this packet instead.
    is_elsewhere: bool,
    /// The destination port that INT replaced.
    destination_port: Option<u16>,
    /// Bytes of INT between the transport header and the payload.
    stack_bytes: u32,
}

impl Telemetry {
    /// A reader for the wanted inputs. `None` if telemetry provides none of them.
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

    /// Whether a plain packet is marked as one with telemetry. Plain packets never have IOAM.
    #[inline(always)]
    pub(crate) fn is_marked(&self, packet: &Packet) -> bool {
        let is_udp = packet.tuple.protocol() == protocol::UDP;
        let port = u32::from(packet.tuple.destination_port());
        self.dscp.matches(packet.tos)
            || is_udp && (port == self.int_port || port == self.report_port)
    }

    /// Reads the telemetry of a packet. The walk continues to the packet that the telemetry is
    /// about: after the headers that INT added, or inside a report.
    ///
    /// Returns that packet. Sets its inputs by `fill`, and then those of telemetry.
    pub(crate) fn read(
        &mut self,
        frame: &Frame<'_>,
        walk: &mut Walk,
        icmp_ports: bool,
        values: &mut InputValues,
        fill: impl FnOnce(&mut InputValues, &Walk, &Packet),
    ) -> Packet {
        let found = self.find(frame, walk);
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
        let hops = found.hops.filter(|hops| hops.count > 0);
        self.count(found.fault, hops.as_ref());
        if let Some(hops) = &hops {
            self.set(hops, values);
        }
        packet
    }

    /// Counts one outcome per packet. If anything could not be read, that is the outcome.
    fn count(&mut self, fault: Option<TelemetryFault>, hops: Option<&Hops>) {
        match (fault, hops) {
            (Some(fault), _) => self.counters.unread[fault as usize] += 1,
            (None, Some(hops)) => {
                self.counters.read += 1;
                self.counters.incomplete += u64::from(hops.is_incomplete);
            }
            (None, None) => {}
        }
    }

    fn set(&self, hops: &Hops, values: &mut InputValues) {
        for (input, value) in [
            (Input::EgressInterface, hops.egress_interface()),
            (Input::QueueDepth, hops.queue_depth),
            (Input::HopLatency, hops.latency_ns()),
            (Input::Path, hops.path()),
            (Input::HopCount, hops.hop_count()),
        ] {
            if let Some(value) = value.filter(|_| self.wanted.contains(input)) {
                values.set(input, value);
            }
        }
    }

    /// The telemetry of a packet, or of the packet inside a report.
    fn find(&mut self, frame: &Frame<'_>, walk: &mut Walk) -> Found {
        let report = match self.is_to(self.report_port, frame, walk) {
            true => report::read(frame, walk).map(Some),
            false => Ok(None),
        };
        // A report that cannot be read is an ordinary packet.
        let mut found = self.in_packet(frame, walk);
        match report {
            Ok(None) => {}
            Ok(Some(report)) => {
                self.counters.reports_skipped += u64::from(report.has_more);
                if let Some(hop) = &report.hop {
                    found.add_reported(hop);
                }
            }
            Err(fault) => found.fault = Some(fault),
        }
        found
    }

    fn in_packet(&self, frame: &Frame<'_>, walk: &mut Walk) -> Found {
        let mut found = Found::default();
        match ioam::read(frame.bytes, &walk.ip) {
            Ok(hops) => found.hops = hops,
            Err(fault) => found.fault = Some(fault),
        }
        if walk.ip.is_later_fragment() {
            found.is_elsewhere = self.may_have_int(walk);
            return found;
        }
        match self.int(frame, walk) {
            Ok(Some(stack)) => found.take(&stack, walk),
            Ok(None) => {}
            Err(fault) => found.fail(fault),
        }
        found
    }

    /// INT after the transport header, if the packet is marked.
    fn int(&self, frame: &Frame<'_>, walk: &Walk) -> Result<Option<int::Stack>, TelemetryFault> {
        let bytes = walk.transport(frame);
        if self.is_to(self.int_port, frame, walk) {
            int::behind(bytes, UDP_BYTES, int::Mark::Port).map(Some)
        } else if self.dscp.matches(walk.ip.tos) {
            int::behind_header(walk.ip.protocol, bytes)
        } else {
            Ok(None)
        }
    }

    /// Whether the first fragment of this later fragment may be marked. Only the first has the
    /// ports.
    fn may_have_int(&self, walk: &Walk) -> bool {
        let by_port = self.int_port != NO_PORT && walk.ip.protocol == protocol::UDP;
        by_port || self.dscp.matches(walk.ip.tos)
    }

    /// Whether the walk ended at a UDP header to this port. A later fragment has no UDP header.
    fn is_to(&self, port: u32, frame: &Frame<'_>, walk: &Walk) -> bool {
        port != NO_PORT
            && walk.ip.protocol == protocol::UDP
            && crate::bytes::u16_at(walk.transport(frame), 2).map(u32::from) == Some(port)
    }
}

impl Found {
    /// Takes INT after a shim. The walk continues to the original transport header.
    fn take(&mut self, stack: &int::Stack, walk: &mut Walk) {
        match stack.next {
            int::Next::Payload => self.stack_bytes = stack.bytes,
            int::Next::UdpPayload(port) => {
                self.destination_port = Some(port);
                self.stack_bytes = stack.bytes;
            }
            int::Next::Transport(original) => {
                walk.ip.protocol = original;
                walk.ip.transport += UDP_BYTES + stack.bytes as usize;
            }
        }
        match stack.hops {
            // If no hop has written to the INT header, the hops of IOAM are kept.
            Ok(hops) if hops.count > 0 || self.hops.is_none() => self.hops = Some(hops),
            Ok(_) => {}
            Err(fault) => self.fail(fault),
        }
    }

    /// Notes a fault. If there are several, the first is counted.
    fn fail(&mut self, fault: TelemetryFault) {
        self.fault.get_or_insert(fault);
    }

    /// Adds the node that reports, as the last one on the path.
    fn add_reported(&mut self, hop: &Hop) {
        // With reports, packets need not contain hops: INT-MX leaves none in them.
        if self.fault == Some(TelemetryFault::NotTelemetry) {
            self.fault = None;
        }
        let has_hops = self.hops.is_some_and(|hops| hops.count > 0);
        let hops = self.hops.get_or_insert_default();
        hops.has_unread = !has_hops && (self.fault.is_some() || self.is_elsewhere);
        hops.add(hop);
    }
}
