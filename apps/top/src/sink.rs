// SPDX-License-Identifier: Apache-2.0
//! An output of the pipeline that adds records to the screen's traffic.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use turboflow_formats::{ExportError, FlowWriter, WriteSummary};
use turboflow_record::FlowBatch;

use crate::bins::Sums;
use crate::traffic::{Columns, Traffic};

/// Maximum number of batches waiting to be added.
const QUEUE_BATCHES: usize = 32;

/// Adds every record to a [`Traffic`] that the screen reads.
pub struct TrafficWriter {
    traffic: Arc<Mutex<Traffic>>,
    /// The thread that adds records, if the meter must not wait for it.
    adder: Option<Adder>,
    records: u64,
}

/// The thread that adds records, and the sum of records for which it had no time.
struct Adder {
    queue: SyncSender<Work>,
    thread: JoinHandle<()>,
    columns: Columns,
    skipped: Skipped,
}

struct Work {
    batch: Option<FlowBatch>,
    skipped: Skipped,
}

/// Records that count only in the sum of all flows.
#[derive(Debug, Default)]
pub(crate) struct Skipped {
    pub(crate) records: u64,
    pub(crate) bins: BTreeMap<u64, Sums>,
}

impl TrafficWriter {
    /// A writer that blocks until records are added, so that none is skipped.
    #[must_use]
    pub const fn patient(traffic: Arc<Mutex<Traffic>>) -> Self {
        Self {
            traffic,
            adder: None,
            records: 0,
        }
    }

    /// A writer that never blocks the meter. If records arrive faster than rows can be updated, the
    /// excess counts only in the sum of all flows.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn prompt(traffic: Arc<Mutex<Traffic>>) -> io::Result<Self> {
        let columns = lock(&traffic).columns();
        let (queue, incoming) = sync_channel(QUEUE_BATCHES);
        let adding = Arc::clone(&traffic);
        let thread = Builder::new().name("screen".to_owned());
        let thread = thread.spawn(move || add_all(&adding, &incoming))?;
        Ok(Self {
            traffic,
            adder: Some(Adder {
                queue,
                thread,
                columns,
                skipped: Skipped::default(),
            }),
            records: 0,
        })
    }
}

fn add_all(traffic: &Mutex<Traffic>, incoming: &Receiver<Work>) {
    for work in incoming {
        let mut traffic = lock(traffic);
        traffic.skip(&work.skipped);
        if let Some(batch) = &work.batch {
            traffic.add(batch);
        }
    }
}

fn lock(traffic: &Mutex<Traffic>) -> std::sync::MutexGuard<'_, Traffic> {
    traffic.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Adder {
    fn write(&mut self, batch: &FlowBatch) {
        let work = Work {
            batch: Some(batch.clone()),
            skipped: std::mem::take(&mut self.skipped),
        };
        if let Err(TrySendError::Full(work) | TrySendError::Disconnected(work)) =
            self.queue.try_send(work)
        {
            self.skipped = work.skipped;
            self.columns.sum(batch, &mut self.skipped);
        }
    }

    /// Waits until all records are added.
    fn finish(self) {
        let Self {
            queue,
            thread,
            skipped,
            ..
        } = self;
        let batch = None;
        // If the send fails, the thread has panicked; `join` reports that.
        let _ = queue.send(Work { batch, skipped });
        drop(queue);
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

impl FlowWriter for TrafficWriter {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        self.records += batch.rows() as u64;
        match &mut self.adder {
            Some(adder) => adder.write(batch),
            None => lock(&self.traffic).add(batch),
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError> {
        if let Some(adder) = self.adder {
            adder.finish();
        }
        Ok(WriteSummary {
            records: self.records,
            bytes: 0,
        })
    }
}
