// SPDX-License-Identifier: Apache-2.0
//! Answers a query in one pass over the records.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::net::IpAddr;

use turboflow_record::{Column, FlowBatch, Value};

use crate::QueryError;
use crate::answer::{Answer, Cell, Counts, Totals};
use crate::field::Field;
use crate::groups::Groups;
use crate::query::{Query, Shape};
use crate::span::{TimeColumns, Times};

/// Limit on records that are sorted or listed, unless the question sets a smaller one.
const RECORDS_MAX: usize = 5_000_000;

/// Reads the records once and computes the answer.
///
/// Memory: a few hundred bytes per group, or per row kept.
///
/// # Errors
/// The error of `batches`; [`QueryError::Groups`], [`QueryError::Buckets`] and
/// [`QueryError::Records`] where the answer would exceed a limit.
pub fn run<E>(
    query: &Query,
    batches: impl IntoIterator<Item = Result<FlowBatch, E>>,
) -> Result<Answer, QueryError>
where
    QueryError: From<E>,
{
    run_with(query, batches, None)
}

/// As [`run`], with the addresses of records replaced behind the filter: not even the order of the
/// rows then tells the true ones.
///
/// # Errors
/// As [`run`].
pub fn run_with<E>(
    query: &Query,
    batches: impl IntoIterator<Item = Result<FlowBatch, E>>,
    replacement: Option<&dyn Fn(IpAddr) -> IpAddr>,
) -> Result<Answer, QueryError>
where
    QueryError: From<E>,
{
    let sources = &query.sources;
    let none = Counts::none(sources.packets.is_some(), sources.bytes.is_some());
    let mut pass = Pass {
        query,
        replacement,
        totals: Totals {
            read: none,
            matched: none,
            rows: 0,
        },
        times_read_ns: None,
    };
    match &query.shape {
        Shape::Records {
            select,
            columns,
            by,
        } => {
            let mut rows = TopRows::new(query.top, query.ascending);
            for batch in batches {
                pass.each(batch?, |batch, row, _| {
                    let rank = by.map_or(Cell::Absent, |by| Cell::from(by.value(batch, row)));
                    let cells = || select.iter().map(|field| field.value(batch, row).into());
                    rows.offer(rank, || cells().collect())
                })?;
            }
            let totals = Totals {
                rows: pass.totals.matched.records,
                ..pass.totals
            };
            Ok(Answer {
                columns: columns.clone(),
                rows: rows.into_sorted(),
                totals,
                times_read_ns: pass.times_read_ns,
                shares: None,
                order: query.order,
            })
        }
        Shape::Groups(grouping) => {
            let mut groups = Groups::new(grouping);
            for batch in batches {
                pass.each(batch?, |batch, row, times| groups.add(batch, row, times))?;
            }
            groups.fill_silences();
            let totals = Totals {
                rows: groups.count(),
                ..pass.totals
            };
            Ok(Answer {
                columns: grouping.answer_columns(),
                times_read_ns: pass.times_read_ns,
                shares: groups.shares(),
                order: query.order,
                rows: groups.into_rows(query.ascending, query.top),
                totals,
            })
        }
    }
}

struct Pass<'a> {
    query: &'a Query,
    replacement: Option<&'a dyn Fn(IpAddr) -> IpAddr>,
    totals: Totals,
    /// Of all records read, if the filter counts times from now.
    times_read_ns: Option<(u64, u64)>,
}

/// The time of the last packet of all records; `None` where there is none.
///
/// # Errors
/// The error of `batches`.
pub fn last_packet_ns<E>(
    schema: &[Column],
    batches: impl IntoIterator<Item = Result<FlowBatch, E>>,
) -> Result<Option<u64>, QueryError>
where
    QueryError: From<E>,
{
    let columns = TimeColumns::of(schema);
    let mut latest_ns = None;
    for batch in batches {
        let batch = batch?;
        let times = (0..batch.rows()).map(|row| columns.times(&batch, row));
        let last = times
            .filter_map(|times| times.whole().map(|span| span.last_ns))
            .max();
        latest_ns = latest_ns.max(last);
    }
    Ok(latest_ns)
}

/// The number of a record in that field.
pub(crate) fn number(field: Field, batch: &FlowBatch, row: usize) -> Option<u64> {
    match field.value(batch, row) {
        Value::Unsigned(number) => Some(number),
        _ => None,
    }
}

impl Pass<'_> {
    /// Counts all records of the batch, and calls `take` for those that pass the filter.
    fn each(
        &mut self,
        batch: FlowBatch,
        mut take: impl FnMut(&FlowBatch, usize, Times) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let sources = &self.query.sources;
        // The filter is about the true addresses.
        let replaced = self.replacement.map(|of| batch.with_addresses(of));
        let shown = replaced.as_ref().unwrap_or(&batch);
        let batch = &batch;
        let counts_from_now = self.query.counts_from_now();
        for row in 0..batch.rows() {
            let of = |field: Option<Field>| number(field?, batch, row);
            let packets = of(sources.packets).unwrap_or(0);
            let bytes = of(sources.bytes).unwrap_or(0);
            self.totals.read.add(packets, bytes);
            if counts_from_now && let Some(span) = sources.times.times(batch, row).whole() {
                let (first, last) = self.times_read_ns.unwrap_or((u64::MAX, 0));
                self.times_read_ns = Some((first.min(span.first_ns), last.max(span.last_ns)));
            }
            if self
                .query
                .filter
                .as_ref()
                .is_none_or(|filter| filter.passes(batch, row))
            {
                self.totals.matched.add(packets, bytes);
                take(shown, row, sources.times.times(batch, row))?;
            }
        }
        Ok(())
    }
}

/// The first rows of an order, kept in a bounded heap.
struct TopRows {
    heap: BinaryHeap<Ranked>,
    limit: usize,
    bounded: bool,
    ascending: bool,
    offered: u64,
}

/// A row and its rank; the row with the greatest rank is removed first.
struct Ranked {
    rank: Direction,
    order: u64,
    row: Vec<Cell>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    Ascending(Cell),
    Descending(Reverse<Cell>),
}

impl TopRows {
    fn new(top: Option<usize>, ascending: bool) -> Self {
        let limit = top.unwrap_or(RECORDS_MAX);
        Self {
            heap: BinaryHeap::new(),
            limit,
            bounded: top.is_some(),
            ascending,
            offered: 0,
        }
    }

    fn offer(&mut self, rank: Cell, row: impl FnOnce() -> Vec<Cell>) -> Result<(), QueryError> {
        let rank = match self.ascending {
            true => Direction::Ascending(rank),
            false => Direction::Descending(Reverse(rank)),
        };
        let order = self.offered;
        self.offered += 1;
        if self.heap.len() < self.limit {
            self.heap.push(Ranked {
                rank,
                order,
                row: row(),
            });
        } else if !self.bounded {
            return Err(QueryError::Records { limit: self.limit });
        } else if let Some(mut worst) = self.heap.peek_mut().filter(|worst| rank < worst.rank) {
            *worst = Ranked {
                rank,
                order,
                row: row(),
            };
        }
        Ok(())
    }

    fn into_sorted(self) -> Vec<Vec<Cell>> {
        self.heap
            .into_sorted_vec()
            .into_iter()
            .map(|ranked| ranked.row)
            .collect()
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.rank, self.order).cmp(&(&other.rank, other.order))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}
