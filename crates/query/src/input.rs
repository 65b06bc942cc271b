// SPDX-License-Identifier: Apache-2.0
//! Several files of flow records as one.

use std::path::{Path, PathBuf};

use turboflow_export::{FlowReader, read};
use turboflow_record::{Column, ColumnKind, FlowBatch, Schema};

use crate::QueryError;

/// The records of one or more files with the same columns.
pub struct Input {
    schema: Schema,
    /// Files still to be read, the next one last; a reader that cannot be opened twice is kept.
    waiting: Vec<(PathBuf, Option<FlowReader>)>,
    open: Option<FlowReader>,
}

impl Input {
    /// Opens every file (`-` is standard input) and compares their columns before anything is
    /// read, so that a question fails at once or not at all. No file: no records and no columns.
    ///
    /// # Errors
    /// [`QueryError::Read`], and [`QueryError::Schema`] names the file and column that differ.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Result<Self, QueryError> {
        let mut waiting = Vec::new();
        let mut first: Option<(String, Schema)> = None;
        for path in paths {
            let path = path.as_ref();
            let place = path.display().to_string();
            let reader = read(path)?;
            match &first {
                None => first = Some((place, reader.schema().clone())),
                Some((known, schema)) => {
                    if let Some(difference) = difference(schema, reader.schema()) {
                        let first = known.clone();
                        return Err(QueryError::Schema {
                            place,
                            first,
                            difference,
                        });
                    }
                }
            }
            // A pipe cannot be opened again; thousands of files cannot all stay open.
            let keep = !path.is_file();
            waiting.push((path.to_owned(), keep.then_some(reader)));
        }
        waiting.reverse();
        Ok(Self {
            schema: first.map(|(_, schema)| schema).unwrap_or_default(),
            waiting,
            open: None,
        })
    }

    /// The columns of every batch.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    fn next_batch(&mut self) -> Result<Option<FlowBatch>, QueryError> {
        loop {
            if let Some(reader) = &mut self.open {
                if let Some(batch) = reader.next_batch()? {
                    return Ok(Some(batch));
                }
                self.open = None;
            }
            let Some((path, reader)) = self.waiting.pop() else {
                return Ok(None);
            };
            self.open = Some(match reader {
                Some(reader) => reader,
                None => read(&path)?,
            });
        }
    }
}

impl Iterator for Input {
    type Item = Result<FlowBatch, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

/// The first column in which two schemas differ. Widths and nullability may: they differ between
/// the formats.
fn difference(first: &[Column], other: &[Column]) -> Option<String> {
    let class = |kind| match kind {
        ColumnKind::Unsigned { .. } => ColumnKind::Unsigned { bits: 64 },
        kind => kind,
    };
    for index in 0..first.len().max(other.len()) {
        let number = index + 1;
        match (first.get(index), other.get(index)) {
            (Some(left), Some(right)) if left.name != right.name => {
                let (left, right) = (&left.name, &right.name);
                return Some(format!("column {number} is {right:?}, not {left:?}"));
            }
            (Some(left), Some(right)) if class(left.kind) != class(right.kind) => {
                let (left, right, name) = (left.kind, right.kind, &left.name);
                return Some(format!("column {name:?} is {right:?}, not {left:?}"));
            }
            (Some(left), None) => return Some(format!("it has no column {:?}", left.name)),
            (None, Some(right)) => {
                return Some(format!("it has a column {:?} more", right.name));
            }
            _ => {}
        }
    }
    None
}
