// SPDX-License-Identifier: Apache-2.0
//! What a run did, and what it did not: the words for it and the exit code.

use std::io;
use std::time::Duration;

use turboflow_capture::ReadError;
use turboflow_export::{ExportError, table};
use turboflow_pipeline::{FilesReport, Imbalance, Ledger, OutputReport, PipelineConfig};

use super::inputs::is_stop;
use super::progress::rate;
use crate::exit::{Outcome, say};
use crate::units::{counted, grouped};

/// A run that is over.
pub(super) struct Report {
    pub(super) ledger: Ledger,
    pub(super) imbalances: Vec<Imbalance>,
    pub(super) damaged: Vec<ReadError>,
    pub(super) outputs: Vec<OutputReport>,
    /// Whether a signal ended it before the end of the input.
    pub(super) stopped: bool,
    ledger_failure: Option<io::Error>,
}

impl Report {
    pub(super) fn new(ran: FilesReport) -> Self {
        let FilesReport {
            ledger,
            mut damaged,
            outputs,
            stopped,
        } = ran;
        // A pipe that a signal ended is cut, not damaged; and nobody lost anything where the
        // reader of standard output had enough.
        let interrupted = damaged.iter().any(is_stop);
        damaged.retain(|error| !is_stop(error));
        let satisfied = outputs.iter().any(went_away);
        Self {
            imbalances: ledger.imbalances(),
            ledger,
            damaged,
            stopped: (stopped || interrupted) && !satisfied,
            outputs,
            ledger_failure: None,
        }
    }

    /// Notes that the ledger could not be written, if so.
    pub(super) fn ledger_failed(&mut self, written: io::Result<()>) {
        self.ledger_failure = written.err();
    }

    pub(super) fn outcome(&self) -> Outcome {
        let lossy = !self.damaged.is_empty()
            || !self.imbalances.is_empty()
            || self.stopped
            || self.ledger.packets_unknown_link_type > 0
            || self
                .outputs
                .iter()
                .any(|output| output.outcome.is_err() && !went_away(output))
            || self.ledger_failure.is_some();
        if lossy { Outcome::Lossy } else { Outcome::Well }
    }

    /// The run in one paragraph.
    pub(super) fn paragraph(&self, elapsed: Duration) -> String {
        let ledger = &self.ledger;
        let mut words = format!(
            "{} ({}) in {:.2} s, {}/s: {} recorded in {}",
            counted(ledger.packets_received, "packet"),
            table::bytes(ledger.bytes_received),
            elapsed.as_secs_f64(),
            table::count(rate(ledger.packets_received, elapsed)),
            grouped(ledger.packets_recorded),
            counted(ledger.flows_exported.total(), "flow record"),
        );
        let refused = [
            (ledger.packets_non_ip, "not IP"),
            (ledger.packets_malformed, "malformed"),
            (ledger.packets_truncated, "truncated"),
            (ledger.packets_unknown_link_type, "of unknown link types"),
        ];
        for (packets, what) in refused.into_iter().filter(|(packets, _)| *packets > 0) {
            words += &format!(", {} {what}", grouped(packets));
        }
        if ledger.source_dropped > 0 {
            let lost = counted(ledger.source_dropped, "packet");
            words += &format!("; the capturing side says it lost {lost}");
        }
        for output in &self.outputs {
            if let Ok(summary) = &output.outcome
                && summary.bytes > 0
            {
                let size = table::bytes(summary.bytes);
                words += &format!("; {} has {size}", output.name);
            }
        }
        words
            + if self.imbalances.is_empty() {
                "; every packet is accounted for"
            } else {
                ""
            }
    }

    /// Says on standard error what was damaged or lost, and how to mend it.
    pub(super) fn say_losses(&self, config: &PipelineConfig) {
        for error in &self.damaged {
            say!("turboflow: {error}");
        }
        let ledger = &self.ledger;
        if ledger.packets_unknown_link_type > 0 {
            let packets = counted(ledger.packets_unknown_link_type, "packet");
            let bytes = table::bytes(ledger.bytes_unknown_link_type);
            say!(
                "turboflow: {packets} ({bytes}) of interfaces whose link type turboflow does not \
                 read are in no flow; it reads Ethernet, Linux cooked v1 and v2, BSD loopback, raw \
                 IP and PPP"
            );
        }
        for output in &self.outputs {
            match &output.outcome {
                Err(error) if !matches!(error, ExportError::BrokenPipe) => {
                    let dropped = counted(output.records_dropped, "record");
                    say!("turboflow: {error}; {dropped} not written");
                }
                _ => {}
            }
        }
        if let Some(error) = &self.ledger_failure {
            say!("turboflow: cannot write the ledger: {error}");
        }
        if self.stopped {
            say!("turboflow: stopped by a signal: the input was not read to its end");
        }
        self.warn_of_full_tables(config);
        self.report_bug();
    }

    fn warn_of_full_tables(&self, config: &PipelineConfig) {
        let early = self.ledger.flows_exported.lack_of_resources;
        if early > 0 {
            say!(
                "turboflow: warning: {} left early (end reason 5): more than {} were open; \
                 nothing is lost, but flows are cut. Raise --max-flows, or lower --idle-timeout",
                counted(early, "flow record"),
                counted(config.max_flows as u64, "flow"),
            );
        }
    }

    fn report_bug(&self) {
        if self.imbalances.is_empty() {
            return;
        }
        say!(
            "turboflow: the ledger does not balance. This is a bug in turboflow, please report it"
        );
        say!(
            "with the command line, the version ({}) and these lines:",
            env!("CARGO_PKG_VERSION")
        );
        for imbalance in &self.imbalances {
            say!("  {imbalance}");
        }
    }
}

/// Whether the reader of a stream had enough of it.
fn went_away(output: &OutputReport) -> bool {
    matches!(output.outcome, Err(ExportError::BrokenPipe))
}
