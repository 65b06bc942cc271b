// SPDX-License-Identifier: Apache-2.0
//! The thread that learns: it reads taps, decides, and writes rows. Packets do not wait for it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use turboflow_engine_xdp::{Tap, TapKind, TapRing};

use super::KernelTable;
use crate::{
    Decider, FlowKey, FlowTable, Learner, LearnerConfig, LearnerCounts, TableError, Tapped, Times,
};

/// Maximum number of taps between two writes of rows.
const TAPS_AT_ONCE: usize = 4_096;
/// Maximum wait for a tap. In between, rows that are due are handled.
const LONGEST_WAIT_NS: u64 = 20_000_000;
/// Time between two rounds while taps arrive, so that rows are written in batches. It delays a
/// verdict by at most this.
const ROUND_NS: u64 = 1_000_000;

/// What a learner needs.
pub(super) struct Parts {
    pub(super) table: KernelTable,
    pub(super) taps: TapRing,
    pub(super) decider: Box<dyn Decider>,
    pub(super) config: LearnerConfig,
}

/// What the thread shares with the engine.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    counts: Mutex<LearnerCounts>,
}

/// A running learner.
pub(super) struct LearnerThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), TableError>>>,
    has_failed: bool,
}

impl LearnerThread {
    pub(super) fn start(parts: Parts) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = Builder::new()
            .name("learner".to_owned())
            .spawn(move || learn(parts, &own))?;
        Ok(Self {
            shared,
            thread: Some(thread),
            has_failed: false,
        })
    }

    pub(super) fn counts(&self) -> LearnerCounts {
        *self.shared.lock()
    }

    /// Whether the thread ended without being stopped. Then no more flows are decided.
    pub(super) fn has_failed(&self) -> bool {
        let thread = self.thread.as_ref();
        self.has_failed || thread.is_some_and(JoinHandle::is_finished)
    }

    /// Ends the thread after it has read the waiting taps.
    pub(super) fn stop(&mut self) {
        let failed = self.has_failed();
        self.shared.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            self.has_failed = failed || !matches!(thread.join(), Ok(Ok(())));
        }
    }
}

impl Drop for LearnerThread {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, LearnerCounts> {
        // The counters are valid at any moment, so a panic cannot corrupt them.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn learn(parts: Parts, shared: &Shared) -> Result<(), TableError> {
    let Parts {
        mut table,
        mut taps,
        decider,
        config,
    } = parts;
    let mut learner = Learner::new(decider, config);
    let times = Times {
        now_ns: 0,
        idle_ns: config.idle_ns,
        linger_ns: config.linger_ns,
    };
    let mut now_ns = table.program(&[], times, &mut Vec::new())?;
    loop {
        // Read before the taps, so that a stop does not leave waiting taps unread.
        let ends = shared.stop.load(Ordering::Acquire);
        let mut any = false;
        loop {
            let read = taps
                .read(TAPS_AT_ONCE, |tap| give(&mut learner, tap))
                .map_err(TableError::new)?;
            any |= read > 0;
            now_ns = learner.step(&mut table, now_ns)?;
            *shared.lock() = learner.counts();
            // Orders left from the last round are carried out before any wait for taps.
            if read < TAPS_AT_ONCE && learner.waiting() == 0 {
                break;
            }
        }
        if ends {
            break;
        }
        match any {
            true => taps.pause(ROUND_NS),
            false => taps.wait(LONGEST_WAIT_NS).map_err(TableError::new)?,
        }
    }
    learner.finish(&mut table, now_ns)?;
    *shared.lock() = learner.counts();
    Ok(())
}

/// Gives a tap to the learner.
fn give<D: Decider>(learner: &mut Learner<D>, tap: &Tap<'_>) {
    let key = FlowKey::of_words(tap.flow);
    if tap.kind == TapKind::End {
        learner.connection_ended(key, tap.time_ns);
        return;
    }
    if tap.kind == TapKind::Anew {
        learner.begins_anew(key);
    }
    learner.take(&Tapped {
        key,
        time_ns: tap.time_ns,
        is_reversed: tap.is_reversed,
        tcp_flags: tap.tcp_flags,
        frame_bytes: tap.frame_bytes,
        frame: tap.frame,
    });
}
