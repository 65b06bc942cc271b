// SPDX-License-Identifier: Apache-2.0
//! Traffic in bins of half a second of the packets' clock.

use std::ops::RangeInclusive;

/// Length of a bin in nanoseconds. It is also the active timeout, and so the cell, of the meter
/// behind the screen: no record crosses the boundary of a bin.
pub const BIN_NS: u64 = 500_000_000;
/// Bins in a second.
pub const BINS_A_SECOND: u64 = 1_000_000_000 / BIN_NS;
/// Number of bins in the long average and in the longest interval: 10 s.
pub const AVERAGE_BINS: u64 = 10 * BINS_A_SECOND;
/// Number of bins that may still get records: the current one and earlier ones. A silent flow
/// leaves the flow cache in the second cell after its own (decision 1), and its record arrives by
/// the end of that cell.
pub(crate) const UNSETTLED_BINS: u64 = 3;
/// Number of bins kept.
const KEPT: usize = (AVERAGE_BINS + UNSETTLED_BINS + 1) as usize;
/// If a record is older than the newest one by at least this much (30 s), the clock was set back.
const SET_BACK_BINS: u64 = 30 * BINS_A_SECOND;

/// Numbers of packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sums {
    /// Bytes, as IP headers declare them.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

impl Sums {
    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            packets: self.packets + other.packets,
        }
    }

    /// The difference of both.
    pub(crate) const fn minus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(other.bytes),
            packets: self.packets.saturating_sub(other.packets),
        }
    }
}

/// Rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerSecond {
    /// Bits a second.
    pub bits: u64,
    /// Packets a second.
    pub packets: u64,
}

impl PerSecond {
    /// The rate of `sums` over `bins` bins.
    #[must_use]
    pub fn of(sums: Sums, bins: u64) -> Self {
        let rate = |number: u64| {
            let exact = u128::from(number) * u128::from(BINS_A_SECOND) / u128::from(bins.max(1));
            u64::try_from(exact).unwrap_or(u64::MAX)
        };
        Self {
            bits: rate(sums.bytes.saturating_mul(8)),
            packets: rate(sums.packets),
        }
    }

    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            bits: self.bits.saturating_add(other.bits),
            packets: self.packets.saturating_add(other.packets),
        }
    }
}

/// The bins shown on a screen: settled ones, up to `end` exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first bin that is not shown.
    pub end: u64,
    /// The time of the screen, in nanoseconds since 1970.
    pub end_ns: u64,
    /// Number of bins in the interval.
    pub interval: u64,
    /// Number of bins in the longer average.
    pub average: u64,
    /// Whether no more records will arrive.
    pub is_final: bool,
}

/// Rates and totals of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// In the last interval.
    pub now: PerSecond,
    /// In the last 10 s.
    pub average: PerSecond,
    /// Since the row entered its table.
    pub total: Sums,
}

impl Measured {
    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            now: self.now.plus(other.now),
            average: self.average.plus(other.average),
            total: self.total.plus(other.total),
        }
    }
}

/// The latest bins of a row, and its total.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bins {
    total: Sums,
    newest: u64,
    bytes: [u64; KEPT],
    packets: [u32; KEPT],
}

impl Bins {
    /// Adds the traffic of a bin. Traffic older than the bins kept only counts in the total.
    pub(crate) fn add(&mut self, bin: u64, sums: Sums) {
        self.total = self.total.plus(sums);
        if bin > self.newest || self.newest - bin > SET_BACK_BINS {
            self.move_to(bin);
        }
        if self.newest - bin < KEPT as u64 {
            let at = slot(bin);
            self.bytes[at] += sums.bytes;
            let packets = u32::try_from(sums.packets).unwrap_or(u32::MAX);
            self.packets[at] = self.packets[at].saturating_add(packets);
        }
    }

    fn move_to(&mut self, bin: u64) {
        let ahead = bin.checked_sub(self.newest);
        match ahead {
            Some(ahead) if ahead < KEPT as u64 => {
                for passed in self.newest + 1..=bin {
                    self.bytes[slot(passed)] = 0;
                    self.packets[slot(passed)] = 0;
                }
            }
            _ => {
                self.bytes = [0; KEPT];
                self.packets = [0; KEPT];
            }
        }
        self.newest = bin;
    }

    /// Adds the traffic of another row.
    pub(crate) fn add_all(&mut self, other: &Self) {
        if other.newest > self.newest {
            self.move_to(other.newest);
        }
        self.total = self.total.plus(other.total);
        for bin in self.bins_of(other) {
            let at = slot(bin);
            self.bytes[at] += other.bytes[at];
            self.packets[at] = self.packets[at].saturating_add(other.packets[at]);
        }
    }

    /// Subtracts the traffic of a row that was added to this one bin by bin. Bins that only one of
    /// the two has lost, because the clock was set back, do not matter.
    pub(crate) fn remove_all(&mut self, other: &Self) {
        self.total = self.total.minus(other.total);
        for bin in self.bins_of(other) {
            let at = slot(bin);
            self.bytes[at] = self.bytes[at].saturating_sub(other.bytes[at]);
            self.packets[at] = self.packets[at].saturating_sub(other.packets[at]);
        }
    }

    /// The bins of `other` that are also kept here.
    fn bins_of(&self, other: &Self) -> RangeInclusive<u64> {
        let newest = self.newest.min(other.newest);
        let oldest = self
            .newest
            .max(other.newest)
            .saturating_sub(KEPT as u64 - 1);
        oldest..=newest
    }

    pub(crate) const fn total(&self) -> Sums {
        self.total
    }

    pub(crate) const fn newest(&self) -> u64 {
        self.newest
    }

    /// The traffic of the `bins` bins before `end`.
    pub(crate) fn before(&self, end: u64, bins: u64) -> Sums {
        let mut sums = Sums::default();
        let oldest_kept = (self.newest + 1).saturating_sub(KEPT as u64);
        let from = end.saturating_sub(bins).max(oldest_kept);
        for bin in from..end.min(self.newest + 1) {
            sums.bytes += self.bytes[slot(bin)];
            sums.packets += u64::from(self.packets[slot(bin)]);
        }
        sums
    }

    pub(crate) fn measured(&self, window: Window) -> Measured {
        let rate = |bins| PerSecond::of(self.before(window.end, bins), bins);
        Measured {
            now: rate(window.interval),
            average: rate(window.average),
            total: self.total,
        }
    }
}

const fn slot(bin: u64) -> usize {
    (bin % KEPT as u64) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sums(bytes: u64) -> Sums {
        Sums { bytes, packets: 1 }
    }

    #[test]
    fn a_rate_is_traffic_divided_by_time() {
        let mut bins = Bins::default();
        bins.add(100, sums(1_000));
        bins.add(101, sums(500));
        let window = |end| Window {
            end,
            end_ns: 0,
            interval: 2,
            average: 20,
            is_final: false,
        };
        let now = |end| bins.measured(window(end)).now.bits;
        assert_eq!((now(100), now(101), now(102)), (0, 8_000, 12_000));
        assert_eq!((now(103), now(104)), (4_000, 0));
        assert_eq!(bins.measured(window(120)).average.bits, 1_200);
        assert_eq!(bins.measured(window(200)).total.bytes, 1_500);
    }

    #[test]
    fn a_clock_set_back_restarts_the_bins() {
        let mut bins = Bins::default();
        bins.add(10_000, sums(7));
        bins.add(9_950, sums(1));
        assert_eq!((bins.newest(), bins.before(10_001, 20).bytes), (10_000, 7));
        bins.add(50, sums(2));
        assert_eq!((bins.newest(), bins.before(51, 20).bytes), (50, 2));
        assert_eq!(bins.total().bytes, 10);
    }

    proptest! {
        /// Any window within the bins kept equals the sums of a plain list.
        #[test]
        fn windows_match_plain_sums(
            steps in proptest::collection::vec((0u64..6, 0u64..4, 1u64..1_000), 1..200),
            bins in 1u64..=AVERAGE_BINS,
        ) {
            let (mut kept, mut plain, mut clock) = (Bins::default(), Vec::new(), 1_000);
            for (step, late, bytes) in steps {
                clock += step;
                kept.add(clock - late, sums(bytes));
                plain.push((clock - late, bytes));
            }
            for end in kept.newest() - UNSETTLED_BINS..=kept.newest() + 1 {
                let within = plain.iter().filter(|(bin, _)| (end - bins..end).contains(bin));
                let expected: u64 = within.map(|(_, bytes)| bytes).sum();
                prop_assert_eq!(kept.before(end, bins).bytes, expected);
            }
            let all: u64 = plain.iter().map(|(_, bytes)| bytes).sum();
            prop_assert_eq!(kept.total().bytes, all);
        }
    }
}
