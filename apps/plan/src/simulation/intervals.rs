// SPDX-License-Identifier: Apache-2.0
//! Counts by time interval, in bounded memory.

use crate::measured::Interval;

/// Maximum number of intervals: more than an hour of half seconds. Beyond it, intervals are merged
/// to twice the length.
pub const MAX_INTERVALS: usize = 1 << 14;

/// Closed intervals in order of arrival, without empty ones.
pub(super) struct Intervals {
    length_ns: u64,
    /// Time of the first packet, where the first interval starts.
    begin_ns: Option<u64>,
    closed: Vec<Interval>,
}

impl Intervals {
    pub(super) const fn new(length_ns: u64) -> Self {
        Self {
            length_ns,
            begin_ns: None,
            closed: Vec::new(),
        }
    }

    /// Sets the time of the first packet. Intervals start there, so that the observed time covers
    /// all of the first interval.
    pub(super) const fn begin(&mut self, timestamp_ns: u64) {
        if self.begin_ns.is_none() {
            self.begin_ns = Some(timestamp_ns);
        }
    }

    /// Start of the interval that contains a time.
    pub(super) const fn start_of(&self, timestamp_ns: u64) -> u64 {
        let begin_ns = match self.begin_ns {
            Some(begin_ns) => begin_ns,
            None => 0,
        };
        let phase_ns = begin_ns % self.length_ns;
        match timestamp_ns.checked_sub(phase_ns) {
            Some(since_ns) => timestamp_ns - since_ns % self.length_ns,
            None => 0,
        }
    }

    pub(super) fn close(&mut self, interval: Interval) {
        self.closed.push(interval);
        while self.closed.len() >= MAX_INTERVALS {
            self.lengthen();
        }
    }

    fn lengthen(&mut self) {
        self.length_ns = self.length_ns.saturating_mul(2);
        // The length cannot grow further. Times may lie on both sides of an interval boundary, so
        // any two intervals are merged.
        let is_longest = self.length_ns == u64::MAX;
        let mut is_second = false;
        let mut closed = std::mem::take(&mut self.closed);
        closed.dedup_by(|later, earlier| {
            let start_ns = self.start_of(earlier.start_ns);
            is_second = is_longest && !is_second;
            let same = is_second || self.start_of(later.start_ns) == start_ns;
            if same {
                earlier.start_ns = start_ns;
                earlier.packets += later.packets;
                earlier.flows_opened += later.flows_opened;
                for (sum, more) in earlier.microflows.iter_mut().zip(&later.microflows) {
                    *sum += more;
                }
            }
            same
        });
        self.closed = closed;
    }

    pub(super) fn finish(self) -> (u64, Vec<Interval>) {
        (self.length_ns, self.closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn become_longer_when_there_are_too_many() {
        let mut intervals = Intervals::new(10);
        // One interval in ten is used, then ten are empty: the worst case.
        for index in 0..3 * MAX_INTERVALS as u64 {
            intervals.close(Interval {
                start_ns: index * 20,
                packets: 2,
                flows_opened: 1,
                microflows: vec![1, 2],
            });
        }
        let (length_ns, closed) = intervals.finish();
        assert!(
            closed.len() < MAX_INTERVALS && length_ns > 10,
            "{length_ns}"
        );
        let sum = |of: fn(&Interval) -> u64| closed.iter().map(of).sum::<u64>();
        let count = 3 * MAX_INTERVALS as u64;
        assert_eq!(sum(|interval| interval.packets), 2 * count);
        assert_eq!(sum(|interval| interval.flows_opened), count);
        assert_eq!(sum(|interval| interval.microflows[1]), 2 * count);
    }

    #[test]
    fn merging_terminates_for_times_that_are_extremely_far_apart() {
        for begin_ns in [0, 1, u64::MAX / 2, u64::MAX] {
            far_apart(begin_ns);
        }
    }

    fn far_apart(begin_ns: u64) {
        let mut intervals = Intervals::new(1);
        intervals.begin(begin_ns);
        for index in 0..2 * MAX_INTERVALS as u64 {
            let start_ns = if index % 2 == 0 { 0 } else { u64::MAX - index };
            intervals.close(Interval {
                start_ns,
                packets: 1,
                flows_opened: 0,
                microflows: Vec::new(),
            });
        }
        let closed = intervals.finish().1;
        assert!(closed.len() < MAX_INTERVALS);
        let packets: u64 = closed.iter().map(|interval| interval.packets).sum();
        assert_eq!(packets, 2 * MAX_INTERVALS as u64);
    }
}
