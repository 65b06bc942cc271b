// SPDX-License-Identifier: Apache-2.0
//! The ledger: accounts for every packet and every record. Its sums are checked after every run.

use std::fmt::{self, Display};

use serde::Serialize;
use turboflow_engine::{EngineCounters, Evicted};
use turboflow_packet::{TelemetryCounters, TelemetryFault};
use turboflow_record::{EndReason, RejectClass, Rejected};

use crate::front::FrontReport;
use crate::inspecting::InspectingCounters;
use crate::shard::ShardReport;

/// Frames that are in no flow for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReasonCount {
    /// The reason: [`Rejected::name`].
    pub reason: &'static str,
    /// `non_ip` or `malformed`.
    pub class: &'static str,
    /// Frames.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
}

/// Flow records that left the aggregator, by flowEndReason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// 1: no packet for the idle timeout.
    pub idle_timeout: u64,
    /// 2: the record would have lasted longer than the active timeout, or beyond the end of its
    /// window.
    pub active_timeout: u64,
    /// 3: FIN or RST.
    pub end_of_flow: u64,
    /// 4: end of input.
    pub forced_end: u64,
    /// 5: the flow cache was full.
    pub lack_of_resources: u64,
}

impl Exported {
    /// Records of all reasons.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.idle_timeout
            + self.active_timeout
            + self.end_of_flow
            + self.forced_end
            + self.lack_of_resources
    }
}

/// All counters of a run. Their names are the same for all engines and stages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ledger {
    /// Whether the kernel counts the packets that the source sees, so that [`Self::source_seen`]
    /// can be checked against the other counters.
    #[serde(skip)]
    pub is_live: bool,
    /// Frames that the source delivered, including those of unknown link types.
    pub packets_received: u64,
    /// Their bytes on the wire.
    pub bytes_received: u64,
    /// Packets in exported flow records.
    pub packets_recorded: u64,
    /// Bytes in exported flow records, as declared by the IP headers.
    pub bytes_recorded: u64,
    /// Packets that declare more bytes than their frame on the wire has. They are counted with the
    /// declared length.
    pub packets_longer_than_frame: u64,
    /// Bytes that the IP headers of all metered packets declared.
    pub bytes_metered: u64,
    /// Wire bytes of the frames of all metered packets.
    pub frame_bytes_metered: u64,
    /// Frames that do not carry IP.
    pub packets_non_ip: u64,
    /// Their bytes on the wire.
    pub bytes_non_ip: u64,
    /// Frames whose IP header is invalid or was not completely captured.
    pub packets_malformed: u64,
    /// Their bytes on the wire.
    pub bytes_malformed: u64,
    /// Frames that an engine could not read far enough to classify. The user-space parser always
    /// can: it counts a cut IP header as malformed and a cut link-layer header as non-IP.
    pub packets_truncated: u64,
    /// Their bytes on the wire.
    pub bytes_truncated: u64,
    /// Frames that the filter excluded.
    pub packets_filtered: u64,
    /// Their bytes on the wire.
    pub bytes_filtered: u64,
    /// Frames of interfaces whose link type is not supported.
    pub packets_unknown_link_type: u64,
    /// Their bytes on the wire.
    pub bytes_unknown_link_type: u64,
    /// Packets that the kernel saw at the interfaces and that passed the filter, or that a remote
    /// engine says it was given; 0 for captures that are metered in this process.
    pub source_seen: u64,
    /// Packets that the source lost before delivery, as far as it reports them.
    pub source_dropped: u64,
    /// Packets left in the kernel's ring: those beyond the packet limit of the run, or those that a
    /// failed run could not read.
    pub source_unread: u64,
    /// Metered packets that are in no flow record yet: in open flows, in the microflow table, or
    /// held fragments. 0 at the end of a run.
    pub packets_resident: u64,
    /// How many times the clock was set back.
    pub clock_steps: u64,
    /// Packets without a time in the capture file (pcapng Simple Packet Blocks). They get the time
    /// of the preceding packet.
    pub packets_without_time: u64,
    /// Packets whose time in the capture file is before 1970 or after 2554. They get the start of
    /// 1970, or the last time that a record can hold.
    pub packets_time_clamped: u64,
    /// Microflow records that the engine evicted.
    pub microflows_evicted: Evicted,
    /// Microflow records that the aggregator merged.
    pub microflows_merged: u64,
    /// Microflow records lost between engine and aggregator.
    pub microflows_dropped: u64,
    /// Microflow records evicted but not yet merged. 0 at the end of a run.
    pub microflows_resident: u64,
    /// Flows opened.
    pub flows_opened: u64,
    /// Flows open now. 0 at the end of a run.
    pub flows_resident: u64,
    /// Largest number of flows open at once (with threads: the sum over shards).
    pub flows_peak: u64,
    /// How often the system refused memory for a larger flow cache.
    pub growths_refused: u64,
    /// Flow records exported.
    pub flows_exported: Exported,
    /// Flow records written, counted once per output. During a run, these are the records in
    /// finished files, and those that readers of streams and collectors have received.
    pub records_written: u64,
    /// Flow records that an output could not write, counted once per output.
    pub records_dropped: u64,
    /// What happened to the packets that were to be inspected. `None` without inspection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inspection: Option<InspectionCounts>,
    /// What happened to the in-band telemetry of packets. `None` if the definition has no input of
    /// telemetry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<TelemetryCounts>,
    /// Frames in no flow, by reason. Reasons without frames are omitted.
    pub rejected: Vec<ReasonCount>,
    /// The most common EtherTypes among frames that are in no flow because their EtherType is not
    /// read, most frequent first. Empty for remote engines that do not report them.
    pub unread_ether_types: Vec<EtherTypeCount>,
}

/// Counters of in-band telemetry. They do not affect how packets are accounted for in the ledger:
/// if telemetry is not read, only its inputs are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TelemetryCounts {
    /// Packets whose telemetry was read.
    pub packets_read: u64,
    /// Packets among these whose telemetry says that hops are missing.
    pub packets_incomplete: u64,
    /// Frames with further reports after the first one. Those were not read.
    pub reports_skipped: u64,
    /// Packets whose telemetry was not read, by reason. Reasons without packets are omitted.
    pub unread: Vec<TelemetryUnread>,
}

/// Packets whose telemetry was not read for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TelemetryUnread {
    /// The reason: [`TelemetryFault::name`].
    pub reason: &'static str,
    /// Packets.
    pub packets: u64,
}

impl TelemetryCounts {
    fn new(counters: &TelemetryCounters) -> Self {
        let unread = TelemetryFault::ALL.into_iter().zip(counters.unread);
        let unread = unread.filter(|(_, packets)| *packets > 0);
        Self {
            packets_read: counters.read,
            packets_incomplete: counters.incomplete,
            reports_skipped: counters.reports_skipped,
            unread: unread
                .map(|(fault, packets)| TelemetryUnread {
                    reason: fault.name(),
                    packets,
                })
                .collect(),
        }
    }

    /// Packets whose telemetry was not read, for any reason.
    #[must_use]
    pub fn packets_unread(&self) -> u64 {
        self.unread.iter().map(|unread| unread.packets).sum()
    }
}

/// Counters of an inspection for applications. They do not affect how packets are accounted for in
/// the ledger: if a packet is not inspected, only names are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InspectionCounts {
    /// Packets that were to be inspected: the first ones of each flow.
    pub packets_tapped: u64,
    /// Packets among these that were inspected.
    pub packets_inspected: u64,
    /// Packets among these that arrived when the result for their flow was already final.
    pub packets_late: u64,
    /// Packets among these that were lost, because the inspector was slow or had ended.
    pub packets_lost: u64,
    /// Flows whose inspection began.
    pub inspections_opened: u64,
    /// Inspections among these that found the application in the payload.
    pub inspections_decided: u64,
    /// Inspections among these that did not find it, within the limit of packets or before the flow
    /// ended.
    pub inspections_gave_up: u64,
    /// Inspections among these that ended early, to make room for newer ones or because memory was
    /// short.
    pub inspections_dropped: u64,
    /// How often the inspector was restarted.
    pub inspector_restarts: u64,
    /// Flow records with an application.
    pub records_named: u64,
    /// Texts, such as server names, that were cut to 255 bytes.
    pub texts_cut: u64,
    /// Texts that records lack, because the table of texts had already dropped them.
    pub texts_missed: u64,
}

/// Frames of an EtherType that is not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EtherTypeCount {
    /// The EtherType, as in `0x88f7`.
    pub ether_type: String,
    /// Its frames.
    pub packets: u64,
}

/// Two sums of the ledger that differ but should be equal: a bug in TurboFlow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Imbalance {
    /// What is compared.
    pub what: &'static str,
    /// The sum that came in.
    pub left: u64,
    /// The sum that is accounted for.
    pub right: u64,
}

impl Display for Imbalance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, left, right } = self;
        write!(formatter, "{what}: {left} against {right}")
    }
}

/// The most EtherTypes that a ledger names.
const MOST_ETHER_TYPES: usize = 10;

impl Ledger {
    pub(crate) fn new(front: &FrontReport, shards: &ShardReport) -> Self {
        let mut ledger = Self {
            packets_received: front.frames,
            bytes_received: front.frame_bytes,
            packets_recorded: shards.packets_recorded,
            bytes_recorded: shards.bytes_recorded,
            packets_resident: shards.packets_in.saturating_sub(shards.packets_recorded)
                + front.held,
            packets_longer_than_frame: front.packets_longer_than_frame,
            bytes_metered: front.packet_bytes,
            frame_bytes_metered: front.packet_frame_bytes,
            clock_steps: front.clock_steps,
            microflows_evicted: shards.evicted,
            microflows_merged: shards.cache.microflows_merged,
            microflows_resident: shards.microflows_waiting,
            microflows_dropped: shards.microflows_dropped,
            flows_opened: shards.cache.flows_opened,
            flows_resident: shards.cache.flows_open,
            flows_peak: shards.cache.flows_peak,
            growths_refused: shards.cache.growths_refused,
            ..Self::default()
        };
        let exported = |reason: EndReason| shards.cache.flows_exported[reason as usize];
        ledger.flows_exported = Exported {
            idle_timeout: exported(EndReason::IdleTimeout),
            active_timeout: exported(EndReason::ActiveTimeout),
            end_of_flow: exported(EndReason::EndOfFlow),
            forced_end: exported(EndReason::ForcedEnd),
            lack_of_resources: exported(EndReason::LackOfResources),
        };
        ledger.inspection = front.inspection.map(
            |InspectingCounters {
                 inspected: counted,
                 texts,
             }| InspectionCounts {
                packets_tapped: counted.taps,
                packets_inspected: counted.packets_inspected,
                packets_late: counted.packets_late,
                packets_lost: counted.taps_lost,
                inspections_opened: counted.inspections_opened,
                inspections_decided: counted.inspections_decided,
                inspections_gave_up: counted.inspections_gave_up,
                inspections_dropped: counted.inspections_dropped,
                inspector_restarts: counted.restarts,
                records_named: shards.records_named,
                texts_cut: texts.cut,
                texts_missed: texts.missed,
            },
        );
        ledger.telemetry = front.telemetry.as_ref().map(TelemetryCounts::new);
        ledger.name_unread_ether_types(front.unread.commonest());
        for reason in Rejected::ALL {
            ledger.reject(
                reason,
                front.rejected[reason.index()],
                front.rejected_bytes[reason.index()],
            );
        }
        ledger
    }

    /// Names the EtherTypes that could not be read, and their frames, most frequent first.
    pub(crate) fn name_unread_ether_types(&mut self, unread: Vec<(u16, u64)>) {
        let counted = |(ether_type, packets)| EtherTypeCount {
            ether_type: format!("{ether_type:#06x}"),
            packets,
        };
        let unread = unread.into_iter().take(MOST_ETHER_TYPES);
        self.unread_ether_types = unread.map(counted).collect();
    }

    fn reject(&mut self, reason: Rejected, packets: u64, bytes: u64) {
        if packets == 0 {
            return;
        }
        let class = reason.class();
        let (class_packets, class_bytes) = match class {
            RejectClass::NonIp => (&mut self.packets_non_ip, &mut self.bytes_non_ip),
            RejectClass::Malformed => (&mut self.packets_malformed, &mut self.bytes_malformed),
            RejectClass::Held => unreachable!("held fragments are counted apart"),
        };
        *class_packets += packets;
        *class_bytes += bytes;
        let (reason, class) = (reason.name(), class.name());
        self.rejected.push(ReasonCount {
            reason,
            class,
            packets,
            bytes,
        });
    }

    /// Frames that are in no flow, for whatever reason.
    #[must_use]
    pub const fn packets_rejected(&self) -> u64 {
        self.packets_non_ip
            + self.packets_malformed
            + self.packets_truncated
            + self.packets_filtered
            + self.packets_unknown_link_type
    }

    /// Checks conservation: every packet and byte received is in a flow record or a counter, and no
    /// record was lost or duplicated.
    #[must_use]
    pub fn imbalances(&self) -> Vec<Imbalance> {
        let bytes_rejected = self.bytes_non_ip
            + self.bytes_malformed
            + self.bytes_truncated
            + self.bytes_filtered
            + self.bytes_unknown_link_type;
        let sides = [
            (
                "packets seen at the interfaces against received, dropped and unread",
                self.source_seen,
                if self.is_live {
                    self.packets_received + self.source_dropped + self.source_unread
                } else {
                    self.source_seen
                },
            ),
            (
                "packets received against recorded, resident and rejected",
                self.packets_received,
                self.packets_recorded + self.packets_resident + self.packets_rejected(),
            ),
            (
                "bytes received against metered and rejected",
                self.bytes_received,
                self.frame_bytes_metered + bytes_rejected,
            ),
            (
                "IP bytes metered against recorded",
                self.bytes_metered,
                // No counter includes the bytes of open flows.
                match self.packets_resident {
                    0 => self.bytes_recorded,
                    _ => self.bytes_metered.max(self.bytes_recorded),
                },
            ),
            (
                "microflow records evicted against merged and dropped",
                self.microflows_evicted.total(),
                self.microflows_merged + self.microflows_dropped + self.microflows_resident,
            ),
            (
                "flows opened against exported and resident",
                self.flows_opened,
                self.flows_exported.total() + self.flows_resident,
            ),
        ];
        let unequal = sides.into_iter().filter(|(_, left, right)| left != right);
        unequal
            .map(|(what, left, right)| Imbalance { what, left, right })
            .collect()
    }
}

impl Ledger {
    /// The counters that a probe sends to the host that merges its records.
    #[must_use]
    pub fn of_sender(&self) -> EngineCounters {
        let elsewhere = self.packets_filtered + self.packets_unknown_link_type;
        let bytes_elsewhere = self.bytes_filtered + self.bytes_unknown_link_type;
        let mut counters = EngineCounters {
            packets_received: self.packets_received - elsewhere,
            bytes_received: self.bytes_received - bytes_elsewhere,
            source_dropped: self.source_dropped,
            packets_metered: self.packets_recorded + self.packets_resident,
            bytes_metered: self.bytes_metered,
            packets_longer_than_frame: self.packets_longer_than_frame,
            evicted: self.microflows_evicted,
            microflows_dropped: self.microflows_dropped,
            microflows_unnamed: self.microflows_dropped,
            ..EngineCounters::default()
        };
        for rejected in &self.rejected {
            let reason = Rejected::ALL
                .into_iter()
                .find(|reason| reason.name() == rejected.reason);
            if let Some(at) = reason.map(Rejected::index) {
                counters.rejected_packets[at] = rejected.packets;
                counters.rejected_bytes[at] = rejected.bytes;
            }
        }
        counters
    }

    /// Checks [`Ledger::imbalances`], and that nothing is resident: for the end of a run.
    #[must_use]
    pub fn imbalances_at_the_end(&self) -> Vec<Imbalance> {
        let left = [
            (
                "packets that are in no record at the end",
                self.packets_resident,
            ),
            (
                "microflow records that were not merged",
                self.microflows_resident,
            ),
            ("flows that were not exported", self.flows_resident),
        ];
        let left = left.into_iter().filter(|(_, count)| *count > 0);
        let mut imbalances = self.imbalances();
        imbalances.extend(
            self.inspection
                .iter()
                .flat_map(InspectionCounts::imbalances),
        );
        imbalances.extend(left.map(|(what, left)| Imbalance {
            what,
            left,
            right: 0,
        }));
        imbalances
    }
}

impl InspectionCounts {
    /// Checks, at the end of a run, that every packet and every inspection has an outcome.
    fn imbalances(&self) -> impl Iterator<Item = Imbalance> {
        let sides = [
            (
                "packets to be inspected against inspected, late and lost",
                self.packets_tapped,
                self.packets_inspected + self.packets_late + self.packets_lost,
            ),
            (
                "inspections opened against decided, given up and dropped",
                self.inspections_opened,
                self.inspections_decided + self.inspections_gave_up + self.inspections_dropped,
            ),
        ];
        let unequal = sides.into_iter().filter(|(_, left, right)| left != right);
        unequal.map(|(what, left, right)| Imbalance { what, left, right })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_runs_are_checked_against_a_kernel_count_of_zero() {
        let files = Ledger {
            packets_received: 5,
            packets_non_ip: 5,
            source_dropped: 2,
            ..Ledger::default()
        };
        assert_eq!(files.imbalances(), []);
        let live = Ledger {
            is_live: true,
            ..files
        };
        let [imbalance] = live.imbalances()[..] else {
            panic!("{:?}", live.imbalances());
        };
        assert_eq!((imbalance.left, imbalance.right), (0, 7));
    }
}
