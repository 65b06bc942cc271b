// SPDX-License-Identifier: Apache-2.0
//! The report of a run: its messages and its exit code.

use std::io;
use std::time::Duration;

use turboflow_capture::{OpenError, ReadError};
use turboflow_engine::{OwnCount, PortCounters, PortState};
use turboflow_formats::{ExportError, table};
use turboflow_run::{
    Imbalance, InspectionCounts, Ledger, OutputReport, PipelineConfig, RunReport, ShortFlows,
};

use super::captures_read::CapturesRead;
use super::inputs::is_stop;
use super::progress::rate;
use super::times::{ClockOf, say_wrong_times};
use super::unparsed::UnparsedReport;
use crate::engines::Closing;
use crate::exit::Outcome;
use crate::keys::Key;
use crate::log::say;
use crate::units::{counted, grouped};

/// The part of a report that only live runs have.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// Counters of the kernel, by interface.
    pub(super) interfaces: Vec<InterfaceReport>,
    failure: Option<io::Error>,
    /// Flows for which the engine lost microflow records. `None` if the engine cannot tell.
    pub(super) short: Option<ShortFlows>,
}

/// The packets of one interface.
#[derive(Debug)]
pub(super) struct InterfaceReport {
    pub(super) name: String,
    pub(super) packets_seen: u64,
    pub(super) packets_dropped: u64,
    pub(super) packets_delivered: u64,
    pub(super) packets_merged: u64,
    pub(super) ended_early: Option<EndedEarly>,
}

impl InterfaceReport {
    fn of((name, counters, state): (String, PortCounters, PortState)) -> Self {
        Self {
            name,
            packets_seen: counters.seen - counters.copies,
            packets_dropped: counters.dropped,
            packets_delivered: counters.delivered,
            packets_merged: counters.merged,
            ended_early: EndedEarly::of(state),
        }
    }
}

/// Why an interface stopped before the end of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedEarly {
    /// The engine was detached from it.
    Displaced,
    /// The connection of a probe ended before its final counters arrived.
    Disconnected,
    /// The interface was removed.
    Removed,
    /// A probe fell silent before its final counters arrived.
    Silent,
}

impl EndedEarly {
    /// The name in the ledger file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Displaced => "displaced",
            Self::Disconnected => "disconnected",
            Self::Removed => "removed",
            Self::Silent => "silent",
        }
    }

    const fn of(state: PortState) -> Option<Self> {
        match state {
            PortState::Displaced => Some(Self::Displaced),
            PortState::Disconnected => Some(Self::Disconnected),
            PortState::Gone => Some(Self::Removed),
            PortState::Silent => Some(Self::Silent),
            PortState::Down | PortState::Up => None,
        }
    }
}

/// A run that has ended.
pub(super) struct Report {
    pub(super) ledger: Ledger,
    pub(super) imbalances: Vec<Imbalance>,
    pub(super) damaged: Vec<ReadError>,
    /// Files that were skipped because they could not be metered.
    pub(super) passed_over: Vec<OpenError>,
    /// Packets that captures report lost.
    captures_dropped: u64,
    pub(super) outputs: Vec<OutputReport>,
    /// Whether a signal ended the run before the end of the input.
    pub(super) stopped: bool,
    /// Packets with a VLAN tag that the filter left out.
    pub(super) tagged_filtered: u64,
    pub(super) live: Option<Live>,
    /// Counters that only the engine of the run has.
    pub(super) own_counts: Vec<OwnCount>,
    /// The file for frames that are not packets, if there is one.
    pub(super) unparsed: Option<UnparsedReport>,
    /// Whether the run sent its microflow records instead of merging them.
    pub(super) is_probe: bool,
    /// What the engine reports at its end.
    pub(super) closing: Closing,
    /// Whose clock gave the packets their times.
    pub(super) clock: ClockOf,
    ledger_failure: Option<io::Error>,
}

/// Maximum number of EtherTypes that the closing line names.
const MOST_ETHER_TYPES: usize = 3;

impl Report {
    pub(super) fn of(ran: RunReport) -> Self {
        let RunReport {
            ledger,
            mut damaged,
            captures_dropped,
            stopped,
            tagged_filtered,
            ports,
            own_counts,
            failure,
            short,
            outputs,
            ..
        } = ran;
        // If a signal ended the reading of a pipe, the pipe is not damaged. If the reader of
        // standard output closed it, nothing was lost.
        let interrupted = damaged.iter().any(is_stop);
        damaged.retain(|error| !is_stop(error));
        let satisfied = outputs.iter().any(went_away);
        let live = ledger.is_live.then(|| Live {
            interfaces: ports.into_iter().map(InterfaceReport::of).collect(),
            failure,
            short,
        });
        Self {
            imbalances: ledger.imbalances_at_the_end(),
            clock: match ledger.is_live {
                true => ClockOf::ThisMachine,
                false => ClockOf::Captures,
            },
            ledger,
            damaged,
            passed_over: Vec::new(),
            captures_dropped,
            stopped: (stopped || interrupted) && !satisfied,
            tagged_filtered,
            outputs,
            live,
            own_counts,
            unparsed: None,
            is_probe: false,
            closing: Closing::default(),
            ledger_failure: None,
        }
    }

    /// The error that ended the run before the end of the input.
    pub(super) fn failure(&self) -> Option<&io::Error> {
        self.live.as_ref()?.failure.as_ref()
    }

    /// Adds what an engine that reads captures itself found in them.
    pub(super) fn add_captures(&mut self, read: &CapturesRead) {
        self.damaged.append(&mut read.take_damages());
    }

    /// Records the failure to write the ledger, if there was one.
    pub(super) fn ledger_failed(&mut self, written: io::Result<()>) {
        self.ledger_failure = written.err();
    }

    pub(super) fn outcome(&self) -> Outcome {
        let lossy = !self.damaged.is_empty()
            || !self.passed_over.is_empty()
            || !self.imbalances.is_empty()
            || self.stopped
            || self.ledger.packets_unknown_link_type > 0
            || self.ledger.packets_time_clamped > 0
            || self.live.as_ref().is_some_and(Live::is_lossy)
            || self.packets_dropped_on_shared_path() > 0
            || self.ledger.microflows_dropped > 0
            || self.unparsed.as_ref().is_some_and(UnparsedReport::is_lossy)
            || self
                .outputs
                .iter()
                .any(|output| output.records_overrun > 0 || failed(output))
            || self.ledger_failure.is_some();
        if lossy { Outcome::Lossy } else { Outcome::Well }
    }

    /// The summary of the run, in one paragraph.
    pub(super) fn paragraph(&self, elapsed: Duration) -> String {
        let ledger = &self.ledger;
        let mut words = format!(
            "{} ({}) in {:.2} s, {}/s: {} recorded in {}",
            counted(ledger.packets_received, "packet"),
            table::bytes(ledger.bytes_received),
            elapsed.as_secs_f64(),
            table::count(rate(ledger.packets_received, elapsed)),
            grouped(ledger.packets_recorded),
            match self.is_probe {
                true => counted(ledger.microflows_merged, "microflow record"),
                false => counted(ledger.flows_exported.total(), "flow record"),
            },
        );
        let refused = [
            (ledger.packets_non_ip, "not IP"),
            (ledger.packets_malformed, "malformed"),
            (ledger.packets_truncated, "truncated"),
            (ledger.packets_filtered, "left out by the filter"),
            (ledger.packets_unknown_link_type, "of unknown link types"),
        ];
        for (packets, what) in refused.into_iter().filter(|(packets, _)| *packets > 0) {
            words += &format!(", {} {what}", grouped(packets));
        }
        let unread = ledger.unread_ether_types.iter().take(MOST_ETHER_TYPES);
        let unread: Vec<String> = unread
            .map(|unread| format!("{} {}", grouped(unread.packets), unread.ether_type))
            .collect();
        if !unread.is_empty() {
            words += &format!("; EtherTypes not read: {}", unread.join(", "));
        }
        if let Some(telemetry) = &ledger.telemetry
            && telemetry.packets_unread() > 0
        {
            let reasons = telemetry.unread.iter();
            let reasons: Vec<String> = reasons
                .map(|unread| format!("{} {}", grouped(unread.packets), unread.reason))
                .collect();
            words += &format!("; in-band telemetry not read: {}", reasons.join(", "));
        }
        if ledger.packets_longer_than_frame > 0 {
            let packets = counted(ledger.packets_longer_than_frame, "packet");
            words += &format!("; {packets} longer than their frame");
        }
        if self.captures_dropped > 0 {
            let lost = counted(self.captures_dropped, "packet");
            words += &format!("; the capture reports {lost} lost");
        }
        if ledger.source_dropped > self.captures_dropped {
            let lost = counted(ledger.source_dropped - self.captures_dropped, "packet");
            words += &format!("; {lost} lost");
        }
        words.extend(self.outputs.iter().filter_map(words_of_output));
        if let Some(unparsed) = &self.unparsed {
            words += &unparsed.words();
        }
        let is_any_lost = ledger.source_dropped > 0
            || ledger.microflows_dropped > 0
            || !self.closing.missing.is_empty();
        let whole = match (self.closing.accounted_for, is_any_lost) {
            (Some(what), _) => what,
            (None, false) => "every packet",
            (None, true) => "every other packet",
        };
        if self.imbalances.is_empty() {
            words += &format!("; {whole} is accounted for");
        }
        words
    }

    /// Reports the end of the run.
    pub(super) fn say_finished(&self, elapsed: Duration) {
        let ledger = &self.ledger;
        say!(Info Finished,
            seconds = elapsed.as_secs_f64(),
            packets_received = ledger.packets_received,
            bytes_received = ledger.bytes_received,
            packets_recorded = ledger.packets_recorded,
            source_dropped = ledger.source_dropped,
            flows_exported = ledger.flows_exported.total();
            "{}", self.paragraph(elapsed));
    }

    /// Logs what was damaged or lost, and the remedy.
    ///
    /// `why_records_are_lost`: the reason for losses between engine and process, and the remedy.
    ///
    /// `why_frames_are_lost`: the reason for losses at a port that the kernel did not cause, and
    /// the remedy.
    pub(super) fn say_losses(
        &self,
        config: &PipelineConfig,
        why_records_are_lost: &str,
        why_frames_are_lost: Option<&str>,
    ) {
        for error in &self.passed_over {
            say!(Error CapturePassedOver; "skipped: {error}");
        }
        for error in &self.damaged {
            say!(Error CaptureDamaged; "{error}");
        }
        let ledger = &self.ledger;
        if let Some(live) = &self.live {
            live.say_losses(ledger.source_unread, why_frames_are_lost);
        }
        self.say_dropped_on_shared_path(why_records_are_lost);
        if ledger.packets_unknown_link_type > 0 {
            let packets = counted(ledger.packets_unknown_link_type, "packet");
            let bytes = table::bytes(ledger.bytes_unknown_link_type);
            say!(Error UnknownLinkType, packets = ledger.packets_unknown_link_type;
                "{packets} ({bytes}) of interfaces whose link type turboflow does not \
                 read are in no flow; it reads Ethernet, Linux cooked v1 and v2, BSD loopback, raw \
                 IP and PPP"
            );
        }
        for output in &self.outputs {
            match &output.outcome {
                Err(error) if !matches!(error, ExportError::BrokenPipe) => {
                    // `NotSent` itself states how many records are missing.
                    let dropped = match error {
                        ExportError::NotSent { .. } => String::new(),
                        _ => format!(
                            "; {} not written",
                            counted(output.records_dropped, "record")
                        ),
                    };
                    say!(Error OutputFailed, output = output.name.as_str(),
                        records_dropped = output.records_dropped; "{error}{dropped}");
                }
                _ => {}
            }
            if output.records_overrun > 0 {
                let (name, records) = (&output.name, counted(output.records_overrun, "record"));
                say!(Error OutputOverrun, output = name.as_str(), records = output.records_overrun;
                    "{name} could not keep up: {records} not written");
            }
        }
        if let Some(unparsed) = &self.unparsed {
            unparsed.say_losses();
        }
        if let Some(error) = &self.ledger_failure {
            say!(Error LedgerFailed; "cannot write the ledger: {error}");
        }
        if self.stopped {
            say!(Error Stopped; "stopped by a signal: the input was not read to its end");
        }
        self.warn_of_full_tables(config);
        if let Some(inspection) = &ledger.inspection {
            warn_of_missing_names(inspection);
        }
        say_wrong_times(ledger, config, self.clock);
        self.report_bug();
    }

    /// Explains how filters treat VLAN tags, if the filter left out tagged packets and does not
    /// mention them.
    pub(super) fn say_tagged(&self, filter: &str) {
        if self.tagged_filtered > 0 && !filter.contains("vlan") {
            say!(Info TagsFiltered, packets = self.tagged_filtered;
                "the filter left out {} with a VLAN tag; a filter on addresses, protocols or \
                 ports matches tagged packets only after `vlan`: '({filter}) or (vlan and \
                 ({filter}))' matches packets with and without a tag",
                counted(self.tagged_filtered, "packet"));
        }
    }

    /// Packets in microflow records that an engine could not deliver. All its ports share one path
    /// to this process.
    fn packets_dropped_on_shared_path(&self) -> u64 {
        let Some(live) = &self.live else { return 0 };
        let of_one = live.interfaces.iter().map(|seen| seen.packets_dropped);
        let elsewhere = of_one.sum::<u64>() + self.captures_dropped;
        self.ledger.source_dropped.saturating_sub(elsewhere)
    }

    fn say_dropped_on_shared_path(&self, why: &str) {
        let (ledger, packets) = (&self.ledger, self.packets_dropped_on_shared_path());
        if let Some(lost) = &self.closing.records_lost {
            for words in lost {
                say!(Error PacketsDropped, microflows = ledger.microflows_dropped; "{words}");
            }
        } else if packets > 0 {
            let share = packets as f64 * 100.0 / ledger.source_seen.max(1) as f64;
            // An engine that ended too early may not have said how many records these were.
            let records = match ledger.microflows_dropped {
                0 => "records".to_owned(),
                records => counted(records, "record"),
            };
            say!(Error PacketsDropped, packets = packets, microflows = ledger.microflows_dropped;
                "{records} with {} of {} ({share:.2} %) were lost on the way to this process{}: {why}",
                grouped(packets),
                counted(ledger.source_seen, "packet"),
                self.short_flows(),
            );
        } else if ledger.microflows_dropped > 0 {
            say!(Error PacketsDropped, packets = 0, microflows = ledger.microflows_dropped;
                "{}, with an unknown number of packets, were lost on the way to this process: \
                 {why}",
                counted(ledger.microflows_dropped, "record"),
            );
        }
    }

    /// How many flows lack records, as the end of a sentence. Empty if unknown.
    fn short_flows(&self) -> String {
        let Some(short) = self.live.as_ref().and_then(|live| live.short.as_ref()) else {
            return String::new();
        };
        let named = short.microflows.len() as u64;
        let (flows, ledger) = (counted(named, "flow"), Key::Ledger.with("FILE"));
        let are = if named == 1 { "is" } else { "are" };
        match short.microflows_unnamed {
            _ if named == 0 => String::new(),
            0 => format!(" ({flows} {are} incomplete: {ledger} lists them)"),
            _ => format!(" (more than {flows} are incomplete; {ledger} lists only these)"),
        }
    }

    fn warn_of_full_tables(&self, config: &PipelineConfig) {
        let early = self.ledger.flows_exported.lack_of_resources;
        if self.ledger.growths_refused > 0 {
            say!(Warning MemoryRefused, flows = early, flows_peak = self.ledger.flows_peak;
                "the system refused memory for more than {} at once: {} ended early (end reason \
                 5); nothing is lost, but flows are cut. Raise the limit on memory, or lower {}",
                counted(self.ledger.flows_peak, "open flow"),
                counted(early, "flow record"),
                Key::MaxFlows,
            );
        } else if early > 0 {
            say!(Warning FlowsLeftEarly, flows = early;
                "{} ended early (end reason 5): more than {} were open; \
                 nothing is lost, but flows are cut. Raise {}, or lower {}",
                counted(early, "flow record"),
                counted(config.max_flows as u64, "flow"),
                Key::MaxFlows,
                Key::IdleTimeout,
            );
        }
    }

    fn report_bug(&self) {
        if self.imbalances.is_empty() {
            return;
        }
        let lines = self.imbalances.iter().map(|line| format!("\n  {line}"));
        say!(Error LedgerImbalance;
            "the ledger does not balance. This is a bug in turboflow, please report it\n\
             with the command line, the version ({}) and these lines:{}",
            env!("CARGO_PKG_VERSION"),
            lines.collect::<String>(),
        );
    }
}

impl Live {
    pub(super) fn is_lossy(&self) -> bool {
        let dropped = self.interfaces.iter().any(|seen| seen.packets_dropped > 0);
        let ended_early = self
            .interfaces
            .iter()
            .any(|seen| seen.ended_early.is_some());
        dropped || ended_early || self.failure.is_some()
    }

    fn say_losses(&self, unread: u64, why_frames_are_lost: Option<&str>) {
        for seen in &self.interfaces {
            let name = &seen.name;
            if seen.packets_dropped > 0 {
                let share = seen.packets_dropped as f64 * 100.0 / seen.packets_seen.max(1) as f64;
                let (lost, of) = (
                    grouped(seen.packets_dropped),
                    counted(seen.packets_seen, "packet"),
                );
                let what = match why_frames_are_lost {
                    Some(why) => format!("{lost} of {of} ({share:.2} %) {why}"),
                    None => format!(
                        "the kernel dropped {lost} of {of} ({share:.2} %), because the ring was \
                         full; raise {} or {}, or meter fewer packets with a filter",
                        Key::RingSize,
                        Key::Threads,
                    ),
                };
                say!(Error PacketsDropped, interface = name.as_str(), packets = seen.packets_dropped;
                    "{name}: {what}");
            }
            if seen.packets_merged > 0 {
                say!(Warning PacketsMerged, interface = name.as_str(), packets = seen.packets_merged;
                    "{name}: {} were merged from several on the wire by the \
                     kernel or the network card; packets are undercounted, and bytes lack the \
                     headers of the merged packets",
                    counted(seen.packets_merged, "packet"),
                );
            }
        }
        self.say_ended_early();
        self.say_failure(unread);
    }

    /// Reports why the run ended early, if it failed; `unread` packets are left in rings.
    pub(super) fn say_failure(&self, unread: u64) {
        let Some(error) = &self.failure else { return };
        let left = match unread {
            0 => String::new(),
            unread => format!("; {} left unread in the ring", counted(unread, "packet")),
        };
        say!(Error CaptureFailed; "ended early: {error}{left}");
    }

    /// Reports interfaces that stopped before the end of the run.
    pub(super) fn say_ended_early(&self) {
        for seen in &self.interfaces {
            let name = &seen.name;
            match seen.ended_early {
                Some(EndedEarly::Displaced) => {
                    say!(Error EngineDisplaced, interface = name.as_str();
                    "{name}: the engine was detached during the run")
                }
                Some(EndedEarly::Disconnected) => {
                    say!(Error ProbeUnheard, interface = name.as_str();
                    "{name}: its connection or file ended before its final counters arrived: what \
                     it lost is unknown, and so is what it did not send")
                }
                Some(EndedEarly::Silent) => say!(Error ProbeUnheard, interface = name.as_str();
                    "{name} fell silent before its final counters arrived: what it lost is \
                     unknown, and so is what it sent later"),
                Some(EndedEarly::Removed) => say!(Error InterfaceGone, interface = name.as_str();
                    "{name} was removed during the run"),
                None => {}
            }
        }
    }
}

/// Explains why flows may lack an application. All else in their records is correct.
fn warn_of_missing_names(inspection: &InspectionCounts) {
    let (restarts, lost) = (inspection.inspector_restarts, inspection.packets_lost);
    if restarts > 0 {
        say!(Warning InspectorRestarted, restarts = restarts;
            "the inspector ended and was started again {}: some flows lack their application, but \
             their counts are exact",
            counted(restarts, "time"));
    }
    if lost > 0 {
        say!(Warning PacketsNotInspected, packets = lost;
            "{} were not inspected, because the inspector was slow or gone: some flows lack their \
             application, but their counts are exact",
            counted(lost, "packet"));
    }
    let dropped = inspection.inspections_dropped;
    if dropped > 0 {
        say!(Warning InspectionsDropped, flows = dropped;
            "the inspection of {} ended early, to make room for newer flows or because memory was \
             short; raise {}",
            counted(dropped, "flow"), Key::DpiFlows);
    }
}

fn failed(output: &OutputReport) -> bool {
    output.outcome.is_err() && !went_away(output)
}

/// What an output lost, or its size, for the closing line.
fn words_of_output(output: &OutputReport) -> Option<String> {
    let (name, lost, bytes) = (&output.name, output.records_dropped, output.bytes_written());
    match lost {
        1.. if !went_away(output) => Some(format!("; {name}: {} lost", counted(lost, "record"))),
        _ if bytes > 0 => Some(format!("; {name} has {}", table::bytes(bytes))),
        _ => None,
    }
}

/// Whether the reader of a stream has closed it.
fn went_away(output: &OutputReport) -> bool {
    matches!(output.outcome, Err(ExportError::BrokenPipe))
}
