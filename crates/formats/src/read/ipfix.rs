// SPDX-License-Identifier: Apache-2.0
//! Reads IPFIX files (RFC 5655): those of this crate, and from those of other exporters the
//! elements that flow records have.
//!
//! The first pass learns the templates, and from them the columns; the second one reads the
//! records. Files of this crate contain the definition of their records, which gives each column
//! its name and type; in other files, columns are named after their elements.

mod applications;
mod definition;
mod elements;
mod messages;

use std::fs::File;
use std::path::Path;

use turboflow_record::{Column, FlowBatch, Schema};

use super::kinds::{Parsed, Row};
use super::{BATCH_RECORDS, FlowReader, ReadError, Source};
use elements::{Elements, Known, value_of};
use messages::{Messages, Value};

struct IpfixSource {
    messages: Messages,
    elements: Elements,
    row: Row,
}

/// Reads the templates of the whole file.
pub(crate) fn open(path: &Path, place: String) -> Result<FlowReader, ReadError> {
    let start = || -> Result<Messages, ReadError> {
        let file = File::open(path).map_err(|source| ReadError::Open {
            place: place.clone(),
            source,
        })?;
        Ok(Messages::new(file, &place))
    };
    let mut elements = Elements::default();
    let mut messages = start()?;
    let mut seen = Ok(());
    messages.next(&mut |values, is_options| {
        seen = match is_options {
            true => elements.learn(values),
            false => values.iter().try_for_each(|value| elements.see(value)),
        };
        seen.is_ok()
    })?;
    let mut fields = messages.templates().into_iter();
    let seen = seen.and_then(|()| fields.try_for_each(|element| elements.see_field(element)));
    seen.map_err(|reason| messages.error(reason))?;
    if let Some(error) = messages.cut().filter(|_| messages.is_without_message()) {
        return Err(error);
    }
    let definition = elements.definition();
    let (schema, left_out) = elements.columns();
    Ok(FlowReader {
        shown: vec![true; schema.len()],
        has_columns: !schema.is_empty(),
        schema,
        definition,
        left_out,
        source: Box::new(IpfixSource {
            messages: start()?,
            elements,
            row: Row::default(),
        }),
    })
}

impl Source for IpfixSource {
    fn fill(&mut self, schema: &Schema, batch: &mut FlowBatch) -> Result<(), ReadError> {
        let Self {
            messages,
            elements,
            row,
        } = self;
        let mut read = Ok(());
        messages.next(&mut |values, is_options| {
            if !is_options {
                read = fill_row(row, values, elements, schema);
                if read.is_ok() {
                    batch.push_row(&row.values());
                }
            }
            read.is_ok() && batch.rows() < BATCH_RECORDS
        })?;
        read.map_err(|reason| messages.error(reason))
    }

    fn damage(&self) -> Option<ReadError> {
        self.messages.cut()
    }

    fn rearrange(&mut self, before: &Schema, schema: &Schema) -> bool {
        self.elements.rearrange(before, schema);
        true
    }
}

/// Reads a record as a row of the columns. Values that its template lacks are absent.
fn fill_row(
    row: &mut Row,
    values: &[Value<'_>],
    elements: &Elements,
    schema: &[Column],
) -> Result<(), String> {
    row.clear(schema.len());
    for value in values {
        if let Some(Known {
            column, of_type, ..
        }) = elements.of(value)
        {
            let parsed = value_of(
                value,
                *of_type,
                schema[*column].kind,
                &mut row.parts,
                elements,
            );
            let parsed =
                parsed.map_err(|what| format!("column {}: {what}", schema[*column].name))?;
            // A column may have one element for each address family.
            if parsed != Parsed::Absent {
                row.values[*column] = Some(parsed);
            }
        }
    }
    Ok(())
}

/// Whether the file starts like an IPFIX message.
pub(crate) fn is_start(first: &[u8]) -> bool {
    first.starts_with(b"\0\x0a")
}
