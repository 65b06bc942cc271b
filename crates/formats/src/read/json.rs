// SPDX-License-Identifier: Apache-2.0
//! Reads records from JSON lines: flat objects of numbers, strings, nulls and lists of numbers.

use std::borrow::Cow;
use std::collections::HashMap;

use turboflow_record::{Column, ColumnKind, FlowBatch, Schema};

use super::kinds::{self, Notation, Parsed, Parts, Row, Seen};
use super::lines::Lines;
use super::{Again, BATCH_RECORDS, FlowReader, ReadError, Source};

struct JsonSource {
    lines: Lines,
    row: Row,
    keys: Vec<Key>,
}

/// The name of a column in the file, and how its values are written.
struct Key {
    name: String,
    notation: Notation,
}

/// Reads the first lines. If these do not show the kind of every column and the file can be opened
/// again, reads all lines to find out. A file without lines has the columns of the default
/// definition.
pub(crate) fn open(mut lines: Lines, again: Again<'_>) -> Result<FlowReader, ReadError> {
    let mut names = Names::default();
    for line in lines.sample()?.split(|&byte| byte == b'\n') {
        // Errors in a line are reported when it is read.
        let _ = object(line, |key, _| {
            names.place(key);
            Ok(())
        });
    }
    let has_records = !names.list.is_empty();
    if !has_records {
        kinds::default_schema()
            .iter()
            .for_each(|column| names.place(&column.name));
    }
    let places = names.places;
    let mut seen = Seen::new(names.list.clone());
    let keys = names.list.into_iter().zip(seen.notations());
    let keys = keys.map(|(name, notation)| Key { name, notation });
    let keys = keys.collect();
    for line in lines.sample()?.split(|&byte| byte == b'\n') {
        note(&mut seen, &places, line);
    }
    if seen.lacks_any()
        && !lines.sample_is_all()
        && let Some(mut all) = again()
    {
        while seen.lacks_any()
            && let Ok(Some(line)) = all.next()
        {
            note(&mut seen, &places, line);
        }
    }
    let source = Box::new(JsonSource {
        lines,
        row: Row::default(),
        keys,
    });
    Ok(match has_records {
        true => FlowReader::new(seen, source),
        false => FlowReader::without_records(kinds::default_schema(), source),
    })
}

/// Keys, in order of appearance.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    places: HashMap<String, usize>,
}

impl Names {
    fn place(&mut self, key: &str) {
        if !self.places.contains_key(key) {
            self.places.insert(key.to_owned(), self.list.len());
            self.list.push(key.to_owned());
        }
    }
}

/// Notes the kinds of a line's values.
fn note(seen: &mut Seen, places: &HashMap<String, usize>, line: &[u8]) {
    let _ = object(line, |key, token| {
        if let Some(&column) = places.get(key) {
            seen.note(column, || kind_of(&token));
        }
        Ok(())
    });
}

impl Source for JsonSource {
    fn fill(&mut self, schema: &Schema, batch: &mut FlowBatch) -> Result<(), ReadError> {
        while batch.rows() < BATCH_RECORDS {
            let Some(line) = self.lines.next()? else {
                break;
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let is_short = line.trim_ascii().last() != Some(&b'}');
            self.row.clear(schema.len());
            let mut next = 0;
            let parsed = object(line, |key, token| {
                let column = find(&self.keys, key, next)?;
                next = column + 1;
                let (notation, parts) = (self.keys[column].notation, &mut self.row.parts);
                let kind = schema.get(column).ok_or("more values than columns")?;
                let value = value(&token, kind, notation, parts)?;
                match self.row.values[column].replace(value) {
                    None => Ok(()),
                    Some(_) => Err(format!("{key:?} stands in the object twice")),
                }
            });
            if let Err(reason) = parsed {
                match self.lines.wrong(None, reason, is_short) {
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

/// Index of the column of that name, which usually is the one after the previous one.
fn find(keys: &[Key], key: &str, next: usize) -> Result<usize, String> {
    if keys.get(next).is_some_and(|known| known.name == key) {
        return Ok(next);
    }
    let unknown = || format!("{key:?} is in none of the first lines, so its kind is not known");
    keys.iter()
        .position(|known| known.name == key)
        .ok_or_else(unknown)
}

/// A JSON value that a flow record can have.
enum Token<'a> {
    Null,
    Number(&'a [u8]),
    Text(Cow<'a, str>),
    List(Vec<u64>),
}

fn kind_of(token: &Token<'_>) -> Option<ColumnKind> {
    match token {
        Token::Null => None,
        Token::Number(text) => kinds::kind_of(text),
        // A number in a string does not count as a number.
        Token::Text(text) => match kinds::kind_of(text.as_bytes()) {
            Some(ColumnKind::Address) => Some(ColumnKind::Address),
            Some(ColumnKind::Mac) => Some(ColumnKind::Mac),
            Some(ColumnKind::TimestampNs) => Some(ColumnKind::TimestampNs),
            _ => (!text.is_empty()).then_some(ColumnKind::Text),
        },
        Token::List(_) => Some(ColumnKind::List),
    }
}

fn value(
    token: &Token<'_>,
    column: &Column,
    notation: Notation,
    parts: &mut Parts,
) -> Result<Parsed, String> {
    let parsed = match (token, column.kind) {
        (Token::Null, _) => Some(Parsed::Absent),
        (Token::List(list), ColumnKind::List) => {
            let elements = &mut parts.elements;
            let start = elements.len();
            elements.extend_from_slice(list);
            Some(Parsed::List {
                start,
                end: elements.len(),
            })
        }
        (
            Token::Text(text),
            kind @ (ColumnKind::Address
            | ColumnKind::Mac
            | ColumnKind::TimestampNs
            | ColumnKind::Text),
        ) => kinds::scalar(text.as_bytes(), kind, notation, parts),
        // As a name, or as a number if there is no such name.
        (Token::Text(text), kind)
            if matches!(notation, Notation::Protocol | Notation::EndReason) =>
        {
            kinds::scalar(text.as_bytes(), kind, notation, parts)
        }
        (Token::Number(text), kind) => kinds::scalar(text, kind, notation, parts),
        _ => None,
    };
    let (name, what) = (&column.name, kinds::describe(column.kind));
    parsed.ok_or_else(|| format!("the value of {name:?} is not {what}"))
}

/// Calls `visit` for every pair of the object, which must be the whole line.
fn object(
    line: &[u8],
    mut visit: impl FnMut(&str, Token<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let mut text = Text { bytes: line, at: 0 };
    text.expect(b'{')?;
    if text.peek() != Some(b'}') {
        loop {
            let key = text.string()?;
            text.expect(b':')?;
            let token = text.value()?;
            visit(&key, token)?;
            if text.peek() != Some(b',') {
                break;
            }
            text.at += 1;
        }
    }
    text.expect(b'}')?;
    match text.peek() {
        None => Ok(()),
        Some(_) => Err(format!(
            "more text after the object, at byte {}",
            text.at + 1
        )),
    }
}

struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(format!(
            "no JSON object: {:?} is missing at byte {}",
            char::from(byte),
            self.at + 1
        ))
    }

    fn value(&mut self) -> Result<Token<'a>, String> {
        match self.peek() {
            Some(b'"') => Ok(Token::Text(self.string()?)),
            Some(b'[') => Ok(Token::List(self.list()?)),
            Some(b'n') if self.bytes[self.at..].starts_with(b"null") => {
                self.at += 4;
                Ok(Token::Null)
            }
            Some(b'-' | b'0'..=b'9') => Ok(Token::Number(self.number())),
            _ => Err(format!("no value of a flow record at byte {}", self.at + 1)),
        }
    }

    fn number(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        let part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let length = rest
            .iter()
            .position(|byte| !part(byte))
            .unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn list(&mut self) -> Result<Vec<u64>, String> {
        self.expect(b'[')?;
        let mut elements = Vec::new();
        while self.peek() != Some(b']') {
            if !elements.is_empty() {
                self.expect(b',')?;
                self.peek();
            }
            let place = self.at + 1;
            let number = kinds::unsigned(self.number());
            elements.push(number.ok_or_else(|| format!("no unsigned number at byte {place}"))?);
        }
        self.at += 1;
        Ok(elements)
    }

    fn string(&mut self) -> Result<Cow<'a, str>, String> {
        self.expect(b'"')?;
        let rest = &self.bytes[self.at..];
        let plain = memchr::memchr2(b'"', b'\\', rest).ok_or("the line ends inside a string")?;

        if rest[plain] == b'"' {
            self.at += plain + 1;
            return std::str::from_utf8(&rest[..plain])
                .map(Cow::Borrowed)
                .map_err(|_| self.no_text());
        }
        let mut text = Vec::new();
        loop {
            let byte = *self
                .bytes
                .get(self.at)
                .ok_or("the line ends inside a string")?;
            self.at += 1;
            match byte {
                b'"' => break,
                b'\\' => text.extend(self.escape()?.to_string().into_bytes()),
                byte => text.push(byte),
            }
        }
        String::from_utf8(text)
            .map(Cow::Owned)
            .map_err(|_| self.no_text())
    }

    fn no_text(&self) -> String {
        format!("no UTF-8 before byte {}", self.at)
    }

    fn escape(&mut self) -> Result<char, String> {
        let rest = &self.bytes[self.at..];
        let plain = |byte| match byte {
            b'n' => Some('\n'),
            b't' => Some('\t'),
            b'r' => Some('\r'),
            b'b' => Some('\u{8}'),
            b'f' => Some('\u{c}'),
            b'"' | b'\\' | b'/' => Some(char::from(byte)),
            _ => None,
        };
        let coded = || {
            let digits = std::str::from_utf8(rest.strip_prefix(b"u")?.get(..4)?).ok()?;
            char::from_u32(u32::from_str_radix(digits, 16).ok()?)
        };
        let found = rest.first().and_then(|&byte| plain(byte));
        self.at += if found.is_some() { 1 } else { 5 };
        found
            .or_else(coded)
            .ok_or_else(|| format!("unknown escape at byte {}", self.at))
    }
}
