// SPDX-License-Identifier: Apache-2.0
//! One pass over the records.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use turboflow_record::{FlowBatch, Value};

use crate::QueryError;
use crate::answer::{Answer, AnswerColumn, Cell, Counts, Show, Totals};
use crate::field::Field;
use crate::group::GroupKey;
use crate::query::{GroupSort, Query, Shape, Sources};

/// Groups that fit: about 2 GiB with a key of two addresses.
const GROUPS_MAX: usize = 10_000_000;
/// Records that are sorted or listed at most, where `--top` does not say fewer.
const RECORDS_MAX: usize = 5_000_000;

/// Goes through the records once and answers.
///
/// Memory: a few hundred bytes for every group, or for every row that `--top` keeps.
///
/// # Errors
/// What `batches` gives; [`QueryError::Groups`] and [`QueryError::Records`] where the answer
/// would not fit the memory.
pub fn run<E>(
    query: &Query,
    batches: impl IntoIterator<Item = Result<FlowBatch, E>>,
) -> Result<Answer, QueryError>
where
    QueryError: From<E>,
{
    let mut pass = Pass {
        query,
        totals: Totals::default(),
    };
    match &query.shape {
        Shape::Records {
            select,
            columns,
            by,
        } => {
            let mut rows = TopRows::new(query.top, query.ascending);
            for batch in batches {
                pass.each(&batch?, |batch, row, _| {
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
            })
        }
        Shape::Groups { keys, by } => {
            let mut groups = Groups {
                keys,
                map: HashMap::new(),
                key: Vec::new(),
            };
            for batch in batches {
                pass.each(&batch?, |batch, row, sums| groups.add(batch, row, sums))?;
            }
            let totals = Totals {
                rows: groups.map.len() as u64,
                ..pass.totals
            };
            Ok(groups.answer(query, *by, totals))
        }
    }
}

struct Pass<'a> {
    query: &'a Query,
    totals: Totals,
}

/// What is added up of one record.
struct Summands {
    packets: u64,
    bytes: u64,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
}

impl Summands {
    fn of(sources: &Sources, batch: &FlowBatch, row: usize) -> Self {
        let number = |field: Option<Field>| match field?.value(batch, row) {
            Value::Unsigned(number) => Some(number),
            _ => None,
        };
        Self {
            packets: number(sources.packets).unwrap_or(0),
            bytes: number(sources.bytes).unwrap_or(0),
            first_ns: number(sources.first),
            last_ns: number(sources.last),
        }
    }
}

impl Pass<'_> {
    /// Calls `take` for every record of the batch that passes, and counts all.
    fn each(
        &mut self,
        batch: &FlowBatch,
        mut take: impl FnMut(&FlowBatch, usize, &Summands) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        for row in 0..batch.rows() {
            let summands = Summands::of(&self.query.sources, batch, row);
            self.totals.read.add(summands.packets, summands.bytes);
            if self
                .query
                .filter
                .as_ref()
                .is_none_or(|filter| filter.passes(batch, row))
            {
                self.totals.matched.add(summands.packets, summands.bytes);
                take(batch, row, &summands)?;
            }
        }
        Ok(())
    }
}

/// The first rows of an order, without keeping the others.
struct TopRows {
    heap: BinaryHeap<Ranked>,
    limit: usize,
    bounded: bool,
    ascending: bool,
    offered: u64,
}

/// A row and its rank: the greatest is the one that leaves first.
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

struct Groups<'a> {
    keys: &'a [GroupKey],
    map: HashMap<Box<[Cell]>, Group>,
    key: Vec<Cell>,
}

#[derive(Default)]
struct Group {
    counts: Counts,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
}

impl Groups<'_> {
    fn add(&mut self, batch: &FlowBatch, row: usize, s: &Summands) -> Result<(), QueryError> {
        self.key.clear();
        self.key
            .extend(self.keys.iter().map(|key| key.cell(batch, row)));
        let full = self.map.len() == GROUPS_MAX;
        let group = match self.map.get_mut(&self.key[..]) {
            Some(group) => group,
            None if full => return Err(QueryError::Groups { limit: GROUPS_MAX }),
            None => self.map.entry(self.key.clone().into()).or_default(),
        };
        group.counts.add(s.packets, s.bytes);
        // An absent time is less than any other, so it would win as the first.
        group.first_ns = [group.first_ns, s.first_ns].into_iter().flatten().min();
        group.last_ns = group.last_ns.max(s.last_ns);
        Ok(())
    }

    fn answer(self, query: &Query, by: GroupSort, totals: Totals) -> Answer {
        let rank = |key: &[Cell], group: &Group| match by {
            GroupSort::Key(index) => key[index].clone(),
            GroupSort::Records => Cell::Unsigned(group.counts.records),
            GroupSort::Packets => Cell::Unsigned(group.counts.packets),
            GroupSort::Bytes => Cell::Unsigned(group.counts.bytes),
            GroupSort::First => number(group.first_ns),
            GroupSort::Last => number(group.last_ns),
        };
        let mut groups: Vec<_> = self
            .map
            .into_iter()
            .map(|(key, group)| (rank(&key, &group), key, group))
            .collect();
        groups.sort_unstable_by(|(left, left_key, _), (right, right_key, _)| {
            let order = if query.ascending {
                left.cmp(right)
            } else {
                right.cmp(left)
            };
            order.then_with(|| left_key.cmp(right_key))
        });
        groups.truncate(query.top.unwrap_or(usize::MAX));
        let share = Share::of(by, &totals.matched, query);
        let sums = Sums {
            sources: &query.sources,
            share,
        };
        let columns = self.keys.iter().map(GroupKey::column).chain(sums.columns());
        let row = |(_, key, group): (Cell, Box<[Cell]>, Group)| {
            key.into_vec()
                .into_iter()
                .chain(sums.cells(&group))
                .collect()
        };
        Answer {
            columns: columns.collect(),
            rows: groups.into_iter().map(row).collect(),
            totals,
        }
    }
}

/// The columns of a group after its key.
struct Sums<'a> {
    sources: &'a Sources,
    share: Share,
}

/// What the share of a group is a share of.
#[derive(Clone, Copy)]
enum Share {
    Records(u64),
    Packets(u64),
    Bytes(u64),
}

impl Share {
    fn of(by: GroupSort, matched: &Counts, query: &Query) -> Self {
        match by {
            GroupSort::Records => Self::Records(matched.records),
            GroupSort::Packets => Self::Packets(matched.packets),
            _ if query.sources.bytes.is_some() => Self::Bytes(matched.bytes),
            _ => Self::Records(matched.records),
        }
    }

    fn percent(self, counts: &Counts) -> Cell {
        let (part, whole) = match self {
            Self::Records(all) => (counts.records, all),
            Self::Packets(all) => (counts.packets, all),
            Self::Bytes(all) => (counts.bytes, all),
        };
        // Four decimals: more would only look exact.
        let share = if whole == 0 {
            0.0
        } else {
            part as f64 / whole as f64
        };
        Cell::Float((share * 1e6).round() / 1e4)
    }
}

impl Sums<'_> {
    fn columns(&self) -> impl Iterator<Item = AnswerColumn> {
        let there = |name: &str, show, there: bool| {
            there.then(|| AnswerColumn {
                name: name.to_owned(),
                show,
            })
        };
        [
            there("records", Show::Count, true),
            there("packets", Show::Count, self.sources.packets.is_some()),
            there("bytes", Show::Bytes, self.sources.bytes.is_some()),
            there("share", Show::Percent, true),
            there("first_ns", Show::Time, self.sources.first.is_some()),
            there("last_ns", Show::Time, self.sources.last.is_some()),
        ]
        .into_iter()
        .flatten()
    }

    fn cells(&self, group: &Group) -> impl Iterator<Item = Cell> + use<> {
        let there = |cell, field: Option<Field>| field.map(|_| cell);
        [
            Some(Cell::Unsigned(group.counts.records)),
            there(Cell::Unsigned(group.counts.packets), self.sources.packets),
            there(Cell::Unsigned(group.counts.bytes), self.sources.bytes),
            Some(self.share.percent(&group.counts)),
            there(number(group.first_ns), self.sources.first),
            there(number(group.last_ns), self.sources.last),
        ]
        .into_iter()
        .flatten()
    }
}

fn number(number: Option<u64>) -> Cell {
    number.map_or(Cell::Absent, Cell::Unsigned)
}
