// SPDX-License-Identifier: Apache-2.0
//! From an answer back to the records behind it: filter conditions that select exactly a group's
//! records, and the fields that a question can name.

use std::fmt::Write;

use turboflow_record::ColumnKind;

use crate::answer::{Cell, Show};
use crate::field::Field;
use crate::names;
use crate::query::Shape;
use crate::{Query, RecordShape};

/// A field that questions can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldName {
    /// The name.
    pub name: String,
    /// How its values are shown.
    pub show: Show,
    /// Whether it is a column of the records; other fields are computed from columns.
    pub is_column: bool,
    /// Whether it can be a group key as it is, without a bucket width.
    pub is_key: bool,
    /// Whether groups can show its maximum and minimum: `max(FIELD)`.
    pub is_amount: bool,
}

/// The fields of records of that shape: their columns, then the fields computed from them.
#[must_use]
pub fn fields<'a>(shape: impl Into<RecordShape<'a>>) -> Vec<FieldName> {
    let records = shape.into();
    let of = |name: String| {
        let field = Field::exact(&name, records.schema)?;
        let show = field.show(records);
        let is_list_or_time = matches!(show, Show::List | Show::Time);
        Some(FieldName {
            show,
            is_column: matches!(field, Field::Column(_)),
            is_amount: matches!(field.kind(records.schema), ColumnKind::Unsigned { .. }),
            is_key: !is_list_or_time && !matches!(field, Field::Ratio(_)),
            name,
        })
    };
    Field::names(records.schema)
        .into_iter()
        .filter_map(of)
        .collect()
}

impl Query {
    /// For each key of a group, the filter expression that exactly the group's records pass. A key
    /// has `None` if the filter language cannot express it, or if it is a bucket that records are
    /// spread over. Empty if the rows are records.
    #[must_use]
    pub fn conditions(&self, row: &[Cell]) -> Vec<Option<String>> {
        let Shape::Groups(grouping) = &self.shape else {
            return Vec::new();
        };
        let keys = grouping.keys.iter().zip(row);
        keys.map(|(key, cell)| {
            let name = key.name.split([':', '/']).next().unwrap_or_default();
            match key.time_width_ns() {
                Some(_) => None,
                None if key.is_host() => of_host(cell),
                None => of_value(name, cell, key.column().show, key.width()),
            }
        })
        .collect()
    }
}

fn of_host(cell: &Cell) -> Option<String> {
    match cell {
        Cell::Address(address) => Some(format!("host {address}")),
        Cell::Network(address, length) => Some(format!("net {address}/{length}")),
        _ => None,
    }
}

/// The condition for one value, or for a bucket of `width` values.
fn of_value(name: &str, cell: &Cell, show: Show, width: u64) -> Option<String> {
    Some(match cell {
        Cell::Absent => format!("{name} == none"),
        Cell::Address(address) => format!("{name} == {address}"),
        Cell::Network(address, length) => format!("{name} in {address}/{length}"),
        Cell::Unsigned(first) if width > 1 => {
            let unit = if show == Show::Duration { "ns" } else { "" };
            let last = first.saturating_add(width - 1);
            format!("{name} >= {first}{unit} and {name} <= {last}{unit}")
        }
        Cell::Unsigned(number) => format!("{name} == {}", number_text(*number, show)),
        Cell::Text(text) => format!("{name} == {}", quoted(text)?),
        Cell::Float(_) | Cell::List(_) | Cell::Plain(_) => return None,
    })
}

fn number_text(number: u64, show: Show) -> String {
    match show {
        Show::Duration => format!("{number}ns"),
        Show::Protocol => {
            let name = names::protocol_name(number);
            name.map_or(number.to_string(), str::to_owned)
        }
        Show::Mac => {
            let bytes = number.to_be_bytes();
            let mut text = String::new();
            for (index, byte) in bytes[2..].iter().enumerate() {
                let colon = if index > 0 { ":" } else { "" };
                // Writing to a string cannot fail.
                let _ = write!(text, "{colon}{byte:02x}");
            }
            text
        }
        _ => number.to_string(),
    }
}

/// Quotes a text with a quote character that it does not contain. The bare word `none` would mean
/// an absent value.
fn quoted(text: &str) -> Option<String> {
    if text == "none" {
        return None;
    }
    let quote = ['"', '\'']
        .into_iter()
        .find(|quote| !text.contains(*quote))?;
    Some(format!("{quote}{text}{quote}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_by_what_they_do_not_hold() {
        assert_eq!(quoted("a b").as_deref(), Some("\"a b\""));
        assert_eq!(quoted("a\"b").as_deref(), Some("'a\"b'"));
        assert_eq!(quoted("a\"b'"), None);
        assert_eq!(quoted("none"), None);
    }

    #[test]
    fn values_have_the_notation_of_filters() {
        let of = |cell: Cell, show, width| of_value("f", &cell, show, width).unwrap();
        assert_eq!(of(Cell::Unsigned(6), Show::Protocol, 1), "f == tcp");
        assert_eq!(of(Cell::Unsigned(5), Show::Duration, 1), "f == 5ns");
        assert_eq!(
            of(Cell::Unsigned(0x0242_ac11_0002), Show::Mac, 1),
            "f == 02:42:ac:11:00:02"
        );
        assert_eq!(
            of(Cell::Unsigned(1000), Show::Bytes, 500),
            "f >= 1000 and f <= 1499"
        );
        assert_eq!(of(Cell::Absent, Show::Number, 1), "f == none");
    }
}
