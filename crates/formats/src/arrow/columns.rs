// SPDX-License-Identifier: Apache-2.0
//! Columns of one batch, for code in the same process that works on Arrow arrays.

use arrow_array::ArrayRef;
use arrow_schema::Schema;
use turboflow_record::{Column, ColumnKind, FlowBatch, ValueData};

use super::{arrays, schema};

/// The columns as an Arrow schema, with the types of our Arrow files.
#[must_use]
pub fn arrow_schema(columns: &[Column]) -> Schema {
    schema::fields(columns)
}

/// The values of column `index` of a batch; `None` if there is a time after 2262, which Arrow
/// cannot hold.
#[must_use]
pub fn arrow_column(columns: &[Column], index: usize, batch: &FlowBatch) -> Option<ArrayRef> {
    let column = &columns[index];
    if column.kind == ColumnKind::TimestampNs
        && let ValueData::Unsigned(times_ns) = &batch.column(index).data
        && times_ns
            .iter()
            .any(|time_ns| i64::try_from(*time_ns).is_err())
    {
        return None;
    }
    Some(arrays::array(column, index, &[(batch, 0..batch.rows())]))
}
