// SPDX-License-Identifier: Apache-2.0
//! The trait of flow tables: that of the kernel, that of a card, or a model of one.

use std::error::Error;

use turboflow_engine::MicroflowBatch;

use crate::{FlowKey, Verdict};

/// How many rows a table can hold and learn, for plans and refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rows for IPv4 flows.
    pub rows_v4: u64,
    /// Rows for IPv6 flows. If `is_shared`, these are also the rows for IPv4.
    pub rows_v6: u64,
    /// Whether both families share their rows.
    pub is_shared: bool,
    /// Rows that the table learns per second. `None`: limited only by the processor that writes
    /// them.
    pub learning_rate: Option<u64>,
}

/// What to do with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKind {
    /// Add a row. An existing row stays as it is.
    Add(Verdict),
    /// Change the verdict of a row.
    Change(Verdict),
    /// Remove the row.
    Remove,
    /// Remove the row if its flow was silent for [`Times::idle_ns`], or ended [`Times::linger_ns`]
    /// ago. Tables that expire rows themselves get this order only for flows that ended.
    Age,
}

/// An order about the row of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The flow.
    pub key: FlowKey,
    /// What to do.
    pub kind: OrderKind,
}

/// Result of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The order was carried out, or will be as soon as the table can.
    Done,
    /// For `Add`: there is already a row.
    Exists,
    /// For `Change`, `Remove` and `Age`: there is no row.
    Absent,
    /// For `Age`: the row stays, because its last packet is too recent.
    Stays {
        /// The time of that packet, in nanoseconds since 1970.
        seen_ns: u64,
    },
    /// Refused: the table is full.
    Full,
    /// Refused: there were more rows per second than the table learns.
    TooFast,
    /// Refused for another reason, with the table's error number.
    Failed(i32),
}

/// Times for carrying out orders, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The current time as known to the caller, since 1970. A table with its own clock ignores it.
    pub now_ns: u64,
    /// How long a flow may be silent before its row leaves.
    pub idle_ns: u64,
    /// How long a row stays after the end of its connection.
    pub linger_ns: u64,
}

/// Why a row ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// Its flow was silent, or its connection was over for some time.
    Idle,
    /// It was removed by an order.
    Removed,
}

/// A row that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedRow {
    /// The flow of the row.
    pub key: FlowKey,
    /// Why the row ended.
    pub cause: EndCause,
}

/// The table does not answer, or its answer is wrong.
#[derive(Debug, thiserror::Error)]
#[error("the table of flows failed: {0}")]
pub struct TableError(#[source] Box<dyn Error + Send + Sync>);

impl TableError {
    /// Wraps the error of a table.
    pub fn new(source: impl Error + Send + Sync + 'static) -> Self {
        Self(Box::new(source))
    }
}

/// A table that knows flows, and handles their packets without user space.
///
/// A packet is counted where it is handled: in user space if it was delivered there, even if its
/// flow gets a row meanwhile; otherwise by the table. So no lock is needed, and no packet is
/// counted twice.
pub trait FlowTable: Send {
    /// How many rows the table can hold and learn.
    fn limits(&self) -> Limits;

    /// Whether the table expires rows of silent flows itself. Otherwise it needs
    /// [`OrderKind::Age`].
    fn ages_rows(&self) -> bool;

    /// Carries out orders, and appends the outcome of each. Returns the table's time, in
    /// nanoseconds since 1970.
    ///
    /// If the table does not answer. A refused order is not an error, but an outcome.
    fn program(
        &mut self,
        orders: &[Order],
        times: Times,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<u64, TableError>;

    /// Appends microflow records of what rows have counted since the last call. A table that leaves
    /// counting to another engine appends none.
    ///
    /// # Errors
    /// If the table does not answer.
    fn collect(&mut self, _batch: &mut MicroflowBatch) -> Result<(), TableError> {
        Ok(())
    }

    /// Appends the rows that ended since the last call, each once. What they counted is in earlier
    /// batches of [`collect`](Self::collect) or in the next one.
    fn ended(&mut self, ended: &mut Vec<EndedRow>);
}
