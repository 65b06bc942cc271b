// SPDX-License-Identifier: Apache-2.0
//! What a run did.

use std::io;

use turboflow_capture::ReadError;
use turboflow_engine::{PortCounters, PortState};

use crate::{Ledger, OutputReport, ShortFlows};

/// What a run did.
#[derive(Debug)]
pub struct RunReport {
    /// Where everything went.
    pub ledger: Ledger,
    /// Files that could be read only up to a place.
    pub damaged: Vec<ReadError>,
    /// Whether the reading of files stopped before their end, because it was asked to.
    pub stopped: bool,
    /// What each port counted, by name, and what became of it. Files have none.
    pub ports: Vec<(String, PortCounters, PortState)>,
    /// Why a live run ended early, if a system call or an engine failed.
    pub failure: Option<io::Error>,
    /// Frames that an engine was to hand up ([`RunEvent::Unparsed`](crate::RunEvent::Unparsed)) and
    /// that came too fast.
    pub unparsed_lost: u64,
    /// Flows that an engine lost records of; `None` where it could not say.
    pub short: Option<ShortFlows>,
    /// What became of the outputs.
    pub outputs: Vec<OutputReport>,
}

impl RunReport {
    pub(super) fn of_ledger(ledger: Ledger) -> Self {
        Self {
            ledger,
            damaged: Vec::new(),
            stopped: false,
            ports: Vec::new(),
            failure: None,
            unparsed_lost: 0,
            short: Some(ShortFlows::default()),
            outputs: Vec::new(),
        }
    }

    /// Adds what became of the outputs.
    pub(super) fn with_outputs(mut self, outputs: Vec<OutputReport>) -> Self {
        self.ledger.records_dropped = outputs.iter().map(|output| output.records_dropped).sum();
        self.ledger.records_written = outputs.iter().map(OutputReport::records_written).sum();
        self.outputs = outputs;
        self
    }
}
