// SPDX-License-Identifier: Apache-2.0
//! The definition that a file of this crate contains, and the columns that follow from it.

use std::collections::HashMap;

use turboflow_merge::Layout;
use turboflow_record::{Definition, ElementOptions, Schema, TimeUnit};

use super::elements::{Known, number, of_element};
use super::messages::{ElementId, Value};
use crate::wire::{DEFINITION_ELEMENTS, DOMAIN_NAMES};

/// The definition of a file's records.
#[derive(Default)]
pub(super) struct Own {
    found: Option<Found>,
    /// The parts of its text that have been read.
    text: Vec<u8>,
    /// Whether the file has several definitions, as concatenated files do: then no definition is
    /// right for all records.
    is_ambiguous: bool,
}

#[derive(PartialEq, Eq)]
struct Found {
    definition: Definition,
    is_biflow: bool,
    enterprise: u32,
}

/// No definition is longer than this. Bounds how much memory a hostile file can make this reader
/// use.
const TEXT_BYTES_MAX: usize = 1 << 20;

impl Own {
    /// Learns the definition from an options record, if it holds one. A definition that this
    /// version cannot parse is ignored: columns are then named after their elements.
    pub(super) fn learn(&mut self, values: &[Value<'_>]) {
        let of = |wanted: u16| {
            let mut values = values.iter();
            let found = values.find(|value| value.element == (None, wanted));
            found.map(|value| value.octets)
        };
        let [
            Some(name),
            Some(enterprise),
            Some(begin),
            Some(end),
            Some(text),
        ] = DEFINITION_ELEMENTS.map(of)
        else {
            return;
        };
        let mut ours = DOMAIN_NAMES.iter();
        let Some(biflow) = ours.position(|ours| ours.as_bytes() == name) else {
            return;
        };
        // Parts come in order.
        if number(begin) == 0 || self.text.len() > TEXT_BYTES_MAX {
            self.text.clear();
        }
        self.text.extend_from_slice(text);
        if self.text.len() as u64 != number(end) {
            return;
        }
        let text = std::str::from_utf8(&self.text).ok();
        let definition = text.and_then(|text| Definition::parse(text).ok());
        let enterprise = u32::try_from(number(enterprise)).ok();
        let Some((definition, enterprise)) = definition.zip(enterprise) else {
            return;
        };
        let found = Some(Found {
            definition,
            is_biflow: biflow == 1,
            enterprise,
        });
        self.is_ambiguous |= self.found.is_some() && self.found != found;
        self.found = found;
    }

    fn found(&self) -> Option<&Found> {
        self.found.as_ref().filter(|_| !self.is_ambiguous)
    }

    pub(super) fn definition(&self) -> Option<&Definition> {
        self.found().map(|found| &found.definition)
    }

    /// The columns of the definition, and the elements that hold their values.
    pub(super) fn columns(&self) -> Option<(Schema, HashMap<ElementId, Known>)> {
        let found = self.found()?;
        let layout = Layout::compile(&found.definition, found.is_biflow).ok()?;
        let mut schema = layout.schema().clone();
        // A template may lack any column.
        schema.iter_mut().for_each(|column| column.nullable = true);
        let mut known = HashMap::new();
        for time in [
            TimeUnit::Milliseconds,
            TimeUnit::Microseconds,
            TimeUnit::Nanoseconds,
        ] {
            let options = ElementOptions {
                time,
                enterprise: found.enterprise,
            };
            let elements = found.definition.elements(found.is_biflow, &options);
            for (column, mapped) in elements.into_iter().enumerate() {
                for element in [mapped.v4, mapped.v6] {
                    if let Some(of_type) = of_element(&element) {
                        let known = known.entry((element.enterprise, element.id));
                        known.or_insert(Known { column, of_type });
                    }
                }
            }
        }
        Some((schema, known))
    }
}
