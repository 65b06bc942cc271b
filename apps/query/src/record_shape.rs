// SPDX-License-Identifier: Apache-2.0
//! What is known of records before any is read.

use turboflow_record::{Column, Definition, Schema};

use crate::fold::Fold;

/// The columns of records, and where the files say so by which definition they were made.
#[derive(Clone, Copy, Debug)]
pub struct RecordShape<'a> {
    /// The columns of every batch.
    pub schema: &'a [Column],
    /// What the numbers of a column are follows from its feature; `None` leaves its name.
    pub definition: Option<&'a Definition>,
}

impl RecordShape<'_> {
    /// How groups fold a column; `None` where they cannot.
    pub(crate) fn fold_of(self, column: &str) -> Option<Fold> {
        match self.definition {
            Some(definition) => Fold::by_definition(column, definition),
            None => Fold::by_name(column),
        }
    }
}

impl<'a> From<&'a Schema> for RecordShape<'a> {
    fn from(schema: &'a Schema) -> Self {
        Self {
            schema,
            definition: None,
        }
    }
}
