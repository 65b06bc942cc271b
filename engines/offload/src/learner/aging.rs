// SPDX-License-Identifier: Apache-2.0
//! Schedules when rows are checked again: in buckets of time, so that the cost per row does not
//! depend on the number of rows.

use std::collections::{HashMap, VecDeque};

use crate::FlowKey;

/// Keys by the time at which they are due, in time steps.
pub(super) struct Aging {
    step_ns: u64,
    /// Number of the first bucket: its time divided by the step.
    first: u64,
    buckets: VecDeque<Vec<FlowKey>>,
    /// How many times each key is skipped when it is due. This saves searching for it in its
    /// bucket.
    forgotten: HashMap<FlowKey, u32>,
}

/// Maximum number of steps ahead. Keys due later are checked at that limit, and put in again.
const MAX_STEPS: u64 = 1 << 12;

impl Aging {
    pub(super) fn new(step_ns: u64) -> Self {
        Self {
            step_ns: step_ns.max(1),
            first: 0,
            buckets: VecDeque::new(),
            forgotten: HashMap::new(),
        }
    }

    /// Removes one entry of a key. If the key was put in several times, its earliest entry is
    /// removed.
    pub(super) fn forget(&mut self, key: FlowKey) {
        *self.forgotten.entry(key).or_default() += 1;
    }

    /// Whether an entry that is due was removed before.
    fn is_forgotten(forgotten: &mut HashMap<FlowKey, u32>, key: FlowKey) -> bool {
        let Some(times) = forgotten.get_mut(&key) else {
            return false;
        };
        *times -= 1;
        if *times == 0 {
            forgotten.remove(&key);
        }
        true
    }

    /// Adds a key that is due at `due_ns`.
    pub(super) fn push(&mut self, key: FlowKey, due_ns: u64) {
        let number = due_ns / self.step_ns + 1;
        if self.buckets.is_empty() {
            self.first = number;
        }
        while number < self.first && self.buckets.len() < MAX_STEPS as usize {
            self.buckets.push_front(Vec::new());
            self.first -= 1;
        }
        let place = number.saturating_sub(self.first).min(MAX_STEPS) as usize;
        while self.buckets.len() <= place {
            self.buckets.push_back(Vec::new());
        }
        self.buckets[place].push(key);
    }

    /// Passes at most `at_most` of the keys that are due to `take`, and removes them.
    pub(super) fn take_due(&mut self, now_ns: u64, at_most: usize, mut take: impl FnMut(FlowKey)) {
        let now = now_ns / self.step_ns;
        let mut taken = 0;
        while self.first <= now
            && let Some(bucket) = self.buckets.front_mut()
        {
            let keys = bucket.len().min(at_most - taken);
            for key in bucket.drain(bucket.len() - keys..) {
                if !Self::is_forgotten(&mut self.forgotten, key) {
                    take(key);
                }
            }
            taken += keys;
            if !bucket.is_empty() {
                return;
            }
            self.buckets.pop_front();
            self.first += 1;
        }
    }

    /// Moves all due times back, after the clock was set back by `by_ns`.
    pub(super) fn set_back(&mut self, by_ns: u64) {
        self.first = self.first.saturating_sub(by_ns / self.step_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> FlowKey {
        FlowKey::of_words([number, 1, 0, 0, 0])
    }

    fn due(aging: &mut Aging, now_ns: u64, at_most: usize) -> Vec<u64> {
        let mut due = Vec::new();
        aging.take_due(now_ns, at_most, |key| due.push(key.words()[0]));
        due.sort_unstable();
        due
    }

    #[test]
    fn keys_come_when_they_are_due_and_never_before() {
        let mut aging = Aging::new(10);
        for (number, due_ns) in [(1, 1_000), (2, 1_005), (3, 1_100), (4, 900), (5, 1_000_000)] {
            aging.push(key(number), due_ns);
        }
        assert_eq!(due(&mut aging, 899, 9), []);
        assert_eq!(due(&mut aging, 910, 9), [4]);
        assert_eq!(due(&mut aging, 1_009, 9), []);
        assert_eq!(due(&mut aging, 1_010, 1).len(), 1);
        assert_eq!(due(&mut aging, 1_010, 9).len(), 1);
        aging.push(key(6), 1_011);
        assert_eq!(due(&mut aging, 1_099, 9), [6]);
        assert_eq!(due(&mut aging, 1_110, 9), [3]);
        // Beyond the last bucket: the key comes before it is due, and its row is then kept.
        assert_eq!(due(&mut aging, 2_000_000, 9), [5]);
        assert_eq!(due(&mut aging, u64::MAX, 9), []);
    }

    #[test]
    fn a_key_that_was_taken_out_is_passed_over_once() {
        let mut aging = Aging::new(10);
        for due_ns in [100, 200, 300] {
            aging.push(key(1), due_ns);
            aging.push(key(2), due_ns);
        }
        aging.forget(key(1));
        aging.forget(key(1));
        assert_eq!(due(&mut aging, 110, 9), [2]);
        assert_eq!(due(&mut aging, 210, 9), [2]);
        assert_eq!(due(&mut aging, 310, 9), [1, 2]);
        assert!(aging.forgotten.is_empty());
    }

    #[test]
    fn what_is_due_follows_a_clock_that_is_set_back() {
        let mut aging = Aging::new(10);
        aging.push(key(1), 5_000);
        aging.set_back(4_000);
        assert_eq!(due(&mut aging, 999, 9), []);
        assert_eq!(due(&mut aging, 1_020, 9), [1]);
    }
}
