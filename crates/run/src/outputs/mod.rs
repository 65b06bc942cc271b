// SPDX-License-Identifier: Apache-2.0
//! Where finished records go: every output has a thread and a bounded queue of its own, so that one
//! that fails or is slow stops neither metering nor the others.

mod lane;
#[cfg(test)]
mod tests;
mod writing;

use std::sync::mpsc::Receiver;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use turboflow_formats::SendSnapshot;
use turboflow_formats::{ExportError, FlowWriter, WriteProgress, WriteSummary};
use turboflow_record::{FlowBatch, Schema};

use crate::{ConfigError, DeliverRecords};
use lane::Lane;

/// One output of a run.
pub struct Output {
    /// What messages call it.
    pub name: String,
    /// What writes it.
    pub writer: Box<dyn FlowWriter>,
    /// Whether it is a stream, whose reader may stop reading: the end of a service does not wait for it without end
    /// ([`LiveOutputs::end_patience`]).
    pub may_stall: bool,
}

/// Where a live run writes.
pub struct LiveOutputs {
    /// From the beginning.
    pub first: Vec<Output>,
    /// What becomes of them while the run goes on.
    pub changes: Receiver<OutputChange>,
    /// How long the end waits for an output that takes nothing (a stream that nobody reads), before it is given up and what it
    /// misses is counted; `None`: as long as it needs.
    pub end_patience: Option<Duration>,
}

/// Other outputs from now on, in a live run.
pub struct OutputChange {
    /// Those that go on, by name. All others are completed.
    keep: Vec<String>,
    /// Those that begin.
    begin: Vec<Lane>,
}

impl OutputChange {
    /// The outputs named `keep` go on, those of `begin` begin, all others are completed.
    ///
    /// # Errors
    /// The system starts no more threads. Nothing has changed then.
    pub fn new(keep: Vec<String>, begin: Vec<Output>) -> Result<Self, ConfigError> {
        let begin = begin.into_iter().map(|output| Lane::start(output, true));
        Ok(Self {
            keep,
            begin: begin.collect::<Result<_, _>>()?,
        })
    }
}

/// What became of an output.
#[derive(Debug)]
pub struct OutputReport {
    /// What messages call it.
    pub name: String,
    /// What it holds, or why it is incomplete.
    pub outcome: Result<WriteSummary, ExportError>,
    /// Records that it should have got and did not write.
    pub records_dropped: u64,
    /// Of these, those for which its queue had no room: it was too slow.
    pub records_overrun: u64,
}

impl OutputReport {
    /// Records that it holds.
    #[must_use]
    pub const fn records_written(&self) -> u64 {
        match &self.outcome {
            Ok(summary) => summary.records,
            Err(error) => error.records_written(),
        }
    }

    /// Bytes that it holds, or that left.
    #[must_use]
    pub const fn bytes_written(&self) -> u64 {
        match &self.outcome {
            Ok(summary) => summary.bytes,
            Err(ExportError::NotSent { bytes, .. }) => *bytes,
            Err(_) => 0,
        }
    }
}

/// How an output stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSnapshot {
    /// What messages call it.
    pub name: String,
    /// Records that it was given.
    pub records: u64,
    /// Records for which its queue had no room.
    pub records_overrun: u64,
    /// What has become of the records that it should have got, those included for which its queue
    /// had no room.
    pub progress: WriteProgress,
    /// Whether it takes no records at the moment; those are counted as dropped.
    pub failed: bool,
    /// What became of them, where the output is a collector.
    pub sending: Option<SendSnapshot>,
}

/// All outputs of a run.
pub(crate) struct Outputs {
    /// Read by whoever delivers, once a batch; written when outputs change.
    lanes: Arc<RwLock<Vec<Lane>>>,
    /// Those that were completed before the end.
    ended: Vec<Lane>,
}

impl Outputs {
    /// Starts their threads. `is_live`: whoever reads an output gets what there is whenever nothing
    /// waits, and metering does not wait for one that is slow.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub(crate) fn start(outputs: Vec<Output>, is_live: bool) -> Result<Self, ConfigError> {
        let lanes = outputs
            .into_iter()
            .map(|output| Lane::start(output, is_live));
        Ok(Self {
            lanes: Arc::new(RwLock::new(lanes.collect::<Result<_, _>>()?)),
            ended: Vec::new(),
        })
    }

    /// How they stand.
    pub(crate) fn snapshot(&self) -> Vec<OutputSnapshot> {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        lanes.iter().map(Lane::snapshot).collect()
    }

    /// What has become of all records, of outputs that were completed too.
    pub(crate) fn progress(&self, of: &[OutputSnapshot]) -> WriteProgress {
        let mut sum = WriteProgress::default();
        let ended = self.ended.iter().map(Lane::progress);
        for one in of.iter().map(|output| output.progress).chain(ended) {
            sum.records_written += one.records_written;
            sum.records_dropped += one.records_dropped;
        }
        sum
    }

    /// What a shard calls with its finished records.
    pub(crate) fn deliver(&self, schema: &Schema) -> DeliverRecords {
        let (lanes, schema) = (Arc::clone(&self.lanes), schema.clone());
        Box::new(move |batch| {
            // Where many records leave, the next batch is as large.
            let next = FlowBatch::with_room(&schema, batch.rows());
            let full = Arc::new(std::mem::replace(batch, next));
            let lanes = lanes.read().unwrap_or_else(PoisonError::into_inner);
            lanes.iter().for_each(|lane| lane.give(&full));
        })
    }

    /// Makes the changes that were asked for. Outputs that end are completed in the background.
    pub(crate) fn change(&mut self, changes: &Receiver<OutputChange>) {
        for OutputChange { keep, begin } in changes.try_iter() {
            let mut lanes = self.lanes.write().unwrap_or_else(PoisonError::into_inner);
            let (go_on, end) = lanes
                .drain(..)
                .partition(|lane| keep.iter().any(|name| lane.is(name)));
            *lanes = go_on;
            lanes.extend(begin);
            let end: Vec<Lane> = end;
            self.ended.extend(end.into_iter().map(Lane::close));
        }
    }

    /// From now on no packet is lost by waiting: nothing is dropped any more, unless an output takes nothing for as long as
    /// `patience` says.
    pub(crate) fn wait_for_all(&self, patience: Option<Duration>) {
        let lanes = self.lanes.read().unwrap_or_else(PoisonError::into_inner);
        let all = lanes.iter().chain(&self.ended);
        all.for_each(|lane| lane.wait_from_now_on(patience));
    }

    /// Waits until everything is written, within the patience of [`Self::wait_for_all`].
    pub(crate) fn finish(self) -> Vec<OutputReport> {
        let lanes =
            std::mem::take(&mut *self.lanes.write().unwrap_or_else(PoisonError::into_inner));
        lane::finish_all(self.ended.into_iter().chain(lanes))
    }
}
