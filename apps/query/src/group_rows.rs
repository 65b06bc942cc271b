// SPDX-License-Identifier: Apache-2.0
//! The sums of each group, stored as words.

use crate::answer::Cell;
use crate::field::divided;
use crate::fold::Fold;
use crate::grouping::{GroupRatio, Grouping, Measure, Under};

/// Positions of the sums of a group: the number of records, flags that say which of the others are
/// present, the first and last time if needed, and the amounts.
#[derive(Clone, Copy)]
pub(crate) struct SumLayout {
    /// Number of words with flags that say which sums are present.
    flags: usize,
    /// Index of the first amount.
    amounts: usize,
}

const FIRST: usize = 0;
const LAST: usize = 1;

impl SumLayout {
    pub(crate) fn of(grouping: &Grouping) -> Self {
        let amounts = if grouping.has_times() { LAST + 1 } else { 0 };
        Self {
            flags: (amounts + grouping.amounts.len()).div_ceil(64),
            amounts,
        }
    }

    /// The sums of a group without records.
    pub(crate) fn neutral(self, grouping: &Grouping) -> Vec<u64> {
        let amounts = &grouping.amounts;
        let mut sums = vec![0; 1 + self.flags + self.amounts + amounts.len()];
        for (index, amount) in amounts.iter().enumerate() {
            if let Some(neutral) = amount.fold.neutral() {
                self.put(&mut sums, self.amounts + index, neutral);
            }
        }
        sums
    }

    #[inline]
    fn get(self, sums: &[u64], place: usize) -> Option<u64> {
        let is_there = sums[1 + place / 64] >> (place % 64) & 1 == 1;
        is_there.then(|| sums[1 + self.flags + place])
    }

    #[inline]
    fn put(self, sums: &mut [u64], place: usize, value: u64) {
        sums[1 + place / 64] |= 1 << (place % 64);
        sums[1 + self.flags + place] = value;
    }

    #[inline]
    pub(crate) fn count(sums: &mut [u64], records: u64) {
        sums[0] += records;
    }

    #[inline]
    pub(crate) fn extend(self, sums: &mut [u64], first_ns: Option<u64>, last_ns: Option<u64>) {
        if let Some(first_ns) = first_ns {
            let first_ns = self
                .get(sums, FIRST)
                .map_or(first_ns, |it| it.min(first_ns));
            self.put(sums, FIRST, first_ns);
        }
        if let Some(last_ns) = last_ns {
            let last_ns = self.get(sums, LAST).map_or(last_ns, |it| it.max(last_ns));
            self.put(sums, LAST, last_ns);
        }
    }

    /// Folds a number into an amount. Does nothing if there is no number. Returns false if the sum
    /// is 2^64 or more.
    #[inline]
    pub(crate) fn fold(
        self,
        sums: &mut [u64],
        (amount, fold): (usize, Fold),
        more: Option<u64>,
    ) -> bool {
        let Some(right) = more else {
            return true;
        };
        let place = self.amounts + amount;
        let combined: fn(u64, u64) -> u64 = match fold {
            Fold::Sum => {
                // Sums are present from the start.
                let sum = &mut sums[1 + self.flags + place];
                let added = sum.checked_add(right);
                *sum = added.unwrap_or(*sum);
                return added.is_some();
            }
            Fold::Min => u64::min,
            Fold::Max => u64::max,
            Fold::Or => |left, right| left | right,
        };
        let left = self.get(sums, place);
        let folded = left.map_or(right, |left| combined(left, right));
        self.put(sums, place, folded);
        true
    }

    /// The value of a column of a group; shares are percentages of `whole`.
    pub(crate) fn measure(
        self,
        sums: &[u64],
        measure: Measure,
        grouping: &Grouping,
        whole: u128,
    ) -> Cell {
        let number = |number: Option<u64>| number.map_or(Cell::Absent, Cell::Unsigned);
        match measure {
            Measure::Records => Cell::Unsigned(sums[0]),
            Measure::Amount(index) => number(self.get(sums, self.amounts + index)),
            Measure::Ratio(index) => self.ratio(sums, &grouping.ratios[index]),
            Measure::Share => percent(self.part(sums, grouping.share), whole),
            Measure::First => number(self.get(sums, FIRST)),
            Measure::Last => number(self.get(sums, LAST)),
        }
    }

    fn ratio(self, sums: &[u64], ratio: &GroupRatio) -> Cell {
        let under = match ratio.under {
            Under::Amount(index) => self.get(sums, self.amounts + index),
            Under::Width(width_ns) => Some(width_ns),
            Under::Span => {
                let ends = self.get(sums, LAST).zip(self.get(sums, FIRST));
                ends.and_then(|(last, first)| last.checked_sub(first))
            }
        };
        let parts = self.get(sums, self.amounts + ratio.over).zip(under);
        let value = parts.and_then(|(over, under)| divided(over, under, ratio.factor));
        value.map_or(Cell::Absent, Cell::Float)
    }

    fn part(self, sums: &[u64], share: Measure) -> u64 {
        match share {
            Measure::Amount(index) => self.get(sums, self.amounts + index).unwrap_or(0),
            _ => sums[0],
        }
    }
}

fn percent(part: u64, whole: u128) -> Cell {
    // Four decimals: more would suggest false precision.
    let share = if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    };
    Cell::Float((share * 1e6).round() / 1e4)
}
