// SPDX-License-Identifier: Apache-2.0
//! Formats rows of an answer as `turboflow show` does.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Float64Type, Int64Type, Schema, TimeUnit, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result;
use turboflow_query::{AnswerColumn, Cell, Show, time_text};

use crate::args::SqlFormat;

/// How Arrow writes values: a null in a list as JSON does, and errors are returned, not written as
/// values.
const FORMAT: FormatOptions<'static> = FormatOptions::new()
    .with_null("null")
    .with_display_error(false);

/// How a column of an answer is written.
pub(crate) struct Look {
    pub(crate) column: AnswerColumn,
    kind: Kind,
    format: SqlFormat,
}

/// The kind of the values in a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    /// A decimal without a fraction: a difference, or an integer wider than 64 bits.
    Whole,
    Float,
    Time,
    /// A time as text: for programs, in a column whose name does not end in `_ns`.
    TimeText,
    Date,
    Duration,
    List,
    Text,
    /// A text without quotes: a boolean or a decimal.
    Plain,
    /// Any other type, as Arrow displays it.
    Display,
}

/// How the columns of an answer are written.
pub(crate) fn looks(schema: &Schema, format: SqlFormat) -> Vec<Look> {
    let fields = schema.fields().iter();
    let look = |name: &str, of: &DataType| {
        let kind = kind_of(of, name, format);
        Look {
            column: AnswerColumn {
                name: name.to_owned(),
                show: show_of(kind, name),
            },
            kind,
            format,
        }
    };
    fields
        .map(|field| look(field.name(), field.data_type()))
        .collect()
}

fn kind_of(of: &DataType, name: &str, format: SqlFormat) -> Kind {
    match of {
        _ if of.is_unsigned_integer() => Kind::Unsigned,
        _ if of.is_signed_integer() => Kind::Signed,
        _ if of.is_floating() => Kind::Float,
        DataType::Timestamp(..) => match format == SqlFormat::Table || name.ends_with("_ns") {
            true => Kind::Time,
            false => Kind::TimeText,
        },
        DataType::Date32 | DataType::Date64 => Kind::Date,
        DataType::Duration(_) => Kind::Duration,
        DataType::List(of) if of.data_type().is_integer() => Kind::List,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
        DataType::Boolean => Kind::Plain,
        DataType::Decimal128(_, 0) => Kind::Whole,
        _ if of.is_decimal() => Kind::Plain,
        _ => Kind::Display,
    }
}

fn show_of(kind: Kind, name: &str) -> Show {
    match kind {
        Kind::Unsigned | Kind::Signed | Kind::Whole => show_of_name(name),
        Kind::Float => Show::Float,
        Kind::Time => Show::Time,
        Kind::Duration => Show::Duration,
        Kind::List => Show::List,
        Kind::Plain => Show::Number,
        Kind::TimeText | Kind::Date | Kind::Text | Kind::Display => Show::Text,
    }
}

/// The meaning of numbers in a column with this name; also for aggregates: `sum(flows.bytes)`.
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
        for (row, cell) in rows.iter_mut().zip(cells(look, array)?) {
            row.push(cell);
        }
    }
    Ok(rows)
}

fn cells(look: &Look, array: &ArrayRef) -> Result<Vec<Cell>> {
    match look.kind {
        Kind::Unsigned => {
            let numbers = cast(array, &DataType::UInt64)?;
            let numbers = numbers.as_primitive::<UInt64Type>();
            every(array, &|row| Ok(Cell::Unsigned(numbers.value(row))))
        }
        Kind::Signed => {
            let numbers = cast(array, &DataType::Int64)?;
            let numbers = numbers.as_primitive::<Int64Type>();
            every(array, &|row| Ok(whole(numbers.value(row).into())))
        }
        Kind::Whole => {
            let numbers = array.as_primitive::<Decimal128Type>();
            every(array, &|row| Ok(whole(numbers.value(row))))
        }
        Kind::Float => {
            let numbers = cast(array, &DataType::Float64)?;
            let numbers = numbers.as_primitive::<Float64Type>();
            every(array, &|row| Ok(Cell::Float(numbers.value(row))))
        }
        Kind::Time | Kind::TimeText => times(look, array),
        Kind::Duration => {
            let ns = in_ns(array, &DataType::Duration(TimeUnit::Nanosecond))?;
            let ns = ns.as_primitive::<Int64Type>();
            let text = ArrayFormatter::try_new(array, &FORMAT)?;
            every(array, &|row| match ns.is_null(row) {
                // A duration of more than 292 years.
                true => Ok(Cell::Text(text.value(row).try_to_string()?.into())),
                false => Ok(whole(ns.value(row).into())),
            })
        }
        Kind::Date => texts(&cast(array, &DataType::Date32)?, Cell::Text),
        Kind::List => lists(look, array),
        Kind::Plain => texts(array, Cell::Plain),
        Kind::Text | Kind::Display => texts(array, Cell::Text),
    }
}

/// The cells of an array; `cell` reads a value that is not null.
fn every(array: &ArrayRef, cell: &dyn Fn(usize) -> Result<Cell>) -> Result<Vec<Cell>> {
    // Logical nulls include those of an array of the null type.
    let nulls = array.logical_nulls();
    let is_null = |row| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let cells = (0..array.len()).map(|row| match is_null(row) {
        true => Ok(Cell::Absent),
        false => cell(row),
    });
    cells.collect()
}

/// Values as Arrow formats them.
fn texts(array: &ArrayRef, cell: fn(Box<str>) -> Cell) -> Result<Vec<Cell>> {
    let text = ArrayFormatter::try_new(array, &FORMAT)?;
    every(array, &|row| {
        Ok(cell(text.value(row).try_to_string()?.into()))
    })
}

/// A number that may be negative.
fn whole(number: i128) -> Cell {
    match u64::try_from(number) {
        Ok(number) => Cell::Unsigned(number),
        Err(_) => Cell::Plain(number.to_string().into()),
    }
}

/// Nanoseconds; null if they do not fit in 64 bits.
fn in_ns(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    Ok(cast(&cast(array, to)?, &DataType::Int64)?)
}

/// Times. Those that do not fit in 64-bit nanoseconds are texts in every format.
fn times(look: &Look, array: &ArrayRef) -> Result<Vec<Cell>> {
    let ns = in_ns(array, &DataType::Timestamp(TimeUnit::Nanosecond, None))?;
    let ns = ns.as_primitive::<Int64Type>();
    let in_utc = match array.data_type() {
        DataType::Timestamp(unit, _) => {
            let utc = DataType::Timestamp(*unit, Some("+00:00".into()));
            cast(array, &utc)?
        }
        _ => Arc::clone(array),
    };
    let text = ArrayFormatter::try_new(&in_utc, &FORMAT)?;
    let are_numbers = look.kind == Kind::Time && look.format != SqlFormat::Table;
    every(array, &|row| {
        let ns = (!ns.is_null(row)).then(|| ns.value(row));
        Ok(match (ns, ns.and_then(|ns| u64::try_from(ns).ok())) {
            (_, Some(ns)) if look.kind == Kind::TimeText => Cell::Text(time_text(ns).into()),
            (_, Some(ns)) => Cell::Unsigned(ns),
            // A time before 1970.
            (Some(ns), None) if are_numbers => Cell::Plain(ns.to_string().into()),
            _ => Cell::Text(text.value(row).try_to_string()?.into()),
        })
    })
}

/// Lists of signed or unsigned integers, which may contain nulls.
fn lists(look: &Look, array: &ArrayRef) -> Result<Vec<Cell>> {
    let separator = match look.format {
        SqlFormat::Table => " ",
        SqlFormat::Csv => ";",
        SqlFormat::Json => ",",
    };
    let lists = array.as_list::<i32>();
    let elements = ArrayFormatter::try_new(lists.values(), &FORMAT)?;
    let ends = lists.value_offsets();
    every(array, &|row| {
        let places = ends[row] as usize..ends[row + 1] as usize;
        let texts = places.map(|place| elements.value(place).try_to_string());
        let texts = texts.collect::<Result<Vec<_>, _>>()?;
        Ok(Cell::Plain(format!("[{}]", texts.join(separator)).into()))
    })
}
