// SPDX-License-Identifier: Apache-2.0
//! Rows of an answer as `turboflow show` prints them.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Float64Type, Int64Type, Schema, TimeUnit, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result;
use turboflow_query::{AnswerColumn, Cell, Show, time_text};

/// How a column of an answer is written.
pub(crate) struct Look {
    pub(crate) column: AnswerColumn,
    kind: Kind,
}

/// What the values of a column are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    Float,
    Time,
    /// A time as a text, where programs read it and its name does not say nanoseconds.
    TimeText,
    Duration,
    List,
    Text,
    /// A text that is not in quotes: a boolean, a decimal.
    Plain,
    /// What every other type is written as.
    Display,
}

/// How the columns of an answer look.
pub(crate) fn looks(schema: &Schema, is_table: bool) -> Vec<Look> {
    let fields = schema.fields().iter();
    let look = |name: &str, of: &DataType| {
        let kind = kind_of(of, name, is_table);
        Look {
            column: AnswerColumn {
                name: name.to_owned(),
                show: show_of(kind, name),
            },
            kind,
        }
    };
    fields
        .map(|field| look(field.name(), field.data_type()))
        .collect()
}

fn kind_of(of: &DataType, name: &str, is_table: bool) -> Kind {
    match of {
        _ if of.is_unsigned_integer() => Kind::Unsigned,
        _ if of.is_signed_integer() => Kind::Signed,
        _ if of.is_floating() => Kind::Float,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => {
            match is_table || name.ends_with("_ns") {
                true => Kind::Time,
                false => Kind::TimeText,
            }
        }
        DataType::Duration(_) => Kind::Duration,
        DataType::List(of) if of.data_type().is_integer() => Kind::List,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
        DataType::Boolean => Kind::Plain,
        _ if of.is_decimal() => Kind::Plain,
        _ => Kind::Display,
    }
}

fn show_of(kind: Kind, name: &str) -> Show {
    match kind {
        Kind::Unsigned | Kind::Signed => show_of_name(name),
        Kind::Float => Show::Float,
        Kind::Time => Show::Time,
        Kind::Duration => Show::Duration,
        Kind::List => Show::List,
        Kind::Plain => Show::Number,
        Kind::TimeText | Kind::Text | Kind::Display => Show::Text,
    }
}

/// What numbers of that name are; also of a column that was folded: `sum(flows.bytes)`.
fn show_of_name(name: &str) -> Show {
    let folds = ["sum(", "min(", "max(", "bit_or("];
    let inner = folds
        .iter()
        .find_map(|fold| name.strip_prefix(fold)?.strip_suffix(')'));
    let name = inner.unwrap_or(name);
    match name.rsplit('.').next().unwrap_or(name) {
        "protocol" => Show::Protocol,
        "tcp_flags" | "reverse_tcp_flags" => Show::Flags,
        "end_reason" => Show::EndReason,
        "src_port" | "dst_port" => Show::Port,
        "packets" | "reverse_packets" => Show::Count,
        "bytes" | "frame_bytes" | "reverse_bytes" => Show::Bytes,
        _ => Show::Number,
    }
}

/// The rows of a batch.
pub(crate) fn rows(looks: &[Look], batch: &RecordBatch) -> Result<Vec<Vec<Cell>>> {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    rows.resize_with(batch.num_rows(), || Vec::with_capacity(looks.len()));
    for (look, array) in looks.iter().zip(batch.columns()) {
        for (row, cell) in rows.iter_mut().zip(cells(look.kind, array)?) {
            row.push(cell);
        }
    }
    Ok(rows)
}

fn cells(kind: Kind, array: &ArrayRef) -> Result<Vec<Cell>> {
    let in_ns = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let display = FormatOptions::default();
    let text = ArrayFormatter::try_new(array, &display)?;
    let every = |cell: &dyn Fn(usize) -> Result<Cell>| {
        let rows = 0..array.len();
        let cells = rows.map(|row| match array.is_null(row) {
            true => Ok(Cell::Absent),
            false => cell(row),
        });
        cells.collect::<Result<Vec<_>>>()
    };
    let signed =
        |to: &DataType| -> Result<ArrayRef> { Ok(cast(&cast(array, to)?, &DataType::Int64)?) };
    match kind {
        Kind::Unsigned => {
            let numbers = cast(array, &DataType::UInt64)?;
            let numbers = numbers.as_primitive::<UInt64Type>();
            every(&|row| Ok(Cell::Unsigned(numbers.value(row))))
        }
        Kind::Float => {
            let numbers = cast(array, &DataType::Float64)?;
            let numbers = numbers.as_primitive::<Float64Type>();
            every(&|row| Ok(Cell::Float(numbers.value(row))))
        }
        Kind::Signed | Kind::Time | Kind::TimeText | Kind::Duration => {
            let numbers = match kind {
                Kind::Signed => cast(array, &DataType::Int64)?,
                Kind::Duration => signed(&DataType::Duration(TimeUnit::Nanosecond))?,
                _ => signed(&in_ns)?,
            };
            let numbers = numbers.as_primitive::<Int64Type>();
            every(&|row| {
                Ok(match u64::try_from(numbers.value(row)) {
                    Ok(ns) if kind == Kind::TimeText => Cell::Text(time_text(ns).into()),
                    Ok(number) => Cell::Unsigned(number),
                    // Before 1970, and differences below zero.
                    Err(_) => Cell::Plain(numbers.value(row).to_string().into()),
                })
            })
        }
        Kind::List => every(&|row| list(array, row)),
        Kind::Plain => every(&|row| Ok(Cell::Plain(text.value(row).to_string().into()))),
        Kind::Text | Kind::Display => {
            every(&|row| Ok(Cell::Text(text.value(row).to_string().into())))
        }
    }
}

fn list(array: &ArrayRef, row: usize) -> Result<Cell> {
    let elements = array.as_list::<i32>().value(row);
    let elements = cast(&elements, &DataType::UInt64)?;
    let elements = elements.as_primitive::<UInt64Type>();
    Ok(Cell::List(elements.iter().flatten().collect()))
}
