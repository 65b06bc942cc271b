// SPDX-License-Identifier: Apache-2.0
//! Parses text into values, and determines the kind of column that a text belongs to.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use turboflow_merge::Layout;
use turboflow_record::{Column, ColumnKind, Definition, Schema, Value};

/// A value parsed from text. The elements of lists are in [`Row`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Parsed {
    Absent,
    Address(IpAddr),
    Unsigned(u64),
    Float(f64),
    List { start: usize, end: usize },
}

/// A record parsed from text, before it is appended to a batch.
#[derive(Default)]
pub(crate) struct Row {
    pub(crate) values: Vec<Option<Parsed>>,
    pub(crate) elements: Vec<u64>,
}

impl Row {
    /// Forgets the previous record.
    pub(crate) fn clear(&mut self, columns: usize) {
        self.elements.clear();
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
            Some(Parsed::List { start, end }) => Value::List(&self.elements[start..end]),
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
    // In a text file any field may be empty.
    schema.iter_mut().for_each(|column| column.nullable = true);
    schema
}

/// The kind of a column whose name means the same in every file: a column of the default
/// definition, or of its biflow form.
pub(crate) fn kind_by_name(name: &str) -> Option<ColumnKind> {
    static KNOWN: LazyLock<HashMap<String, ColumnKind>> = LazyLock::new(|| {
        let biflow = Layout::compile(&Definition::default(), true);
        let biflow = biflow.expect("the default definition compiles");
        let columns = default_schema().into_iter().chain(biflow.schema().clone());
        columns.map(|column| (column.name, column.kind)).collect()
    });
    KNOWN.get(name).copied()
}

/// Column names, and the kinds shown by their values so far.
pub(crate) struct Seen {
    names: Vec<String>,
    kinds: Vec<Option<ColumnKind>>,
}

impl Seen {
    pub(crate) fn new(names: Vec<String>) -> Self {
        let kinds = names.iter().map(|name| kind_by_name(name)).collect();
        Self { names, kinds }
    }

    /// Notes the kind of a value, if it shows one.
    pub(crate) fn note(&mut self, column: usize, kind: impl FnOnce() -> Option<ColumnKind>) {
        if let Some(known @ None) = self.kinds.get_mut(column) {
            *known = kind();
        }
    }

    /// Whether some column has shown no value yet.
    pub(crate) fn lacks_any(&self) -> bool {
        self.kinds.iter().any(Option::is_none)
    }

    /// The columns, and which of them have shown their kind. The others are taken for unsigned
    /// numbers.
    pub(crate) fn columns(self) -> (Schema, Vec<bool>) {
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

/// The kind that a text shows; `None` if it is not a value of a flow record.
pub(crate) fn kind_of(text: &[u8]) -> Option<ColumnKind> {
    if unsigned(text).is_some() {
        Some(ColumnKind::Unsigned { bits: 64 })
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
pub(crate) fn scalar(text: &[u8], kind: ColumnKind) -> Option<Parsed> {
    match kind {
        ColumnKind::Address => address(text).map(Parsed::Address),
        ColumnKind::Unsigned { .. } | ColumnKind::TimestampNs => {
            unsigned(text).map(Parsed::Unsigned)
        }
        ColumnKind::Mac => mac(text).map(Parsed::Unsigned),
        ColumnKind::Float => float(text).map(Parsed::Float),
        ColumnKind::List => None,
    }
}

/// What a value of that kind looks like, for errors.
pub(crate) const fn describe(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Address => "an IP address",
        ColumnKind::Unsigned { .. } => "an unsigned number",
        ColumnKind::TimestampNs => "a time in nanoseconds since 1970",
        ColumnKind::Mac => "a MAC address",
        ColumnKind::Float => "a number",
        ColumnKind::List => "a list of unsigned numbers",
    }
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

fn v4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = text.split(|&byte| byte == b'.');
    for octet in &mut octets {
        let part = parts.next()?;
        let leading_zero = part.len() > 1 && part[0] == b'0';
        *octet = unsigned(part).filter(|_| !leading_zero)?.try_into().ok()?;
    }
    parts.next().is_none().then(|| octets.into())
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
