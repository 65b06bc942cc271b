// SPDX-License-Identifier: Apache-2.0
//! Answers as text: a table for people, CSV and JSON lines for programs.

use std::io::{self, Write};

use turboflow_formats::table::{self, Align, Fitted, Table};
use turboflow_formats::{TimeForm, csv_field, json_string, whole_time_text};

use crate::answer::{Answer, AnswerColumn, Cell, Shares, Show};
use crate::{literal, names};

/// The style of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStyle {
    /// Maximum characters of a line; `None`: no limit.
    pub width: Option<usize>,
    /// Whether numbers are shortened, as in `3.4 GB` and `1.2 M`.
    pub humanise: bool,
}

/// How CSV and JSON answers write times and names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlainStyle {
    /// The form of times, which also changes the names of their columns.
    pub time: TimeForm,
    /// Whether protocols and end reasons are written by name, where they have one.
    pub names: bool,
}

/// A table, and the notes to print below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableText {
    /// The lines of the table.
    pub table: String,
    /// Sentences about what the table shows.
    pub notes: Vec<String>,
    /// Columns for which there was no room.
    pub left_out: Vec<String>,
}

/// Pairs of columns that narrow tables merge into one, so that every row takes two lines.
const STACKED: [(&str, &str); 2] = [("src_addr", "dst_addr"), ("src_port", "dst_port")];

impl Answer {
    /// Formats the answer as an aligned table: protocols, flags and end reasons by name, times in
    /// UTC. If all rows have the same date, it is in a note instead of in the rows. Columns that do
    /// not fit are left out, the least important first; values are never cut. If two long addresses
    /// would leave no room for the sort column, they are stacked.
    #[must_use]
    pub fn to_table(&self, style: TableStyle) -> TableText {
        let align = |show: Show| match show {
            Show::Address | Show::Time | Show::Flags | Show::Protocol => Align::Left,
            Show::EndReason | Show::Mac | Show::List | Show::Text => Align::Left,
            _ => Align::Right,
        };
        // The table formats times and durations, so `_ns` does not belong in the header.
        let name = |column: &AnswerColumn| match column.show {
            Show::Time | Show::Duration => column.name.trim_end_matches("_ns").to_owned(),
            _ => column.name.clone(),
        };
        let columns = self.columns.iter();
        let columns: Vec<_> = columns.map(|its| (name(its), align(its.show))).collect();
        let times = TimeStyle::of(self, style);
        let texts = |row: &Vec<Cell>| {
            let shows = self.columns.iter().map(|column| column.show);
            let cell = |(cell, show): (&Cell, Show)| match (cell, show) {
                (Cell::Unsigned(time_ns), Show::Time) => times.text(*time_ns),
                (cell, show) => text(cell, show, style),
            };
            row.iter().zip(shows).map(cell).collect::<Vec<_>>()
        };
        let rows: Vec<Vec<String>> = self.rows.iter().map(texts).collect();
        let sorted_by = self.order.sorted_by.map(|by| columns[by].0.clone());
        let mut layout = Layout {
            columns,
            rows,
            ranks: self.ranks(),
        };
        let mut fitted = layout.fit(style.width);
        let is_lost = |name: &String| {
            let is_address = STACKED[0].0 == name || STACKED[0].1 == name;
            sorted_by.as_ref() == Some(name) || is_address && !self.order.is_listed
        };
        if fitted.left_out.iter().any(is_lost) {
            layout.stack();
            fitted = layout.fit(style.width);
        }
        let is_shown = |column: &&AnswerColumn| {
            column.show == Show::Time && !fitted.left_out.contains(&name(column))
        };
        let has_times = self.columns.iter().any(|column| is_shown(&column));
        let mut notes = Vec::new();
        notes.extend(times.note().filter(|_| has_times));
        notes.extend(self.shares.as_ref().map(Shares::note));
        TableText {
            table: fitted.text,
            notes,
            left_out: fitted.left_out,
        }
    }

    /// The rank of every column: columns with a high rank are dropped first.
    fn ranks(&self) -> Vec<usize> {
        let order = self.order;
        let rank = |(index, column): (usize, &AnswerColumn)| {
            if order.is_listed || index < order.keys {
                return index;
            }
            let name = column.name.as_str();
            let usual = match order.sorted_by {
                Some(by) if by == index => Some(0),
                _ => IMPORTANCE.iter().position(|known| *known == name),
            };
            order.keys + usual.map_or(IMPORTANCE.len() + index, |place| place + 1)
        };
        self.columns.iter().enumerate().map(rank).collect()
    }
}

/// The texts of a table.
struct Layout {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
    ranks: Vec<usize>,
}

impl Layout {
    fn fit(&self, width: Option<usize>) -> Fitted {
        let mut table = Table::new(self.columns.iter().cloned());
        self.rows.iter().for_each(|row| table.push(row.clone()));
        let mut fitted = table.fit(width, &self.ranks);
        let names = fitted.left_out.iter().flat_map(|name| name.split('\n'));
        fitted.left_out = names.map(str::to_owned).collect();
        fitted
    }

    /// Merges each pair of columns into one, with the second value below the first.
    fn stack(&mut self) {
        for (upper, lower) in STACKED {
            let at = |name: &str| self.columns.iter().position(|(its, _)| its == name);
            let (Some(upper), Some(lower)) = (at(upper), at(lower)) else {
                continue;
            };
            let below = |rows: &mut Vec<String>| {
                let text = rows[lower].clone();
                rows[upper] = format!("{}\n{text}", rows[upper]);
                rows.remove(lower);
            };
            self.rows.iter_mut().for_each(below);
            self.columns[upper].0 = format!("{}\n{}", self.columns[upper].0, self.columns[lower].0);
            self.columns.remove(lower);
            self.ranks[upper] = self.ranks[upper].min(self.ranks[lower]);
            self.ranks.remove(lower);
        }
    }
}

/// The rank of a column of records: narrow tables drop columns with a high rank first.
#[must_use]
pub fn column_rank(name: &str) -> usize {
    let place = IMPORTANCE.iter().position(|known| *known == name);
    place.unwrap_or(IMPORTANCE.len())
}

/// The columns that narrow tables keep, the most important first.
const IMPORTANCE: [&str; 21] = [
    "src_addr",
    "dst_addr",
    "total_bytes",
    "bytes",
    "dst_port",
    "protocol",
    "application",
    "server_name",
    "reverse_bytes",
    "share",
    "records",
    "packets",
    "total_packets",
    "src_port",
    "first_ns",
    "reverse_packets",
    "duration",
    "last_ns",
    "tcp_flags",
    "end_reason",
    "tos",
];

impl Shares {
    fn note(&self) -> String {
        let whole = u64::try_from(self.whole).unwrap_or(u64::MAX);
        let whole = match self.show {
            Show::Bytes => table::bytes(whole),
            Show::Duration => literal::duration_text(whole),
            _ => table::grouped(whole),
        };
        let of = match self.of.as_str() {
            "bytes" | "records" | "packets" => self.of.clone(),
            "total_bytes" => "bytes of both directions".to_owned(),
            "total_packets" => "packets of both directions".to_owned(),
            other => format!("{other} added up"),
        };
        let twice = match self.at_both_ends {
            true => "; a record counts at both its hosts, so shares add up to more than 100 %",
            false => "",
        };
        let when = match self.is_clipped {
            true => " in that time",
            false => "",
        };
        format!("Shares are of all {of} that matched{when} ({whole}){twice}.")
    }
}

/// How the times of a table are shown. The part of the date that they share is shown once.
struct TimeStyle {
    /// The common part of the date, for the note.
    common: Option<String>,
    /// Number of leading bytes of the date that are left out.
    left_out: usize,
    /// Digits of the fraction of a second.
    digits: usize,
}

impl TimeStyle {
    fn of(answer: &Answer, style: TableStyle) -> Self {
        let columns: Vec<usize> = (0..answer.columns.len())
            .filter(|&index| answer.columns[index].show == Show::Time)
            .collect();
        let cells = answer.rows.iter();
        let cells = cells.flat_map(|row| columns.iter().map(move |&index| &row[index]));
        let (mut first, mut last, mut digits) = (u64::MAX, 0, 0);
        for cell in cells {
            let Cell::Unsigned(time_ns) = cell else {
                continue;
            };
            (first, last) = (first.min(*time_ns), last.max(*time_ns));
            digits = digits.max(match time_ns % 1_000_000_000 {
                0 => 0,
                ns if ns % 1_000_000 == 0 => 3,
                ns if ns % 1_000 == 0 => 6,
                _ => 9,
            });
        }
        let digits = if style.humanise {
            digits.min(3)
        } else {
            digits
        };
        let dates = [first, last].map(|time_ns| literal::time_text(time_ns)[..10].to_owned());
        let (common, left_out) = match dates {
            _ if first > last => (None, 0),
            [first, last] if first == last => (Some(first), 11),
            [first, last] if first[..4] == last[..4] => (Some(first[..4].to_owned()), 5),
            _ => (Some(String::new()), 0),
        };
        Self {
            common,
            left_out,
            digits,
        }
    }

    /// `2023-11-14 22:13:20.123` without the leading part that all times share. Fractions are
    /// truncated, not rounded, so that a time never moves to the next day.
    fn text(&self, time_ns: u64) -> String {
        let second = literal::time_text(time_ns / 1_000_000_000 * 1_000_000_000);
        let second = second.trim_end_matches('Z').replace('T', " ");
        let fraction = format!("{:09}", time_ns % 1_000_000_000);
        let fraction = match self.digits {
            0 => String::new(),
            digits => format!(".{}", &fraction[..digits]),
        };
        format!(
            "{}{fraction}",
            second.get(self.left_out..).unwrap_or(&second)
        )
    }

    fn note(&self) -> Option<String> {
        Some(match self.common.as_deref()? {
            "" => "Times are UTC.".to_owned(),
            common => format!("Times are UTC, of {common}."),
        })
    }
}

impl Answer {
    /// Writes the answer as CSV, in the notation of the CSV export. By default, enumerations and
    /// times are integers.
    ///
    /// # Errors
    /// Errors of `output`.
    pub fn write_csv(&self, output: &mut dyn Write, style: PlainStyle) -> io::Result<()> {
        let names = self.columns.iter().map(|c| csv_field(&style.name(c)));
        let names: Vec<String> = names.collect();
        writeln!(output, "{}", names.join(","))?;
        self.write_csv_rows(output, style)
    }

    /// Writes only the rows, without the header, to continue an answer.
    ///
    /// # Errors
    /// Errors of `output`.
    pub fn write_csv_rows(&self, output: &mut dyn Write, style: PlainStyle) -> io::Result<()> {
        for row in &self.rows {
            let shows = self.columns.iter().map(|column| column.show);
            let cells: Vec<String> = row
                .iter()
                .zip(shows)
                .map(|(c, s)| match c {
                    Cell::Text(text) => csv_field(text),
                    c => style.text(c, s).unwrap_or_else(|| plain(c, s, ";")),
                })
                .collect();
            writeln!(output, "{}", cells.join(","))?;
        }
        Ok(())
    }

    /// Writes the answer as JSON lines, in the notation of the JSON export.
    ///
    /// # Errors
    /// Errors of `output`.
    pub fn write_json_lines(&self, output: &mut dyn Write, style: PlainStyle) -> io::Result<()> {
        let names = self.columns.iter().map(|c| json_string(&style.name(c)));
        let names: Vec<String> = names.collect();
        for row in &self.rows {
            let pairs = row
                .iter()
                .zip(&self.columns)
                .zip(&names)
                .map(|((cell, column), name)| {
                    if let Some(text) = style.text(cell, column.show) {
                        return match style.is_text(column.show) {
                            true => format!("{name}:\"{text}\""),
                            false => format!("{name}:{text}"),
                        };
                    }
                    let value = plain(cell, column.show, ",");
                    match (cell, column.show) {
                        (Cell::Absent, _) => format!("{name}:null"),
                        (Cell::Text(text), _) => format!("{name}:{}", json_string(text)),
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

impl PlainStyle {
    /// The name of a column, whose suffix tells the form of its times.
    fn name(self, column: &AnswerColumn) -> String {
        // The name of a group key has its bucket width after the field: `first_ns:5m`.
        let (field, width) = match column.name.find(':') {
            Some(at) => column.name.split_at(at),
            None => (&*column.name, ""),
        };
        let of_time = field
            .strip_suffix("_ns")
            .filter(|_| column.show == Show::Time);
        if column.show == Show::Percent {
            return format!("{field}_percent");
        }
        match (of_time, self.time) {
            (Some(name), TimeForm::Seconds) => format!("{name}_s{width}"),
            (Some(name), TimeForm::Iso) => format!("{name}_iso{width}"),
            _ => column.name.clone(),
        }
    }

    /// The text of a cell, if it is not written as a plain number.
    fn text(self, cell: &Cell, show: Show) -> Option<String> {
        let Cell::Unsigned(number) = *cell else {
            return None;
        };
        match (show, self.time) {
            (Show::Time, TimeForm::Iso) => Some(whole_time_text(number)),
            (Show::Time, TimeForm::Seconds) => {
                let (second, fraction) = (number / 1_000_000_000, number % 1_000_000_000);
                Some(format!("{second}.{fraction:09}"))
            }
            (Show::Protocol, _) if self.names => Some(named(names::protocol_name(number), number)),
            (Show::EndReason, _) if self.names => {
                Some(named(names::end_reason_name(number), number))
            }
            _ => None,
        }
    }

    /// Whether JSON must write such a text as a string.
    fn is_text(self, show: Show) -> bool {
        show != Show::Time || self.time == TimeForm::Iso
    }
}

fn named(name: Option<&str>, number: u64) -> String {
    name.map_or(number.to_string(), str::to_owned)
}

/// A cell as shown to people.
fn text(cell: &Cell, show: Show, style: TableStyle) -> String {
    match (cell, show) {
        (Cell::Absent, _) => "-".to_owned(),
        (Cell::Unsigned(duration_ns), Show::Duration) => literal::duration_text(*duration_ns),
        (Cell::Unsigned(flags), Show::Flags) => names::flags_text(*flags),
        (Cell::Unsigned(number), Show::Protocol) => named(names::protocol_name(*number), *number),
        (Cell::Unsigned(reason), Show::EndReason) => {
            named(names::end_reason_name(*reason), *reason)
        }
        (Cell::Unsigned(number), Show::Count) if style.humanise => table::count(*number),
        (Cell::Unsigned(number), Show::Bytes) if style.humanise => table::bytes(*number),
        (Cell::Float(ns), Show::Duration) => literal::duration_text(ns.round() as u64),
        (Cell::Float(share), Show::Percent) => format!("{share:.1} %"),
        (Cell::Float(rate), Show::Rate) if style.humanise => table::count(rate.round() as u64),
        (Cell::Float(float), _) => fraction(*float),
        (cell, show) => plain(cell, show, " "),
    }
}

impl Cell {
    /// The text of the cell in a table column of this representation. Times are complete, as in
    /// [`time_text`](crate::time_text). For `humanise`, see [`TableStyle`].
    #[must_use]
    pub fn to_text(&self, show: Show, humanise: bool) -> String {
        match (self, show) {
            (Self::Unsigned(time_ns), Show::Time) => whole_time_text(*time_ns),
            _ => text(
                self,
                show,
                TableStyle {
                    humanise,
                    ..TableStyle::default()
                },
            ),
        }
    }
}

/// A number with up to three decimals.
fn fraction(float: f64) -> String {
    let text = format!("{float:.3}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A cell as written for programs.
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
        // Whole numbers get a decimal point, so that readers recognise the kind of the column.
        (Cell::Float(float), Show::Float | Show::Duration) => format!("{float:?}"),
        (Cell::Float(float), _) => float.to_string(),
        (Cell::List(list), _) => {
            let numbers: Vec<String> = list.iter().map(u64::to_string).collect();
            format!("[{}]", numbers.join(separator))
        }
        (Cell::Text(text) | Cell::Plain(text), _) => text.to_string(),
    }
}
