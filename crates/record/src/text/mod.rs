// SPDX-License-Identifier: Apache-2.0
//! Definitions as TOML text; `docs/definition.md` is the reference.

mod read;
#[cfg(test)]
mod tests;
mod write;

use std::ops::Range;

use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fault::{Fault, InvalidDefinition, Place, feature_subject, shorten};
use crate::{Definition, KeyField};
use read::{FeatureSpans, Reader};

/// The first fault in the text of a definition: where it is, what it is, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {subject}{fault}")]
pub struct DefinitionError {
    /// The line, counted from 1.
    pub line: usize,
    /// The key or feature at fault in words, ending in a colon and a space. May be empty.
    pub subject: String,
    /// What is wrong.
    pub fault: Fault,
}

/// The line numbers of a definition's parts. With them, faults that are found only when the
/// definition is used are reported with a line as well.
pub struct Places<'t> {
    reader: Reader<'t>,
    spans: Spans,
}

impl Places<'_> {
    /// Adds the line number to an error.
    #[must_use]
    pub fn locate(&self, invalid: InvalidDefinition) -> DefinitionError {
        let offset = self.spans.offset(invalid.place);
        self.reader.error(offset, invalid.subject, invalid.fault)
    }

    /// The line of a feature, counted from 1. The first line if there is no such feature.
    #[must_use]
    pub fn line_of_feature(&self, index: usize) -> usize {
        let is_there = index < self.spans.features.len();
        let place = match is_there {
            true => Place::Feature(index, "name"),
            false => Place::Definition,
        };
        self.reader.line(self.spans.offset(place))
    }

    /// The line of the key's fields, counted from 1. The first line if there is no `[key]` table.
    #[must_use]
    pub fn line_of_key(&self) -> usize {
        self.reader.line(self.spans.offset(Place::Key))
    }
}

/// Offsets in bytes from the start of the text.
#[derive(Default)]
struct Spans {
    key: usize,
    fields: Vec<usize>,
    features: Vec<FeatureSpans>,
}

impl Definition {
    /// Parses a definition from TOML text. Without a `[key]` table the key is the 5-tuple.
    ///
    /// # Errors
    /// The first fault found.
    pub fn parse(text: &str) -> Result<Self, DefinitionError> {
        Self::parse_with_places(text).map(|(definition, _)| definition)
    }

    /// Like [`parse`](Self::parse), but also returns where each part is in the text.
    ///
    /// # Errors
    /// The first fault found.
    pub fn parse_with_places(text: &str) -> Result<(Self, Places<'_>), DefinitionError> {
        let reader = Reader { text };
        let document = DeTable::parse(text).map_err(|error| reader.syntax_error(&error))?;
        let document = document.get_ref();
        reader.refuse_unknown(document, "key, feature", String::new)?;
        let mut spans = Spans::default();
        let key = match document.get("key") {
            Some(key) => reader.key(key, &mut spans)?,
            None => KeyField::FIVE_TUPLE.to_vec(),
        };
        let mut definition = Self {
            key,
            features: Vec::new(),
        };
        for (index, table) in reader.features(document)?.iter().enumerate() {
            let (feature, lines) = reader.feature(index, table)?;
            definition.features.push(feature);
            spans.features.push(lines);
        }
        let places = Places { reader, spans };
        match definition.check() {
            Ok(()) => Ok((definition, places)),
            Err(invalid) => Err(places.locate(invalid)),
        }
    }
}

impl Spans {
    fn offset(&self, place: Place) -> usize {
        match place {
            Place::Definition => 0,
            Place::Key => self.key,
            Place::KeyField(index) => self.fields.get(index).copied().unwrap_or(self.key),
            Place::Feature(index, key) => self.features[index].offset(key),
        }
    }
}
