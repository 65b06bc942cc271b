// SPDX-License-Identifier: Apache-2.0
//! Answers as text: a table for people, CSV and JSON lines for programs.

use std::io::{self, Write};

use turboflow_formats::table::{self, Align, Table};
use turboflow_formats::{csv_field, json_string};

use crate::answer::{Answer, Cell, Show};
use crate::{literal, names};

/// The style of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStyle {
    /// Maximum characters of a line; `None`: no limit.
    pub width: Option<usize>,
    /// Shows `3.4 GB` and `1.2 M` instead of exact numbers.
    pub humanise: bool,
}

impl Answer {
    /// The answer as an aligned table: protocols, flags and end reasons by name, times in UTC.
    #[must_use]
    pub fn to_table(&self, style: TableStyle) -> String {
        let align = |show: Show| match show {
            Show::Address | Show::Time | Show::Flags | Show::Protocol => Align::Left,
            Show::EndReason | Show::Mac | Show::List => Align::Left,
            _ => Align::Right,
        };
        let columns = self.columns.iter().map(|column| {
            // The table shows times and durations in other units than nanoseconds.
            let name = match column.show {
                Show::Time | Show::Duration => column.name.trim_end_matches("_ns"),
                _ => &column.name,
            };
            (name, align(column.show))
        });
        let mut table = Table::new(columns);
        for row in &self.rows {
            let shows = self.columns.iter().map(|column| column.show);
            table.push(
                row.iter()
                    .zip(shows)
                    .map(|(cell, show)| text(cell, show, style))
                    .collect(),
            );
        }
        table.render(style.width)
    }

    /// The answer as CSV, in the notation of the CSV export: numbers and times as integers.
    ///
    /// # Errors
    /// The error of `output`.
    pub fn write_csv(&self, output: &mut dyn Write) -> io::Result<()> {
        let names: Vec<String> = self.columns.iter().map(|c| csv_field(&c.name)).collect();
        writeln!(output, "{}", names.join(","))?;
        for row in &self.rows {
            let shows = self.columns.iter().map(|column| column.show);
            let cells: Vec<String> = row
                .iter()
                .zip(shows)
                .map(|(c, s)| plain(c, s, ";"))
                .collect();
            writeln!(output, "{}", cells.join(","))?;
        }
        Ok(())
    }

    /// The answer as JSON lines, in the notation of the JSON export.
    ///
    /// # Errors
    /// The error of `output`.
    pub fn write_json_lines(&self, output: &mut dyn Write) -> io::Result<()> {
        let names: Vec<String> = self.columns.iter().map(|c| json_string(&c.name)).collect();
        for row in &self.rows {
            let pairs = row
                .iter()
                .zip(&self.columns)
                .zip(&names)
                .map(|((cell, column), name)| {
                    let value = plain(cell, column.show, ",");
                    match (cell, column.show) {
                        (Cell::Absent, _) => format!("{name}:null"),
                        (Cell::Float(float), _) if !float.is_finite() => format!("{name}:null"),
                        (Cell::Address(_) | Cell::Network(..), _) | (_, Show::Mac) => {
                            format!("{name}:\"{value}\"")
                        }
                        _ => format!("{name}:{value}"),
                    }
                });
            writeln!(output, "{{{}}}", pairs.collect::<Vec<_>>().join(","))?;
        }
        Ok(())
    }
}

/// A cell as shown to people.
fn text(cell: &Cell, show: Show, style: TableStyle) -> String {
    let named = |name: Option<&str>, number: u64| name.map_or(number.to_string(), str::to_owned);
    match (cell, show) {
        (Cell::Absent, _) => "-".to_owned(),
        (Cell::Unsigned(time_ns), Show::Time) => literal::time_text(*time_ns),
        (Cell::Unsigned(duration_ns), Show::Duration) => literal::duration_text(*duration_ns),
        (Cell::Unsigned(flags), Show::Flags) => names::flags_text(*flags),
        (Cell::Unsigned(number), Show::Protocol) => named(names::protocol_name(*number), *number),
        (Cell::Unsigned(reason), Show::EndReason) => {
            named(names::end_reason_name(*reason), *reason)
        }
        (Cell::Unsigned(number), Show::Count) if style.humanise => table::count(*number),
        (Cell::Unsigned(number), Show::Bytes) if style.humanise => table::bytes(*number),
        (Cell::Float(share), Show::Percent) => format!("{share:.1} %"),
        (Cell::Float(float), _) => format!("{float:.3}"),
        (cell, show) => plain(cell, show, " "),
    }
}

/// A cell as read by programs.
fn plain(cell: &Cell, show: Show, separator: &str) -> String {
    match (cell, show) {
        (Cell::Absent, _) => String::new(),
        (Cell::Address(address), _) => address.to_string(),
        (Cell::Network(address, length), _) => format!("{address}/{length}"),
        (Cell::Unsigned(mac), Show::Mac) => {
            let bytes = mac.to_be_bytes();
            let parts: Vec<String> = bytes[2..]
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            parts.join(":")
        }
        (Cell::Unsigned(number), _) => number.to_string(),
        (Cell::Float(float), _) => float.to_string(),
        (Cell::List(list), _) => {
            let numbers: Vec<String> = list.iter().map(u64::to_string).collect();
            format!("[{}]", numbers.join(separator))
        }
    }
}
