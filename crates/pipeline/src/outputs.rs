// SPDX-License-Identifier: Apache-2.0
//! The outputs' thread: finished records go to every writer, and a writer that fails stops nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use turboflow_export::transport::{SendGauge, SendSnapshot};
use turboflow_export::{ExportError, FlowWriter, WriteSummary};
use turboflow_record::{FlowBatch, Schema};

use crate::DeliverRecords;

/// Batches of records that wait for the outputs at most.
const QUEUE_BATCHES: usize = 32;

/// How often outputs are flushed though nothing comes, where somebody waits: files that end with
/// the clock do so this late at most.
const IDLE_FLUSH: Duration = Duration::from_millis(200);

/// One output of a run.
pub struct Output {
    /// What messages call it.
    pub name: String,
    /// What writes it.
    pub writer: Box<dyn FlowWriter>,
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
}

impl OutputReport {
    /// Records that it holds.
    #[must_use]
    pub const fn records_written(&self) -> u64 {
        match &self.outcome {
            Ok(summary) => summary.records,
            Err(ExportError::Write { records, .. } | ExportError::NotSent { records, .. }) => {
                *records
            }
            Err(_) => 0,
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

/// The thread that writes.
pub(crate) struct OutputThread {
    queue: SyncSender<FlowBatch>,
    thread: JoinHandle<Vec<OutputReport>>,
    gauges: Arc<[OutputGauge]>,
}

/// How an output stands, for others to read while it writes.
struct OutputGauge {
    name: String,
    received: AtomicU64,
    failed: AtomicBool,
    sending: Option<Arc<SendGauge>>,
}

/// How an output stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSnapshot {
    /// What messages call it.
    pub name: String,
    /// Records that it was given.
    pub records: u64,
    /// Whether it takes no records at the moment; those are counted as dropped.
    pub failed: bool,
    /// What became of them, where the output is a collector.
    pub sending: Option<SendSnapshot>,
}

impl OutputThread {
    /// Starts it. `prompt`: whoever reads an output gets what there is whenever nothing waits.
    pub(crate) fn start(outputs: Vec<Output>, prompt: bool) -> Self {
        let (queue, incoming) = sync_channel(QUEUE_BATCHES);
        let gauge = |output: &Output| OutputGauge {
            name: output.name.clone(),
            received: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            sending: output.writer.sending(),
        };
        let gauges: Arc<[OutputGauge]> = outputs.iter().map(gauge).collect();
        let shown = Arc::clone(&gauges);
        let thread = std::thread::spawn(move || write_all(outputs, &shown, &incoming, prompt));
        Self {
            queue,
            thread,
            gauges,
        }
    }

    /// How the outputs stand.
    pub(crate) fn snapshot(&self) -> Vec<OutputSnapshot> {
        let one = |gauge: &OutputGauge| OutputSnapshot {
            name: gauge.name.clone(),
            records: gauge.received.load(Ordering::Relaxed),
            failed: gauge.failed.load(Ordering::Relaxed),
            sending: gauge.sending.as_ref().map(|sending| sending.read()),
        };
        self.gauges.iter().map(one).collect()
    }

    /// What a shard calls with its finished records.
    pub(crate) fn deliver(&self, schema: &Schema) -> DeliverRecords {
        let (queue, schema) = (self.queue.clone(), schema.clone());
        Box::new(move |batch| {
            let full = std::mem::replace(batch, FlowBatch::new(&schema));
            queue
                .send(full)
                .expect("the output thread writes until its queue is closed");
        })
    }

    /// Waits until everything is written.
    pub(crate) fn finish(self) -> Vec<OutputReport> {
        drop(self.queue);
        match self.thread.join() {
            Ok(reports) => reports,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// An output with what it has got so far.
struct Writing {
    name: String,
    writer: Option<Box<dyn FlowWriter>>,
    failure: Option<ExportError>,
    received: u64,
}

fn write_all(
    outputs: Vec<Output>,
    gauges: &[OutputGauge],
    incoming: &Receiver<FlowBatch>,
    prompt: bool,
) -> Vec<OutputReport> {
    let start = |Output { name, writer }| Writing {
        name,
        writer: Some(writer),
        failure: None,
        received: 0,
    };
    let mut outputs: Vec<Writing> = outputs.into_iter().map(start).collect();
    let mut waiting = None;
    loop {
        let next = match (waiting.take(), prompt) {
            (Some(batch), _) => Ok(batch),
            (None, true) => incoming.recv_timeout(IDLE_FLUSH),
            (None, false) => incoming.recv().map_err(RecvTimeoutError::from),
        };
        match next {
            Ok(batch) => outputs.iter_mut().for_each(|output| output.write(&batch)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        waiting = incoming.try_recv().ok();
        if prompt && waiting.is_none() {
            outputs.iter_mut().for_each(Writing::flush);
        }
        for (output, gauge) in outputs.iter().zip(gauges) {
            gauge.received.store(output.received, Ordering::Relaxed);
            gauge.failed.store(output.is_failing(), Ordering::Relaxed);
        }
    }
    outputs.into_iter().map(Writing::finish).collect()
}

impl Writing {
    fn write(&mut self, batch: &FlowBatch) {
        self.received += batch.rows() as u64;
        self.attempt(|writer| writer.write(batch));
    }

    fn flush(&mut self) {
        self.attempt(|writer| writer.flush());
    }

    fn is_failing(&self) -> bool {
        self.writer
            .as_ref()
            .is_none_or(|writer| writer.is_failing())
    }

    fn attempt(&mut self, work: impl FnOnce(&mut dyn FlowWriter) -> Result<(), ExportError>) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = work(writer.as_mut())
        {
            self.failure = Some(error);
            self.writer = None;
        }
    }

    fn finish(self) -> OutputReport {
        let Self {
            name,
            writer,
            failure,
            received,
        } = self;
        let outcome = match (failure, writer) {
            (None, Some(writer)) => writer.finish(),
            (failure, _) => Err(failure.expect("a writer goes away only when it fails")),
        };
        let mut report = OutputReport {
            name,
            outcome,
            records_dropped: 0,
        };
        // A reader that went away (`| head`) has what it wanted: nothing is lost.
        if !matches!(report.outcome, Err(ExportError::BrokenPipe)) {
            report.records_dropped = received.saturating_sub(report.records_written());
        }
        report
    }
}
