// SPDX-License-Identifier: Apache-2.0
//! Parses text into values, and determines the kind of column that a text belongs to.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use turboflow_merge::Layout;
use turboflow_record::{
    Column, ColumnKind, Definition, Input, Op, REVERSE, Schema, Value, clean_text, protocol_number,
};

use crate::{EXPORTER_COLUMN, names, time};

/// A parsed value. The elements of lists, and texts, are in [`Parts`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Parsed {
    Absent,
    Address(IpAddr),
    Unsigned(u64),
    Float(f64),
    List { start: usize, end: usize },
    Text { start: usize, end: usize },
}

/// The parts of a record's values that have no fixed size: elements of lists, and texts.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) elements: Vec<u64>,
    texts: String,
}

impl Parts {
    /// Keeps a text; an empty text counts as absent.
    pub(crate) fn text(&mut self, text: &str) -> Parsed {
        let start = self.texts.len();
        // Files of other programs may contain characters that a terminal would interpret.
        self.texts.push_str(&clean_text(text));
        match self.texts.len() {
            end if end == start => Parsed::Absent,
            end => Parsed::Text { start, end },
        }
    }
}

/// A record parsed from text, before it is appended to a batch.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) values: Vec<Option<Parsed>>,
    pub(crate) parts: Parts,
}

impl Row {
    /// Discards the previous record.
    pub(crate) fn clear(&mut self, columns: usize) {
        self.parts.elements.clear();
        self.parts.texts.clear();
        self.values.clear();
        self.values.resize(columns, None);
    }

    /// The values in the form that a batch takes.
    pub(crate) fn values(&self) -> Vec<Value<'_>> {
        let value = |parsed: &Option<Parsed>| match *parsed {
            None | Some(Parsed::Absent) => Value::Absent,
            Some(Parsed::Address(address)) => Value::Address(address),
            Some(Parsed::Unsigned(number)) => Value::Unsigned(number),
            Some(Parsed::Float(float)) => Value::Float(float),
            Some(Parsed::List { start, end }) => Value::List(&self.parts.elements[start..end]),
            Some(Parsed::Text { start, end }) => Value::Text(&self.parts.texts[start..end]),
        };
        self.values.iter().map(value).collect()
    }
}

/// The columns of the default definition, which readers of text files recognise by name.
pub(crate) fn default_schema() -> Schema {
    let mut schema = Layout::compile(&Definition::default(), false)
        .expect("the default definition compiles")
        .schema()
        .clone();
    // In a text file, any field may be empty.
    schema.iter_mut().for_each(|column| column.nullable = true);
    schema
}

/// The kind of a column whose name means the same in every file: a column of the default definition
/// or of its biflow form, or a result of inspection, which is named after its input.
pub(crate) fn kind_by_name(name: &str) -> Option<ColumnKind> {
    static KNOWN: LazyLock<HashMap<String, ColumnKind>> = LazyLock::new(|| {
        let biflow = Layout::compile(&Definition::default(), true);
        let biflow = biflow.expect("the default definition compiles");
        let columns = default_schema().into_iter().chain(biflow.schema().clone());
        let columns = columns.map(|column| (column.name, column.kind));
        let is_text = |input: &Input| input.column_kind() == ColumnKind::Text;
        let texts = Input::ALL.into_iter().filter(is_text).map(Input::name);
        let texts = texts.chain([Op::CommunityId.name(), EXPORTER_COLUMN]);
        let texts = texts.flat_map(|name| [name.to_owned(), format!("{REVERSE}{name}")]);
        let texts = texts.map(|name| (name, ColumnKind::Text));
        columns.chain(texts).collect()
    });
    KNOWN.get(name).copied()
}

/// How the values of a column are written, as far as the name of the column says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// In the usual form of the kind.
    Plain,
    /// Times in seconds since 1970.
    Seconds,
    /// Numbers, or names of protocols.
    Protocol,
    /// Numbers, or names of end reasons.
    EndReason,
}

impl Notation {
    fn of(name: &str) -> Self {
        match name.strip_prefix("reverse_").unwrap_or(name) {
            "protocol" => Self::Protocol,
            "end_reason" => Self::EndReason,
            _ => Self::Plain,
        }
    }
}

/// Suffixes of the names of time columns, which say whether times are written as in `first_iso` or
/// as in `first_s`.
const TIME_ENDINGS: [(&str, Notation); 2] = [("_iso", Notation::Plain), ("_s", Notation::Seconds)];

/// The names of columns, and the kinds that their values have shown so far.
pub(crate) struct Seen {
    names: Vec<String>,
    notations: Vec<Notation>,
    kinds: Vec<Option<ColumnKind>>,
    /// Which columns have shown a value that can only be a text.
    have_texts: Vec<bool>,
}

impl Seen {
    /// Columns of these names. A time column of the default definition that is not written in
    /// nanoseconds gets the name of the definition: `first_iso` becomes `first_ns`.
    pub(crate) fn new(names: Vec<String>) -> Self {
        let mut notations: Vec<Notation> = names.iter().map(|name| Notation::of(name)).collect();
        let mut own = names.clone();
        for (at, name) in names.iter().enumerate() {
            let Some((known, notation)) = time_name(name) else {
                continue;
            };
            if kind_by_name(&known) == Some(ColumnKind::TimestampNs) && !own.contains(&known) {
                (own[at], notations[at]) = (known, notation);
            }
        }
        let kinds = own.iter().map(|name| kind_by_name(name)).collect();
        Self {
            have_texts: vec![false; own.len()],
            names: own,
            notations,
            kinds,
        }
    }

    /// Whether at least one column is a column of the default definition.
    pub(crate) fn knows_any(&self) -> bool {
        self.names.iter().any(|name| kind_by_name(name).is_some())
    }

    /// How the values of the columns are written.
    pub(crate) fn notations(&self) -> Vec<Notation> {
        self.notations.clone()
    }

    /// Notes the kind of a value, if it shows one. A column counts as text only if none of its
    /// values shows another kind.
    pub(crate) fn note(&mut self, column: usize, kind: impl FnOnce() -> Option<ColumnKind>) {
        if let Some(known @ None) = self.kinds.get_mut(column) {
            match kind() {
                Some(ColumnKind::Text) => self.have_texts[column] = true,
                kind => *known = kind,
            }
        }
    }

    /// Whether at least one column has not shown a value yet.
    pub(crate) fn lacks_any(&self) -> bool {
        let mut columns = self.kinds.iter().zip(&self.have_texts);
        columns.any(|(kind, has_text)| kind.is_none() && !has_text)
    }

    /// The columns, and for each of them whether it has shown its kind. The others are assumed to
    /// be unsigned numbers.
    pub(crate) fn columns(mut self) -> (Schema, Vec<bool>) {
        for (kind, has_text) in self.kinds.iter_mut().zip(&self.have_texts) {
            *kind = kind.or(has_text.then_some(ColumnKind::Text));
        }
        // Times of other definitions are recognised by their values.
        for at in 0..self.names.len() {
            if self.kinds[at] == Some(ColumnKind::TimestampNs)
                && let Some((name, _)) = time_name(&self.names[at])
                && !self.names.contains(&name)
            {
                self.names[at] = name;
            }
        }
        let shown = self.kinds.iter().map(Option::is_some).collect();
        let columns = self.names.into_iter().zip(self.kinds);
        let columns = columns.map(|(name, kind)| Column {
            name,
            kind: kind.unwrap_or(ColumnKind::Unsigned { bits: 64 }),
            nullable: true,
        });
        (columns.collect(), shown)
    }
}

/// The kind that a text shows, which is text if it shows no other; `None` if it is empty or not
/// UTF-8.
pub(crate) fn kind_of_any(text: &[u8]) -> Option<ColumnKind> {
    let is_text = || !text.is_empty() && std::str::from_utf8(text).is_ok();
    kind_of(text).or_else(|| is_text().then_some(ColumnKind::Text))
}

/// The kind that a text shows; `None` if it can only be a text.
pub(crate) fn kind_of(text: &[u8]) -> Option<ColumnKind> {
    if unsigned(text).is_some() {
        Some(ColumnKind::Unsigned { bits: 64 })
    } else if iso(text).is_some() || is_in_seconds(text) {
        Some(ColumnKind::TimestampNs)
    } else if mac(text).is_some() {
        Some(ColumnKind::Mac)
    } else if address(text).is_some() {
        Some(ColumnKind::Address)
    } else if float(text).is_some() {
        Some(ColumnKind::Float)
    } else if text.starts_with(b"[") {
        Some(ColumnKind::List)
    } else {
        None
    }
}

/// Parses a text that is not a list.
#[inline]
pub(crate) fn scalar(
    text: &[u8],
    kind: ColumnKind,
    notation: Notation,
    parts: &mut Parts,
) -> Option<Parsed> {
    match kind {
        ColumnKind::Text => std::str::from_utf8(text).ok().map(|text| parts.text(text)),
        ColumnKind::Address => address(text).map(Parsed::Address),
        ColumnKind::TimestampNs if notation == Notation::Seconds => {
            seconds(text).map(Parsed::Unsigned)
        }
        ColumnKind::TimestampNs => {
            let time_ns = unsigned(text).or_else(|| iso(text));
            let time_ns = time_ns.or_else(|| seconds(text).filter(|_| text.contains(&b'.')));
            time_ns.map(Parsed::Unsigned)
        }
        ColumnKind::Unsigned { .. } => {
            let number = unsigned(text).or_else(|| named(text, notation));
            number.map(Parsed::Unsigned)
        }
        ColumnKind::Mac => mac(text).map(Parsed::Unsigned),
        ColumnKind::Float => float(text).map(Parsed::Float),
        ColumnKind::List => None,
    }
}

/// What a value of that kind looks like, for error messages.
pub(crate) const fn describe(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Address => "an IP address",
        ColumnKind::Unsigned { .. } => "an unsigned number",
        ColumnKind::TimestampNs => "a time: nanoseconds since 1970, or ISO 8601 in UTC",
        ColumnKind::Mac => "a MAC address",
        ColumnKind::Float => "a number",
        ColumnKind::List => "a list of unsigned numbers",
        ColumnKind::Text => "UTF-8",
    }
}

/// For a column that is called `first_iso` or `first_s`: the usual name of that time column, and
/// the notation.
fn time_name(name: &str) -> Option<(String, Notation)> {
    TIME_ENDINGS.iter().find_map(|(ending, notation)| {
        let stem = name.strip_suffix(ending)?;
        Some((format!("{stem}_ns"), *notation))
    })
}

/// The number that a name stands for.
fn named(text: &[u8], notation: Notation) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    match notation {
        Notation::Protocol => protocol_number(text),
        Notation::EndReason => names::end_reason_number(text),
        Notation::Plain | Notation::Seconds => None,
    }
}

/// A time in ISO 8601.
fn iso(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.contains('-').then(|| time::iso_time_ns(text))?
}

/// A time in seconds since 1970.
fn seconds(text: &[u8]) -> Option<u64> {
    time::seconds_ns(std::str::from_utf8(text).ok()?)
}

/// Whether a number can only be a time in seconds, as `turboflow show --time s` writes it: floats
/// have fewer digits.
fn is_in_seconds(text: &[u8]) -> bool {
    let point = text.iter().position(|&byte| byte == b'.');
    let has_form = point.is_some_and(|point| point >= 9 && text.len() - point == 10);
    has_form && seconds(text).is_some()
}

/// An unsigned decimal number without sign or spaces.
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then_some(())?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

pub(crate) fn address(text: &[u8]) -> Option<IpAddr> {
    v4(text)
        .map(IpAddr::V4)
        .or_else(|| std::str::from_utf8(text).ok()?.parse().ok())
}

/// Parses in one pass, because a file of millions of flows has twice as many addresses.
fn v4(text: &[u8]) -> Option<Ipv4Addr> {
    let (mut octets, mut place) = ([0; 4], 0);
    let (mut value, mut digits) = (0u32, 0);
    for &byte in text {
        let digit = u32::from(byte.wrapping_sub(b'0'));
        if digit < 10 {
            // Only the octet 0 may start with the digit 0.
            if digits > 0 && value == 0 {
                return None;
            }
            (value, digits) = (value * 10 + digit, digits + 1);
            if value > 255 {
                return None;
            }
        } else if byte == b'.' && digits > 0 && place < 3 {
            octets[place] = value as u8;
            (place, value, digits) = (place + 1, 0, 0);
        } else {
            return None;
        }
    }
    octets[place] = value as u8;
    (place == 3 && digits > 0).then(|| octets.into())
}

pub(crate) fn mac(text: &[u8]) -> Option<u64> {
    if text.len() != crate::text::MAC_BYTES {
        return None;
    }
    text.split(|&byte| byte == b':')
        .try_fold(0, |number, part| {
            let [high, low] = part else { return None };
            let digit = |byte: u8| char::from(byte).to_digit(16).map(u64::from);
            Some(number << 8 | digit(*high)? << 4 | digit(*low)?)
        })
}

fn float(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The standard library is slower, but serves as the reference.
        #[test]
        fn addresses_are_those_of_the_standard_library(
            text in prop_oneof![
                "[0-9.]{0,17}",
                "([0-9]{1,3}\\.){3}[0-9]{1,3}",
                "([0-9]{1,2}\\.){2,4}[0-9]?",
                any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).to_string()),
                "[0-9.:a-f ]{0,12}",
            ],
        ) {
            prop_assert_eq!(v4(text.as_bytes()), text.parse().ok());
            prop_assert_eq!(address(text.as_bytes()), text.parse().ok());
        }
    }
}
