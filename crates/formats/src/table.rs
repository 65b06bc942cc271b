// SPDX-License-Identifier: Apache-2.0
//! Tables for people: aligned columns, a width limit, numbers with unit prefixes.

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Rows of text under a header. A cell may have several lines, which its row then spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    names: Vec<String>,
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

/// A table that fits within a width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fitted {
    /// The lines, each with its newline.
    pub text: String,
    /// Names of the columns that did not fit, in the order of the table.
    pub left_out: Vec<String>,
}

/// Spaces between two columns.
const GAP: usize = 2;
/// A text column is never cut to fewer characters than this.
const TEXT_MIN: usize = 8;

impl Table {
    /// A table without rows.
    #[must_use]
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, Align)>) -> Self {
        let columns = columns
            .into_iter()
            .map(|(name, align)| (name.into(), align));
        let (names, aligns) = columns.unzip();
        Self {
            names,
            aligns,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it does not have one text per column.
    pub fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.names.len(), "a row has one text per column");
        self.rows.push(row);
    }

    /// The table as lines, each with its newline. If it is wider than `width` characters, text
    /// columns are cut and end in `…`; numbers are never cut. `None` means no limit.
    #[must_use]
    pub fn render(&self, width: Option<usize>) -> String {
        self.lines(&self.widths(width.unwrap_or(usize::MAX)), GAP)
    }

    fn lines(&self, widths: &[usize], gap: usize) -> String {
        let mut text = String::new();
        self.line(&self.names, widths, gap, &mut text);
        let rules: Vec<String> = widths.iter().map(|&width| "─".repeat(width)).collect();
        self.line(&rules, widths, gap, &mut text);
        let rows = self.rows.iter();
        rows.for_each(|row| self.line(row, widths, gap, &mut text));
        text
    }

    /// The table without the columns that do not fit into `width` characters. The column with the
    /// highest rank is left out first, and the one with the lowest rank always stays. Nothing is
    /// cut. `ranks` has one number per column.
    #[must_use]
    pub fn fit(&self, width: Option<usize>, ranks: &[usize]) -> Fitted {
        let natural = self.natural_widths();
        let mut kept: Vec<usize> = (0..self.names.len()).collect();
        let mut left_out = Vec::new();
        let gap = loop {
            let taken = |gap: usize| {
                let columns: usize = kept.iter().map(|&column| natural[column]).sum();
                columns + gap * kept.len().saturating_sub(1)
            };
            // A narrower gap is better than one column less.
            let limit = width.unwrap_or(usize::MAX);
            match [GAP, 1].into_iter().find(|&gap| taken(gap) <= limit) {
                Some(gap) => break gap,
                None if kept.len() <= 1 => break GAP,
                None => {}
            }
            let last = kept
                .iter()
                .copied()
                .max_by_key(|&column| (ranks[column], column));
            let last = last.unwrap_or_default();
            kept.retain(|&column| column != last);
            left_out.push(last);
        };
        left_out.sort_unstable();
        let of = |row: &[String]| kept.iter().map(|&column| row[column].clone()).collect();
        let table = Self {
            names: of(&self.names),
            aligns: kept.iter().map(|&column| self.aligns[column]).collect(),
            rows: self.rows.iter().map(|row| of(row)).collect(),
        };
        Fitted {
            text: table.lines(&table.natural_widths(), gap),
            left_out: left_out
                .iter()
                .map(|&column| self.names[column].clone())
                .collect(),
        }
    }

    /// The width that each column needs.
    fn natural_widths(&self) -> Vec<usize> {
        let longest = |column: usize| {
            let rows = self.rows.iter().map(|row| length(&row[column])).max();
            rows.unwrap_or(0).max(length(&self.names[column]))
        };
        (0..self.names.len()).map(longest).collect()
    }

    fn widths(&self, limit: usize) -> Vec<usize> {
        let mut widths = self.natural_widths();
        loop {
            let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
            let texts = (0..widths.len()).filter(|&column| self.aligns[column] == Align::Left);
            let widest = texts.max_by_key(|&column| widths[column]);
            match widest {
                Some(column) if total > limit && widths[column] > TEXT_MIN => widths[column] -= 1,
                _ => return widths,
            }
        }
    }

    fn line(&self, row: &[String], widths: &[usize], gap: usize, text: &mut String) {
        let lines = row.iter().map(|value| value.split('\n').count()).max();
        for index in 0..lines.unwrap_or(1) {
            let line = |value: &String| value.split('\n').nth(index).unwrap_or("").to_owned();
            let row: Vec<String> = row.iter().map(line).collect();
            self.one_line(&row, widths, gap, text);
        }
    }

    fn one_line(&self, row: &[String], widths: &[usize], gap: usize, text: &mut String) {
        for (column, (value, &width)) in row.iter().zip(widths).enumerate() {
            let value = cut(value, width);
            let padding = " ".repeat(width - length(&value));
            let (before, after) = match self.aligns[column] {
                Align::Left => ("", padding.as_str()),
                Align::Right => (padding.as_str(), ""),
            };
            text.extend([before, &value, after]);
            text.push_str(&" ".repeat(gap));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
}

/// The text wrapped to lines of at most `width` characters, each with its newline; a longer word
/// gets a line of its own. `None` means no limit.
#[must_use]
pub fn wrapped(text: &str, width: Option<usize>) -> String {
    let (mut lines, mut taken) = (String::new(), 0);
    for word in text.split(' ') {
        let letters = word.chars().count();
        if taken > 0 && width.is_some_and(|width| taken + 1 + letters > width) {
            lines.push('\n');
            taken = 0;
        } else if taken > 0 {
            lines.push(' ');
            taken += 1;
        }
        lines.push_str(word);
        taken += letters;
    }
    lines.push('\n');
    lines
}

/// Number of characters of the longest line.
fn length(text: &str) -> usize {
    let lines = text.split('\n').map(|line| line.chars().count());
    lines.max().unwrap_or(0)
}

fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    text.chars()
        .take(width.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// A number with thousands separators: `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rounded number with a unit prefix: `999`, `1.2 k`, `34.5 M`, `678 G`.
#[must_use]
pub fn count(number: u64) -> String {
    let (value, prefix) = scaled(number);
    if prefix.is_empty() {
        value
    } else {
        format!("{value} {prefix}")
    }
}

/// Rounded bytes with a decimal unit: `999 B`, `1.2 kB`, `3.4 GB`.
#[must_use]
pub fn bytes(number: u64) -> String {
    let (value, prefix) = scaled(number);
    format!("{value} {prefix}B")
}

/// The number in at most four characters, and its unit prefix.
fn scaled(number: u64) -> (String, &'static str) {
    if number < 1000 {
        return (number.to_string(), "");
    }
    let magnitude = number.ilog(1000) as usize;
    let (number, unit) = (u128::from(number), 1000u128.pow(magnitude as u32));
    let rounded = |parts: u128| (parts * number + unit / 2) / unit;
    match (rounded(10), rounded(1)) {
        (tenths @ ..1000, _) => {
            let text = format!("{}.{}", tenths / 10, tenths % 10);
            (text, PREFIXES[magnitude])
        }
        (_, whole @ ..1000) => (whole.to_string(), PREFIXES[magnitude]),
        // 999,999 is 1.0 M, never 1000 k.
        _ => ("1.0".to_owned(), PREFIXES[magnitude + 1]),
    }
}

/// A required number of bytes with a decimal unit and three digits, rounded up so that the number
/// shown is sufficient: `64 B`, `1.03 kB` for 1,024, `41.0 kB`, `793 MB`.
#[must_use]
pub fn bytes_needed(number: u64) -> String {
    if number < 1000 {
        return format!("{number} B");
    }
    let magnitude = number.ilog(1000) as usize;
    let (number, unit) = (u128::from(number), 1000u128.pow(magnitude as u32));
    // Tries hundredths of the unit, then tenths, then whole units, until three digits are enough.
    let prefix = PREFIXES[magnitude];
    let rounded = |parts: u128| (parts * number).div_ceil(unit);
    match (rounded(100), rounded(10), rounded(1)) {
        (parts @ ..1000, ..) => format!("{}.{:02} {prefix}B", parts / 100, parts % 100),
        (_, parts @ ..1000, _) => format!("{}.{} {prefix}B", parts / 10, parts % 10),
        (_, _, whole @ ..1000) => format!("{whole} {prefix}B"),
        _ => format!("1.00 {}B", PREFIXES[magnitude + 1]),
    }
}

/// Unit prefixes, by powers of 1,000.
const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligns_text_left_and_numbers_right() {
        let mut table = Table::new([("name", Align::Left), ("n", Align::Right)]);
        table.push(vec!["a".to_owned(), "1".to_owned()]);
        table.push(vec!["längeres".to_owned(), "12345".to_owned()]);
        let expected = "name          n\n────────  ─────\na             1\nlängeres  12345\n";
        assert_eq!(table.render(None), expected);
    }

    #[test]
    fn cuts_text_to_fit_and_never_numbers() {
        let mut table = Table::new([("address", Align::Left), ("bytes", Align::Right)]);
        table.push(vec![
            "2001:db8::1:2:3:4".to_owned(),
            "1234567890".to_owned(),
        ]);
        let text = table.render(Some(24));
        assert!(text.ends_with("2001:db8::1…  1234567890\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 24));
        assert!(table.render(Some(3)).contains("1234567890"));
    }

    #[test]
    fn columns_that_do_not_fit_are_left_out_by_rank() {
        let columns = ["address", "port", "flags", "bytes"];
        let mut table = Table::new(columns.map(|name| (name, Align::Left)));
        table.push(
            ["2001:db8::1:2", "443", "S", "12345"]
                .map(str::to_owned)
                .to_vec(),
        );
        let fit = |width| {
            let Fitted { text, left_out } = table.fit(Some(width), &[0, 2, 3, 1]);
            assert!(
                text.lines().all(|line| length(line) <= width.max(13)),
                "{text}"
            );
            (text.lines().next().map(str::to_owned), left_out.join(" "))
        };
        let header = |text: &str| Some(text.to_owned());
        assert_eq!(
            fit(33),
            (header("address        port  flags  bytes"), String::new())
        );
        assert_eq!(
            fit(30),
            (header("address       port flags bytes"), String::new())
        );
        assert_eq!(
            fit(29),
            (header("address        port  bytes"), "flags".to_owned())
        );
        assert_eq!(
            fit(19),
            (header("address       bytes"), "port flags".to_owned())
        );
        assert_eq!(fit(18), (header("address"), "port flags bytes".to_owned()));
        // The most important column is never cut.
        assert_eq!(fit(5), (header("address"), "port flags bytes".to_owned()));
    }

    #[test]
    fn humanises_numbers() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1.0 k"),
            (1249, "1.2 k"),
            (1250, "1.3 k"),
            (99_949, "99.9 k"),
            (99_950, "100 k"),
            (999_499, "999 k"),
            (999_500, "1.0 M"),
            (40_960, "41.0 k"),
            (1_000_000, "1.0 M"),
            (u64::MAX, "18.4 E"),
        ] {
            assert_eq!(count(number), text);
        }
        assert_eq!(bytes(12), "12 B");
        assert_eq!(bytes(3_400_000_000), "3.4 GB");
    }

    #[test]
    fn required_bytes_are_never_rounded_down() {
        for (number, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (1024, "1.03 kB"),
            (9_990, "9.99 kB"),
            (9_991, "10.0 kB"),
            (40_960, "41.0 kB"),
            (99_901, "100 kB"),
            (999_000, "999 kB"),
            (999_001, "1.00 MB"),
            (1 << 30, "1.08 GB"),
            (u64::MAX, "18.5 EB"),
        ] {
            assert_eq!(bytes_needed(number), text);
        }
    }
}
