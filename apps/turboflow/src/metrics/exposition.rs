// SPDX-License-Identifier: Apache-2.0
//! `/metrics`: Prometheus's text format, version 0.0.4. Names are those of the ledger.

use std::fmt::Write;

use crate::bridge::{RuleCount, Told};
use turboflow_engine::{OwnCount, PortState};
use turboflow_formats::SendSnapshot;
use turboflow_run::{InspectionCounts, Ledger, LiveSnapshot, TelemetryCounts};

pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Name without `turboflow_` and `_total`, help text, value.
type Metric = (&'static str, &'static str, fn(&Ledger) -> u64);

const COUNTERS: [Metric; 28] = [
    (
        "packets_received",
        "Packets received: metered, or counted by reason",
        |l| l.packets_received,
    ),
    (
        "bytes_received",
        "Wire bytes of the packets received",
        |l| l.bytes_received,
    ),
    (
        "packets_recorded",
        "Packets in exported flow records",
        |l| l.packets_recorded,
    ),
    ("bytes_recorded", "IP bytes in exported flow records", |l| {
        l.bytes_recorded
    }),
    ("bytes_metered", "IP bytes of all metered packets", |l| {
        l.bytes_metered
    }),
    (
        "frame_bytes_metered",
        "Wire bytes of all metered packets",
        |l| l.frame_bytes_metered,
    ),
    ("packets_non_ip", "Frames that carry no IP", |l| {
        l.packets_non_ip
    }),
    (
        "bytes_non_ip",
        "Wire bytes of frames that carry no IP",
        |l| l.bytes_non_ip,
    ),
    (
        "packets_malformed",
        "Frames with an invalid or incompletely captured IP header",
        |l| l.packets_malformed,
    ),
    ("bytes_malformed", "Wire bytes of malformed frames", |l| {
        l.bytes_malformed
    }),
    (
        "packets_truncated",
        "Frames cut before their headers end",
        |l| l.packets_truncated,
    ),
    ("bytes_truncated", "Wire bytes of truncated frames", |l| {
        l.bytes_truncated
    }),
    ("packets_filtered", "Frames excluded by the filter", |l| {
        l.packets_filtered
    }),
    ("bytes_filtered", "Wire bytes of filtered frames", |l| {
        l.bytes_filtered
    }),
    (
        "packets_unknown_link_type",
        "Frames of unsupported link types",
        |l| l.packets_unknown_link_type,
    ),
    (
        "bytes_unknown_link_type",
        "Wire bytes of frames of unknown link types",
        |l| l.bytes_unknown_link_type,
    ),
    (
        "source_seen",
        "Packets that the kernel saw and the filter passed",
        |l| l.source_seen,
    ),
    (
        "source_dropped",
        "Packets dropped because the ring was full",
        |l| l.source_dropped,
    ),
    (
        "packets_longer_than_frame",
        "Packets that declare more bytes than their frame has",
        |l| l.packets_longer_than_frame,
    ),
    (
        "packets_without_time",
        "Packets without a time in the capture file",
        |l| l.packets_without_time,
    ),
    (
        "packets_time_clamped",
        "Packets of a capture file before 1970 or after 2554",
        |l| l.packets_time_clamped,
    ),
    ("clock_steps", "Times the clock was set back", |l| {
        l.clock_steps
    }),
    ("microflows_merged", "Microflow records merged", |l| {
        l.microflows_merged
    }),
    (
        "microflows_dropped",
        "Microflow records lost before merging",
        |l| l.microflows_dropped,
    ),
    ("flows_opened", "Flows opened", |l| l.flows_opened),
    (
        "growths_refused",
        "Times that the system refused memory for a larger flow cache",
        |l| l.growths_refused,
    ),
    (
        "records_written",
        "Flow records in complete files, read from streams or sent to collectors, over all outputs",
        |l| l.records_written,
    ),
    (
        "records_dropped",
        "Flow records that could not be written, over all outputs",
        |l| l.records_dropped,
    ),
];

const GAUGES: [Metric; 6] = [
    (
        "source_unread",
        "Packets that wait in the kernel's rings",
        |l| l.source_unread,
    ),
    (
        "packets_resident",
        "Metered packets in no flow record yet",
        |l| l.packets_resident,
    ),
    (
        "microflows_resident",
        "Microflow records that wait to be merged",
        |l| l.microflows_resident,
    ),
    ("flows_resident", "Flows open", |l| l.flows_resident),
    ("flows_peak", "Most flows open at once", |l| l.flows_peak),
    (
        "ledger_imbalances",
        "Sums of the ledger that differ: 0, or a bug",
        |l| l.imbalances().len() as u64,
    ),
];

/// Name without `turboflow_collector_`, type, help text, value.
type SendMetric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&SendSnapshot) -> u64,
);

/// Metrics of collectors.
const SENDING: [SendMetric; 8] = [
    (
        "up",
        "gauge",
        "1 while connected; over UDP, unless the collector is reported unreachable",
        |s| u64::from(s.is_up),
    ),
    ("records_sent_total", "counter", "Flow records sent", |s| {
        s.records_sent
    }),
    (
        "records_in_flight",
        "gauge",
        "Flow records on a connection, not yet known to have arrived",
        |s| s.records_in_flight,
    ),
    (
        "records_lost_total",
        "counter",
        "Flow records that could not be sent",
        |s| s.records_lost,
    ),
    ("messages_total", "counter", "Messages sent", |s| s.messages),
    ("bytes_total", "counter", "Bytes of messages sent", |s| {
        s.bytes
    }),
    (
        "connections_total",
        "counter",
        "Connections made; over UDP, addresses sent to",
        |s| s.connections,
    ),
    ("queue_bytes", "gauge", "Bytes that wait to be sent", |s| {
        s.queue_bytes
    }),
];

struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.0 += &format!("# HELP turboflow_{name} {help}\n# TYPE turboflow_{name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        let labels: Vec<_> = labels
            .iter()
            .map(|(label, text)| format!("{label}=\"{}\"", escaped(text)))
            .collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let written = writeln!(self.0, "turboflow_{name}{labels} {value}");
        debug_assert!(written.is_ok(), "a string takes everything");
    }

    fn family<'a>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        samples: impl Iterator<Item = (Vec<(&'a str, &'a str)>, u64)>,
    ) {
        self.head(name, kind, help);
        for (labels, value) in samples {
            self.sample(name, &labels, value);
        }
    }

    /// Counters that differ in the value of one label.
    fn counters_by<const N: usize>(
        &mut self,
        label: &str,
        name: &str,
        help: &str,
        counts: [(&str, u64); N],
    ) {
        let samples = counts.into_iter();
        let samples = samples.map(|(value, count)| (vec![(label, value)], count));
        self.family(name, "counter", help, samples);
    }
}

/// Escapes the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

/// The whole page.
pub(super) fn render(snapshot: &LiveSnapshot, bridge: Option<&Told>) -> String {
    let mut page = Page(String::new());
    let ledger = &snapshot.ledger;
    page.head("build_info", "gauge", "The running version");
    page.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    for (name, help, value) in COUNTERS {
        let name = format!("{name}_total");
        page.head(&name, "counter", help);
        page.sample(&name, &[], value(ledger));
    }
    for (name, help, value) in GAUGES {
        page.head(name, "gauge", help);
        page.sample(name, &[], value(ledger));
    }
    reasons(&mut page, ledger);
    if let Some(inspection) = &ledger.inspection {
        inspections(&mut page, inspection);
    }
    interfaces(&mut page, snapshot);
    own_counts(&mut page, &snapshot.own_counts);
    if let Some(told) = bridge {
        by_rule(&mut page, told);
    }
    let outputs = || snapshot.outputs.iter();
    let label = |name| vec![("output", name)];
    page.family(
        "output_records_total",
        "counter",
        "Flow records given to an output",
        outputs().map(|output| (label(output.name.as_str()), output.records)),
    );
    page.family(
        "output_records_overrun_total",
        "counter",
        "Flow records for which an output was too slow",
        outputs().map(|output| (label(output.name.as_str()), output.records_overrun)),
    );
    page.family(
        "output_failed",
        "gauge",
        "1 while an output takes no records",
        outputs().map(|output| (label(output.name.as_str()), u64::from(output.failed))),
    );
    for (name, kind, help, value) in SENDING {
        let collectors = outputs().filter_map(|output| {
            let sending = output.sending.as_ref()?;
            Some((label(output.name.as_str()), value(sending)))
        });
        page.family(&format!("collector_{name}"), kind, help, collectors);
    }
    page.0
}

/// Metrics of a run that finds the applications of flows.
fn inspections(page: &mut Page, counts: &InspectionCounts) {
    let packets = [
        ("inspected", counts.packets_inspected),
        ("late", counts.packets_late),
        ("lost", counts.packets_lost),
    ];
    page.counters_by(
        "outcome",
        "inspection_packets_total",
        "Packets that were to be inspected for applications, by outcome",
        packets,
    );
    let ended = [
        ("decided", counts.inspections_decided),
        ("gave_up", counts.inspections_gave_up),
        ("dropped", counts.inspections_dropped),
    ];
    page.counters_by(
        "outcome",
        "inspection_flows_total",
        "Flows whose inspection ended, by outcome",
        ended,
    );
    for (name, help, value) in [
        (
            "inspection_flows_opened_total",
            "Flows whose inspection began",
            counts.inspections_opened,
        ),
        (
            "inspection_restarts_total",
            "Times that the inspector was started again",
            counts.inspector_restarts,
        ),
        (
            "inspection_records_named_total",
            "Flow records with an application",
            counts.records_named,
        ),
    ] {
        page.head(name, "counter", help);
        page.sample(name, &[], value);
    }
}

/// Counters that only the engine of the run has.
fn own_counts(page: &mut Page, counts: &[OwnCount]) {
    for own in counts {
        let (after, kind) = match own.is_gauge {
            true => ("", "gauge"),
            false => ("_total", "counter"),
        };
        let name = format!("{}{after}", own.name);
        page.head(&name, kind, own.about);
        page.sample(&name, &[], own.count);
    }
}

/// What each rule of a bridge did.
fn by_rule(page: &mut Page, told: &Told) {
    fn labelled(rule: &RuleCount) -> Vec<(&str, &str)> {
        vec![("rule", rule.rule.as_str()), ("action", rule.action)]
    }
    let rules = || told.rules.iter();
    page.family(
        "rule_flows_total",
        "counter",
        "Flows that a rule of the bridge decided about",
        rules().map(|rule| (labelled(rule), rule.flows)),
    );
    page.family(
        "rule_packets_total",
        "counter",
        "Packets that a rule of the bridge decided about",
        rules().filter_map(|rule| Some((labelled(rule), rule.packets?.0))),
    );
    page.family(
        "rule_bytes_total",
        "counter",
        "IP bytes of these packets",
        rules().filter_map(|rule| Some((labelled(rule), rule.packets?.1))),
    );
}

/// Metrics of a run that reads in-band telemetry.
fn in_band(page: &mut Page, telemetry: &TelemetryCounts) {
    let unread = telemetry.unread.iter();
    let outcomes = [("read", telemetry.packets_read)].into_iter();
    page.family(
        "telemetry_packets_total",
        "counter",
        "Packets with in-band telemetry: read, or why not",
        outcomes
            .chain(unread.map(|unread| (unread.reason, unread.packets)))
            .map(|(outcome, packets)| (vec![("outcome", outcome)], packets)),
    );
    page.counters_by(
        "what",
        "telemetry_missing_total",
        "Packets whose telemetry lacks hops, and frames with further reports",
        [
            ("hops", telemetry.packets_incomplete),
            ("reports", telemetry.reports_skipped),
        ],
    );
}

/// Metrics with a reason as label.
fn reasons(page: &mut Page, ledger: &Ledger) {
    page.family(
        "rejected_total",
        "counter",
        "Frames in no flow, by reason; the counter of each class is their sum",
        ledger.rejected.iter().map(|rejected| {
            let labels = vec![("class", rejected.class), ("reason", rejected.reason)];
            (labels, rejected.packets)
        }),
    );
    if let Some(telemetry) = &ledger.telemetry {
        in_band(page, telemetry);
    }
    let exported = &ledger.flows_exported;
    let by_reason = [
        ("idle_timeout", exported.idle_timeout),
        ("active_timeout", exported.active_timeout),
        ("end_of_flow", exported.end_of_flow),
        ("forced_end", exported.forced_end),
        ("lack_of_resources", exported.lack_of_resources),
    ];
    page.counters_by(
        "reason",
        "flows_exported_total",
        "Flow records exported, by flowEndReason",
        by_reason,
    );
    let evicted = &ledger.microflows_evicted;
    let by_cause = [
        ("collision", evicted.collision),
        ("age", evicted.age),
        ("gap", evicted.cut),
        ("flush", evicted.flush),
        ("bypass", evicted.bypass),
    ];
    page.counters_by(
        "cause",
        "microflows_evicted_total",
        "Microflow records evicted by the engine, by cause",
        by_cause,
    );
}

fn interfaces(page: &mut Page, snapshot: &LiveSnapshot) {
    let all = || {
        snapshot
            .interfaces
            .iter()
            .map(|(name, counters, state)| (vec![("interface", name.as_str())], counters, state))
    };
    page.family(
        "interface_up",
        "gauge",
        "1 while the interface is up",
        all().map(|(labels, _, state)| (labels, u64::from(*state == PortState::Up))),
    );
    page.family(
        "interface_packets_seen_total",
        "counter",
        "Packets that the kernel saw and the filter passed",
        all().map(|(labels, counters, _)| (labels, counters.seen - counters.copies)),
    );
    page.family(
        "interface_packets_dropped_total",
        "counter",
        "Packets dropped because the ring was full",
        all().map(|(labels, counters, _)| (labels, counters.dropped)),
    );
    page.family(
        "interface_packets_merged_total",
        "counter",
        "Packets merged from several on the wire (GRO, LRO)",
        all().map(|(labels, counters, _)| (labels, counters.merged)),
    );
}

#[cfg(test)]
mod tests;
