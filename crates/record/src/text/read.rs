// SPDX-License-Identifier: Apache-2.0
//! Parses the tables and values of a definition, and records where each is.

use super::{
    DeTable, DeValue, DefinitionError, Fault, Range, Spanned, Spans, feature_subject, shorten,
};
use crate::{Feature, Input, KeyField, Op};

/// The keys of a feature's table.
const FEATURE_KEYS: [&str; 6] = ["name", "op", "of", "k", "edges", "per"];

pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
}

/// Offsets of a feature's table and of its values.
pub(super) struct FeatureSpans {
    table: usize,
    values: [Option<usize>; FEATURE_KEYS.len()],
}

impl FeatureSpans {
    pub(super) fn offset(&self, key: &str) -> usize {
        let index = FEATURE_KEYS.iter().position(|known| *known == key);
        index
            .and_then(|index| self.values[index])
            .unwrap_or(self.table)
    }
}

/// A feature's table during parsing.
struct Table<'t, 'd> {
    reader: &'t Reader<'t>,
    table: &'d DeTable<'d>,
    start: usize,
    subject: String,
}

impl Reader<'_> {
    pub(super) fn error(&self, offset: usize, subject: String, fault: Fault) -> DefinitionError {
        DefinitionError {
            line: self.line(offset),
            subject,
            fault,
        }
    }

    /// The line of an offset, counted from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    pub(super) fn syntax_error(&self, error: &toml::de::Error) -> DefinitionError {
        let message = error.message().lines().collect::<Vec<_>>().join("; ");
        let span = error.span().unwrap_or(0..0);
        let at = self
            .text
            .get(span.clone())
            .and_then(|text| text.lines().next())
            .unwrap_or("");
        let message = match at.trim() {
            "" => message,
            at => format!("{message}, at `{}`", shorten(at)),
        };
        self.error(span.start, String::new(), Fault::Syntax(message))
    }

    /// Rejects the first key that is not in the comma-separated `keys`.
    pub(super) fn refuse_unknown(
        &self,
        table: &DeTable<'_>,
        keys: &'static str,
        subject: impl Fn() -> String,
    ) -> Result<(), DefinitionError> {
        let is_known = |key: &str| keys.split(", ").any(|known| known == key);
        let unknown = table.keys().filter(|key| !is_known(key.get_ref()));
        match unknown.min_by_key(|key| key.span().start) {
            None => Ok(()),
            Some(key) => {
                let fault = Fault::UnknownKey {
                    key: shorten(key.get_ref()),
                    keys,
                };
                Err(self.error(key.span().start, subject(), fault))
            }
        }
    }

    fn wrong_type(
        &self,
        value: &Spanned<DeValue<'_>>,
        subject: &str,
        key: &'static str,
        example: &'static str,
    ) -> DefinitionError {
        let found = describe(value.get_ref());
        let fault = Fault::WrongType {
            key,
            found,
            example,
        };
        self.error(value.span().start, subject.to_owned(), fault)
    }

    pub(super) fn key(
        &self,
        value: &Spanned<DeValue<'_>>,
        spans: &mut Spans,
    ) -> Result<Vec<KeyField>, DefinitionError> {
        const EXAMPLE: &str = "fields = [\"source_address\", \"destination_address\"]";
        let subject = || "key: ".to_owned();
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong_type(value, "", "key", "[key]"));
        };
        self.refuse_unknown(table, "fields", subject)?;
        let Some(fields) = table.get("fields") else {
            let fault = Fault::Missing {
                key: "fields",
                example: EXAMPLE,
            };
            return Err(self.error(value.span().start, subject(), fault));
        };
        spans.key = fields.span().start;
        let DeValue::Array(names) = fields.get_ref() else {
            return Err(self.wrong_type(fields, "key: ", "fields", EXAMPLE));
        };
        let mut key = Vec::new();
        for name in names.iter() {
            let DeValue::String(text) = name.get_ref() else {
                return Err(self.wrong_type(name, "key: ", "fields", EXAMPLE));
            };
            let field = field_of(text);
            key.push(field.map_err(|fault| self.error(name.span().start, subject(), fault))?);
            spans.fields.push(name.span().start);
        }
        Ok(key)
    }

    pub(super) fn features<'d>(
        &self,
        document: &'d DeTable<'d>,
    ) -> Result<&'d [Spanned<DeValue<'d>>], DefinitionError> {
        match document.get("feature") {
            None => Ok(&[]),
            Some(value) => match value.get_ref() {
                DeValue::Array(tables) => Ok(tables),
                _ => Err(self.wrong_type(value, "", "feature", "[[feature]]")),
            },
        }
    }

    pub(super) fn feature(
        &self,
        index: usize,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(Feature, FeatureSpans), DefinitionError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong_type(value, "", "feature", "[[feature]]"));
        };
        let name = table.get("name").and_then(|name| name.get_ref().as_str());
        let subject = feature_subject(index, name);
        let start = value.span().start;
        let keys = "name, op, of, k, edges, per";
        self.refuse_unknown(table, keys, || subject.clone())?;
        let values = FEATURE_KEYS.map(|key| table.get(key).map(|value| value.span().start));
        let table = Table {
            reader: self,
            table,
            start,
            subject,
        };
        Ok((
            table.feature()?,
            FeatureSpans {
                table: start,
                values,
            },
        ))
    }
}

impl<'d> Table<'_, 'd> {
    fn feature(&self) -> Result<Feature, DefinitionError> {
        let name = self.needed("name", "name = \"bytes\"")?;
        let (op_name, span) = self.needed("op", "op = \"sum\"")?;
        let Some(op) = Op::with_name(op_name) else {
            return Err(self.error(span, Fault::UnknownOp(shorten(op_name))));
        };
        let op = self.numbers(op)?;
        let of = match self.text("of", "of = \"ip_length\"")? {
            None => None,
            Some((input, span)) => match Input::from_name(input) {
                None => return Err(self.error(span, Fault::UnknownInput(shorten(input)))),
                input => input,
            },
        };
        let per_biflow = match self.text("per", "per = \"biflow\"")? {
            None => false,
            Some(("biflow", _)) => true,
            Some((per, span)) => return Err(self.error(span, Fault::UnknownPer(shorten(per)))),
        };
        Ok(Feature {
            name: name.0.to_owned(),
            op,
            of,
            per_biflow,
        })
    }

    /// Sets the `k` or `edges` of an op.
    fn numbers(&self, op: Op) -> Result<Op, DefinitionError> {
        let takes_k = matches!(op, Op::Nth { .. } | Op::List { .. });
        let takes_edges = matches!(op, Op::Histogram { .. });
        for (key, taken) in [("k", takes_k), ("edges", takes_edges)] {
            match self.table.get(key) {
                Some(value) if !taken => {
                    let fault = Fault::Needless { key, op: op.name() };
                    return Err(self.error(value.span(), fault));
                }
                _ => {}
            }
        }
        Ok(match op {
            Op::Nth { .. } => Op::Nth { k: self.k(&op)? },
            Op::List { .. } => Op::List { k: self.k(&op)? },
            Op::Histogram { .. } => Op::Histogram {
                edges: self.edges()?,
            },
            op => op,
        })
    }

    fn k(&self, op: &Op) -> Result<usize, DefinitionError> {
        const EXAMPLE: &str = "k = 10";
        let Some(value) = self.table.get("k") else {
            return Err(self.missing("k", EXAMPLE));
        };
        let DeValue::Integer(k) = value.get_ref() else {
            return Err(self.reader.wrong_type(value, &self.subject, "k", EXAMPLE));
        };
        usize::from_str_radix(k.as_str(), k.radix()).map_err(|_| {
            let fault = Fault::BadK {
                k: shorten(&k.to_string()),
                op: op.name(),
            };
            self.error(value.span(), fault)
        })
    }

    fn edges(&self) -> Result<Vec<u64>, DefinitionError> {
        const EXAMPLE: &str = "edges = [64, 128, 256]";
        let Some(value) = self.table.get("edges") else {
            return Err(self.missing("edges", EXAMPLE));
        };
        let DeValue::Array(edges) = value.get_ref() else {
            return Err(self
                .reader
                .wrong_type(value, &self.subject, "edges", EXAMPLE));
        };
        let edge = |value: &Spanned<DeValue<'_>>| {
            let DeValue::Integer(edge) = value.get_ref() else {
                return Err(self
                    .reader
                    .wrong_type(value, &self.subject, "edges", EXAMPLE));
            };
            u64::from_str_radix(edge.as_str(), edge.radix())
                .map_err(|_| self.error(value.span(), Fault::BadEdge(shorten(&edge.to_string()))))
        };
        edges.iter().map(edge).collect()
    }

    /// A mandatory text value.
    fn needed(
        &self,
        key: &'static str,
        example: &'static str,
    ) -> Result<(&'d str, Range<usize>), DefinitionError> {
        self.text(key, example)?
            .ok_or_else(|| self.missing(key, example))
    }

    fn text(
        &self,
        key: &'static str,
        example: &'static str,
    ) -> Result<Option<(&'d str, Range<usize>)>, DefinitionError> {
        let Some(value) = self.table.get(key) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::String(text) => Ok(Some((text, value.span()))),
            _ => Err(self.reader.wrong_type(value, &self.subject, key, example)),
        }
    }

    fn missing(&self, key: &'static str, example: &'static str) -> DefinitionError {
        self.error(self.start..self.start, Fault::Missing { key, example })
    }

    fn error(&self, span: Range<usize>, fault: Fault) -> DefinitionError {
        self.reader.error(span.start, self.subject.clone(), fault)
    }
}

fn field_of(name: &str) -> Result<KeyField, Fault> {
    KeyField::from_name(name).ok_or_else(|| match Input::from_name(name) {
        Some(input) => Fault::NotInKey(input.name()),
        None => Fault::UnknownField(shorten(name)),
    })
}

/// A value as error messages name it.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text \"{}\"", shorten(text)),
        DeValue::Integer(number) => format!("the number {}", shorten(&number.to_string())),
        DeValue::Float(number) => format!("the number {}", shorten(number.as_str())),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
