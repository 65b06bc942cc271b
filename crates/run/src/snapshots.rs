// SPDX-License-Identifier: Apache-2.0
//! Snapshots of a run in progress. One thread requests a snapshot; the metering thread answers
//! between two blocks of packets. Without a request it does no extra work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use turboflow_engine::{OwnCount, PortCounters, PortState};

use crate::{Ledger, OutputSnapshot};

/// The state of a run at one moment.
#[derive(Clone, Debug)]
pub struct LiveSnapshot {
    /// The counters. They balance, with the packets that wait in the rings as `source_unread`.
    pub ledger: Ledger,
    /// Everything before this time has been metered, in nanoseconds since 1970; 0 before the first
    /// packet.
    pub clock_ns: u64,
    /// Counters and state of each interface.
    pub interfaces: Vec<(String, PortCounters, PortState)>,
    /// Counters that only the engine of the run has.
    pub own_counts: Vec<OwnCount>,
    /// The state of each output.
    pub outputs: Vec<OutputSnapshot>,
}

/// Where snapshots are requested and answered.
#[derive(Debug)]
pub struct Snapshots {
    wanted: AtomicBool,
    /// The number of answers, and the last answer.
    last: Mutex<(u64, Option<Arc<LiveSnapshot>>)>,
    answered: Condvar,
}

impl Snapshots {
    /// No snapshot has been requested yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            wanted: AtomicBool::new(false),
            last: Mutex::new((0, None)),
            answered: Condvar::new(),
        }
    }

    /// Requests a snapshot and waits for it. `None` if there is no answer within `patience`,
    /// because metering is blocked or has ended.
    pub fn ask(&self, patience: Duration) -> Option<Arc<LiveSnapshot>> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.0;
        self.wanted.store(true, Ordering::Release);
        let waited = self
            .answered
            .wait_timeout_while(last, patience, |last| last.0 == before);
        let (last, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (last.0 > before).then(|| last.1.clone())?
    }

    pub(crate) fn are_wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }

    pub(crate) fn answer(&self, snapshot: LiveSnapshot) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanted.store(false, Ordering::Release);
        last.0 += 1;
        last.1 = Some(Arc::new(snapshot));
        self.answered.notify_all();
    }
}

impl Default for Snapshots {
    fn default() -> Self {
        Self::new()
    }
}
