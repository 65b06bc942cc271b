// SPDX-License-Identifier: Apache-2.0
//! Reads records from CSV lines.

use std::borrow::Cow;
use std::collections::HashSet;

use turboflow_record::{Column, ColumnKind, FlowBatch, Schema};

use super::kinds::{self, Notation, Parsed, Parts, Row, Seen};
use super::lines::Lines;
use super::{Again, BATCH_RECORDS, FlowReader, ReadError, Source};

struct CsvSource {
    lines: Lines,
    row: Row,
    notations: Vec<Notation>,
}

/// Reads the header and the first lines. If these do not show the kind of every column and the file
/// can be opened again, reads all lines to find out.
pub(crate) fn open(mut lines: Lines, again: Again<'_>) -> Result<FlowReader, ReadError> {
    let sample = lines.sample()?;
    let is_long = memchr::memchr_iter(b'\n', sample).count() > SAMPLE_LINES;
    let mut sample = sample.split(|&byte| byte == b'\n');
    let header = sample.next().unwrap_or_default();
    let header = header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header);
    let names: Vec<String> = fields(header.strip_suffix(b"\r").unwrap_or(header))
        .map(|name| String::from_utf8_lossy(&name).into_owned())
        .collect();
    let (checked, mut has_values) = (check_names(&names), false);
    let mut seen = Seen::new(names);
    let known = seen.knows_any();
    for line in sample.take(SAMPLE_LINES) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        has_values |= fields(line).any(|text| kinds::kind_of(&text).is_some());
        note(&mut seen, line);
    }
    lines.next()?;
    checked.map_err(|reason| lines.error(None, reason))?;
    // Any text could be a header. A file whose header has no known name and whose lines have no
    // values of flow records is something else.
    if !has_values && !known {
        let reason = "this is not a header of flow records, and no records follow: \
                      `turboflow record -w FILE.csv` makes such files";
        return Err(lines.error(None, reason));
    }
    if seen.lacks_any()
        && (is_long || !lines.sample_is_all())
        && let Some(mut all) = again()
    {
        // Errors in the file are reported when it is read.
        let _ = all.next();
        while seen.lacks_any()
            && let Ok(Some(line)) = all.next()
        {
            note(&mut seen, line);
        }
    }
    let source = CsvSource {
        lines,
        row: Row::default(),
        notations: seen.notations(),
    };
    Ok(FlowReader::new(seen, Box::new(source)))
}

/// Notes the kinds of a line's values.
fn note(seen: &mut Seen, line: &[u8]) {
    for (column, text) in fields(line).enumerate() {
        seen.note(column, || kinds::kind_of_any(&text));
    }
}

/// Characters of an unknown name shown in an error.
const NAME_CHARS_SHOWN: usize = 40;

/// Number of lines examined to learn the kinds of the columns.
const SAMPLE_LINES: usize = 20_000;

fn check_names(names: &[String]) -> Result<(), String> {
    let mut known = HashSet::with_capacity(names.len());
    let wrong = names.iter().enumerate().find(|(_, name)| {
        let strange = |c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER;
        name.is_empty() || name.contains(strange) || !known.insert(name.as_str())
    });
    let Some((index, name)) = wrong else {
        return Ok(());
    };
    let column = index + 1;
    let name: String = name.chars().take(NAME_CHARS_SHOWN).collect();
    Err(format!(
        "the header names column {column} {name:?}, which is empty, repeated or no text: \
         this is not a CSV file of flow records"
    ))
}

impl Source for CsvSource {
    fn fill(&mut self, schema: &Schema, batch: &mut FlowBatch) -> Result<(), ReadError> {
        while batch.rows() < BATCH_RECORDS {
            let Some(line) = self.lines.next()? else {
                break;
            };
            // With a single column, an empty line is an absent value.
            if line.is_empty() && schema.len() > 1 {
                continue;
            }
            self.row.clear(schema.len());
            if let Err((column, reason)) = parse(line, schema, &self.notations, &mut self.row) {
                // In a line that was cut off, all values but the last one are intact.
                let there = fields(line).count();
                let at = column.and_then(|wrong| schema.iter().position(|c| c.name == wrong.name));
                let is_short = match at {
                    Some(at) => at + 1 == there,
                    None => there < schema.len(),
                };
                let column = column.map(|column| &*column.name);
                match self.lines.wrong(column, reason, is_short) {
                    Some(error) => return Err(error),
                    None => break,
                }
            }
            batch.push_row(&self.row.values());
        }
        Ok(())
    }

    fn damage(&self) -> Option<ReadError> {
        self.lines.damage()
    }
}

type Wrong<'a> = (Option<&'a Column>, String);

fn parse<'a>(
    line: &[u8],
    schema: &'a Schema,
    notations: &[Notation],
    row: &mut Row,
) -> Result<(), Wrong<'a>> {
    let mut count = 0;
    for text in fields(line) {
        if let Some(column) = schema.get(count) {
            let notation = notations.get(count).copied().unwrap_or(Notation::Plain);
            let parsed = value(&text, column.kind, notation, &mut row.parts);
            row.values[count] = Some(parsed.ok_or_else(|| {
                let (text, what) = (String::from_utf8_lossy(&text), kinds::describe(column.kind));
                (Some(column), format!("{text:?} is not {what}"))
            })?);
        }
        count += 1;
    }
    if count != schema.len() {
        let expected = schema.len();
        return Err((
            None,
            format!("{count} values where the header has {expected} columns"),
        ));
    }
    Ok(())
}

fn value(text: &[u8], kind: ColumnKind, notation: Notation, parts: &mut Parts) -> Option<Parsed> {
    if text.is_empty() {
        return Some(Parsed::Absent);
    }
    if kind != ColumnKind::List {
        return kinds::scalar(text, kind, notation, parts);
    }
    let inner = text.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let elements = &mut parts.elements;
    let start = elements.len();
    if !inner.is_empty() {
        for element in inner.split(|&byte| byte == b';') {
            elements.push(kinds::unsigned(element)?);
        }
    }
    Some(Parsed::List {
        start,
        end: elements.len(),
    })
}

/// The fields of a line, without quotes.
fn fields(line: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let text = rest?;
        if text.first() == Some(&b'"') {
            let (field, after) = quoted(&text[1..]);
            rest = after;
            return Some(Cow::Owned(field));
        }
        let end = memchr::memchr(b',', text);
        rest = end.map(|end| &text[end + 1..]);
        Some(Cow::Borrowed(&text[..end.unwrap_or(text.len())]))
    })
}

/// The field after an opening quote, and the text after the following comma.
fn quoted(text: &[u8]) -> (Vec<u8>, Option<&[u8]>) {
    let mut field = Vec::new();
    let mut at = 0;
    while at < text.len() {
        match (text[at], text.get(at + 1)) {
            (b'"', Some(b'"')) => {
                field.push(b'"');
                at += 1;
            }
            (b'"', _) => {
                let after = memchr::memchr(b',', &text[at..]);
                return (field, after.map(|comma| &text[at + comma + 1..]));
            }
            (byte, _) => field.push(byte),
        }
        at += 1;
    }
    (field, None)
}
