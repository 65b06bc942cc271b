// SPDX-License-Identifier: Apache-2.0
//! The kernel's table of verdicts as a table of flows.

use turboflow_engine_xdp::{RowOrder, RowOrderKind, RowResult, VerdictTable, VerdictTimes};

use crate::{EndCause, EndedRow, FlowTable, Limits, Order, OrderKind, Outcome, TableError, Times};

/// A BPF hash map of verdicts. It counts nothing, does not expire rows itself, and refuses rows
/// only when it is full.
pub struct KernelTable {
    table: VerdictTable,
    rows: u32,
    orders: Vec<RowOrder>,
    results: Vec<RowResult>,
    ended: Vec<EndedRow>,
}

impl KernelTable {
    /// The table of an engine that was loaded with room for `rows` rows.
    #[must_use]
    pub const fn new(table: VerdictTable, rows: u32) -> Self {
        Self {
            table,
            rows,
            orders: Vec::new(),
            results: Vec::new(),
            ended: Vec::new(),
        }
    }
}

impl FlowTable for KernelTable {
    fn limits(&self) -> Limits {
        Limits {
            rows_v4: self.rows.into(),
            rows_v6: self.rows.into(),
            is_shared: false,
            learning_rate: None,
        }
    }

    fn ages_rows(&self) -> bool {
        false
    }

    fn program(
        &mut self,
        orders: &[Order],
        times: Times,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<u64, TableError> {
        self.orders.clear();
        self.results.clear();
        self.orders.extend(orders.iter().map(row_order));
        let limits = VerdictTimes {
            idle_ns: times.idle_ns,
            linger_ns: times.linger_ns,
        };
        let now_ns = self
            .table
            .carry_out(&self.orders, limits, &mut self.results)
            .map_err(TableError::new)?;
        for (order, result) in orders.iter().zip(&self.results) {
            let cause = match order.kind {
                OrderKind::Age => Some(EndCause::Idle),
                OrderKind::Remove => Some(EndCause::Removed),
                OrderKind::Add(_) | OrderKind::Change(_) => None,
            };
            if let (Some(cause), RowResult::Done) = (cause, result) {
                let key = order.key;
                self.ended.push(EndedRow { key, cause });
            }
        }
        outcomes.extend(self.results.iter().map(outcome));
        Ok(now_ns)
    }

    fn ended(&mut self, ended: &mut Vec<EndedRow>) {
        ended.append(&mut self.ended);
    }
}

fn row_order(order: &Order) -> RowOrder {
    let (kind, verdict) = match order.kind {
        OrderKind::Add(verdict) => (RowOrderKind::Add, verdict.bits()),
        OrderKind::Change(verdict) => (RowOrderKind::Change, verdict.bits()),
        OrderKind::Remove => (RowOrderKind::Remove, 0),
        OrderKind::Age => (RowOrderKind::Age, 0),
    };
    RowOrder {
        flow: order.key.words(),
        verdict,
        kind,
    }
}

const fn outcome(result: &RowResult) -> Outcome {
    match *result {
        RowResult::Done => Outcome::Done,
        RowResult::Exists => Outcome::Exists,
        RowResult::Absent => Outcome::Absent,
        RowResult::Stays { seen_ns } => Outcome::Stays { seen_ns },
        RowResult::Full => Outcome::Full,
        RowResult::Failed(error) => Outcome::Failed(error),
    }
}
