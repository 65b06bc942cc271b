// SPDX-License-Identifier: Apache-2.0
//! Columns that identify a record uniquely among the records of all exporters: `exporter`, `run`
//! and `sequence`.
//!
//! They belong to an output, not to the record definition: a definition says what a flow is, and no
//! packet has these values. A pipeline with at-least-once delivery becomes exact if it keeps one
//! record of each identity.

use turboflow_record::{Column, ColumnKind, FlowBatch, Schema, ValueData, Values};

use crate::FlowWriter;
use crate::mapped::mapped;

/// Name of the column that holds the name of the vantage point.
pub const EXPORTER_COLUMN: &str = "exporter";
/// Name of the column that holds the number of the run.
pub const RUN_COLUMN: &str = "run";
/// Name of the column that holds a record's number within its run.
pub const SEQUENCE_COLUMN: &str = "sequence";

/// Maximum bytes of an exporter's name, as for a domain name (RFC 1035, section 2.3.4).
const MAX_NAME_BYTES: usize = 255;

/// Which exporter writes the records, and in which run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    exporter: String,
    run: u64,
}

impl Identity {
    /// The identity of a run at the vantage point `exporter`. The run's number is 63 bits of
    /// `random`, because Spark, Iceberg and Java have no unsigned 64-bit numbers.
    ///
    /// # Errors
    /// A text that says what a name must be.
    pub fn new(exporter: &str, random: u64) -> Result<Self, String> {
        let is_name = !exporter.is_empty()
            && exporter.len() <= MAX_NAME_BYTES
            && !exporter.chars().any(char::is_control);
        match is_name {
            true => Ok(Self {
                exporter: exporter.to_owned(),
                run: random >> 1,
            }),
            false => Err(format!(
                "{exporter:?} is not a name of an exporter: write 1 to {MAX_NAME_BYTES} bytes of \
                 UTF-8 without control characters"
            )),
        }
    }

    /// The name of the vantage point.
    #[must_use]
    pub fn exporter(&self) -> &str {
        &self.exporter
    }

    /// The number of the run.
    #[must_use]
    pub const fn run(&self) -> u64 {
        self.run
    }

    /// The three columns.
    #[must_use]
    pub fn columns() -> [Column; 3] {
        let number = ColumnKind::Unsigned { bits: 64 };
        [
            (EXPORTER_COLUMN, ColumnKind::Text),
            (RUN_COLUMN, number),
            (SEQUENCE_COLUMN, number),
        ]
        .map(|(name, kind)| Column {
            name: name.to_owned(),
            kind,
            nullable: false,
        })
    }

    /// `schema` followed by the three columns.
    ///
    /// # Errors
    /// The name of one of these columns if the definition already has it.
    pub fn schema(schema: &[Column]) -> Result<Schema, String> {
        let own = Self::columns();
        let is_taken = |column: &&Column| own.iter().any(|its| its.name == column.name);
        match schema.iter().find(is_taken) {
            Some(taken) => Err(taken.name.clone()),
            None => Ok(schema.iter().cloned().chain(own).collect()),
        }
    }

    /// The batch followed by the three columns.
    #[must_use]
    pub fn identified(&self, batch: &FlowBatch) -> FlowBatch {
        let (rows, first) = (batch.rows(), batch.first_number());
        let all = |data| Values {
            data,
            valid: Vec::new(),
        };
        let exporter = ValueData::Text {
            ends: (1..=rows).map(|row| row * self.exporter.len()).collect(),
            texts: self.exporter.repeat(rows),
        };
        let run = ValueData::Unsigned(vec![self.run; rows]);
        let sequence = ValueData::Unsigned((first..first + rows as u64).collect());
        batch.with_columns([exporter, run, sequence].map(all))
    }
}

/// A writer that adds the identity to each record and passes it on to `inner`, whose schema is that
/// of [`Identity::schema`].
#[must_use]
pub fn identify(inner: Box<dyn FlowWriter>, identity: Identity) -> Box<dyn FlowWriter> {
    mapped(inner, move |batch| identity.identified(batch))
}

#[cfg(test)]
mod tests {
    use turboflow_record::Value;

    use super::*;

    fn packets() -> Schema {
        vec![Column {
            name: "packets".to_owned(),
            kind: ColumnKind::Unsigned { bits: 64 },
            nullable: false,
        }]
    }

    #[test]
    fn records_keep_their_numbers() {
        let identity = Identity::new("tap-7", u64::MAX).unwrap();
        let mut batch = FlowBatch::new(&packets());
        (0..2).for_each(|_| batch.push_row(&[Value::Unsigned(9)]));
        batch.number_from(41);
        let identified = identity.identified(&batch);
        for (row, number) in [(0, 41), (1, 42)] {
            let values: Vec<_> = (0..4).map(|column| identified.value(row, column)).collect();
            assert_eq!(
                values,
                [
                    Value::Unsigned(9),
                    Value::Text("tap-7"),
                    Value::Unsigned(i64::MAX as u64),
                    Value::Unsigned(number)
                ]
            );
        }
        assert_eq!(Identity::schema(&packets()).unwrap().len(), 4);
    }

    #[test]
    fn names_that_tell_nothing_and_columns_twice_are_refused() {
        for name in ["", "a\nb", &"x".repeat(256)] {
            assert!(Identity::new(name, 1).unwrap_err().contains("1 to 255"));
        }
        let taken = Identity::schema(&Identity::columns());
        assert_eq!(taken.unwrap_err(), "exporter");
    }
}
