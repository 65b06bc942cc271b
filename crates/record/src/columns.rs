// SPDX-License-Identifier: Apache-2.0
//! Flow records in columns, for any definition. Records leave the aggregator in this form, and
//! output formats accept no other.

use std::net::{IpAddr, Ipv4Addr};

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// An IP address.
    Address,
    /// An unsigned number that fits the given bits (8, 16, 32 or 64).
    Unsigned {
        /// Width in bits.
        bits: u8,
    },
    /// Nanoseconds since 1970.
    TimestampNs,
    /// A MAC address as a 48-bit number.
    Mac,
    /// A real number.
    Float,
    /// A list of unsigned 64-bit numbers.
    List,
    /// UTF-8 without control characters, never empty.
    Text,
}

/// Name and kind of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name in headers and schemas.
    pub name: String,
    /// The type of its values.
    pub kind: ColumnKind,
    /// Whether a value may be absent, for example because no packet of the flow carried the input.
    pub nullable: bool,
}

/// The columns of a record definition.
pub type Schema = Vec<Column>;

/// The values of one column.
///
/// An absent value has `false` in `valid` and a zero (or empty list) as its value; `valid` stays
/// empty in columns that are not nullable.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// The values.
    pub data: ValueData,
    /// Which values are present; empty if all are.
    pub valid: Vec<bool>,
}

/// Storage of [`Values`].
#[derive(Clone, Debug, PartialEq)]
pub enum ValueData {
    /// Values of [`ColumnKind::Address`].
    Address(Vec<IpAddr>),
    /// Values of [`ColumnKind::Unsigned`], [`ColumnKind::TimestampNs`] and [`ColumnKind::Mac`].
    Unsigned(Vec<u64>),
    /// Values of [`ColumnKind::Float`].
    Float(Vec<f64>),
    /// Values of [`ColumnKind::List`].
    List {
        /// End of each row's list in `elements`.
        ends: Vec<usize>,
        /// All lists, concatenated.
        elements: Vec<u64>,
    },
    /// Values of [`ColumnKind::Text`].
    Text {
        /// End of each row's text in `texts`.
        ends: Vec<usize>,
        /// All texts, concatenated.
        texts: String,
    },
}

/// One value of one record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// No value.
    Absent,
    /// An IP address.
    Address(IpAddr),
    /// A number, time or MAC address.
    Unsigned(u64),
    /// A real number.
    Float(f64),
    /// A list.
    List(&'a [u64]),
    /// A text.
    Text(&'a str),
}

const ONE_EACH: &str = "a row has one value per column";

/// A batch of flow records in columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowBatch {
    columns: Vec<Values>,
    rows: usize,
    first_number: u64,
    watermark_ns: u64,
}

impl FlowBatch {
    /// An empty batch with these columns.
    #[must_use]
    pub fn new(schema: &[Column]) -> Self {
        Self::with_room(schema, 0)
    }

    /// An empty batch with these columns and capacity for `rows` records.
    #[must_use]
    pub fn with_room(schema: &[Column], rows: usize) -> Self {
        let columns = schema.iter();
        let columns = columns.map(|column| Values::with_room(column.kind, rows));
        Self {
            columns: columns.collect(),
            rows: 0,
            first_number: 0,
            watermark_ns: 0,
        }
    }

    /// A batch of `rows` records with these columns. A column that was not read is empty, and its
    /// values must not be accessed.
    ///
    /// # Panics
    /// If a non-empty column does not have one value per record.
    #[must_use]
    pub fn of_columns(rows: usize, columns: Vec<Values>) -> Self {
        let is_whole = |values: &Values| values.data.is_empty() || values.data.len() == rows;
        assert!(columns.iter().all(is_whole), "{ONE_EACH}");
        Self {
            columns,
            rows,
            first_number: 0,
            watermark_ns: 0,
        }
    }

    /// Fills a column that was not read.
    ///
    /// # Panics
    /// If there is not one value per record.
    pub fn fill(&mut self, index: usize, values: Values) {
        assert_eq!(values.data.len(), self.rows, "{ONE_EACH}");
        self.columns[index] = values;
    }

    /// The number of records.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// The number of the first record within its run, counted from 1; the numbers of the others
    /// follow. 0 if the records have no numbers, as in files.
    #[must_use]
    pub const fn first_number(&self) -> u64 {
        self.first_number
    }

    /// Numbers the records, starting with `first`.
    pub const fn number_from(&mut self, first: u64) {
        self.first_number = first;
    }

    /// No later batch has a record with a packet before this time, except for packets that were
    /// late themselves. In nanoseconds since 1970; 0 if unknown, as in files.
    #[must_use]
    pub const fn watermark_ns(&self) -> u64 {
        self.watermark_ns
    }

    /// Sets the time before which the records are complete with this batch, in nanoseconds since
    /// 1970.
    pub const fn set_watermark(&mut self, watermark_ns: u64) {
        self.watermark_ns = watermark_ns;
    }

    /// The values of column `index`.
    #[must_use]
    pub fn column(&self, index: usize) -> &Values {
        &self.columns[index]
    }

    /// The values of all columns, in schema order.
    #[must_use]
    pub fn columns(&self) -> &[Values] {
        &self.columns
    }

    /// One value.
    ///
    /// # Panics
    /// If `row` or `column` is out of range.
    #[must_use]
    pub fn value(&self, row: usize, column: usize) -> Value<'_> {
        self.columns[column].get(row)
    }

    /// Removes all records but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Values::clear);
        self.rows = 0;
        self.first_number = 0;
        self.watermark_ns = 0;
    }

    /// Appends one record, value by value. File readers use this.
    ///
    /// # Panics
    /// If the number or kind of values does not fit the schema.
    pub fn push_row(&mut self, row: &[Value<'_>]) {
        assert_eq!(row.len(), self.columns.len(), "{ONE_EACH}");
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(*value);
        }
        self.rows += 1;
    }

    /// A copy with other addresses.
    #[must_use]
    pub fn with_addresses(&self, replacement: impl Fn(IpAddr) -> IpAddr) -> Self {
        let mut replaced = self.clone();
        for values in &mut replaced.columns {
            let ValueData::Address(addresses) = &mut values.data else {
                continue;
            };
            for (row, address) in addresses.iter_mut().enumerate() {
                // The placeholder of an absent value stays zero.
                if values.valid.get(row) != Some(&false) {
                    *address = replacement(*address);
                }
            }
        }
        replaced
    }

    /// A copy with these columns appended.
    ///
    /// # Panics
    /// If a column does not have one value per record.
    #[must_use]
    pub fn with_columns(&self, further: impl IntoIterator<Item = Values>) -> Self {
        let mut wider = self.clone();
        for values in further {
            assert_eq!(values.data.len(), self.rows, "{ONE_EACH}");
            wider.columns.push(values);
        }
        wider
    }

    /// Keeps the first `count` columns.
    pub fn keep_columns(&mut self, count: usize) {
        self.columns.truncate(count);
    }

    /// Appends a column. A column that was not computed is empty, and its values must not be
    /// accessed.
    ///
    /// # Panics
    /// If a non-empty column does not have one value per record.
    pub fn append(&mut self, values: Values) {
        let rows = values.data.len();
        assert!(rows == 0 || rows == self.rows, "{ONE_EACH}");
        self.columns.push(values);
    }

    /// Lets `fill` append `rows` values to every column, in schema order. `fill` also gets the
    /// columns before that one, which are already filled.
    pub fn extend(&mut self, rows: usize, mut fill: impl FnMut(&[Values], &mut Values)) {
        for index in 0..self.columns.len() {
            let (filled, rest) = self.columns.split_at_mut(index);
            fill(filled, &mut rest[0]);
        }
        self.rows += rows;
        debug_assert!(
            self.columns
                .iter()
                .all(|column| column.data.len() == self.rows)
        );
    }
}

impl Values {
    /// An empty column of this kind.
    #[must_use]
    pub fn none(kind: ColumnKind) -> Self {
        Self::with_room(kind, 0)
    }

    fn with_room(kind: ColumnKind, rows: usize) -> Self {
        let data = match kind {
            ColumnKind::Address => ValueData::Address(Vec::with_capacity(rows)),
            ColumnKind::Float => ValueData::Float(Vec::with_capacity(rows)),
            ColumnKind::List => ValueData::List {
                ends: Vec::with_capacity(rows),
                elements: Vec::new(),
            },
            ColumnKind::Text => ValueData::Text {
                ends: Vec::with_capacity(rows),
                texts: String::new(),
            },
            _ => ValueData::Unsigned(Vec::with_capacity(rows)),
        };
        Self {
            data,
            valid: Vec::new(),
        }
    }

    /// The value in `row`.
    ///
    /// # Panics
    /// If `row` is out of range.
    #[must_use]
    pub fn get(&self, row: usize) -> Value<'_> {
        if self.valid.get(row) == Some(&false) {
            return Value::Absent;
        }
        match &self.data {
            ValueData::Address(values) => Value::Address(values[row]),
            ValueData::Unsigned(values) => Value::Unsigned(values[row]),
            ValueData::Float(values) => Value::Float(values[row]),
            ValueData::List { ends, elements } => {
                let start = if row == 0 { 0 } else { ends[row - 1] };
                Value::List(&elements[start..ends[row]])
            }
            ValueData::Text { ends, texts } => {
                let start = if row == 0 { 0 } else { ends[row - 1] };
                Value::Text(&texts[start..ends[row]])
            }
        }
    }

    /// Appends a value. From the first absent value on, the column has a validity flag per row.
    pub fn push(&mut self, value: Value<'_>) {
        let absent = matches!(value, Value::Absent);
        if absent && self.valid.is_empty() {
            self.valid.resize(self.data.len(), true);
        }
        if absent || !self.valid.is_empty() {
            self.valid.push(!absent);
        }
        match (&mut self.data, value) {
            (ValueData::Address(values), Value::Address(value)) => values.push(value),
            (ValueData::Address(values), Value::Absent) => {
                values.push(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
            }
            (ValueData::Unsigned(values), Value::Unsigned(value)) => values.push(value),
            (ValueData::Unsigned(values), Value::Absent) => values.push(0),
            (ValueData::Float(values), Value::Float(value)) => values.push(value),
            (ValueData::Float(values), Value::Absent) => values.push(0.0),
            (ValueData::List { ends, elements }, Value::List(value)) => {
                elements.extend_from_slice(value);
                ends.push(elements.len());
            }
            (ValueData::List { ends, elements }, Value::Absent) => ends.push(elements.len()),
            (ValueData::Text { ends, texts }, Value::Text(value)) => {
                texts.push_str(value);
                ends.push(texts.len());
            }
            (ValueData::Text { ends, texts }, Value::Absent) => ends.push(texts.len()),
            (_, value) => panic!("{value:?} does not fit its column"),
        }
    }

    /// The vector of a numeric column without absent values.
    pub fn numbers(&mut self) -> &mut Vec<u64> {
        debug_assert!(self.valid.is_empty(), "such a column has no absent values");
        match &mut self.data {
            ValueData::Unsigned(values) => values,
            data => unreachable!("{data:?} is not a column of numbers"),
        }
    }

    /// The vector of an address column without absent values.
    pub fn addresses(&mut self) -> &mut Vec<IpAddr> {
        debug_assert!(self.valid.is_empty(), "such a column has no absent values");
        match &mut self.data {
            ValueData::Address(values) => values,
            data => unreachable!("{data:?} is not a column of addresses"),
        }
    }

    /// Appends an address, or an absent value.
    #[inline]
    pub fn push_address(&mut self, value: Option<IpAddr>) {
        self.push(value.map_or(Value::Absent, Value::Address));
    }

    /// Appends a float, or an absent value.
    #[inline]
    pub fn push_float(&mut self, value: Option<f64>) {
        self.push(value.map_or(Value::Absent, Value::Float));
    }

    /// Appends a list.
    #[inline]
    pub fn push_list(&mut self, value: &[u64]) {
        self.push(Value::List(value));
    }

    /// Appends a text, or an absent value.
    #[inline]
    pub fn push_text(&mut self, value: Option<&str>) {
        self.push(value.map_or(Value::Absent, Value::Text));
    }

    /// Appends a number, or an absent value.
    #[inline]
    pub fn push_number(&mut self, value: Option<u64>) {
        self.push(value.map_or(Value::Absent, Value::Unsigned));
    }

    fn clear(&mut self) {
        self.valid.clear();
        match &mut self.data {
            ValueData::Address(values) => values.clear(),
            ValueData::Unsigned(values) => values.clear(),
            ValueData::Float(values) => values.clear(),
            ValueData::List { ends, elements } => {
                ends.clear();
                elements.clear();
            }
            ValueData::Text { ends, texts } => {
                ends.clear();
                texts.clear();
            }
        }
    }
}

impl ValueData {
    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Address(values) => values.len(),
            Self::Unsigned(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::List { ends, .. } | Self::Text { ends, .. } => ends.len(),
        }
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_back_rows_with_absent_values() {
        let column = |kind| Column {
            name: "c".to_owned(),
            kind,
            nullable: true,
        };
        let schema = [
            column(ColumnKind::Unsigned { bits: 64 }),
            column(ColumnKind::List),
            column(ColumnKind::Text),
        ];
        let mut batch = FlowBatch::new(&schema);
        batch.push_row(&[Value::Unsigned(7), Value::List(&[1, 2]), Value::Text("a")]);
        batch.push_row(&[Value::Absent, Value::List(&[]), Value::Absent]);
        batch.push_row(&[Value::Unsigned(9), Value::List(&[3]), Value::Text("bc")]);
        let texts = [0, 1, 2].map(|row| batch.value(row, 2));
        assert_eq!(texts, [Value::Text("a"), Value::Absent, Value::Text("bc")]);
        assert_eq!(batch.rows(), 3);
        assert_eq!(batch.value(1, 0), Value::Absent);
        assert_eq!(batch.value(2, 0), Value::Unsigned(9));
        assert_eq!(batch.value(0, 1), Value::List(&[1, 2]));
        assert_eq!(batch.value(2, 1), Value::List(&[3]));
        batch.clear();
        assert_eq!(batch.rows(), 0);
    }
}
