// SPDX-License-Identifier: Apache-2.0
//! Filters of flows: the expressions of `turboflow show`, over the fields of a row.

use std::sync::Arc;

use turboflow_query::{Filter, QueryError};
use turboflow_record::{Column, ColumnKind, FlowBatch, Value};

use crate::picture::FlowRow;

const APPLICATION: &str = "application";

/// The fields of a filter, and their kinds.
const FIELDS: [(&str, ColumnKind); 12] = [
    ("src_addr", ColumnKind::Address),
    ("dst_addr", ColumnKind::Address),
    ("src_port", ColumnKind::Unsigned { bits: 16 }),
    ("dst_port", ColumnKind::Unsigned { bits: 16 }),
    ("protocol", ColumnKind::Unsigned { bits: 8 }),
    ("packets", ColumnKind::Unsigned { bits: 64 }),
    ("bytes", ColumnKind::Unsigned { bits: 64 }),
    ("bps", ColumnKind::Unsigned { bits: 64 }),
    ("pps", ColumnKind::Unsigned { bits: 64 }),
    ("first_ns", ColumnKind::TimestampNs),
    ("last_ns", ColumnKind::TimestampNs),
    (APPLICATION, ColumnKind::Text),
];

/// A condition on flows, such as `host 192.0.2.1 and bps > 1M`.
#[derive(Clone, Debug)]
pub struct FlowFilter {
    filter: Filter,
    schema: Vec<Column>,
}

impl FlowFilter {
    /// Parses an expression.
    ///
    /// # Errors
    /// If the expression is invalid.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let column = |(name, kind): (&str, ColumnKind)| Column {
            name: name.to_owned(),
            kind,
            nullable: name == APPLICATION,
        };
        let schema: Vec<Column> = FIELDS.into_iter().map(column).collect();
        let filter = Filter::parse(text, &schema)?;
        Ok(Self { filter, schema })
    }

    /// Flows as records, so that the filter can be applied to them.
    pub(crate) fn batch(&self, flows: &[FlowRow], names: &[Arc<str>]) -> FlowBatch {
        let mut batch = FlowBatch::new(&self.schema);
        for FlowRow {
            key,
            measured,
            first_ns,
            last_ns,
            application,
        } in flows
        {
            batch.push_row(&[
                Value::Address(key.source),
                Value::Address(key.destination),
                Value::Unsigned(key.source_port.into()),
                Value::Unsigned(key.destination_port.into()),
                Value::Unsigned(key.protocol.into()),
                Value::Unsigned(measured.total.packets),
                Value::Unsigned(measured.total.bytes),
                Value::Unsigned(measured.now.bits),
                Value::Unsigned(measured.now.packets),
                Value::Unsigned(*first_ns),
                Value::Unsigned(*last_ns),
                match application.is_known() {
                    true => Value::Text(&names[application.index()]),
                    false => Value::Absent,
                },
            ]);
        }
        batch
    }

    pub(crate) fn passes(&self, batch: &FlowBatch, row: usize) -> bool {
        self.filter.passes(batch, row)
    }
}
