// SPDX-License-Identifier: Apache-2.0
//! Where finished records go: every output has a thread and a bounded queue of its own, so that one
//! that fails or is slow stops neither metering nor the others.

#[cfg(test)]
mod tests;
mod thread;
mod writing;

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use turboflow_formats::SendSnapshot;
use turboflow_formats::{ExportError, FlowWriter, WriteProgress, WriteSummary};
use turboflow_record::{FlowBatch, Schema};

use crate::{ConfigError, DeliverRecords};
use thread::OutputThread;

/// One output of a run.
pub struct Output {
    /// What messages call it.
    pub name: String,
    /// What writes it.
    pub writer: Box<dyn FlowWriter>,
    /// Whether it is a stream, whose reader may stop reading: the end of a service does not wait
    /// for it without end ([`RunOutputs::end_patience`]).
    pub may_stall: bool,
}

/// Where a run writes.
pub struct RunOutputs {
    /// From the beginning.
    pub first: Vec<Output>,
    /// What becomes of them while the run goes on.
    pub changes: Receiver<OutputChange>,
    /// How long the end waits for an output that takes nothing (a stream that nobody reads), before
    /// it is given up and what it misses is counted; `None`: as long as it needs.
    pub end_patience: Option<Duration>,
}

impl RunOutputs {
    /// These outputs from the beginning to the end.
    #[must_use]
    pub fn fixed(outputs: Vec<Output>) -> Self {
        Self {
            first: outputs,
            changes: channel().1,
            end_patience: None,
        }
    }
}

/// Other outputs from now on, in a live run.
pub struct OutputChange {
    /// Those that go on, by name. All others are completed.
    keep: Vec<String>,
    /// Those that begin.
    begin: Vec<OutputThread>,
}

impl OutputChange {
    /// The outputs named `keep` go on, those of `begin` begin, all others are completed.
    ///
    /// # Errors
    /// The system starts no more threads. Nothing has changed then.
    pub fn new(keep: Vec<String>, begin: Vec<Output>) -> Result<Self, ConfigError> {
        let begin = begin
            .into_iter()
            .map(|output| OutputThread::start(output, true));
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
    threads: Arc<RwLock<Vec<OutputThread>>>,
    /// Those that were completed before the end.
    ended: Vec<OutputThread>,
}

impl Outputs {
    /// Starts their threads. `is_live`: whoever reads an output gets what there is whenever nothing
    /// waits, and metering does not wait for one that is slow.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub(crate) fn start(outputs: Vec<Output>, is_live: bool) -> Result<Self, ConfigError> {
        let threads = outputs
            .into_iter()
            .map(|output| OutputThread::start(output, is_live));
        Ok(Self {
            threads: Arc::new(RwLock::new(threads.collect::<Result<_, _>>()?)),
            ended: Vec::new(),
        })
    }

    /// How they stand.
    pub(crate) fn snapshot(&self) -> Vec<OutputSnapshot> {
        let threads = self.threads.read().unwrap_or_else(PoisonError::into_inner);
        threads.iter().map(OutputThread::snapshot).collect()
    }

    /// What has become of all records, of outputs that were completed too.
    pub(crate) fn progress(&self, of: &[OutputSnapshot]) -> WriteProgress {
        let mut sum = WriteProgress::default();
        let ended = self.ended.iter().map(OutputThread::progress);
        for one in of.iter().map(|output| output.progress).chain(ended) {
            sum.records_written += one.records_written;
            sum.records_dropped += one.records_dropped;
        }
        sum
    }

    /// What a shard calls with its finished records.
    pub(crate) fn deliver(&self, schema: &Schema) -> DeliverRecords {
        let (threads, schema) = (Arc::clone(&self.threads), schema.clone());
        Box::new(move |batch| {
            // Where many records leave, the next batch is as large.
            let next = FlowBatch::with_room(&schema, batch.rows());
            let full = Arc::new(std::mem::replace(batch, next));
            let threads = threads.read().unwrap_or_else(PoisonError::into_inner);
            threads.iter().for_each(|thread| thread.give(&full));
        })
    }

    /// Makes the changes that were asked for. Outputs that end are completed in the background.
    pub(crate) fn change(&mut self, changes: &Receiver<OutputChange>) {
        for OutputChange { keep, begin } in changes.try_iter() {
            let mut threads = self.threads.write().unwrap_or_else(PoisonError::into_inner);
            let (go_on, end) = threads
                .drain(..)
                .partition(|thread| keep.iter().any(|name| thread.is(name)));
            *threads = go_on;
            threads.extend(begin);
            let end: Vec<OutputThread> = end;
            self.ended.extend(end.into_iter().map(OutputThread::close));
        }
    }

    /// From now on no packet is lost by waiting: nothing is dropped any more, unless an output
    /// takes nothing for as long as `patience` says.
    pub(crate) fn wait_for_all(&self, patience: Option<Duration>) {
        let threads = self.threads.read().unwrap_or_else(PoisonError::into_inner);
        let all = threads.iter().chain(&self.ended);
        all.for_each(|thread| thread.wait_from_now_on(patience));
    }

    /// Waits until everything is written, within the patience of [`Self::wait_for_all`].
    pub(crate) fn finish(self) -> Vec<OutputReport> {
        let threads =
            std::mem::take(&mut *self.threads.write().unwrap_or_else(PoisonError::into_inner));
        thread::finish_all(self.ended.into_iter().chain(threads))
    }
}
