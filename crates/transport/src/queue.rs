// SPDX-License-Identifier: Apache-2.0
//! The queue between writer and sender. It is bounded in octets, and counts what it drops.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use turboflow_formats::wire::Unit;

/// Units on their way to the sender.
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    limit_bytes: usize,
}

#[derive(Default)]
struct State {
    units: VecDeque<Unit>,
    bytes: usize,
    /// Number of units taken so far, which shows whether the sender makes progress.
    taken: u64,
    is_closed: bool,
    is_abandoned: bool,
    /// Value of `taken` when the writer's last wait timed out. It does not wait again until the
    /// sender has taken another unit.
    stuck_at: Option<u64>,
    lost: Lost,
}

/// Flow records that a collector did not get, or may not have got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lost {
    pub(super) flows: u64,
    pub(super) packets: u64,
    pub(super) octets: u64,
}

/// Result of [`Queue::take`].
pub(super) enum Taken {
    Unit(Unit),
    /// No unit arrived within the timeout.
    Nothing,
    /// The queue is closed and empty.
    Closed,
}

impl Queue {
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            limit_bytes,
        }
    }

    /// Puts a unit in the queue. If the queue is full, waits until there is room; if the sender
    /// makes no progress for `patience`, drops the unit and counts it. Templates and names are
    /// never dropped.
    pub(super) fn push(&self, unit: Unit, patience: Duration) {
        let mut state = self.lock();
        let bytes = match &unit {
            Unit::Template(_) | Unit::Name(_) | Unit::Complete(_) => 0,
            Unit::Data(data) => data.bytes.len(),
        };
        while bytes > 0 && state.bytes + bytes > self.limit_bytes && !state.is_abandoned {
            let taken = state.taken;
            if state.stuck_at != Some(taken) && !patience.is_zero() {
                // Closing also wakes the writer, and so do spurious wake-ups.
                state = self.wait_while(state, patience, |state| {
                    state.taken == taken && !state.is_abandoned
                });
                if state.taken != taken || state.is_abandoned {
                    continue;
                }
            }
            state.stuck_at = Some(taken);
            state.lost.add(&unit);
            return;
        }
        state.bytes += bytes;
        match (state.units.back_mut(), unit) {
            // A later watermark replaces an earlier one, so they do not pile up while records are
            // dropped.
            (Some(Unit::Complete(last)), Unit::Complete(now)) => *last = now,
            (_, unit) => state.units.push_back(unit),
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Takes the next unit, or waits for one.
    pub(super) fn take(&self, timeout: Duration) -> Taken {
        let mut state = self.lock();
        if state.units.is_empty() && !state.is_closed {
            state = self.wait_while(state, timeout, |state| {
                state.units.is_empty() && !state.is_closed
            });
        }
        if state.is_abandoned {
            return Taken::Closed;
        }
        match state.units.pop_front() {
            Some(unit) => {
                if let Unit::Data(data) = &unit {
                    state.bytes -= data.bytes.len();
                }
                state.taken += 1;
                drop(state);
                self.changed.notify_all();
                Taken::Unit(unit)
            }
            None if state.is_closed => Taken::Closed,
            None => Taken::Nothing,
        }
    }

    /// Returns and resets the count of dropped records.
    pub(super) fn take_lost(&self) -> Lost {
        std::mem::take(&mut self.lock().lost)
    }

    /// Waits for `time`; returns early when the queue is closed.
    pub(super) fn pause(&self, time: Duration) {
        let state = self.lock();
        if state.is_closed {
            // After closing, the caller limits its own retries, so a short pause is enough.
            drop(self.wait_while(state, time.min(Duration::from_millis(20)), |_| true));
            return;
        }
        drop(self.wait_while(state, time, |state| !state.is_closed));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Whether a unit put in the queue now would be dropped.
    pub(super) fn is_stuck(&self) -> bool {
        let state = self.lock();
        state.stuck_at == Some(state.taken)
    }

    /// Octets in the queue.
    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Counts records that could not be encoded.
    pub(super) fn lose(&self, flows: u64) {
        if flows > 0 {
            self.lock().lost.flows += flows;
        }
    }

    /// Closes the queue: no more units will be put in.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Closes the queue and discards the rest.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.is_abandoned = true;
        drop(state);
        self.changed.notify_all();
    }

    /// Counts everything in the queue as lost.
    pub(super) fn give_up(&self) {
        let mut state = self.lock();
        while let Some(unit) = state.units.pop_front() {
            state.lost.add(&unit);
        }
        state.bytes = 0;
    }

    fn wait_while<'a>(
        &self,
        state: MutexGuard<'a, State>,
        time: Duration,
        goes_on: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let waited = self
            .changed
            .wait_timeout_while(state, time, |state| goes_on(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lost {
    fn add(&mut self, unit: &Unit) {
        if let Unit::Data(data) = unit {
            self.merge(Self {
                flows: u64::from(data.flows),
                packets: data.packets,
                octets: data.octets,
            });
        }
    }

    pub(super) const fn merge(&mut self, other: Self) {
        self.flows += other.flows;
        self.packets = self.packets.wrapping_add(other.packets);
        self.octets = self.octets.wrapping_add(other.octets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turboflow_formats::wire::DataRecords;

    fn unit(bytes: usize) -> Unit {
        Unit::Data(DataRecords {
            bytes: vec![0; bytes],
            flows: 1,
            packets: 2,
            octets: 3,
            ..DataRecords::default()
        })
    }

    #[test]
    fn counts_units_dropped_from_a_full_queue_and_continues() {
        let queue = Queue::new(10);
        queue.push(unit(6), Duration::ZERO);
        queue.push(unit(6), Duration::ZERO);
        queue.push(Unit::Template(vec![0; 99]), Duration::ZERO);
        let one = Lost {
            flows: 1,
            packets: 2,
            octets: 3,
        };
        assert_eq!(queue.take_lost(), one);
        assert!(matches!(
            queue.take(Duration::ZERO),
            Taken::Unit(Unit::Data(_))
        ));
        queue.push(unit(6), Duration::ZERO);
        assert!(matches!(
            queue.take(Duration::ZERO),
            Taken::Unit(Unit::Template(_))
        ));
        queue.close();
        queue.give_up();
        assert_eq!(queue.take_lost(), one);
        assert!(matches!(queue.take(Duration::ZERO), Taken::Closed));
    }

    #[test]
    fn what_is_complete_is_said_once_where_no_records_are_between() {
        let queue = Queue::new(100);
        for unit in [
            Unit::Complete(1),
            Unit::Complete(2),
            unit(6),
            Unit::Complete(3),
        ] {
            queue.push(unit, Duration::ZERO);
        }
        let next = || queue.take(Duration::ZERO);
        assert!(matches!(next(), Taken::Unit(Unit::Complete(2))));
        assert!(matches!(next(), Taken::Unit(Unit::Data(_))));
        assert!(matches!(next(), Taken::Unit(Unit::Complete(3))));
        assert!(matches!(next(), Taken::Nothing));
    }

    #[test]
    fn does_not_wait_twice_for_a_stalled_sender() {
        let queue = Queue::new(1);
        queue.push(unit(1), Duration::from_millis(1));
        for _ in 0..1_000 {
            queue.push(
                unit(1),
                Duration::from_secs(if queue.lock().stuck_at.is_some() {
                    60
                } else {
                    0
                }),
            );
            // A template is queued where data was dropped, but that is no progress of the sender.
            queue.push(Unit::Template(vec![0; 9]), Duration::ZERO);
        }
        assert_eq!(queue.take_lost().flows, 1_000);
    }

    #[test]
    fn spurious_wake_ups_do_not_shorten_the_wait() {
        let queue = Queue::new(1);
        queue.push(unit(1), Duration::ZERO);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| queue.push(unit(1), Duration::from_secs(60)));
            for _ in 0..1_000 {
                queue.changed.notify_all();
                std::thread::yield_now();
            }
            assert!(matches!(queue.take(Duration::ZERO), Taken::Unit(_)));
            writer.join().unwrap();
        });
        assert_eq!(queue.take_lost(), Lost::default());
        assert!(matches!(queue.take(Duration::ZERO), Taken::Unit(_)));
    }
}
