// SPDX-License-Identifier: Apache-2.0
//! One output: a bounded queue, and the thread that empties it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use turboflow_formats::{ExportError, WriteProgress};
use turboflow_formats::{SendGauge, SendSnapshot};
use turboflow_record::FlowBatch;

use super::writing::write_all;
use super::{Output, OutputReport, OutputSnapshot};
use crate::ConfigError;

/// Queue limit in batches, if metering waits for the output.
const FILE_QUEUE_BATCHES: usize = 32;
/// Queue limit in records, exceeded by up to one batch. It is large because many flows may end at
/// the same time.
pub(super) const QUEUE_RECORDS: usize = 1 << 20;
/// Queue limit in batches, if metering does not wait. Many of these batches are small.
const LIVE_QUEUE_BATCHES: usize = 1 << 14;
/// How long metering waits for an output whose queue is full. The ring of an interface can buffer
/// packets for longer than that.
const PATIENCE: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(1);

pub(super) struct OutputThread {
    /// `None` once the queue is closed.
    queue: Option<SyncSender<Arc<FlowBatch>>>,
    /// `None` once the thread has been joined.
    thread: Option<JoinHandle<OutputReport>>,
    gauge: Arc<Gauge>,
}

impl Drop for OutputThread {
    /// Joins the thread, so that an abandoned output removes its unfinished file before the process
    /// exits.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been reported already.
            let _ = thread.join();
        }
    }
}

/// The state of an output, read by other threads while it writes.
pub(super) struct Gauge {
    pub(super) name: String,
    /// Records put into the queue, including those that still wait in it.
    received: AtomicU64,
    pub(super) failed: AtomicBool,
    /// Whether a closed queue completes the output. False if the run failed to start.
    pub(super) completes: AtomicBool,
    /// Records in its queue.
    pub(super) waiting: AtomicUsize,
    /// Records discarded because the queue was full.
    overrun: AtomicU64,
    /// Whether live metering waits for room in the queue. Cleared after a wait that gained no room,
    /// and set again once half of the queue is free.
    metering_waits: AtomicBool,
    gives_up: AtomicBool,
    /// How long the end of a run waits for a stalled output, in ms. 0 means without limit.
    end_patience_ms: AtomicU64,
    /// When the output last took records from its queue, or when the end of the run began, in ms.
    took_at_ms: AtomicU64,
    /// Whether the output is a stream, whose reader may stop reading.
    may_stall: bool,
    sending: Option<Arc<SendGauge>>,
    /// Updated by the thread of the output. For a collector, the progress is in `sending` instead.
    progress: Mutex<WriteProgress>,
}

impl Gauge {
    /// Publishes the progress.
    pub(super) fn show(&self, progress: WriteProgress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    /// Reserves room in the queue, if there is any. Writers that are blocked are not counted.
    fn reserve(&self, rows: usize) -> bool {
        let waiting = self.waiting.fetch_add(rows, Ordering::Relaxed);
        if waiting < QUEUE_RECORDS / 2 {
            self.metering_waits.store(true, Ordering::Relaxed);
        }
        let has_room = waiting < QUEUE_RECORDS;
        if !has_room {
            self.waiting.fetch_sub(rows, Ordering::Relaxed);
        }
        has_room
    }

    fn end_patience(&self) -> Option<Duration> {
        let patience_ms = self.end_patience_ms.load(Ordering::Relaxed);
        (patience_ms > 0).then(|| Duration::from_millis(patience_ms))
    }

    /// Whether the run is ending and waits for this output for a limited time only.
    pub(super) fn has_time_limit(&self) -> bool {
        self.end_patience().is_some()
    }

    /// Records discarded so far.
    pub(super) fn overrun(&self) -> u64 {
        self.overrun.load(Ordering::Relaxed)
    }

    /// Counts records that have left the queue.
    pub(super) fn count_taken(&self, rows: usize) {
        self.waiting.fetch_sub(rows, Ordering::Relaxed);
        self.took_at_ms.store(now_ms(), Ordering::Relaxed);
    }

    /// Whether the output has taken nothing for as long as the end of the run waits.
    fn is_stalled(&self) -> bool {
        let idle_ms = || now_ms().saturating_sub(self.took_at_ms.load(Ordering::Relaxed));
        self.end_patience()
            .is_some_and(|patience| u128::from(idle_ms()) >= patience.as_millis())
    }
}

impl OutputThread {
    /// # Errors
    /// If the system refuses a thread.
    pub(super) fn start(output: Output, is_live: bool) -> Result<Self, ConfigError> {
        let gauge = Arc::new(Gauge {
            name: output.name,
            received: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            completes: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            overrun: AtomicU64::new(0),
            metering_waits: AtomicBool::new(true),
            gives_up: AtomicBool::new(is_live),
            end_patience_ms: AtomicU64::new(0),
            took_at_ms: AtomicU64::new(0),
            may_stall: output.may_stall,
            sending: output.writer.sending(),
            progress: Mutex::default(),
        });
        let (queue, incoming) = sync_channel(match is_live {
            true => LIVE_QUEUE_BATCHES,
            false => FILE_QUEUE_BATCHES,
        });
        let shown = Arc::clone(&gauge);
        let thread = std::thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || write_all(output.writer, &shown, &incoming, is_live))
            .map_err(|source| ConfigError::Thread {
                what: "an output",
                source,
            })?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
            gauge,
        })
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.gauge.name == name
    }

    /// Puts a batch into the queue, or counts its records as discarded if there is no room.
    pub(super) fn give(&self, batch: &Arc<FlowBatch>) {
        let (Some(queue), gauge) = (&self.queue, &self.gauge) else {
            return;
        };
        let rows = batch.rows();
        if rows == 0 {
            // Not worth a wait: another watermark follows in the next cell.
            let _ = queue.try_send(Arc::clone(batch));
            return;
        }
        let mut waited = Duration::ZERO;
        let mut batch = Arc::clone(batch);
        loop {
            // Acquires the end patience and its start, which are stored before `gives_up`.
            let gives_up = gauge.gives_up.load(Ordering::Acquire);
            if gauge.reserve(rows) {
                let waits = !gives_up && !gauge.has_time_limit();
                batch = match put(queue, batch, waits) {
                    Ok(()) => {
                        gauge.received.fetch_add(rows as u64, Ordering::Relaxed);
                        return;
                    }
                    Err(batch) => batch,
                };
                gauge.waiting.fetch_sub(rows, Ordering::Relaxed);
            }
            let is_patient = match gives_up {
                true => waited < PATIENCE && gauge.metering_waits.load(Ordering::Relaxed),
                false => !gauge.is_stalled(),
            };
            if !is_patient {
                break;
            }
            pause();
            waited += PAUSE;
        }
        gauge.metering_waits.store(false, Ordering::Relaxed);
        gauge.overrun.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// From now on, discards records only if the output stalls for `patience`.
    pub(super) fn wait_from_now_on(&self, patience: Option<Duration>) {
        let gauge = &self.gauge;
        let patience = patience.filter(|_| gauge.may_stall);
        let patience_ms = patience.map_or(0, |patience| patience.as_millis().max(1));
        let patience_ms = u64::try_from(patience_ms).unwrap_or(u64::MAX);
        gauge.took_at_ms.store(now_ms(), Ordering::Relaxed);
        gauge.end_patience_ms.store(patience_ms, Ordering::Relaxed);
        gauge.gives_up.store(false, Ordering::Release);
    }

    /// Records written and dropped, as far as they are known.
    pub(super) fn progress(&self) -> WriteProgress {
        let sending = self.gauge.sending.as_ref().map(|sending| sending.read());
        self.progress_with(sending.as_ref())
    }

    fn progress_with(&self, sending: Option<&SendSnapshot>) -> WriteProgress {
        let gauge = &self.gauge;
        let mut progress = match sending {
            Some(sending) => WriteProgress {
                records_written: sending.records_sent,
                records_dropped: sending.records_lost,
            },
            None => *gauge
                .progress
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        };
        progress.records_dropped += gauge.overrun.load(Ordering::Relaxed);
        progress
    }

    pub(super) fn snapshot(&self) -> OutputSnapshot {
        let gauge = &self.gauge;
        let sending = gauge.sending.as_ref().map(|sending| sending.read());
        OutputSnapshot {
            name: gauge.name.clone(),
            records: gauge.received.load(Ordering::Relaxed),
            records_overrun: gauge.overrun.load(Ordering::Relaxed),
            failed: gauge.failed.load(Ordering::Relaxed),
            progress: self.progress_with(sending.as_ref()),
            sending,
        }
    }

    /// Closes the queue. Queued records are still written.
    pub(super) fn close(mut self) -> Self {
        self.gauge.completes.store(true, Ordering::Relaxed);
        self.queue = None;
        self
    }

    /// Whether the thread has ended, or has stalled for too long.
    fn is_over(&self) -> bool {
        let has_ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        has_ended || self.gauge.is_stalled()
    }

    /// Waits until everything is written, or abandons a stalled output.
    fn finish(mut self) -> OutputReport {
        let thread = self.thread.take().expect("an output is finished once");
        let mut report = match self.gauge.is_stalled() && !thread.is_finished() {
            // The thread may never end. It is left running until the process exits.
            true => self.stalled(),
            false => match thread.join() {
                Ok(report) => report,
                Err(panic) => std::panic::resume_unwind(panic),
            },
        };
        report.records_overrun = self.gauge.overrun.load(Ordering::Relaxed);
        report.records_dropped += report.records_overrun;
        report
    }

    /// The report of a stalled output.
    fn stalled(&self) -> OutputReport {
        let gauge = &self.gauge;
        let progress = gauge.progress.lock();
        let records = progress
            .unwrap_or_else(PoisonError::into_inner)
            .records_written;
        let received = gauge.received.load(Ordering::Relaxed);
        OutputReport {
            name: gauge.name.clone(),
            outcome: Err(ExportError::Stalled {
                place: gauge.name.clone(),
                records,
                waited: gauge.end_patience().unwrap_or_default(),
            }),
            records_dropped: received.saturating_sub(records),
            records_overrun: 0,
        }
    }
}

/// Closes all outputs, and waits until each has written everything or has stalled.
pub(super) fn finish_all(threads: impl Iterator<Item = OutputThread>) -> Vec<OutputReport> {
    // All are closed first, so that they finish in parallel.
    let threads: Vec<OutputThread> = threads.map(OutputThread::close).collect();
    let hurried = |thread: &&OutputThread| thread.gauge.has_time_limit();
    while !threads.iter().filter(hurried).all(OutputThread::is_over) {
        pause();
    }
    threads.into_iter().map(OutputThread::finish).collect()
}

/// Puts a batch into the queue. Returns it if the queue is full and `waits` is false.
fn put(
    queue: &SyncSender<Arc<FlowBatch>>,
    batch: Arc<FlowBatch>,
    waits: bool,
) -> Result<(), Arc<FlowBatch>> {
    let alive = "an output's thread reads until its queue is closed";
    if waits {
        queue.send(batch).expect(alive);
        return Ok(());
    }
    match queue.try_send(batch) {
        Ok(()) => Ok(()),
        Err(TrySendError::Full(batch)) => Err(batch),
        Err(TrySendError::Disconnected(_)) => unreachable!("{alive}"),
    }
}

/// Milliseconds since the first call.
#[allow(
    clippy::disallowed_methods,
    reason = "patience is measured in real time"
)]
fn now_ms() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_millis() as u64
}

#[allow(clippy::disallowed_methods, reason = "waits for an output to catch up")]
fn pause() {
    std::thread::sleep(PAUSE);
}
