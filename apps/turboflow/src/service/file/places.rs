// SPDX-License-Identifier: Apache-2.0
//! Positions of values in the text, with their keys as written.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::Source;
use crate::keys::Key;

/// The values of a file, with their positions.
pub(super) struct Places(Vec<Place>);

struct Place {
    value: Range<usize>,
    /// The key as written.
    name: String,
    /// `section.name`, with current names.
    path: String,
}

impl Places {
    pub(super) fn of(root: &DeTable<'_>) -> Self {
        let mut places = Self(Vec::new());
        places.add(root, "");
        places
    }

    fn add(&mut self, table: &DeTable<'_>, section: &str) {
        for (name, value) in table {
            let path = match section {
                "" => name.get_ref().to_string(),
                section => format!("{section}.{}", name.get_ref()),
            };
            match value.get_ref() {
                DeValue::Table(inner) => self.add(inner, &path),
                DeValue::Array(values) => {
                    for value in values {
                        if let DeValue::Table(inner) = value.get_ref() {
                            self.add(inner, &path);
                        }
                    }
                }
                _ => {}
            }
            self.0.push(Place {
                value: value.span(),
                name: name.get_ref().to_string(),
                path,
            });
        }
    }

    /// Adds a value written under an old key.
    pub(super) fn add_old(&mut self, key: Key, value: Range<usize>) {
        self.0.push(Place {
            value,
            name: key.flag().to_owned(),
            path: format!("{}.{}", key.section(), key.name()),
        });
    }

    /// The key whose value contains this span; for nested values, the innermost.
    pub(super) fn name_at(&self, span: &Range<usize>) -> Option<&str> {
        let holds = |place: &&Place| place.value.start <= span.start && span.end <= place.value.end;
        let innermost = self
            .0
            .iter()
            .filter(holds)
            .min_by_key(|place| place.value.len());
        innermost.map(|place| place.name.as_str())
    }

    /// The line of a key's value, and the key as written.
    pub(super) fn line_of(&self, source: Source<'_>, key: Key) -> Option<(usize, &str)> {
        let path = format!("{}.{}", key.section(), key.name());
        let place = self.0.iter().find(|place| place.path == path)?;
        Some((source.line(&place.value), place.name.as_str()))
    }
}
