// SPDX-License-Identifier: Apache-2.0
//! The thread of one output.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use turboflow_formats::{ExportError, FlowWriter, Passed, WriteProgress, WriteSummary};
use turboflow_record::FlowBatch;

use super::OutputReport;
use super::thread::Gauge;

/// How often a live output is flushed while no records arrive, and how often any output is told how
/// far the run has progressed. This bounds the delay with which a file ends at its time by the
/// clock.
const IDLE_FLUSH: Duration = Duration::from_millis(200);

/// The number of rows from which on a write takes no further batch.
pub(super) const MAX_WRITE_ROWS: usize = 1 << 16;

/// The writer of an output, and what it has received.
struct ActiveOutput {
    writer: Option<Box<dyn FlowWriter>>,
    failure: Option<ExportError>,
    received: u64,
}

/// Writes until the queue is closed. Batches that are queued together are written together. An
/// output that was abandoned before its first record leaves nothing behind. With `prompt`, buffers
/// are flushed whenever the queue is empty.
pub(super) fn write_all(
    writer: Box<dyn FlowWriter>,
    gauge: &Gauge,
    incoming: &Receiver<Arc<FlowBatch>>,
    prompt: bool,
) -> OutputReport {
    let mut writing = ActiveOutput {
        writer: Some(writer),
        failure: None,
        received: 0,
    };
    let mut batches = Vec::new();
    let mut watermark_ns = 0;
    loop {
        let mut ran_dry = true;
        match incoming.recv_timeout(IDLE_FLUSH) {
            // One by one, so that a stall is noticed early.
            Ok(batch) if gauge.has_time_limit() => batches.push(batch),
            Ok(batch) => ran_dry = take_queued(batch, incoming, &mut batches),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let watermarks = batches.iter().map(|batch| batch.watermark_ns());
        watermark_ns = watermarks.fold(watermark_ns, u64::max);
        batches.retain(|batch| batch.rows() > 0);
        let rows = batches.iter().map(|batch| batch.rows()).sum();
        writing.write(&batches, rows);
        batches.clear();
        // Freed only now, because the batches occupied memory until they were written.
        gauge.count_taken(rows);
        if prompt && ran_dry {
            writing.flush();
        }
        writing.pass(Passed {
            watermark_ns,
            records_overrun: gauge.overrun(),
        });
        gauge.failed.store(writing.is_failing(), Ordering::Relaxed);
        gauge.show(writing.progress());
    }
    // Reports what was discarded since the last report.
    writing.pass(Passed {
        watermark_ns,
        records_overrun: gauge.overrun(),
    });
    if !gauge.completes.load(Ordering::Relaxed) && writing.received == 0 {
        return OutputReport {
            name: gauge.name.clone(),
            outcome: Ok(WriteSummary::default()),
            records_dropped: 0,
            records_overrun: 0,
        };
    }
    let report = writing.finish(gauge.name.clone());
    gauge.show(WriteProgress {
        records_written: report.records_written(),
        records_dropped: report.records_dropped,
    });
    report
}

/// Takes `first` and further queued batches. Returns whether the queue is empty.
fn take_queued(
    first: Arc<FlowBatch>,
    incoming: &Receiver<Arc<FlowBatch>>,
    batches: &mut Vec<Arc<FlowBatch>>,
) -> bool {
    let mut rows = first.rows();
    batches.push(first);
    while rows < MAX_WRITE_ROWS {
        let Ok(batch) = incoming.try_recv() else {
            return true;
        };
        rows += batch.rows();
        batches.push(batch);
    }
    false
}

impl ActiveOutput {
    fn write(&mut self, batches: &[Arc<FlowBatch>], rows: usize) {
        self.received += rows as u64;
        self.attempt(|writer| writer.write_several(batches));
    }

    fn flush(&mut self) {
        self.attempt(|writer| writer.flush());
    }

    fn pass(&mut self, passed: Passed) {
        self.attempt(|writer| writer.pass(passed));
    }

    fn is_failing(&self) -> bool {
        self.writer
            .as_ref()
            .is_none_or(|writer| writer.is_failing())
    }

    fn progress(&self) -> WriteProgress {
        match (&self.writer, &self.failure) {
            (Some(writer), _) => writer.progress(),
            (None, Some(failure)) => progress_after(failure, self.received),
            (None, None) => unreachable!("the writer is dropped only after a failure"),
        }
    }

    fn attempt(&mut self, work: impl FnOnce(&mut dyn FlowWriter) -> Result<(), ExportError>) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = work(writer.as_mut())
        {
            self.failure = Some(error);
            self.writer = None;
        }
    }

    fn finish(self, name: String) -> OutputReport {
        let outcome = match (self.failure, self.writer) {
            (None, Some(writer)) => writer.finish(),
            (failure, _) => Err(failure.expect("the writer is dropped only after a failure")),
        };
        let records_dropped = match &outcome {
            Ok(summary) => self.received.saturating_sub(summary.records),
            Err(failure) => progress_after(failure, self.received).records_dropped,
        };
        OutputReport {
            name,
            outcome,
            records_dropped,
            records_overrun: 0,
        }
    }
}

/// Progress of an output after a failure.
fn progress_after(failure: &ExportError, received: u64) -> WriteProgress {
    let records_written = failure.records_written();
    // A reader that closed its pipe (`| head`) has all that it wanted, so this is not a loss.
    let is_loss = !matches!(failure, ExportError::BrokenPipe);
    WriteProgress {
        records_written,
        records_dropped: match is_loss {
            true => received.saturating_sub(records_written),
            false => 0,
        },
    }
}
