// SPDX-License-Identifier: Apache-2.0
//! Answers in JSON.

use serde_json::{Value, json};
use turboflow_query::{Answer, Cell, Counts, Query, Show};

/// Up to this, JavaScript represents every whole number exactly.
const EXACT_MAX: u64 = 1 << 53;

/// An answer as JSON. Beside its values it holds the texts to show in tables, and for each row the
/// filter conditions that lead to the row's records.
pub(crate) fn to_json(answer: &Answer, query: &Query) -> Value {
    let columns = answer.columns.iter();
    let columns = columns.map(|it| json!({ "name": it.name, "show": show_name(it.show) }));
    let shows: Vec<Show> = answer.columns.iter().map(|column| column.show).collect();
    let rows = answer.rows.iter().map(|row| {
        let cells = row.iter().zip(&shows);
        Value::Array(cells.map(|(cell, show)| value(cell, *show)).collect())
    });
    let texts = answer.rows.iter().map(|row| {
        let cells = row.iter().zip(&shows);
        Value::Array(
            cells
                .map(|(cell, show)| cell.to_text(*show, true).into())
                .collect(),
        )
    });
    let conditions = answer.rows.iter().map(|row| json!(query.conditions(row)));
    let conditions: Vec<Value> = conditions.filter(|its| its != &json!([])).collect();
    json!({
        "columns": columns.collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
        "texts": texts.collect::<Vec<_>>(),
        "conditions": conditions,
        "totals": {
            "read": counts(&answer.totals.read),
            "matched": counts(&answer.totals.matched),
            "rows": answer.totals.rows,
        },
        "shares": answer.shares.as_ref().map(|shares| json!({
            "of": shares.of,
            "whole": u64::try_from(shares.whole).ok().map(number),
            "at_both_ends": shares.at_both_ends,
        })),
        "notes": query.notes(),
    })
}

/// Records, packets and bytes.
pub(crate) fn counts(counts: &Counts) -> Value {
    json!({
        "records": counts.records,
        "packets": counts.packets.map(number),
        "bytes": counts.bytes.map(number),
    })
}

/// A number, or its text if JavaScript would round it.
pub(crate) fn number(number: u64) -> Value {
    match number <= EXACT_MAX {
        true => number.into(),
        false => number.to_string().into(),
    }
}

/// A value of an answer. Times are strings of nanoseconds since 1970.
pub(crate) fn value(cell: &Cell, show: Show) -> Value {
    match cell {
        Cell::Absent => Value::Null,
        Cell::Unsigned(time_ns) if show == Show::Time => time_ns.to_string().into(),
        Cell::Unsigned(_) if show == Show::Mac => cell.to_text(show, false).into(),
        Cell::Unsigned(whole) => number(*whole),
        Cell::Float(float) => json!(float),
        Cell::List(list) => list.iter().copied().map(number).collect(),
        other => other.to_text(show, false).into(),
    }
}

/// The page's word for how a column is shown.
pub(crate) const fn show_name(show: Show) -> &'static str {
    match show {
        Show::Address => "address",
        Show::Number => "number",
        Show::Port => "port",
        Show::Count => "count",
        Show::Bytes => "bytes",
        Show::Time => "time",
        Show::Duration => "duration",
        Show::Flags => "flags",
        Show::Protocol => "protocol",
        Show::EndReason => "end_reason",
        Show::Mac => "mac",
        Show::Float => "float",
        Show::Rate => "rate",
        Show::Percent => "percent",
        Show::List => "list",
        Show::Text => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_a_page_would_round_are_texts() {
        assert_eq!(number(1 << 53), json!(9_007_199_254_740_992u64));
        assert_eq!(number((1 << 53) + 1), json!("9007199254740993"));
        assert_eq!(value(&Cell::Unsigned(5), Show::Time), json!("5"));
        assert_eq!(value(&Cell::Float(f64::NAN), Show::Float), Value::Null);
    }
}
