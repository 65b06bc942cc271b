// SPDX-License-Identifier: Apache-2.0
//! Presents files of flow records as tables, and reads only the columns and files that a query
//! needs.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use turboflow_formats::arrow_schema;
use turboflow_query::Input;

use crate::scan::{Condition, Scan};

/// Where damaged files end early, among the files read so far.
pub(crate) type Damages = Arc<Mutex<Vec<String>>>;

/// A table made of files.
pub(crate) struct FlowTable {
    name: String,
    schema: SchemaRef,
    files: Vec<PathBuf>,
    /// The files as they were opened to determine their columns. Pipes can be read only through
    /// this.
    opened: Mutex<Option<Input>>,
    /// A file that can be read only once, if there is one.
    pipe: Option<PathBuf>,
    damages: Damages,
}

impl FlowTable {
    pub(crate) fn new(name: &str, files: Vec<PathBuf>, opened: Input, damages: Damages) -> Self {
        Self {
            name: name.to_owned(),
            schema: Arc::new(arrow_schema(opened.schema())),
            pipe: files.iter().find(|file| !file.is_file()).cloned(),
            files,
            opened: Mutex::new(Some(opened)),
            damages,
        }
    }

    /// Distributes the files over inputs for up to `threads` threads.
    fn inputs(&self, threads: usize) -> Result<Vec<Input>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipe) = &self.pipe {
            let place = match pipe.to_str() {
                Some("-") => "standard input".to_owned(),
                _ => pipe.display().to_string(),
            };
            return opened.take().map(|input| vec![input]).ok_or_else(|| {
                DataFusionError::Plan(format!(
                    "the query reads {} twice, but {place} can be read once: store it in a file",
                    self.name
                ))
            });
        }
        let Some(opened) = opened.as_ref() else {
            return Ok(Vec::new());
        };
        let threads = threads.min(self.files.len()).max(1);
        let of = |thread: usize| -> Vec<&PathBuf> {
            self.files.iter().skip(thread).step_by(threads).collect()
        };
        Ok((0..threads)
            .map(|thread| opened.again(&of(thread)))
            .collect())
    }

    /// Combines the filters of a query into a condition on the columns that they use.
    fn condition(&self, state: &dyn Session, filters: &[Expr]) -> Result<Option<Condition>> {
        let Some(all) = conjunction(filters.to_vec()) else {
            return Ok(None);
        };
        let mut columns = Vec::new();
        for column in all.column_refs() {
            columns.push(self.schema.index_of(&column.name)?);
        }
        columns.sort_unstable();
        let schema = Arc::new(self.schema.project(&columns)?);
        let known = DFSchema::try_from(Arc::clone(&schema))?;
        Ok(Some(Condition {
            test: state.create_physical_expr(all, &known)?,
            columns,
            schema,
        }))
    }
}

impl fmt::Debug for FlowTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowTable")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for FlowTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = match projection {
            Some(columns) => columns.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        let schema = Arc::new(self.schema.project(&columns)?);
        let condition = self.condition(state, filters)?;
        let threads = state.config_options().execution.target_partitions;
        let scans = self.inputs(threads)?.into_iter().map(|input| {
            let scan = Scan::new(
                input,
                columns.clone(),
                Arc::clone(&schema),
                condition.clone(),
                Arc::clone(&self.damages),
            );
            Arc::new(scan) as Arc<dyn PartitionStream>
        });
        let scans = scans.collect();
        let plan = StreamingTableExec::try_new(schema, scans, None, [], false, limit)?;
        Ok(Arc::new(plan))
    }

    /// Filters are applied to each batch before the other columns are read.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let how = filters.iter().map(|filter| match is_of_rows(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        });
        Ok(how.collect())
    }
}

/// Whether a filter depends only on its row: not on other rows, and not on randomness.
fn is_of_rows(filter: &Expr) -> bool {
    let asks_others = filter.exists(|part| {
        Ok(matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
        ))
    });
    matches!(asks_others, Ok(false)) && !filter.is_volatile()
}
