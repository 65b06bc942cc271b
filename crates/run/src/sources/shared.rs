// SPDX-License-Identifier: Apache-2.0
//! What the readers of a live run share: limits, progress, the end, and the snapshot. Each reader
//! has its own rings, parser, clock, shards and counters; the counters are added up here.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use turboflow_engine::{OwnCount, PortCounters, PortState};

use super::{Limits, LiveProgress, RunReport};
use crate::meter::Counts;
use crate::outputs::Outputs;
use crate::snapshots::{LiveSnapshot, Snapshots};
use crate::{Ledger, Stop};

/// The counters of one reader, or the sum over all readers. The counters of each reader balance at
/// that reader's own moment, so their sum balances too.
pub(super) struct Totals {
    pub(super) counts: Counts,
    pub(super) ports: Vec<(String, PortCounters, PortState)>,
    /// Counters that only the engine of the run has.
    pub(super) own_counts: Vec<OwnCount>,
    /// Packets dropped on a path that all ports share, so that no port counts them.
    pub(super) dropped_on_shared_path: u64,
    /// Packets that the kernel has counted, but that are neither metered nor dropped.
    pub(super) unread: u64,
    /// Everything before this time has been metered.
    pub(super) clock_ns: u64,
}

impl Totals {
    fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        for ((_, sum, state), (_, counters, other)) in self.ports.iter_mut().zip(&other.ports) {
            *sum += *counters;
            if other.is_final() {
                *state = *other;
            }
        }
        self.dropped_on_shared_path += other.dropped_on_shared_path;
        self.unread += other.unread;
        self.clock_ns = self.clock_ns.min(other.clock_ns);
    }

    /// The sum; `None` without any readers.
    pub(super) fn sum(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        parts.into_iter().reduce(|mut sum, totals| {
            sum.merge(&totals);
            sum
        })
    }

    pub(super) fn ledger(&self) -> Ledger {
        let mut ledger = self.counts.ledger();
        ledger.is_live = true;
        for (_, counters, _) in &self.ports {
            ledger.source_seen += counters.seen - counters.copies;
            ledger.source_dropped += counters.dropped;
        }
        ledger.source_dropped += self.dropped_on_shared_path;
        ledger.source_unread = self.unread;
        ledger
    }

    /// Sets `unread` to the packets that the kernel has counted and that are in no other counter.
    pub(super) fn find_unread(&mut self) {
        let ledger = self.ledger();
        let accounted = ledger.packets_received + ledger.source_dropped;
        self.unread = ledger.source_seen.saturating_sub(accounted);
    }

    /// The report of the run, without its outputs.
    pub(super) fn report(self, failure: Option<io::Error>) -> RunReport {
        let ledger = self.ledger();
        RunReport {
            ports: self.ports,
            own_counts: self.own_counts,
            failure,
            ..RunReport::of_ledger(ledger)
        }
    }

    fn snapshot(self, writing: &Outputs) -> LiveSnapshot {
        let outputs = writing.snapshot();
        let progress = writing.progress(&outputs);
        LiveSnapshot {
            ledger: Ledger {
                records_written: progress.records_written,
                records_dropped: progress.records_dropped,
                ..self.ledger()
            },
            clock_ns: self.clock_ns,
            interfaces: self.ports,
            own_counts: self.own_counts,
            outputs,
        }
    }
}

/// The state of a run that its readers share.
pub(super) struct Shared {
    packets_limit: u64,
    ends: Option<Instant>,
    packets: AtomicU64,
    bytes: AtomicU64,
    /// Packets that the kernel dropped, by reader.
    dropped: Vec<AtomicU64>,
    /// How many rounds each reader has made over its rings; `u64::MAX` once it has ended.
    rounds: Vec<AtomicU64>,
    ended: Stop,
    /// The totals for the requested snapshot, by reader.
    parts: Mutex<Vec<Option<Totals>>>,
}

impl Shared {
    pub(super) fn new(limits: Limits, readers: usize) -> Self {
        Self {
            packets_limit: limits.packets.unwrap_or(u64::MAX),
            ends: limits
                .duration
                .and_then(|duration| instant().checked_add(duration)),
            packets: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            dropped: (0..readers).map(|_| AtomicU64::new(0)).collect(),
            rounds: (0..readers).map(|_| AtomicU64::new(0)).collect(),
            ended: Stop::new(),
            parts: Mutex::new((0..readers).map(|_| None).collect()),
        }
    }

    /// When the run ends, if its duration is limited.
    pub(super) const fn ends(&self) -> Option<Instant> {
        self.ends
    }

    /// Takes up to `packets` from the packet limit. Returns how many could be taken.
    pub(super) fn take(&self, packets: usize) -> usize {
        let grant = |taken: u64| packets.min(usize::try_from(self.left(taken)).unwrap_or(packets));
        let count = |taken| Some(taken + grant(taken) as u64);
        match self
            .packets
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, count)
        {
            Ok(before) | Err(before) => grant(before),
        }
    }

    const fn left(&self, taken: u64) -> u64 {
        self.packets_limit - taken
    }

    pub(super) fn count(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a round of a reader over its rings. `dropped` is the number of packets lost there so
    /// far.
    pub(super) fn count_round(&self, reader: usize, dropped: u64) {
        self.dropped[reader].store(dropped, Ordering::Relaxed);
        self.rounds[reader].fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a reader has ended.
    pub(super) fn has_ended(&self, reader: usize) {
        self.rounds[reader].store(u64::MAX, Ordering::Relaxed);
    }

    /// Whether every reader has made a round, or has ended, since the last call with `seen` that
    /// returned true.
    pub(super) fn all_made_a_round(&self, seen: &mut Vec<u64>) -> bool {
        let load = |rounds: &AtomicU64| rounds.load(Ordering::Relaxed);
        let rounds = self.rounds.iter().map(load);
        let is_new = |(at, rounds)| rounds == u64::MAX || seen.get(at) != Some(&rounds);
        if !rounds.clone().enumerate().all(is_new) {
            return false;
        }
        seen.clear();
        seen.extend(rounds);
        true
    }

    pub(super) fn progress(&self) -> LiveProgress {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LiveProgress {
            packets: of(&self.packets),
            bytes: of(&self.bytes),
            dropped: self.dropped.iter().map(of).sum(),
        }
    }

    /// Ends all readers. Called when one has ended.
    pub(super) fn end(&self) {
        self.ended.ask();
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended.asked()
            || self.left(self.packets.load(Ordering::Relaxed)) == 0
            || self.ends.is_some_and(|ends| instant() >= ends)
    }

    /// Adds the totals of a reader to the snapshot, if one was requested.
    pub(super) fn contribute(
        &self,
        snapshots: &Snapshots,
        reader: usize,
        totals: impl FnOnce() -> Totals,
    ) {
        if !snapshots.are_wanted() {
            return;
        }
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        // Checked again under the lock, so that no totals are left over for the next snapshot.
        if snapshots.are_wanted() && parts[reader].is_none() {
            parts[reader] = Some(totals());
        }
    }

    /// Answers the request for a snapshot once all readers have added their totals.
    pub(super) fn answer(&self, snapshots: &Snapshots, writing: &Outputs) {
        if !snapshots.are_wanted() {
            return;
        }
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if parts.iter().all(Option::is_some)
            && let Some(sum) = Totals::sum(parts.iter_mut().filter_map(Option::take))
        {
            snapshots.answer(sum.snapshot(writing));
        }
    }
}

/// Ends the run when dropped, so that a panic of one reader ends the others.
pub(super) struct EndOnDrop<'a>(pub(super) &'a Shared);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a run of a given duration has to end"
)]
pub(super) fn instant() -> Instant {
    Instant::now()
}

/// The clock with which the kernel timestamps packets, in nanoseconds since 1970.
#[allow(
    clippy::disallowed_methods,
    reason = "drives the clock of a silent live source"
)]
#[must_use]
pub fn wall_ns() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    since_1970.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}
