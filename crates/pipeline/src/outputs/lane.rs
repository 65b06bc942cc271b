// SPDX-License-Identifier: Apache-2.0
//! The way to one output: a bounded queue, and the thread that empties it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use turboflow_export::transport::{SendGauge, SendSnapshot};
use turboflow_export::{ExportError, WriteProgress};
use turboflow_record::FlowBatch;

use super::writing::write_all;
use super::{Output, OutputReport, OutputSnapshot};
use crate::ConfigError;

/// Batches that wait for an output at most, where metering waits with them.
const FILE_QUEUE_BATCHES: usize = 32;
/// Records that wait for an output at most, but for a batch: many flows may end at once.
pub(super) const QUEUE_RECORDS: usize = 1 << 20;
/// Batches that do where metering does not wait; many have few records.
const LIVE_QUEUE_BATCHES: usize = 1 << 14;
/// How long metering waits for an output whose queue has filled up: less than the ring of an
/// interface holds.
const PATIENCE: Duration = Duration::from_millis(50);
const PAUSE: Duration = Duration::from_millis(1);

pub(super) struct Lane {
    /// `None` once it is closed.
    queue: Option<SyncSender<Arc<FlowBatch>>>,
    /// `None` once it has ended.
    thread: Option<JoinHandle<OutputReport>>,
    gauge: Arc<Gauge>,
    /// Since when the end waits for it in vain.
    stall: Stall,
}

impl Drop for Lane {
    /// An output that was given up has taken away what it began before the process goes on.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // Its panic is that of the run.
            let _ = thread.join();
        }
    }
}

/// How an output stands, for others to read while it writes.
pub(super) struct Gauge {
    pub(super) name: String,
    /// Records that it was given, those that wait included.
    received: AtomicU64,
    pub(super) failed: AtomicBool,
    /// Whether the end of its queue is its own end, not that of a run which could not start.
    pub(super) completes: AtomicBool,
    /// Records in its queue.
    pub(super) waiting: AtomicUsize,
    /// Records for which there was no room.
    overrun: AtomicU64,
    /// Whether metering waits for room: always, or until that was in vain, and from when half of
    /// the queue is free again.
    is_waited_for: AtomicBool,
    gives_up: AtomicBool,
    /// How long the end of a run waits for it while it takes nothing, in ms; 0: as long as it needs.
    end_patience_ms: AtomicU64,
    /// How often it has taken what waited.
    taken: AtomicU64,
    /// One more than `taken` when somebody had waited so long in vain; 0: nobody has.
    stalled_at: AtomicU64,
    sending: Option<Arc<SendGauge>>,
    /// As the output's thread saw it last; a collector's is in `sending`.
    progress: Mutex<WriteProgress>,
}

impl Gauge {
    /// Tells others what has become of the records.
    pub(super) fn show(&self, progress: WriteProgress) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    /// Counts records as waiting if there is room for them: whoever waits for room counts for nothing.
    fn reserve(&self, rows: usize) -> bool {
        let waiting = self.waiting.fetch_add(rows, Ordering::Relaxed);
        if waiting < QUEUE_RECORDS / 2 {
            self.is_waited_for.store(true, Ordering::Relaxed);
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

    /// Records of batches left the queue for good.
    pub(super) fn took(&self, rows: usize) {
        self.waiting.fetch_sub(rows, Ordering::Relaxed);
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether it has taken nothing since somebody last waited for it in vain.
    fn is_stalled(&self) -> bool {
        self.stalled_at.load(Ordering::Relaxed) == self.taken.load(Ordering::Relaxed) + 1
    }
}

/// How long somebody has waited for an output that takes nothing.
#[derive(Default)]
struct Stall {
    taken: u64,
    waited: Duration,
}

impl Stall {
    /// Another [`PAUSE`] has passed. Whether waiting goes on.
    fn goes_on(&mut self, gauge: &Gauge) -> bool {
        let Some(patience) = gauge.end_patience() else {
            return true;
        };
        if gauge.is_stalled() {
            return false;
        }
        let taken = gauge.taken.load(Ordering::Relaxed);
        if taken != self.taken {
            *self = Self {
                taken,
                waited: Duration::ZERO,
            };
        }
        self.waited += PAUSE;
        if self.waited >= patience {
            gauge.stalled_at.store(taken + 1, Ordering::Relaxed);
        }
        self.waited < patience
    }
}

impl Lane {
    /// # Errors
    /// The system starts no more threads.
    pub(super) fn start(output: Output, is_live: bool) -> Result<Self, ConfigError> {
        let gauge = Arc::new(Gauge {
            name: output.name,
            received: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            completes: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            overrun: AtomicU64::new(0),
            is_waited_for: AtomicBool::new(true),
            gives_up: AtomicBool::new(is_live),
            end_patience_ms: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            stalled_at: AtomicU64::new(0),
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
            stall: Stall::default(),
        })
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.gauge.name == name
    }

    /// Puts a batch into the queue, or counts its records where there is no room.
    pub(super) fn give(&self, batch: &Arc<FlowBatch>) {
        let (Some(queue), gauge) = (&self.queue, &self.gauge) else {
            return;
        };
        let rows = batch.rows();
        let mut waited = Duration::ZERO;
        let mut stall = Stall::default();
        let mut batch = Arc::clone(batch);
        loop {
            let gives_up = gauge.gives_up.load(Ordering::Relaxed);
            if gauge.reserve(rows) {
                let waits = !gives_up && gauge.end_patience().is_none();
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
                true => waited < PATIENCE && gauge.is_waited_for.load(Ordering::Relaxed),
                false => stall.goes_on(gauge),
            };
            if !is_patient {
                break;
            }
            pause();
            waited += PAUSE;
        }
        gauge.is_waited_for.store(false, Ordering::Relaxed);
        gauge.overrun.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Nothing is dropped any more, unless it takes nothing for so long.
    pub(super) fn wait_from_now_on(&self, patience: Option<Duration>) {
        let patience_ms = patience.map_or(0, |patience| patience.as_millis().max(1));
        let patience_ms = u64::try_from(patience_ms).unwrap_or(u64::MAX);
        let gauge = &self.gauge;
        gauge.end_patience_ms.store(patience_ms, Ordering::Relaxed);
        gauge.gives_up.store(false, Ordering::Relaxed);
    }

    /// What has become of its records, as far as it is known.
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

    /// Gives it nothing more. What waits is written.
    pub(super) fn close(mut self) -> Self {
        self.gauge.completes.store(true, Ordering::Relaxed);
        self.queue = None;
        self
    }

    /// Whether its thread has ended, or another [`PAUSE`] of waiting for it was one too many.
    fn is_over(&mut self) -> bool {
        let has_ended = self.thread.as_ref().is_none_or(JoinHandle::is_finished);
        has_ended || !self.stall.goes_on(&self.gauge)
    }

    /// Waits until everything is written, or no longer for one that takes nothing.
    fn finish(mut self) -> OutputReport {
        let thread = self.thread.take().expect("an output ends once");
        let mut report = match self.gauge.is_stalled() && !thread.is_finished() {
            // It may never end; the process does.
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

    /// What is known of an output that takes nothing.
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

/// Closes all of them, and waits until each has written everything or takes nothing any more.
pub(super) fn finish_all(lanes: impl Iterator<Item = Lane>) -> Vec<OutputReport> {
    // All are closed before one is waited for.
    let mut lanes: Vec<Lane> = lanes.map(Lane::close).collect();
    let ends = |lane: &Lane| lane.gauge.end_patience().is_some();
    while lanes.iter().any(ends) {
        // Each is asked: they are waited for side by side.
        let waiting = lanes
            .iter_mut()
            .filter_map(|lane| (!lane.is_over()).then_some(()));
        if waiting.count() == 0 {
            break;
        }
        pause();
    }
    lanes.into_iter().map(Lane::finish).collect()
}

/// Puts a batch into the queue; gives it back where there is no room and it does not wait.
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

#[allow(clippy::disallowed_methods, reason = "waits for an output to catch up")]
fn pause() {
    std::thread::sleep(PAUSE);
}
