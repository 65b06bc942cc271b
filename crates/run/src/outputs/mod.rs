// SPDX-License-Identifier: Apache-2.0
//! The threads and queues of outputs. Each output has its own thread and bounded queue, so a failed
//! or slow output stops neither metering nor other outputs. The program creates the outputs
//! (`apps/turboflow/src/record/outputs.rs`).

#[cfg(test)]
mod tests;
mod thread;
mod writing;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use turboflow_formats::SendSnapshot;
use turboflow_formats::{ExportError, FlowWriter, WriteProgress, WriteSummary};
use turboflow_record::{FlowBatch, Schema};

use crate::watermark::Watermarks;
use crate::{ConfigError, DeliverRecords};
use thread::OutputThread;

/// One output of a run.
pub struct Output {
    /// The name used in messages.
    pub name: String,
    /// Writes the records.
    pub writer: Box<dyn FlowWriter>,
    /// Whether it is a stream, whose reader may stop reading. Shutdown waits for such an output no
    /// longer than [`RunOutputs::end_patience`].
    pub may_stall: bool,
}

/// The outputs of a run.
pub struct RunOutputs {
    /// The outputs at the start.
    pub first: Vec<Output>,
    /// Requests to change the outputs during the run. A run over files accepts none.
    pub changes: Receiver<OutputChange>,
    /// How long shutdown waits for a stalled output, such as a stream without a reader, before it
    /// abandons the output and counts the missing records. `None` means without limit, as for
    /// files.
    pub end_patience: Option<Duration>,
}

impl RunOutputs {
    /// Outputs that do not change during the run.
    #[must_use]
    pub fn fixed(outputs: Vec<Output>) -> Self {
        Self {
            first: outputs,
            changes: channel().1,
            end_patience: None,
        }
    }
}

/// A change of outputs during a live run.
pub struct OutputChange {
    /// Names of the outputs that continue. All others are completed.
    keep: Vec<String>,
    /// New outputs.
    begin: Vec<OutputThread>,
}

impl OutputChange {
    /// Keeps the outputs named in `keep`, adds those in `begin`, and completes all others.
    ///
    /// # Errors
    /// If the system refuses a thread. Nothing has changed then.
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

/// The result of an output.
#[derive(Debug)]
pub struct OutputReport {
    /// The name used in messages.
    pub name: String,
    /// What was written, or why the output is incomplete.
    pub outcome: Result<WriteSummary, ExportError>,
    /// Records that were meant for the output and that it did not write.
    pub records_dropped: u64,
    /// The part of `records_dropped` that was discarded because the queue was full.
    pub records_overrun: u64,
}

impl OutputReport {
    /// Records written.
    #[must_use]
    pub const fn records_written(&self) -> u64 {
        match &self.outcome {
            Ok(summary) => summary.records,
            Err(error) => error.records_written(),
        }
    }

    /// Bytes written or sent.
    #[must_use]
    pub const fn bytes_written(&self) -> u64 {
        match &self.outcome {
            Ok(summary) => summary.bytes,
            Err(ExportError::NotSent { bytes, .. }) => *bytes,
            Err(_) => 0,
        }
    }
}

/// The state of an output during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSnapshot {
    /// The name used in messages.
    pub name: String,
    /// Records put into its queue.
    pub records: u64,
    /// Records discarded because its queue was full.
    pub records_overrun: u64,
    /// Records written and dropped. The dropped ones include `records_overrun`.
    pub progress: WriteProgress,
    /// Whether it is failing now. Records are then counted as dropped.
    pub failed: bool,
    /// Counters of the transport, if the output is a collector.
    pub sending: Option<SendSnapshot>,
}

/// All outputs of a run.
pub(crate) struct Outputs {
    /// Read once per batch by the thread that delivers the batch, and written when outputs change.
    threads: Arc<RwLock<Vec<OutputThread>>>,
    /// The number of the next record of this run.
    next_number: Arc<AtomicU64>,
    watermarks: Arc<Watermarks>,
    /// Outputs that were completed before the end of the run.
    ended: Vec<OutputThread>,
}

impl Outputs {
    /// Starts the threads. With `is_live`, buffers are flushed whenever a queue is empty, and
    /// metering does not wait for a slow output.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub(crate) fn start(outputs: Vec<Output>, is_live: bool) -> Result<Self, ConfigError> {
        let threads = outputs
            .into_iter()
            .map(|output| OutputThread::start(output, is_live));
        Ok(Self {
            threads: Arc::new(RwLock::new(threads.collect::<Result<_, _>>()?)),
            next_number: Arc::new(AtomicU64::new(1)),
            watermarks: Arc::default(),
            ended: Vec::new(),
        })
    }

    /// The state of each output.
    pub(crate) fn snapshot(&self) -> Vec<OutputSnapshot> {
        let threads = self.threads.read().unwrap_or_else(PoisonError::into_inner);
        threads.iter().map(OutputThread::snapshot).collect()
    }

    /// The sums over the records of all outputs, including outputs completed during the run.
    pub(crate) fn progress(&self, of: &[OutputSnapshot]) -> WriteProgress {
        let mut sum = WriteProgress::default();
        let ended = self.ended.iter().map(OutputThread::progress);
        for one in of.iter().map(|output| output.progress).chain(ended) {
            sum.records_written += one.records_written;
            sum.records_dropped += one.records_dropped;
        }
        sum
    }

    /// The function with which a shard delivers its finished records. Records are numbered before
    /// they enter a queue. So a lost record leaves a gap in the numbers, and a record has the same
    /// number in every output. The watermark of a batch is replaced by that of the run.
    pub(crate) fn deliver(&self, schema: &Schema) -> DeliverRecords {
        let (threads, schema) = (Arc::clone(&self.threads), schema.clone());
        let next_number = Arc::clone(&self.next_number);
        let watermarks = Arc::clone(&self.watermarks);
        let shard = watermarks.join();
        Box::new(move |batch| {
            let rows = batch.rows() as u64;
            batch.number_from(next_number.fetch_add(rows, Ordering::Relaxed));
            let own_ns = batch.watermark_ns();
            batch.set_watermark(watermarks.with(shard, own_ns));
            // The next batch is likely to have the same size.
            let next = FlowBatch::with_room(&schema, batch.rows());
            let full = Arc::new(std::mem::replace(batch, next));
            let threads = threads.read().unwrap_or_else(PoisonError::into_inner);
            threads.iter().for_each(|thread| thread.give(&full));
            watermarks.queued(shard, own_ns);
        })
    }

    /// Applies the requested changes. Outputs that end are completed in the background.
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

    /// Lets metering wait for outputs from now on, because waiting no longer loses packets. Records
    /// are dropped only if an output stalls for `patience`.
    pub(crate) fn wait_for_all(&self, patience: Option<Duration>) {
        let threads = self.threads.read().unwrap_or_else(PoisonError::into_inner);
        let all = threads.iter().chain(&self.ended);
        all.for_each(|thread| thread.wait_from_now_on(patience));
    }

    /// Waits until everything is written, no longer than the patience set by
    /// [`Self::wait_for_all`].
    pub(crate) fn finish(self) -> Vec<OutputReport> {
        let threads =
            std::mem::take(&mut *self.threads.write().unwrap_or_else(PoisonError::into_inner));
        thread::finish_all(self.ended.into_iter().chain(threads))
    }
}
