// SPDX-License-Identifier: Apache-2.0
//! Counts by interval of time, in bounded memory.

use crate::measured::Interval;

/// The most intervals that are kept: an hour and more of half seconds. Where there would be more,
/// they become twice as long.
pub const MAX_INTERVALS: usize = 1 << 14;

/// Closed intervals, in the order in which they came; those without a packet are not among them.
pub(super) struct Intervals {
    length_ns: u64,
    /// The first packet, with which the first interval begins.
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

    /// Takes the time of a packet: intervals are counted from the first one, so that no part of the
    /// first interval lies before what was observed.
    pub(super) const fn begin(&mut self, timestamp_ns: u64) {
        if self.begin_ns.is_none() {
            self.begin_ns = Some(timestamp_ns);
        }
    }

    /// Start of the interval of a time.
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
        // None is longer than that, and times may lie on both sides of where one begins: then any two become one.
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
    fn become_longer_where_there_would_be_too_many() {
        let mut intervals = Intervals::new(10);
        // One of ten, then a hole of ten: the worst spread.
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
    fn end_even_where_times_are_endlessly_far_apart() {
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
