// SPDX-License-Identifier: Apache-2.0
//! Where the records of an answer come from.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use turboflow_record::FlowBatch;

use crate::{Input, QueryError};

/// Records, batch by batch.
pub(crate) trait Source {
    /// Lets batches contain only the columns of `first`, if that saves work. [`Source::complete`]
    /// adds the columns of `then`.
    fn read_apart(&mut self, first: Vec<usize>, then: Vec<usize>);

    /// The next records; `None` at the end.
    fn next(&mut self) -> Result<Option<FlowBatch>, QueryError>;

    /// Fills in the columns of `then` for the last batch that was returned.
    fn complete(&mut self, batch: &mut FlowBatch) -> Result<(), QueryError>;

    /// The flag that is set when no one waits for the answer any more.
    fn stop(&self) -> Option<Arc<AtomicBool>> {
        None
    }
}

impl Source for Input {
    fn read_apart(&mut self, first: Vec<usize>, then: Vec<usize>) {
        self.read_apart(first, then);
    }

    fn next(&mut self) -> Result<Option<FlowBatch>, QueryError> {
        self.next_batch()
    }

    fn complete(&mut self, batch: &mut FlowBatch) -> Result<(), QueryError> {
        self.complete(batch)
    }

    fn stop(&self) -> Option<Arc<AtomicBool>> {
        self.stop_flag()
    }
}

/// Batches that already contain all columns.
pub(crate) struct Whole<I>(pub(crate) I);

impl<I, E> Source for Whole<I>
where
    I: Iterator<Item = Result<FlowBatch, E>>,
    QueryError: From<E>,
{
    fn read_apart(&mut self, _first: Vec<usize>, _then: Vec<usize>) {}

    fn next(&mut self) -> Result<Option<FlowBatch>, QueryError> {
        Ok(self.0.next().transpose()?)
    }

    fn complete(&mut self, _batch: &mut FlowBatch) -> Result<(), QueryError> {
        Ok(())
    }
}
