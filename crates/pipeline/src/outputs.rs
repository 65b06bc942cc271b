// SPDX-License-Identifier: Apache-2.0
//! The outputs' thread: finished records go to every writer, and a writer that fails stops nothing.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use turboflow_export::{ExportError, FlowWriter, WriteSummary};
use turboflow_record::{FlowBatch, Schema};

use crate::DeliverRecords;

/// Batches of records that wait for the outputs at most.
const QUEUE_BATCHES: usize = 32;

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
}

/// The thread that writes.
pub(crate) struct OutputThread {
    queue: SyncSender<FlowBatch>,
    thread: JoinHandle<Vec<OutputReport>>,
}

impl OutputThread {
    /// Starts it. `prompt`: whoever reads an output gets what there is whenever nothing waits.
    pub(crate) fn start(outputs: Vec<Output>, prompt: bool) -> Self {
        let (queue, incoming) = sync_channel(QUEUE_BATCHES);
        let thread = std::thread::spawn(move || write_all(outputs, &incoming, prompt));
        Self { queue, thread }
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
    while let Some(batch) = waiting.take().or_else(|| incoming.recv().ok()) {
        for output in &mut outputs {
            output.write(&batch);
        }
        waiting = incoming.try_recv().ok();
        if prompt && waiting.is_none() {
            outputs.iter_mut().for_each(Writing::flush);
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
