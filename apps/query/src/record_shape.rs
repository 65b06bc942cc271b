// SPDX-License-Identifier: Apache-2.0
//! The columns and definition of records, known before reading them.

use turboflow_record::{Column, Definition, Schema};

use crate::fold::{Fold, NoFold};

/// The columns of records, and their definition if the files contain it.
#[derive(Clone, Copy, Debug)]
pub struct RecordShape<'a> {
    /// The columns of every batch.
    pub schema: &'a [Column],
    /// Determines the meaning of columns; without it, their names do.
    pub definition: Option<&'a Definition>,
}

impl RecordShape<'_> {
    /// How groups fold a column.
    pub(crate) fn fold_of(self, column: &str) -> Result<Fold, NoFold> {
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
