// SPDX-License-Identifier: Apache-2.0
//! Columns of batches as Arrow arrays.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{ArrayRef, ListArray, PrimitiveArray, StringArray};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use turboflow_record::{Column, ColumnKind, FlowBatch, ValueData, Values};

use super::schema::{ZONE, element};
use crate::text::{ADDRESS_BYTES, MAC_BYTES, Text};

/// Rows of a batch.
pub(super) type Part<'a> = (&'a FlowBatch, Range<usize>);

/// The values of column `index` in all parts.
pub(super) fn array(column: &Column, index: usize, parts: &[Part<'_>]) -> ArrayRef {
    let values = || {
        parts
            .iter()
            .map(|part| (part.0.column(index), part.1.clone()))
    };
    let nulls = nulls(values());
    match column.kind {
        ColumnKind::Unsigned { bits: 8 } => numbers::<UInt8Type>(values(), nulls, |n| n as u8),
        ColumnKind::Unsigned { bits: 16 } => numbers::<UInt16Type>(values(), nulls, |n| n as u16),
        ColumnKind::Unsigned { bits: 32 } => numbers::<UInt32Type>(values(), nulls, |n| n as u32),
        ColumnKind::Unsigned { .. } => numbers::<UInt64Type>(values(), nulls, |n| n),
        ColumnKind::TimestampNs => {
            let times = primitive::<TimestampNanosecondType>(values(), nulls, |n| n as i64);
            Arc::new(times.with_timezone(ZONE))
        }
        ColumnKind::Float => floats(values(), nulls),
        ColumnKind::List => lists(values(), nulls),
        ColumnKind::Address | ColumnKind::Mac | ColumnKind::Text => texts(values(), nulls),
    }
}

/// Which values are present; `None` if all are.
fn nulls<'a>(
    values: impl Iterator<Item = (&'a Values, Range<usize>)> + Clone,
) -> Option<NullBuffer> {
    if values.clone().all(|(values, _)| values.valid.is_empty()) {
        return None;
    }
    let of = |(values, rows): (&'a Values, Range<usize>)| {
        rows.map(|row| values.valid.get(row) != Some(&false))
    };
    Some(values.flat_map(of).collect())
}

fn primitive<'a, T: ArrowPrimitiveType>(
    values: impl Iterator<Item = (&'a Values, Range<usize>)>,
    nulls: Option<NullBuffer>,
    as_native: impl Fn(u64) -> T::Native,
) -> PrimitiveArray<T> {
    let mut natives = Vec::new();
    for (values, rows) in values {
        let ValueData::Unsigned(numbers) = &values.data else {
            unreachable!("the schema says that this column has numbers")
        };
        natives.extend(numbers[rows].iter().map(|&number| as_native(number)));
    }
    PrimitiveArray::new(ScalarBuffer::from(natives), nulls)
}

fn numbers<'a, T: ArrowPrimitiveType>(
    values: impl Iterator<Item = (&'a Values, Range<usize>)>,
    nulls: Option<NullBuffer>,
    as_native: impl Fn(u64) -> T::Native,
) -> ArrayRef {
    Arc::new(primitive::<T>(values, nulls, as_native))
}

fn floats<'a>(
    values: impl Iterator<Item = (&'a Values, Range<usize>)>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let mut floats = Vec::new();
    for (values, rows) in values {
        let ValueData::Float(its) = &values.data else {
            unreachable!("the schema says that this column has floats")
        };
        floats.extend_from_slice(&its[rows]);
    }
    Arc::new(PrimitiveArray::<Float64Type>::new(floats.into(), nulls))
}

/// The range of the elements of some rows, if the elements of each row end at `ends`.
fn extent(ends: &[usize], rows: &Range<usize>) -> Range<usize> {
    let end_before = |row: usize| if row == 0 { 0 } else { ends[row - 1] };
    end_before(rows.start)..end_before(rows.end)
}

fn lists<'a>(
    values: impl Iterator<Item = (&'a Values, Range<usize>)>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let (mut all, mut lengths) = (Vec::new(), Vec::new());
    for (values, rows) in values {
        let ValueData::List { ends, elements } = &values.data else {
            unreachable!("the schema says that this column has lists")
        };
        all.extend_from_slice(&elements[extent(ends, &rows)]);
        lengths.extend(rows.map(|row| extent(ends, &(row..row + 1)).len()));
    }
    let elements = Arc::new(PrimitiveArray::<UInt64Type>::new(all.into(), None));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Arc::new(ListArray::new(element(), offsets, elements, nulls))
}

fn texts<'a>(
    values: impl Iterator<Item = (&'a Values, Range<usize>)>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let (mut text, mut lengths) = (Text::default(), Vec::new());
    for (values, rows) in values {
        let is_there = |row: usize| values.valid.get(row) != Some(&false);
        if let ValueData::Text { ends, texts } = &values.data {
            let extent = extent(ends, &rows);
            text.reserve(extent.len());
            text.raw(&texts.as_bytes()[extent]);
        } else {
            text.reserve(rows.len() * ADDRESS_BYTES.max(MAC_BYTES));
        }
        for row in rows {
            let start = text.len();
            match &values.data {
                ValueData::Text { ends, .. } => {
                    lengths.push(extent(ends, &(row..row + 1)).len());
                    continue;
                }
                ValueData::Address(addresses) if is_there(row) => text.address(addresses[row]),
                ValueData::Unsigned(numbers) if is_there(row) => text.mac(numbers[row]),
                _ => {}
            }
            lengths.push(text.len() - start);
        }
    }
    let offsets = OffsetBuffer::from_lengths(lengths);
    let bytes = Buffer::from(text.as_bytes());
    Arc::new(StringArray::new(offsets, bytes, nulls))
}
