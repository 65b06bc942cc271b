// SPDX-License-Identifier: Apache-2.0
//! The screen's side of the pipeline: an output like a file, that adds records up.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use turboflow_formats::{ExportError, FlowWriter, WriteSummary};
use turboflow_record::FlowBatch;

use crate::bins::Sums;
use crate::traffic::{Columns, Traffic};

/// Batches that wait to be added up at most.
const QUEUE_BATCHES: usize = 32;

/// Adds every record to a [`Traffic`] that the screen reads.
pub struct TrafficWriter {
    traffic: Arc<Mutex<Traffic>>,
    /// Where packets do not wait, adding up has a thread of its own.
    aside: Option<Aside>,
    records: u64,
}

/// The thread that adds up, and what was too much for it.
struct Aside {
    queue: SyncSender<Work>,
    thread: JoinHandle<()>,
    columns: Columns,
    skipped: Skipped,
}

struct Work {
    batch: Option<FlowBatch>,
    skipped: Skipped,
}

/// Records that are in the sum of all flows, and in no row.
#[derive(Debug, Default)]
pub(crate) struct Skipped {
    pub(crate) records: u64,
    pub(crate) bins: BTreeMap<u64, Sums>,
}

impl TrafficWriter {
    /// A writer that makes whoever writes wait until records are added up: nothing is left out.
    #[must_use]
    pub const fn patient(traffic: Arc<Mutex<Traffic>>) -> Self {
        Self {
            traffic,
            aside: None,
            records: 0,
        }
    }

    /// A writer that never lets the meter wait. Records that come faster than rows can be found
    /// for them are only in the sum of all flows, and counted.
    ///
    /// # Errors
    /// The system starts no more threads.
    pub fn prompt(traffic: Arc<Mutex<Traffic>>) -> io::Result<Self> {
        let columns = lock(&traffic).columns();
        let (queue, incoming) = sync_channel(QUEUE_BATCHES);
        let adding = Arc::clone(&traffic);
        let thread = Builder::new().name("screen".to_owned());
        let thread = thread.spawn(move || add_all(&adding, &incoming))?;
        Ok(Self {
            traffic,
            aside: Some(Aside {
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

impl Aside {
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

    /// Waits until everything is added up.
    fn finish(self) {
        let Self {
            queue,
            thread,
            skipped,
            ..
        } = self;
        let batch = None;
        // A thread that is gone has panicked, which joining it says.
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
        match &mut self.aside {
            Some(aside) => aside.write(batch),
            None => lock(&self.traffic).add(batch),
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError> {
        if let Some(aside) = self.aside {
            aside.finish();
        }
        Ok(WriteSummary {
            records: self.records,
            bytes: 0,
        })
    }
}
