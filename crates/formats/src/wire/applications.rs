// SPDX-License-Identifier: Apache-2.0
//! Applications on the wire: every record has the number of its application, and the name that
//! belongs to each number is sent once (RFC 6759).

use std::collections::HashSet;
use std::sync::Arc;

use turboflow_merge::fnv_1a;
use turboflow_record::{ApplicationNames, ColumnElement, DataType, FlowBatch, NameIndex, Value};

use super::options::put_text;

/// Classification engine PANA-L7-PEN: an enterprise assigns the numbers of the applications (RFC
/// 6759, section 4.1).
const ENGINE: u8 = 20;
/// The enterprise that assigns nDPI's numbers: ntop.
const NTOP: u32 = 35_632;

/// Maximum number of applications whose names are sent and remembered: more than any library knows.
const NAMES_MAX: usize = 4_096;
/// Set in the selector of an application without a known number; nDPI's numbers are below it.
const UNNUMBERED: u32 = 1 << 31;

/// The columns that hold applications, and the applications whose names have been sent.
pub(super) struct Applications {
    columns: Vec<usize>,
    index: NameIndex,
    named: HashSet<u32>,
}

/// Whether a column's values are sent as applicationId.
pub(super) const fn is_application(column: &ColumnElement) -> bool {
    matches!(column.v4.data_type, DataType::OctetArray)
}

impl Applications {
    pub(super) fn new(elements: &[ColumnElement], names: Option<&Arc<ApplicationNames>>) -> Self {
        let columns = elements.iter().enumerate();
        let columns = columns.filter(|(_, element)| is_application(element));
        Self {
            columns: columns.map(|(index, _)| index).collect(),
            index: NameIndex::new(names.cloned().unwrap_or_default()),
            named: HashSet::new(),
        }
    }

    /// The number of an application.
    pub(super) fn number(&self, name: &str) -> u32 {
        let number = self.index.application_number(name);
        number.unwrap_or_else(|| UNNUMBERED | fnv_1a(name.as_bytes()) as u32)
    }

    /// For each application in a record whose name has not been sent yet, calls `name` with an
    /// options record that names it.
    pub(super) fn name_new(
        &mut self,
        batch: &FlowBatch,
        row: usize,
        mut name: impl FnMut(Vec<u8>),
    ) {
        for column in &self.columns {
            let Value::Text(application) = batch.value(row, *column) else {
                continue;
            };
            let number = self.number(application);
            if self.named.len() == NAMES_MAX || !self.named.insert(number) {
                continue;
            }
            let mut record = Vec::new();
            put_id(&mut record, number);
            put_text(&mut record, application.as_bytes());
            let category = self.index.category_of(number);
            put_text(&mut record, category.as_bytes());
            name(record);
        }
    }
}

/// Appends an applicationId.
///
/// ```text
/// +--------+-------------------+---------------------+
/// | engine | enterprise number | selector            |
/// |   1    |         4         |          4          |
/// +--------+-------------------+---------------------+
/// ```
pub(super) fn put_id(to: &mut Vec<u8>, number: u32) {
    to.push(ENGINE);
    to.extend_from_slice(&NTOP.to_be_bytes());
    to.extend_from_slice(&number.to_be_bytes());
}
