// SPDX-License-Identifier: Apache-2.0
//! A writer that changes each batch before it passes the batch on to another writer.

use std::sync::Arc;

use turboflow_record::FlowBatch;

use crate::{ExportError, FlowWriter, Passed, SendGauge, WriteProgress, WriteSummary};

/// A writer that applies `map` to each batch and passes the result on to `inner`.
pub(crate) fn mapped(
    inner: Box<dyn FlowWriter>,
    map: impl Fn(&FlowBatch) -> FlowBatch + Send + 'static,
) -> Box<dyn FlowWriter> {
    Box::new(Mapped { inner, map })
}

struct Mapped<M> {
    inner: Box<dyn FlowWriter>,
    map: M,
}

impl<M: Fn(&FlowBatch) -> FlowBatch + Send> FlowWriter for Mapped<M> {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        self.inner.write(&(self.map)(batch))
    }

    fn write_several(&mut self, batches: &[Arc<FlowBatch>]) -> Result<(), ExportError> {
        let mapped = batches.iter().map(|batch| Arc::new((self.map)(batch)));
        let mapped: Vec<_> = mapped.collect();
        self.inner.write_several(&mapped)
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        self.inner.flush()
    }

    fn pass(&mut self, passed: Passed) -> Result<(), ExportError> {
        self.inner.pass(passed)
    }

    fn is_failing(&self) -> bool {
        self.inner.is_failing()
    }

    fn progress(&self) -> WriteProgress {
        self.inner.progress()
    }

    fn sending(&self) -> Option<Arc<SendGauge>> {
        self.inner.sending()
    }

    fn finish(self: Box<Self>) -> Result<WriteSummary, ExportError> {
        self.inner.finish()
    }
}
