// SPDX-License-Identifier: Apache-2.0
//! Reads taps, asks the decider, and orders rows in batches. Time is an argument, so that one
//! learner can write to the kernel's table and to the table of a model card.

mod aging;

use aging::Aging;

use crate::{
    Decider, Decision, EndCause, EndedRow, FlowKey, FlowTable, LearnerCounts, Order, OrderKind,
    Outcome, TableError, Tapped, Times,
};

/// Maximum number of rows checked in one step, so that taps do not wait long.
const AGED_AT_ONCE: usize = 16_384;
/// Number of time steps into which idle time and linger are divided. Rows leave at most one step
/// late.
const PARTS: u64 = 64;
/// If time goes back by more than this, the clock was set back.
const SET_BACK_NS: u64 = 1_000_000_000;

/// The times of a learner, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnerConfig {
    /// How long a flow may be silent before its row leaves.
    pub idle_ns: u64,
    /// How long a row stays after the end of its connection, for the last packets of both sides.
    pub linger_ns: u64,
}

/// Why a row was ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Decided,
    GaveUp,
    /// The flow's connection was over.
    Over,
    /// Another connection began with the key of the row.
    Anew,
    Other,
}

/// The row order for a decision, and its reason.
fn order_of(decision: Decision) -> (OrderKind, Reason) {
    match decision {
        // The flow had a verdict that is now withdrawn.
        Decision::Undecided => (OrderKind::Remove, Reason::Other),
        Decision::Decided(verdict) => (OrderKind::Add(verdict), Reason::Decided),
        Decision::GaveUp(verdict) => (OrderKind::Add(verdict), Reason::GaveUp),
        Decision::Changed(verdict) => (OrderKind::Change(verdict), Reason::Decided),
    }
}

/// Decides about flows, and writes their rows.
pub struct Learner<D> {
    decider: D,
    config: LearnerConfig,
    orders: Vec<Order>,
    /// The reason of each order in `orders`.
    reasons: Vec<Reason>,
    outcomes: Vec<Outcome>,
    ended: Vec<EndedRow>,
    silent: Aging,
    over: Aging,
    now_ns: u64,
    counts: LearnerCounts,
}

impl<D: Decider> Learner<D> {
    /// A learner that knows no flows.
    #[must_use]
    pub fn new(decider: D, config: LearnerConfig) -> Self {
        Self {
            decider,
            config,
            orders: Vec::new(),
            reasons: Vec::new(),
            outcomes: Vec::new(),
            ended: Vec::new(),
            silent: Aging::new(config.idle_ns / PARTS),
            over: Aging::new(config.linger_ns / PARTS),
            now_ns: 0,
            counts: LearnerCounts::default(),
        }
    }

    /// The counters so far.
    #[must_use]
    pub const fn counts(&self) -> LearnerCounts {
        self.counts
    }

    /// Orders that wait for the next [`step`](Self::step).
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.orders.len()
    }

    /// Takes a packet of a flow without a verdict.
    pub fn take(&mut self, tapped: &Tapped<'_>) {
        self.counts.taps_read += 1;
        if self.counts.decider_gone > 0 {
            self.counts.taps_unheard += 1;
            return;
        }
        match self.decider.decide(tapped) {
            Ok(Decision::Undecided) => self.counts.taps_undecided += 1,
            Ok(decision) => {
                self.counts.taps_decided += 1;
                let (kind, reason) = order_of(decision);
                self.order(tapped.key, kind, reason);
            }
            Err(_) => {
                self.counts.decider_gone = 1;
                self.counts.taps_unheard += 1;
            }
        }
    }

    /// Reports that the next packet begins another connection with the key of a flow that has a
    /// row.
    pub fn begins_anew(&mut self, key: FlowKey) {
        self.order(key, OrderKind::Remove, Reason::Anew);
    }

    /// Reports that the connection of a flow that has a row ended at `time_ns`.
    pub fn connection_ended(&mut self, key: FlowKey, time_ns: u64) {
        self.decider.connection_ended(key, time_ns);
        self.over
            .push(key, time_ns.saturating_add(self.config.linger_ns));
    }

    fn order(&mut self, key: FlowKey, kind: OrderKind, reason: Reason) {
        self.orders.push(Order { key, kind });
        self.reasons.push(reason);
    }

    /// Orders rows for new decisions, and checks rows that are due. Returns the table's time. To be
    /// called about every millisecond.
    ///
    /// # Errors
    /// If the table does not answer.
    pub fn step(&mut self, table: &mut dyn FlowTable, now_ns: u64) -> Result<u64, TableError> {
        self.follow(now_ns);
        if self.counts.decider_gone == 0 {
            let (orders, reasons) = (&mut self.orders, &mut self.reasons);
            let told = self.decider.decided_since(now_ns, &mut |key, decision| {
                let (kind, reason) = order_of(decision);
                orders.push(Order { key, kind });
                reasons.push(reason);
            });
            self.counts.decider_gone = u64::from(told.is_err());
        }
        self.order_due(now_ns);
        let times = Times {
            now_ns,
            idle_ns: self.config.idle_ns,
            linger_ns: self.config.linger_ns,
        };
        self.outcomes.clear();
        let table_ns = table.program(&self.orders, times, &mut self.outcomes)?;
        self.take_outcomes(table.ages_rows(), now_ns);
        if self.orders.is_empty() {
            self.decider.carried_out();
        }
        table.ended(&mut self.ended);
        for row in self.ended.drain(..) {
            match row.cause {
                EndCause::Idle => {
                    self.counts.rows_idle += 1;
                    self.decider.row_ended(row.key);
                }
                EndCause::Removed => self.counts.rows_removed += 1,
            }
        }
        Ok(table_ns)
    }

    fn follow(&mut self, now_ns: u64) {
        let back_ns = self.now_ns.saturating_sub(now_ns);
        if back_ns > SET_BACK_NS {
            self.silent.set_back(back_ns);
            self.over.set_back(back_ns);
        }
        self.now_ns = now_ns;
    }

    fn order_due(&mut self, now_ns: u64) {
        let (orders, reasons) = (&mut self.orders, &mut self.reasons);
        let mut age = |key, reason| {
            orders.push(Order {
                key,
                kind: OrderKind::Age,
            });
            reasons.push(reason);
        };
        self.over
            .take_due(now_ns, AGED_AT_ONCE, |key| age(key, Reason::Over));
        self.silent
            .take_due(now_ns, AGED_AT_ONCE, |key| age(key, Reason::Other));
    }

    fn take_outcomes(&mut self, ages_rows: bool, now_ns: u64) {
        let counts = &mut self.counts;
        counts.orders += self.orders.len() as u64;
        let orders = std::mem::take(&mut self.orders);
        let reasons = std::mem::take(&mut self.reasons);
        let ordered = orders.into_iter().zip(reasons);
        for ((order, reason), outcome) in ordered.zip(self.outcomes.drain(..)) {
            match (order.kind, outcome) {
                (OrderKind::Add(_), Outcome::Done) => {
                    counts.rows_begun += 1;
                    match reason {
                        Reason::GaveUp => counts.flows_gave_up += 1,
                        _ => counts.flows_decided += 1,
                    }
                    if !ages_rows {
                        let due_ns = now_ns.saturating_add(self.config.idle_ns);
                        self.silent.push(order.key, due_ns);
                    }
                }
                // Due at `now_ns` at the earliest, so that the row is not checked twice in a step.
                (OrderKind::Age, Outcome::Stays { seen_ns }) if reason == Reason::Over => {
                    let due_ns = seen_ns.saturating_add(self.config.linger_ns);
                    self.over.push(order.key, due_ns.max(now_ns));
                }
                // A later row with this key gets new entries in the lists.
                (OrderKind::Remove | OrderKind::Age, Outcome::Done)
                    if order.kind == OrderKind::Remove || reason == Reason::Over =>
                {
                    if reason == Reason::Anew {
                        self.over.forget(order.key);
                    }
                    if !ages_rows {
                        self.silent.forget(order.key);
                    }
                }
                (OrderKind::Change(verdict), Outcome::Absent) if reason == Reason::Decided => {
                    self.orders.push(Order {
                        key: order.key,
                        kind: OrderKind::Add(verdict),
                    });
                    self.reasons.push(reason);
                }
                (OrderKind::Age, Outcome::Stays { seen_ns }) => {
                    let due_ns = seen_ns.saturating_add(self.config.idle_ns);
                    self.silent.push(order.key, due_ns.max(now_ns));
                }
                // The row may have another verdict now.
                (OrderKind::Add(verdict), Outcome::Exists) => {
                    counts.orders_repeated += 1;
                    self.orders.push(Order {
                        key: order.key,
                        kind: OrderKind::Change(verdict),
                    });
                    self.reasons.push(Reason::Other);
                }
                (_, Outcome::Exists) => counts.orders_repeated += 1,
                (_, Outcome::Full) => counts.refused_full += 1,
                (_, Outcome::TooFast) => counts.refused_too_fast += 1,
                (_, Outcome::Failed(_)) => counts.refused_failed += 1,
                // Rows that are gone were counted when they ended.
                (_, Outcome::Done | Outcome::Absent | Outcome::Stays { .. }) => {}
            }
        }
    }

    /// Carries out the last orders, after the last tap. The rows remain.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn finish(&mut self, table: &mut dyn FlowTable, now_ns: u64) -> Result<(), TableError> {
        self.decider.finish(now_ns);
        self.step(table, now_ns).map(drop)
    }
}
