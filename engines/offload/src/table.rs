// SPDX-License-Identifier: Apache-2.0
//! What a table of flows is: the kernel's, a card's, or a model of one.

use std::error::Error;

use turboflow_engine::MicroflowBatch;

use crate::{FlowKey, Verdict};

/// What a table can hold and take. Plans and refusals go by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rows for IPv4 flows.
    pub rows_v4: u64,
    /// Rows for IPv6 flows. If `is_shared`, those of IPv4.
    pub rows_v6: u64,
    /// Whether both families share their rows.
    pub is_shared: bool,
    /// Rows that it learns in a second; `None`: as many as the processor writes.
    pub learning_rate: Option<u64>,
}

/// What to do with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKind {
    /// A new row. One that is there stays as it is.
    Add(Verdict),
    /// Another verdict for a row.
    Change(Verdict),
    /// No row any more.
    Remove,
    /// No row any more if its flow was silent for [`Times::idle_ns`], or ended
    /// [`Times::linger_ns`] ago. Tables that let rows go by themselves are not told so.
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

/// What became of an order. Those that are refused say why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was carried out, or will be as soon as the table can.
    Done,
    /// To add: there is a row already.
    Exists,
    /// To change, remove or age: there is no row.
    Absent,
    /// To age: the row stays, because a packet came then, in nanoseconds since 1970.
    Stays {
        /// The time of that packet.
        seen_ns: u64,
    },
    /// Refused: the table is full.
    Full,
    /// Refused: more rows a second than the table learns.
    TooFast,
    /// Refused for another reason, by the table's number.
    Failed(i32),
}

/// Times that orders are carried out by, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Now, as far as the caller knows; since 1970. A table with a clock of its own goes by that.
    pub now_ns: u64,
    /// How long a flow may be silent before its row leaves.
    pub idle_ns: u64,
    /// How long a row stays after the end of its connection.
    pub linger_ns: u64,
}

/// Why a row ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndCause {
    /// Its flow was silent, or its connection over for some time.
    Idle,
    /// It was ordered to.
    Removed,
}

/// A row that ended. What it counted has been collected before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedRow {
    /// Its flow.
    pub key: FlowKey,
    /// Why it ended.
    pub cause: EndCause,
}

/// The table does not answer, or answers wrongly.
#[derive(Debug, thiserror::Error)]
#[error("the table of flows failed: {0}")]
pub struct TableError(#[source] Box<dyn Error + Send + Sync>);

impl TableError {
    /// Wraps the error of a table.
    pub fn new(source: impl Error + Send + Sync + 'static) -> Self {
        Self(Box::new(source))
    }
}

/// A table that knows flows and treats their packets without user space.
///
/// A packet is counted where it is handled. One that was delivered to user space is counted there,
/// even if its flow gets a row meanwhile; one that the table kept is counted by the table. So
/// nothing has to be locked, and nothing is counted twice.
pub trait FlowTable: Send {
    /// What it can hold and take.
    fn limits(&self) -> Limits;

    /// Whether rows of silent flows leave by themselves. Else they leave by [`OrderKind::Age`].
    fn ages_rows(&self) -> bool;

    /// Carries out orders, and appends the outcome of each. Returns the table's time, in
    /// nanoseconds since 1970.
    ///
    /// # Errors
    /// If the table does not answer. Orders that are refused are outcomes.
    fn program(
        &mut self,
        orders: &[Order],
        times: Times,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<u64, TableError>;

    /// Appends microflow records of what rows counted since the last call. A table beside an engine
    /// that counts has none.
    ///
    /// # Errors
    /// If the table does not answer.
    fn collect(&mut self, _batch: &mut MicroflowBatch) -> Result<(), TableError> {
        Ok(())
    }

    /// Appends the rows that ended since the last call, each once. All that they counted is in
    /// earlier batches of [`collect`](Self::collect), or in the next one.
    fn ended(&mut self, ended: &mut Vec<EndedRow>);
}
