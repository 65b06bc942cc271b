// SPDX-License-Identifier: Apache-2.0
//! Captures that an engine reads itself: what they have besides frames. A run that reads the files
//! counts this on its own.

use std::sync::{Arc, Mutex};

use turboflow_capture::{Counters, OpenError, ReadError};
use turboflow_run::Ledger;

/// The captures of an engine.
#[derive(Default)]
pub(crate) struct CapturesOfEngine {
    /// Files that were skipped because they cannot be metered.
    pub(crate) passed_over: Vec<OpenError>,
    /// What has been read so far; complete when the run has ended.
    pub(crate) read: Arc<Mutex<CapturesRead>>,
}

/// Counters and damages of the files that were read.
#[derive(Default)]
pub(crate) struct CapturesRead {
    counters: Counters,
    pub(crate) damaged: Vec<ReadError>,
}

impl CapturesRead {
    /// Adds the counters of a file.
    pub(crate) const fn add(&mut self, file: &Counters) {
        let sum = &mut self.counters;
        sum.packets_unknown_link_type += file.packets_unknown_link_type;
        sum.bytes_unknown_link_type += file.bytes_unknown_link_type;
        sum.source_dropped += file.source_dropped;
        sum.packets_without_time += file.packets_without_time;
        sum.packets_time_clamped += file.packets_time_clamped;
    }

    /// Adds what never reached the engine to its ledger.
    pub(super) const fn count(&self, ledger: &mut Ledger) {
        let sum = &self.counters;
        ledger.packets_unknown_link_type += sum.packets_unknown_link_type;
        ledger.bytes_unknown_link_type += sum.bytes_unknown_link_type;
        ledger.packets_received += sum.packets_unknown_link_type;
        ledger.bytes_received += sum.bytes_unknown_link_type;
        ledger.source_dropped += sum.source_dropped;
        ledger.packets_without_time += sum.packets_without_time;
        ledger.packets_time_clamped += sum.packets_time_clamped;
    }
}
