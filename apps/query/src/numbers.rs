// SPDX-License-Identifier: Apache-2.0
//! The whole numbers of a field, for all records of a batch.

use std::borrow::Cow;

use turboflow_record::{FlowBatch, ValueData, Values};

use crate::field::Field;
use crate::span::TimeColumns;

/// A whole number or none for each record.
pub(crate) struct Numbers<'a> {
    /// Where a number is absent, there is a zero. Empty if all are absent.
    values: Cow<'a, [u64]>,
    /// Which numbers are there; empty if all are.
    valid: Cow<'a, [bool]>,
}

impl<'a> Numbers<'a> {
    /// The numbers of a column; none if it holds something else.
    pub(crate) fn of_column(values: &'a Values) -> Self {
        match &values.data {
            ValueData::Unsigned(numbers) => Self {
                values: Cow::Borrowed(numbers),
                valid: Cow::Borrowed(&values.valid),
            },
            _ => Self::none(),
        }
    }

    pub(crate) fn of(field: Field, batch: &'a FlowBatch) -> Self {
        match field {
            Field::Column(column) => Self::of_column(batch.column(column)),
            Field::Duration(times) => Self::durations(times, batch),
            Field::Total { forward, reverse } => Self::totals(batch, forward, reverse),
            Field::Ratio(_) => Self::none(),
        }
    }

    pub(crate) const fn none() -> Self {
        Self {
            values: Cow::Borrowed(&[]),
            valid: Cow::Borrowed(&[]),
        }
    }

    fn durations(times: TimeColumns, batch: &FlowBatch) -> Self {
        let times = times.of_batch(batch);
        let durations = (0..batch.rows()).map(|row| times.times(row).duration_ns());
        Self::collect(durations)
    }

    /// The sums of both directions. A responder that sent nothing has no number.
    fn totals(batch: &'a FlowBatch, forward: usize, reverse: usize) -> Self {
        let [forward, reverse] = [forward, reverse].map(|its| Self::of_column(batch.column(its)));
        if let Some(values) = forward.plus(&reverse) {
            return Self {
                values: Cow::Owned(values),
                valid: forward.valid,
            };
        }
        let total = |row| match (forward.get(row), reverse.get(row)) {
            (Some(forward), Some(reverse)) => forward.checked_add(reverse),
            (forward, _) => forward,
        };
        Self::collect((0..batch.rows()).map(total))
    }

    /// The sums with the numbers of others, where an absent one counts as zero; `None` if a sum is
    /// 2^64 or more. No branch depends on a number, so that several are added at once.
    fn plus(&self, others: &Self) -> Option<Vec<u64>> {
        let mut carries = self.values.len() != others.values.len();
        let pairs = self.values.iter().zip(others.values.iter());
        let sums = pairs.map(|(number, other)| {
            let (sum, carry) = number.overflowing_add(*other);
            carries |= carry;
            sum
        });
        let sums = sums.collect();
        (!carries).then_some(sums)
    }

    pub(crate) fn collect(numbers: impl Iterator<Item = Option<u64>>) -> Self {
        let (mut values, mut valid) = (Vec::new(), Vec::new());
        for number in numbers {
            values.push(number.unwrap_or(0));
            valid.push(number.is_some());
        }
        if valid.iter().all(|&valid| valid) {
            valid.clear();
        }
        Self {
            values: Cow::Owned(values),
            valid: Cow::Owned(valid),
        }
    }

    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<u64> {
        let number = *self.values.get(row)?;
        match self.valid.is_empty() || self.valid[row] {
            true => Some(number),
            false => None,
        }
    }

    /// The numbers, with zeros where there is none; empty if there is none at all.
    pub(crate) fn values(&self) -> &[u64] {
        &self.values
    }

    /// Which numbers are there; empty if all are.
    pub(crate) fn valid(&self) -> &[bool] {
        &self.valid
    }

    /// The sum over these records.
    pub(crate) fn sum(&self, rows: &[u32]) -> u128 {
        match self.values.is_empty() {
            true => 0,
            false => {
                let numbers = rows
                    .iter()
                    .map(|&row| u128::from(self.values[row as usize]));
                numbers.sum()
            }
        }
    }

    /// The sum over all records.
    pub(crate) fn total(&self) -> u128 {
        self.values.iter().map(|&number| u128::from(number)).sum()
    }
}
