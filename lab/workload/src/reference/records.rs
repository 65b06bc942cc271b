// SPDX-License-Identifier: Apache-2.0
//! Sets of flow records that can be compared, whatever produced them.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use turboflow_record::{Column, FlowBatch, Value};

/// Two floats are equal when they differ by less than this share of the larger one.
const RELATIVE_TOLERANCE: f64 = 1e-12;

/// One value of one record.
#[derive(Clone, Debug)]
pub enum OwnedValue {
    /// The record has no value.
    Absent,
    /// An IP address.
    Address(IpAddr),
    /// A number, time or MAC address.
    Unsigned(u64),
    /// A real number.
    Float(f64),
    /// A list.
    List(Vec<u64>),
    /// A text.
    Text(String),
}

impl OwnedValue {
    const fn rank(&self) -> u8 {
        match self {
            Self::Absent => 0,
            Self::Address(_) => 1,
            Self::Unsigned(_) => 2,
            Self::Float(_) => 3,
            Self::List(_) => 4,
            Self::Text(_) => 5,
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Address(a), Self::Address(b)) => a.cmp(b),
            (Self::Unsigned(a), Self::Unsigned(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::List(a), Self::List(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialEq for OwnedValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => {
                a == b || (a - b).abs() <= RELATIVE_TOLERANCE * a.abs().max(b.abs())
            }
            _ => self.order(other) == Ordering::Equal,
        }
    }
}

impl From<Value<'_>> for OwnedValue {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Absent => Self::Absent,
            Value::Address(address) => Self::Address(address),
            Value::Unsigned(number) => Self::Unsigned(number),
            Value::Float(real) => Self::Float(real),
            Value::List(list) => Self::List(list.to_vec()),
            Value::Text(text) => Self::Text(text.to_owned()),
        }
    }
}

impl fmt::Display for OwnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => write!(f, "-"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Unsigned(number) => write!(f, "{number}"),
            Self::Float(real) => write!(f, "{real:e}"),
            Self::List(list) => write!(f, "{list:?}"),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// A flow record: column name to value.
#[derive(Clone, Default, PartialEq)]
pub struct Record(BTreeMap<String, OwnedValue>);

impl Record {
    /// The value of the column with that name; `None` if there is no such column.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<&OwnedValue> {
        self.0.get(column)
    }

    /// A number, for columns known to hold one.
    ///
    /// # Panics
    /// If the column is missing or holds something else.
    #[must_use]
    pub fn unsigned(&self, column: &str) -> u64 {
        match self.get(column) {
            Some(OwnedValue::Unsigned(number)) => *number,
            other => panic!("column {column} holds {other:?}, not an unsigned number"),
        }
    }

    /// Columns and values, ordered by column name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OwnedValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub(super) fn insert(&mut self, column: &str, value: OwnedValue) {
        let before = self.0.insert(column.to_owned(), value);
        assert!(before.is_none(), "two columns are named {column}");
    }

    /// Orders by addresses first, then by everything except floats.
    fn exact_order(&self, other: &Self) -> Ordering {
        self.order_by(&[1], other)
            .then_with(|| self.order_by(&[0, 2, 4, 5], other))
    }

    /// Orders floats last, so that records that differ only in the last bits of a float are
    /// neighbours.
    fn order(&self, other: &Self) -> Ordering {
        self.exact_order(other)
            .then_with(|| self.order_by(&[3], other))
    }

    fn order_by(&self, ranks: &[u8], other: &Self) -> Ordering {
        let of_ranks = |value: &&OwnedValue| ranks.contains(&value.rank());
        let mine = self.0.values().filter(of_ranks);
        let theirs = other.0.values().filter(of_ranks);
        mine.map(Sortable).cmp(theirs.map(Sortable))
    }

    fn differing_columns(&self, other: &Self) -> Vec<String> {
        let names: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        let show = |value: Option<&OwnedValue>| {
            value.map_or_else(|| "no such column".to_owned(), ToString::to_string)
        };
        names
            .into_iter()
            .filter(|name| self.get(name) != other.get(name))
            .map(|name| {
                format!(
                    "{name}: {} / {}",
                    show(self.get(name)),
                    show(other.get(name))
                )
            })
            .collect()
    }
}

/// A total order of values, for sorting.
struct Sortable<'a>(&'a OwnedValue);

impl PartialEq for Sortable<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Sortable<'_> {}

impl PartialOrd for Sortable<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sortable<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.order(other.0)
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<String> = self
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        write!(f, "{{{}}}", columns.join(" "))
    }
}

/// Flow records in canonical order, independent of the order in which they were made.
#[derive(Clone, Default)]
pub struct Records(Vec<Record>);

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        let (missing, extra) = self.unmatched(other);
        missing.is_empty() && extra.is_empty()
    }
}

impl Records {
    /// The given records, sorted.
    #[must_use]
    pub fn new(mut records: Vec<Record>) -> Self {
        records.sort_by(Record::order);
        Self(records)
    }

    /// Records made from a batch of the product.
    #[must_use]
    pub fn from_batch(schema: &[Column], batch: &FlowBatch) -> Self {
        Self::from_batches(schema, [batch])
    }

    /// Records made from several batches of the product that share a schema.
    #[must_use]
    pub fn from_batches<'a>(
        schema: &[Column],
        batches: impl IntoIterator<Item = &'a FlowBatch>,
    ) -> Self {
        let mut records = Vec::new();
        for batch in batches {
            for row in 0..batch.rows() {
                let mut record = Record::default();
                for (index, column) in schema.iter().enumerate() {
                    record.insert(&column.name, batch.value(row, index).into());
                }
                records.push(record);
            }
        }
        Self::new(records)
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The records, in canonical order.
    pub fn iter(&self) -> std::slice::Iter<'_, Record> {
        self.0.iter()
    }

    /// A readable description of how `actual` differs from `self`; `None` if both are equal.
    #[must_use]
    pub fn difference(&self, actual: &Self) -> Option<String> {
        const SHOWN: usize = 5;
        let (missing, extra) = self.unmatched(actual);
        if missing.is_empty() && extra.is_empty() {
            return None;
        }
        let mut text = format!(
            "expected {} records, got {}; {} of the expected are missing, {} are unexpected\n",
            self.len(),
            actual.len(),
            missing.len(),
            extra.len()
        );
        for record in missing.iter().take(SHOWN) {
            text += &format!("missing: {record:?}\n");
            let nearest = extra
                .iter()
                .min_by_key(|other| record.differing_columns(other).len());
            if let Some(nearest) = nearest {
                let columns = record.differing_columns(nearest).join("; ");
                text += &format!("  nearest differs (expected / actual) in {columns}\n");
            }
        }
        for record in extra.iter().take(SHOWN) {
            text += &format!("unexpected: {record:?}\n");
        }
        Some(text)
    }

    /// Records of `self` that `other` lacks, and records of `other` that `self` lacks.
    ///
    /// Both are sorted. Records that differ only in their floats may be in any order.
    fn unmatched<'a>(&'a self, other: &'a Self) -> (Vec<&'a Record>, Vec<&'a Record>) {
        let (mut missing, mut extra) = (Vec::new(), Vec::new());
        let (mut mine, mut theirs) = (&self.0[..], &other.0[..]);
        while let Some(least) = [mine.first(), theirs.first()]
            .into_iter()
            .flatten()
            .min_by(|a, b| a.exact_order(b))
        {
            let alike = |record: &Record| record.exact_order(least) == Ordering::Equal;
            let (my_run, my_rest) = mine.split_at(mine.partition_point(alike));
            let (their_run, their_rest) = theirs.split_at(theirs.partition_point(alike));
            (mine, theirs) = (my_rest, their_rest);
            let mut left: Vec<&Record> = their_run.iter().collect();
            for record in my_run {
                match left.iter().position(|candidate| *candidate == record) {
                    Some(index) => drop(left.remove(index)),
                    None => missing.push(record),
                }
            }
            extra.append(&mut left);
        }
        (missing, extra)
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = &'a Record;
    type IntoIter = std::slice::Iter<'a, Record>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} records", self.len())?;
        self.iter()
            .try_for_each(|record| writeln!(f, "  {record:?}"))
    }
}

/// Like `assert_eq!`, but reports which records and columns differ.
///
/// # Panics
/// If the two differ.
#[track_caller]
pub fn assert_same_records(expected: &Records, actual: &Records) {
    if let Some(difference) = expected.difference(actual) {
        panic!("{difference}");
    }
}
