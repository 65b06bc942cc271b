// SPDX-License-Identifier: Apache-2.0
//! Records that formats with signed times can hold.

use std::ops::Range;

use turboflow_record::{Column, ColumnKind, FlowBatch, Value, ValueData};

/// The rows without a time after 2262, where the signed nanoseconds of Parquet and
/// Arrow end.
pub(crate) fn storable_rows(schema: &[Column], batch: &FlowBatch) -> Vec<Range<usize>> {
    let columns = 0..schema.len();
    let too_late: Vec<usize> = columns
        .filter(|&column| match &batch.column(column).data {
            ValueData::Unsigned(times) if schema[column].kind == ColumnKind::TimestampNs => {
                any_too_late(times)
            }
            ValueData::List { elements, .. } => any_too_late(elements),
            _ => false,
        })
        .collect();
    if too_late.is_empty() {
        return std::iter::once(0..batch.rows()).collect();
    }
    let is_storable = |row: &usize| {
        too_late
            .iter()
            .all(|&column| match batch.value(*row, column) {
                Value::Unsigned(time) => !any_too_late(&[time]),
                Value::List(elements) => !any_too_late(elements),
                _ => true,
            })
    };
    let storable = (0..batch.rows()).filter(is_storable);
    storable.map(|row| row..row + 1).collect()
}

/// Whether one of the numbers does not fit in a signed one. Only times are that large.
fn any_too_late(numbers: &[u64]) -> bool {
    let bits = numbers.iter().fold(0, |bits, number| bits | number);
    i64::try_from(bits).is_err()
}
