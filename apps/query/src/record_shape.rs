// SPDX-License-Identifier: Apache-2.0
//! The columns and definition of records, known before reading them.

use turboflow_record::{Column, Definition, Input, Op, Schema};

use crate::fold::{self, Fold, NoFold};

/// The columns of records, and their definition if the files contain it.
#[derive(Clone, Copy, Debug)]
pub struct RecordShape<'a> {
    /// The columns of every batch.
    pub schema: &'a [Column],
    /// The meaning of the columns; without it, their names decide.
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

impl RecordShape<'_> {
    /// Whether a column holds nanoseconds, according to the definition.
    pub(crate) fn is_in_ns(self, column: &str) -> bool {
        let features = self.definition.into_iter().flat_map(|its| &its.features);
        let mut features = features.filter(|feature| fold::is_of(feature, column));
        features.any(|feature| match feature.op {
            Op::GapMin | Op::GapMax | Op::GapMean | Op::Duration => true,
            // The duration is the only input in nanoseconds.
            Op::Sum | Op::Min | Op::Max | Op::Mean | Op::First | Op::Last | Op::Nth { .. } => {
                feature.of == Some(Input::HopLatency)
            }
            _ => false,
        })
    }
}

impl<'a> From<&'a [Column]> for RecordShape<'a> {
    fn from(schema: &'a [Column]) -> Self {
        Self {
            schema,
            definition: None,
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
