// SPDX-License-Identifier: Apache-2.0
//! How a run stands while it goes on: one thread asks, the metering thread answers between two
//! blocks of packets. Nothing is counted twice, and nothing is done while nobody asks.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use turboflow_engine::{PortCounters, PortState};

use crate::{Ledger, OutputSnapshot};

/// A run at one moment.
#[derive(Clone, Debug)]
pub struct LiveSnapshot {
    /// Where everything is; `source_unread` is what waits in the rings. It balances.
    pub ledger: Ledger,
    /// Up to which time everything has been metered, in nanoseconds since 1970; 0 before the first
    /// packet.
    pub clock_ns: u64,
    /// What each interface counted, and what it is doing.
    pub interfaces: Vec<(String, PortCounters, PortState)>,
    /// What each output was given.
    pub outputs: Vec<OutputSnapshot>,
}

/// Where snapshots are asked for and answered.
#[derive(Debug)]
pub struct Snapshots {
    wanted: AtomicBool,
    /// How many answers there were, and the last one.
    last: Mutex<(u64, Option<Arc<LiveSnapshot>>)>,
    answered: Condvar,
}

impl Snapshots {
    /// A place where nobody has asked yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            wanted: AtomicBool::new(false),
            last: Mutex::new((0, None)),
            answered: Condvar::new(),
        }
    }

    /// A snapshot that came after this call began; `None` where none came for that long, since
    /// metering stands still or is over.
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
