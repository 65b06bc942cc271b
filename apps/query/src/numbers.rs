// SPDX-License-Identifier: Apache-2.0
//! The whole numbers of a field, for all records of a batch.

use std::borrow::Cow;

use turboflow_record::{FlowBatch, ValueData, Values};

use crate::field::Field;
use crate::span::TimeColumns;

/// For each record, a whole number or none.
pub(crate) struct Numbers<'a> {
    /// The numbers, with zeros in place of absent ones. Empty if all are absent.
    values: Cow<'a, [u64]>,
    /// Which numbers are present; empty if all are.
    valid: Cow<'a, [bool]>,
}

impl<'a> Numbers<'a> {
    /// The numbers of a column; none if it does not hold numbers.
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
        if let Some(mut values) = forward.plus(&reverse) {
            // Without a forward number the total is absent, which is stored as zero.
            for (value, valid) in values.iter_mut().zip(forward.valid.iter()) {
                *value *= u64::from(*valid);
            }
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

    /// Adds the numbers of `others`, with absent ones as zero; `None` if a sum is 2^64 or more. No
    /// branch depends on a number, so the loop can be vectorised.
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

    /// The numbers, with zeros in place of absent ones; empty if all are absent.
    pub(crate) fn values(&self) -> &[u64] {
        &self.values
    }

    /// Which numbers are present; empty if all are.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use turboflow_record::{Column, ColumnKind, Value};

    use super::*;

    fn number() -> impl Strategy<Value = Option<u64>> {
        let there = prop_oneof![9 => 0..1000u64, 1 => any::<u64>()];
        proptest::option::weighted(0.8, there)
    }

    proptest! {
        /// Totals equal those computed record by record, and absent totals add nothing to sums.
        #[test]
        fn totals_are_those_of_records(
            records in prop::collection::vec((number(), number()), 0..20),
        ) {
            let column = |name: &str| Column {
                name: name.to_owned(),
                kind: ColumnKind::Unsigned { bits: 64 },
                nullable: true,
            };
            let mut batch = FlowBatch::new(&[column("bytes"), column("reverse_bytes")]);
            let value = |number: Option<u64>| number.map_or(Value::Absent, Value::Unsigned);
            for (forward, reverse) in &records {
                batch.push_row(&[value(*forward), value(*reverse)]);
            }
            let field = Field::Total { forward: 0, reverse: 1 };
            let totals = Numbers::of(field, &batch);
            let expected: Vec<Option<u64>> = records
                .iter()
                .map(|(forward, reverse)| forward.and_then(|it| it.checked_add(reverse.unwrap_or(0))))
                .collect();
            for (row, expected) in expected.iter().enumerate() {
                prop_assert_eq!(totals.get(row), *expected);
                prop_assert_eq!(field.value(&batch, row), value(*expected));
            }
            let sum: u128 = expected.iter().flatten().map(|&it| u128::from(it)).sum();
            let rows: Vec<u32> = (0..records.len() as u32).collect();
            prop_assert_eq!((totals.total(), totals.sum(&rows)), (sum, sum));
        }
    }
}
