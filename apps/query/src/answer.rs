// SPDX-License-Identifier: Apache-2.0
//! The answer to a question: columns, rows and totals.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use turboflow_record::Value;

pub use crate::field::Show;

/// One value of an answer.
#[derive(Clone, Debug)]
pub enum Cell {
    /// No value.
    Absent,
    /// An address.
    Address(IpAddr),
    /// A network: an address and a prefix length.
    Network(IpAddr, u8),
    /// A number, time, MAC address or other value that fits in 64 bits.
    Unsigned(u64),
    /// A real number.
    Float(f64),
    /// A list.
    List(Vec<u64>),
    /// A text.
    Text(Box<str>),
    /// A value that is written verbatim, also in JSON: a number below zero, `true`.
    Plain(Box<str>),
}

/// Name and representation of a column of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerColumn {
    /// The name.
    pub name: String,
    /// How values are shown in tables.
    pub show: Show,
}

/// Numbers of records, packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Flow records.
    pub records: u64,
    /// Their packets; `None` where there is no such column, or where the sum is 2^64 or more.
    pub packets: Option<u64>,
    /// Their bytes; `None` under the same conditions.
    pub bytes: Option<u64>,
}

impl Counts {
    /// Zero records; packets and bytes are known if the columns exist.
    pub(crate) fn none(has_packets: bool, has_bytes: bool) -> Self {
        Self {
            records: 0,
            packets: has_packets.then_some(0),
            bytes: has_bytes.then_some(0),
        }
    }

    pub(crate) fn add(&mut self, records: u64, packets: u128, bytes: u128) {
        self.records += records;
        let plus = |sum: Option<u64>, more: u128| sum?.checked_add(u64::try_from(more).ok()?);
        self.packets = plus(self.packets, packets);
        self.bytes = plus(self.bytes, bytes);
    }
}

/// Totals over the records of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// All records read.
    pub read: Counts,
    /// The records that passed the filter.
    pub matched: Counts,
    /// Number of rows before the limit on rows was applied: groups, or matching records.
    pub rows: u64,
}

/// The answer to a question.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The columns.
    pub columns: Vec<AnswerColumn>,
    /// The rows, in the requested order.
    pub rows: Vec<Vec<Cell>>,
    /// The totals of the records behind the rows.
    pub totals: Totals,
    /// What the shares are percentages of, if the rows have shares.
    pub shares: Option<Shares>,
    /// Times of the first and last packet of all records read, if the question is about a range of
    /// time or counts times from now.
    pub times_read_ns: Option<(u64, u64)>,
    /// Which columns a narrow table drops first.
    pub(crate) order: ColumnOrder,
}

/// Which columns a table that is too narrow drops first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ColumnOrder {
    /// Number of key columns of the groups, which come first.
    pub(crate) keys: usize,
    /// The column by which rows are sorted.
    pub(crate) sorted_by: Option<usize>,
    /// Whether the user listed the columns. If so, columns listed first matter most.
    pub(crate) is_listed: bool,
}

/// What the shares of groups are percentages of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// The measure: `bytes`, `records`, ...
    pub of: String,
    /// Its total over the records that matched.
    pub whole: u128,
    /// How the total is shown.
    pub show: Show,
    /// Whether every record counts at both of its hosts, so that shares add up to more than 100 %.
    pub at_both_ends: bool,
    /// Whether shares count only the parts of records within the requested time.
    pub is_clipped: bool,
}

impl Answer {
    /// Makes an answer from rows that were computed elsewhere. A narrow table keeps the first
    /// columns.
    #[must_use]
    pub fn of_rows(columns: Vec<AnswerColumn>, rows: Vec<Vec<Cell>>) -> Self {
        Self {
            columns,
            rows,
            totals: Totals::default(),
            shares: None,
            times_read_ns: None,
            order: ColumnOrder {
                is_listed: true,
                ..ColumnOrder::default()
            },
        }
    }
}

impl From<Value<'_>> for Cell {
    fn from(value: Value<'_>) -> Self {
        match value {
            Value::Absent => Self::Absent,
            Value::Address(address) => Self::Address(address),
            Value::Unsigned(number) => Self::Unsigned(number),
            Value::Float(float) => Self::Float(float),
            Value::List(list) => Self::List(list.to_vec()),
            Value::Text(text) => Self::Text(text.into()),
        }
    }
}

impl Ord for Cell {
    /// Absent values sort first; apart from those, all values of a column have one kind.
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Address(left), Self::Address(right)) => left.cmp(right),
            (Self::Network(left, l), Self::Network(right, r)) => (left, l).cmp(&(right, r)),
            (Self::Unsigned(left), Self::Unsigned(right)) => left.cmp(right),
            (Self::Float(left), Self::Float(right)) => left.total_cmp(right),
            (Self::List(left), Self::List(right)) => left.cmp(right),
            (Self::Text(left), Self::Text(right)) | (Self::Plain(left), Self::Plain(right)) => {
                left.cmp(right)
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Cell {
    const fn rank(&self) -> u8 {
        match self {
            Self::Absent => 0,
            Self::Address(_) => 1,
            Self::Network(..) => 2,
            Self::Unsigned(_) => 3,
            Self::Float(_) => 4,
            Self::List(_) => 5,
            Self::Text(_) => 6,
            Self::Plain(_) => 7,
        }
    }
}

impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Cell {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Cell {}

impl Hash for Cell {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        match self {
            Self::Absent => {}
            Self::Address(address) => address.hash(state),
            Self::Network(address, length) => (address, length).hash(state),
            Self::Unsigned(number) => number.hash(state),
            Self::Float(float) => float.to_bits().hash(state),
            Self::List(list) => list.hash(state),
            Self::Text(text) | Self::Plain(text) => text.hash(state),
        }
    }
}
