// SPDX-License-Identifier: Apache-2.0
//! The report of a run.

use std::io;

use turboflow_capture::ReadError;
use turboflow_engine::{OwnCount, PortCounters, PortState};

use crate::{Ledger, OutputReport, ShortFlows};

/// The report of a run.
#[derive(Debug)]
pub struct RunReport {
    /// All counters.
    pub ledger: Ledger,
    /// Files that could be read only in part, with the reason.
    pub damaged: Vec<ReadError>,
    /// Packets that capture files report lost. The ledger has them in `source_dropped`.
    pub captures_dropped: u64,
    /// Whether a request to stop ended the reading of files early.
    pub stopped: bool,
    /// Packets of files with a VLAN tag that the filter left out.
    pub tagged_filtered: u64,
    /// Counters and final state of each port, by name. Files have none.
    pub ports: Vec<(String, PortCounters, PortState)>,
    /// Counters that only the engine of the run has.
    pub own_counts: Vec<OwnCount>,
    /// Why a live run ended early: a failed system call or engine.
    pub failure: Option<io::Error>,
    /// Frames for [`RunEvent::Unparsed`](crate::RunEvent::Unparsed) that were lost because they
    /// arrived too fast.
    pub unparsed_lost: u64,
    /// Flows with lost microflow records. `None` if the engine could not list them.
    pub short: Option<ShortFlows>,
    /// The results of the outputs.
    pub outputs: Vec<OutputReport>,
}

impl RunReport {
    pub(super) fn of_ledger(ledger: Ledger) -> Self {
        Self {
            ledger,
            damaged: Vec::new(),
            captures_dropped: 0,
            stopped: false,
            tagged_filtered: 0,
            ports: Vec::new(),
            own_counts: Vec::new(),
            failure: None,
            unparsed_lost: 0,
            short: Some(ShortFlows::default()),
            outputs: Vec::new(),
        }
    }

    /// Adds the results of the outputs.
    pub(super) fn with_outputs(mut self, outputs: Vec<OutputReport>) -> Self {
        self.ledger.records_dropped = outputs.iter().map(|output| output.records_dropped).sum();
        self.ledger.records_written = outputs.iter().map(OutputReport::records_written).sum();
        self.outputs = outputs;
        self
    }
}
