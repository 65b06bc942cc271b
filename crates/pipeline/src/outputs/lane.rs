// SPDX-License-Identifier: Apache-2.0
//! The way to one output: a bounded queue, and the thread that empties it.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use turboflow_export::WriteProgress;
use turboflow_export::transport::{SendGauge, SendSnapshot};
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

    /// Puts a batch into the queue, or counts its records where there is no room.
    pub(super) fn give(&self, batch: &Arc<FlowBatch>) {
        let (Some(queue), gauge) = (&self.queue, &self.gauge) else {
            return;
        };
        let rows = batch.rows();
        let alive = "an output's thread reads until its queue is closed";
        let mut waited = Duration::ZERO;
        let mut batch = Arc::clone(batch);
        loop {
            let gives_up = gauge.gives_up.load(Ordering::Relaxed);
            if gauge.reserve(rows) {
                if !gives_up {
                    queue.send(batch).expect(alive);
                    gauge.received.fetch_add(rows as u64, Ordering::Relaxed);
                    return;
                }
                batch = match queue.try_send(batch) {
                    Ok(()) => {
                        gauge.received.fetch_add(rows as u64, Ordering::Relaxed);
                        return;
                    }
                    Err(TrySendError::Full(batch)) => batch,
                    Err(TrySendError::Disconnected(_)) => unreachable!("{alive}"),
                };
                gauge.waiting.fetch_sub(rows, Ordering::Relaxed);
            }
            let is_patient = waited < PATIENCE && gauge.is_waited_for.load(Ordering::Relaxed);
            if gives_up && !is_patient {
                break;
            }
            pause();
            waited += PAUSE;
        }
        gauge.is_waited_for.store(false, Ordering::Relaxed);
        gauge.overrun.fetch_add(rows as u64, Ordering::Relaxed);
    }

    pub(super) fn wait_from_now_on(&self) {
        self.gauge.gives_up.store(false, Ordering::Relaxed);
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

    /// Waits until everything is written.
    pub(super) fn finish(self) -> OutputReport {
        let mut ended = self.close();
        let thread = ended.thread.take().expect("an output ends once");
        let gauge = &ended.gauge;
        let mut report = match thread.join() {
            Ok(report) => report,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        report.records_overrun = gauge.overrun.load(Ordering::Relaxed);
        report.records_dropped += report.records_overrun;
        report
    }
}

#[allow(clippy::disallowed_methods, reason = "waits for an output to catch up")]
fn pause() {
    std::thread::sleep(PAUSE);
}
