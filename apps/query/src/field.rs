// SPDX-License-Identifier: Apache-2.0
//! The fields that a question can name: columns, the duration, and totals over both directions of a
//! biflow.

use turboflow_record::{Column, ColumnKind, FlowBatch, Value};

use crate::span::TimeColumns;

/// A value of every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// A column.
    Column(usize),
    /// Last time minus first time, over both directions.
    Duration(TimeColumns),
    /// The sum of both directions of a biflow.
    Total {
        /// The initiator's column.
        forward: usize,
        /// The responder's column.
        reverse: usize,
    },
}

/// The totals of biflows. Each is the sum of a column and its `reverse_` twin.
const TOTALS: [(&str, &str); 2] = [("total_packets", "packets"), ("total_bytes", "bytes")];

/// How the values of a field are written and read by people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// An IP address or network.
    Address,
    /// A plain number.
    Number,
    /// A count that may be large.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds since 1970.
    Time,
    /// Nanoseconds.
    Duration,
    /// TCP flags.
    Flags,
    /// An IP protocol.
    Protocol,
    /// Why a flow record ended.
    EndReason,
    /// A MAC address.
    Mac,
    /// A real number.
    Float,
    /// A percentage.
    Percent,
    /// A list of numbers.
    List,
}

impl Field {
    /// The field of that name.
    pub(crate) fn find(name: &str, schema: &[Column]) -> Option<Self> {
        let column = |name: &str| schema.iter().position(|column| column.name == name);
        if let Some(index) = column(name) {
            return Some(Self::Column(index));
        }
        if name == "duration" {
            let times = TimeColumns::of(schema);
            return times.have_duration().then_some(Self::Duration(times));
        }
        let (_, one_way) = TOTALS.iter().find(|(total, _)| *total == name)?;
        Some(Self::Total {
            forward: column(one_way)?,
            reverse: column(&format!("reverse_{one_way}"))?,
        })
    }

    /// All packets or bytes of a record, in both directions if it has two.
    pub(crate) fn all_of(name: &str, schema: &[Column]) -> Option<Self> {
        let total = TOTALS.iter().find(|(_, one_way)| *one_way == name);
        total
            .and_then(|(total, _)| Self::find(total, schema))
            .or_else(|| Self::find(name, schema))
    }

    /// Whether the records have a column of that name.
    pub(crate) fn is_column(name: &str, schema: &[Column]) -> bool {
        schema.iter().any(|column| column.name == name)
    }

    /// Every name that [`Field::find`] accepts.
    pub(crate) fn names(schema: &[Column]) -> Vec<String> {
        let mut names: Vec<String> = schema.iter().map(|column| column.name.clone()).collect();
        for name in TOTALS.iter().map(|(total, _)| *total).chain(["duration"]) {
            if !Self::is_column(name, schema) && Self::find(name, schema).is_some() {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// The value of the field in a record.
    pub(crate) fn value(self, batch: &FlowBatch, row: usize) -> Value<'_> {
        match self {
            Self::Column(column) => batch.value(row, column),
            Self::Duration(times) => {
                let duration_ns = times.times(batch, row).duration_ns();
                duration_ns.map_or(Value::Absent, Value::Unsigned)
            }
            Self::Total { forward, reverse } => {
                match (batch.value(row, forward), batch.value(row, reverse)) {
                    (Value::Unsigned(forward), Value::Unsigned(reverse)) => {
                        let total = forward.checked_add(reverse);
                        total.map_or(Value::Absent, Value::Unsigned)
                    }
                    // The responder sent nothing.
                    (forward, _) => forward,
                }
            }
        }
    }

    pub(crate) fn kind(self, schema: &[Column]) -> ColumnKind {
        match self {
            Self::Column(column) => schema[column].kind,
            Self::Duration(_) | Self::Total { .. } => ColumnKind::Unsigned { bits: 64 },
        }
    }

    /// Whether it is a column of nanoseconds, according to its name.
    pub(crate) fn is_in_ns(self, schema: &[Column]) -> bool {
        matches!(self, Self::Column(index) if schema[index].name.ends_with("_ns"))
    }

    /// The representation of its values.
    pub(crate) fn show(self, schema: &[Column]) -> Show {
        let index = match self {
            Self::Duration(_) => return Show::Duration,
            Self::Column(index) | Self::Total { forward: index, .. } => index,
        };
        let name = schema[index].name.trim_start_matches("reverse_");
        match (schema[index].kind, name) {
            (ColumnKind::Address, _) => Show::Address,
            (ColumnKind::TimestampNs, _) => Show::Time,
            (ColumnKind::Mac, _) => Show::Mac,
            (ColumnKind::Float, _) => Show::Float,
            (ColumnKind::List, _) => Show::List,
            (ColumnKind::Unsigned { .. }, "protocol") => Show::Protocol,
            (ColumnKind::Unsigned { .. }, "tcp_flags") => Show::Flags,
            (ColumnKind::Unsigned { .. }, "end_reason") => Show::EndReason,
            (ColumnKind::Unsigned { .. }, "packets") => Show::Count,
            (ColumnKind::Unsigned { .. }, "bytes" | "frame_bytes") => Show::Bytes,
            (ColumnKind::Unsigned { .. }, "duration" | "duration_ns") => Show::Duration,
            (ColumnKind::Unsigned { .. }, _) => Show::Number,
        }
    }
}

/// The items of a comma-separated list without surrounding spaces, and their positions.
pub(crate) fn listed(text: &str) -> impl Iterator<Item = (&str, (usize, usize))> {
    let mut start = 0;
    text.split(',').map(move |part| {
        let span = (start, start + part.len());
        start = span.1 + 1;
        (part.trim(), span)
    })
}

/// `name`, or `group_NAME` if that is taken: names of a file's columns have priority over names of
/// measures.
pub(crate) fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut free = name.to_owned();
    while is_taken(&free) {
        free.insert_str(0, "group_");
    }
    free
}

/// The error message for an unknown field.
pub(crate) fn unknown(name: &str, names: &[String]) -> String {
    let near = names.iter().min_by_key(|known| distance(name, known));
    let hint = match near.filter(|known| distance(name, known) <= 3.min(name.len() / 2)) {
        Some(known) => format!("did you mean {known}? "),
        None => String::new(),
    };
    let shown: String = name.chars().take(40).collect();
    format!(
        "unknown field {shown:?}: {hint}known are {}",
        names.join(", ")
    )
}

/// Edit distance: letters to change, insert or remove.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in right.iter().enumerate() {
            let change = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = change.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_nearest_name() {
        let names = ["src_addr", "dst_addr", "bytes"].map(str::to_owned);
        assert!(unknown("src_adr", &names).contains("did you mean src_addr?"));
        assert!(!unknown("zzz", &names).contains("did you mean"));
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
