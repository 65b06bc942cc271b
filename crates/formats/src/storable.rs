// SPDX-License-Identifier: Apache-2.0
//! Finds the records that fit into formats with signed times or signed numbers.

use std::ops::Range;

use turboflow_record::{Column, ColumnKind, FlowBatch, Value, ValueData};

/// The rows whose times are all before 2262, when the signed nanoseconds of Parquet and Arrow end.
pub(crate) fn storable_rows(schema: &[Column], batch: &FlowBatch) -> Vec<Range<usize>> {
    rows_with(batch, |column| {
        schema[column].kind == ColumnKind::TimestampNs
    })
}

/// The rows whose numbers are all below 2^63, the limit of signed numbers.
pub(crate) fn signed_rows(_schema: &[Column], batch: &FlowBatch) -> Vec<Range<usize>> {
    rows_with(batch, |_| true)
}

/// The rows whose numbers in columns selected by `signed`, and in lists, are all below 2^63.
fn rows_with(batch: &FlowBatch, signed: impl Fn(usize) -> bool) -> Vec<Range<usize>> {
    let too_large: Vec<usize> = (0..batch.columns().len())
        .filter(|&column| match &batch.column(column).data {
            ValueData::Unsigned(numbers) => signed(column) && any_too_large(numbers),
            ValueData::List { elements, .. } => any_too_large(elements),
            _ => false,
        })
        .collect();
    if too_large.is_empty() {
        return std::iter::once(0..batch.rows()).collect();
    }
    let is_storable = |row: &usize| {
        too_large
            .iter()
            .all(|&column| match batch.value(*row, column) {
                Value::Unsigned(number) => !any_too_large(&[number]),
                Value::List(elements) => !any_too_large(elements),
                _ => true,
            })
    };
    let storable = (0..batch.rows()).filter(is_storable);
    storable.map(|row| row..row + 1).collect()
}

/// Whether one of the numbers is 2^63 or more.
fn any_too_large(numbers: &[u64]) -> bool {
    let bits = numbers.iter().fold(0, |bits, number| bits | number);
    i64::try_from(bits).is_err()
}
