// SPDX-License-Identifier: Apache-2.0
//! Complete streams as messages: each contains its schema, so that a consumer can start with any of
//! them.

use std::ops::Range;

use turboflow_record::{Column, FlowBatch};

use super::encoder::{END, Encoder};
use crate::storable::storable_rows;

/// Encodes records as messages, each of which is a stream of a schema, one batch and the end.
pub struct ArrowMessages {
    encoder: Encoder,
    /// The message with the schema, which never changes.
    head: Vec<u8>,
}

impl ArrowMessages {
    /// An encoder of messages with these columns, and key-value pairs for the metadata of their
    /// schema.
    ///
    /// # Panics
    /// Never: a buffer in memory accepts every schema.
    #[must_use]
    pub fn new(columns: &[Column], metadata: &[(String, String)]) -> Self {
        let mut encoder = Encoder::new(columns, metadata);
        let mut head = Vec::new();
        encoder
            .schema(&mut head)
            .expect("a buffer in memory takes every schema");
        Self { encoder, head }
    }

    /// The rows whose times Arrow can hold, which are those before 2262.
    #[must_use]
    pub fn rows_held(&self, batch: &FlowBatch) -> Vec<Range<usize>> {
        storable_rows(self.encoder.columns(), batch)
    }

    /// Appends a message with these rows.
    ///
    /// # Panics
    /// If the columns of the batch are not those of the messages.
    pub fn encode(&mut self, batch: &FlowBatch, rows: &[usize], bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.head);
        let runs = rows.chunk_by(|one, next| one + 1 == *next);
        let parts: Vec<_> = runs
            .map(|run| (batch, run[0]..run[0] + run.len()))
            .collect();
        self.encoder
            .records(&parts, bytes)
            .expect("the batch has the columns of the schema");
        bytes.extend_from_slice(&END);
    }
}
