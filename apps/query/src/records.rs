// SPDX-License-Identifier: Apache-2.0
//! Records as rows of an answer.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::QueryError;
use crate::answer::Cell;

/// Limit on records that are sorted or listed, unless the question sets a smaller one.
const RECORDS_MAX: usize = 5_000_000;

/// The first rows in sort order, kept in a bounded heap.
pub(crate) struct TopRows {
    heap: BinaryHeap<Ranked>,
    limit: usize,
    bounded: bool,
    ascending: bool,
    offered: u64,
}

/// The position of a record in the sort order.
pub(crate) struct Place {
    rank: Direction,
    order: u64,
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
    pub(crate) fn new(top: Option<usize>, ascending: bool) -> Self {
        let limit = top.unwrap_or(RECORDS_MAX).min(RECORDS_MAX);
        Self {
            heap: BinaryHeap::new(),
            limit,
            bounded: top.is_some_and(|top| top <= RECORDS_MAX),
            ascending,
            offered: 0,
        }
    }

    /// Offers the next record. If it is among the first rows so far, the returned place must be
    /// passed to [`Self::put`].
    ///
    /// # Errors
    /// [`QueryError::Records`].
    pub(crate) fn offer(&mut self, rank: Cell) -> Result<Option<Place>, QueryError> {
        let rank = match self.ascending {
            true => Direction::Ascending(rank),
            false => Direction::Descending(Reverse(rank)),
        };
        let order = self.offered;
        self.offered += 1;
        let is_full = self.heap.len() == self.limit;
        if is_full && !self.bounded {
            return Err(QueryError::Records { limit: self.limit });
        }
        let is_first = !is_full || self.heap.peek().is_some_and(|worst| rank < worst.rank);
        Ok(is_first.then_some(Place { rank, order }))
    }

    /// Inserts a record at its place. If there are too many rows, the last one is removed.
    pub(crate) fn put(&mut self, Place { rank, order }: Place, row: Vec<Cell>) {
        let ranked = Ranked { rank, order, row };
        if self.heap.len() < self.limit {
            self.heap.push(ranked);
        } else if let Some(mut worst) = self.heap.peek_mut() {
            *worst = ranked;
        }
    }

    pub(crate) fn into_sorted(self) -> Vec<Vec<Cell>> {
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
