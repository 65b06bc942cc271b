// SPDX-License-Identifier: Apache-2.0
//! The definition that a file of this crate holds, and the columns that follow from it.

use std::collections::HashMap;

use turboflow_merge::Layout;
use turboflow_record::{Definition, ElementOptions, Schema, TimeUnit};

use super::elements::{Known, of_type};
use super::messages::{ElementId, Value};
use crate::wire::DEFINITION_ELEMENTS;

/// The definition of a file's records.
#[derive(Default)]
pub(super) struct Own {
    found: Option<Found>,
    /// Whether the file has several, as files that were joined do: then none is right for all.
    is_ambiguous: bool,
}

#[derive(PartialEq, Eq)]
struct Found {
    definition: Definition,
    is_biflow: bool,
    enterprise: u32,
}

impl Own {
    /// Learns the definition from a record of options, if it has one. One that this version cannot
    /// parse is passed over: columns are then called after their elements.
    pub(super) fn learn(&mut self, values: &[Value<'_>]) {
        let [text, is_biflow] = DEFINITION_ELEMENTS;
        let of = |wanted: u16| {
            let mut own = values.iter().filter(|value| value.element.1 == wanted);
            own.find_map(|value| Some((value.element.0?, value.octets)))
        };
        let (Some((enterprise, text)), Some((other, is_biflow))) = (of(text), of(is_biflow)) else {
            return;
        };
        let text = std::str::from_utf8(text).ok();
        let definition = text.and_then(|text| Definition::parse(text).ok());
        let Some(definition) = definition.filter(|_| enterprise == other) else {
            return;
        };
        let found = Some(Found {
            definition,
            is_biflow: is_biflow == [1],
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
                    if let Some(of_type) = of_type(element.data_type as u64) {
                        let known = known.entry((element.enterprise, element.id));
                        known.or_insert(Known { column, of_type });
                    }
                }
            }
        }
        Some((schema, known))
    }
}
