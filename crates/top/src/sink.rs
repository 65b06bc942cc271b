// SPDX-License-Identifier: Apache-2.0
//! The screen's side of the pipeline: an output like a file, that adds records up.

use std::sync::{Arc, Mutex, PoisonError};

use turboflow_export::{ExportError, FlowWriter, WriteSummary};
use turboflow_record::FlowBatch;

use crate::traffic::Traffic;

/// Adds every record to a [`Traffic`] that the screen reads.
pub struct TrafficWriter {
    traffic: Arc<Mutex<Traffic>>,
    records: u64,
}

impl TrafficWriter {
    /// A writer to `traffic`.
    #[must_use]
    pub const fn new(traffic: Arc<Mutex<Traffic>>) -> Self {
        Self {
            traffic,
            records: 0,
        }
    }
}

impl FlowWriter for TrafficWriter {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        self.records += batch.rows() as u64;
        let mut traffic = self.traffic.lock().unwrap_or_else(PoisonError::into_inner);
        traffic.add(batch);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError> {
        Ok(WriteSummary {
            records: self.records,
            bytes: 0,
        })
    }
}
