// SPDX-License-Identifier: Apache-2.0
//! Reads the columns of a query, batch by batch, in a thread of its own.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::{PhysicalExpr, SendableRecordBatchStream};
use turboflow_formats::arrow_column;
use turboflow_query::Input;
use turboflow_record::{FlowBatch, Schema};

use crate::tables::Damages;

/// Maximum number of batches that wait for the query.
const WAITING_BATCHES: usize = 2;

/// Selects the records that a query takes.
#[derive(Clone)]
pub(crate) struct Condition {
    /// The test, over the columns in `columns` only.
    pub(crate) test: Arc<dyn PhysicalExpr>,
    /// Positions of its columns in the table.
    pub(crate) columns: Vec<usize>,
    pub(crate) schema: SchemaRef,
}

/// Reads some files of a table once.
pub(crate) struct Scan {
    input: Mutex<Option<Input>>,
    /// Positions of the query's columns in the table.
    columns: Vec<usize>,
    schema: SchemaRef,
    condition: Option<Condition>,
    damages: Damages,
}

impl Scan {
    pub(crate) fn new(
        mut input: Input,
        columns: Vec<usize>,
        schema: SchemaRef,
        condition: Option<Condition>,
        damages: Damages,
    ) -> Self {
        match &condition {
            Some(condition) => {
                let first = condition.columns.clone();
                let then = columns.iter().filter(|column| !first.contains(column));
                let then = then.copied().collect();
                input.read_apart(first, then);
            }
            None => input.read_apart(columns.clone(), Vec::new()),
        }
        Self {
            input: Mutex::new(Some(input)),
            columns,
            schema,
            condition,
            damages,
        }
    }
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan")
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

impl PartitionStream for Scan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let mut stream =
            RecordBatchReceiverStream::builder(Arc::clone(&self.schema), WAITING_BATCHES);
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let batches = stream.tx();
        let reading = input.take().map(|input| Reading {
            input,
            columns: self.columns.clone(),
            schema: Arc::clone(&self.schema),
            condition: self.condition.clone(),
            damages: Arc::clone(&self.damages),
        });
        stream.spawn_blocking(move || {
            let Some(mut reading) = reading else {
                return Err(DataFusionError::Internal("files are read once".to_owned()));
            };
            while let Some(batch) = reading.next()? {
                // The query needs no more records.
                if batches.blocking_send(Ok(batch)).is_err() {
                    break;
                }
            }
            Ok(())
        });
        stream.build()
    }
}

struct Reading {
    input: Input,
    columns: Vec<usize>,
    schema: SchemaRef,
    condition: Option<Condition>,
    damages: Damages,
}

impl Reading {
    /// The next records that satisfy the condition; `None` at the end.
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(mut batch) = self.input.next_batch().map_err(external)? {
            let kinds = self.input.schema();
            let taken = match &self.condition {
                None => None,
                Some(condition) => {
                    let known = arrays(kinds, &condition.columns, &batch)?;
                    let known = record_batch(&condition.schema, known, batch.rows())?;
                    let taken = condition.test.evaluate(&known)?;
                    let taken = taken.into_array(batch.rows())?;
                    let taken = as_boolean_array(&taken)?.clone();
                    if taken.true_count() == 0 {
                        continue;
                    }
                    self.input.complete(&mut batch).map_err(external)?;
                    Some(taken)
                }
            };
            let kinds = self.input.schema();
            let columns = arrays(kinds, &self.columns, &batch)?;
            let all = record_batch(&self.schema, columns, batch.rows())?;
            return only(all, taken.as_ref()).map(Some);
        }
        let damages = self.input.damages().iter().cloned();
        let mut said = self.damages.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(damages);
        Ok(None)
    }
}

fn only(all: RecordBatch, taken: Option<&BooleanArray>) -> Result<RecordBatch> {
    match taken {
        Some(taken) if taken.true_count() < all.num_rows() => Ok(filter_record_batch(&all, taken)?),
        _ => Ok(all),
    }
}

fn arrays(kinds: &Schema, columns: &[usize], batch: &FlowBatch) -> Result<Vec<ArrayRef>> {
    let arrays = columns.iter().map(|column| {
        arrow_column(kinds, *column, batch).ok_or_else(|| {
            DataFusionError::Execution(format!(
                "a record has a time past 2262 in {}, which SQL cannot show: `turboflow show` can",
                kinds[*column].name
            ))
        })
    });
    arrays.collect()
}

/// A batch, which may have rows but no columns (`count(*)`).
fn record_batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?;
    Ok(batch)
}

fn external(error: turboflow_query::QueryError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
