// SPDX-License-Identifier: Apache-2.0
//! Answers a query in one pass over the records.
//!
//! From files that store columns separately, only the needed columns are read: first those that
//! select, rank or aggregate records, then, if rows are records, those that are shown.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use turboflow_record::FlowBatch;

use crate::answer::{Answer, Cell, Counts, Totals};
use crate::field::Field;
use crate::grouping::Grouping;
use crate::groups::Groups;
use crate::numbers::Numbers;
use crate::query::{Query, Shape};
use crate::records::TopRows;
use crate::source::{Source, Whole};
use crate::span::TimeColumns;
use crate::{Input, QueryError};

/// Reads the records once and computes the answer.
///
/// Memory: about a hundred bytes per group, and a few hundred per row kept.
///
/// # Errors
/// Errors of `batches`; [`QueryError::Groups`], [`QueryError::Buckets`] and [`QueryError::Records`]
/// if the answer would exceed a limit; [`QueryError::Sum`] if a sum would be 2^64 or more.
pub fn run<E>(
    query: &Query,
    batches: impl IntoIterator<Item = Result<FlowBatch, E>>,
) -> Result<Answer, QueryError>
where
    QueryError: From<E>,
{
    run_with(query, batches, None)
}

/// Like [`run`], but replaces the addresses of records after filtering. Rows are sorted by the
/// replaced addresses, so that the order does not reveal the true ones.
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
    let mut source = Whole(batches.into_iter());
    Pass::new(query, replacement).answer(&mut source)
}

/// Like [`run_with`], for files. Reads only the columns that the question needs.
///
/// # Errors
/// As [`run`].
pub fn answer(
    query: &Query,
    input: &mut Input,
    replacement: Option<&dyn Fn(IpAddr) -> IpAddr>,
) -> Result<Answer, QueryError> {
    Pass::new(query, replacement).answer(input)
}

/// Answers several questions about groups in one pass over files, so that a column that several of
/// them need is read once. If all questions together have more than `most_groups` groups, the
/// question with the most groups is dropped and its result is `None`; ask it alone with [`answer`].
/// At no time are there more groups than `most_groups` plus the limit of one question.
///
/// # Errors
/// Read errors, which affect all questions. Errors of a single question are in its own result.
///
/// # Panics
/// If a question is about records instead of groups.
pub fn answers(
    queries: &[&Query],
    input: &mut Input,
    most_groups: u64,
) -> Result<Vec<Option<Result<Answer, QueryError>>>, QueryError> {
    let columns = queries.iter().flat_map(|query| query.columns_read().0);
    let columns: BTreeSet<usize> = columns.collect();
    input.read_apart(columns.into_iter().collect(), Vec::new());
    let stop = input.stop_flag();
    let passes = queries.iter().map(|query| {
        let grouping = query.grouping().expect("a question about groups");
        let pass = GroupPass::new(Pass::new(query, None), grouping, stop.clone());
        Some(Ok(pass))
    });
    let mut passes: Vec<Option<Result<GroupPass<'_>, QueryError>>> = passes.collect();
    let is_going = |pass: &Option<Result<GroupPass<'_>, QueryError>>| matches!(pass, Some(Ok(_)));
    while passes.iter().any(is_going) {
        let Some(batch) = input.next_batch()? else {
            break;
        };
        for place in 0..passes.len() {
            let Some(Ok(pass)) = &mut passes[place] else {
                continue;
            };
            if let Err(error) = pass.add(&batch) {
                passes[place] = Some(Err(error));
            }
            drop_largest(&mut passes, most_groups);
        }
    }
    let finished = passes
        .into_iter()
        .map(|pass| Some(pass?.and_then(GroupPass::finish)));
    Ok(finished.collect())
}

/// Drops the questions with the most groups until the rest have at most `most_groups` together.
fn drop_largest(passes: &mut [Option<Result<GroupPass<'_>, QueryError>>], most_groups: u64) {
    let count = |pass: &Option<Result<GroupPass<'_>, QueryError>>| match pass {
        Some(Ok(pass)) => pass.groups.count(),
        _ => 0,
    };
    while passes.iter().map(count).sum::<u64>() > most_groups {
        let largest = passes.iter_mut().max_by_key(|pass| count(pass));
        *largest.expect("groups are of a question") = None;
    }
}

/// Passes the records that a query selects to `each`: a batch, and the selected rows in it. This is
/// for statistics other than groups. `columns` are read in addition to those of the question.
///
/// # Errors
/// Read errors, and errors of `each`.
pub fn choose(
    query: &Query,
    input: &mut Input,
    columns: &[usize],
    mut each: impl FnMut(&FlowBatch, &[u32]) -> Result<(), QueryError>,
) -> Result<Totals, QueryError> {
    let mut pass = Pass::new(query, None);
    let (mut first, _) = query.columns_read();
    first.extend(columns);
    input.read_apart(first, Vec::new());
    while let Some(batch) = input.next_batch()? {
        let rows = pass.choose(&batch);
        each(&batch, &rows)?;
    }
    Ok(pass.totals)
}

struct Pass<'a> {
    query: &'a Query,
    replacement: Option<&'a dyn Fn(IpAddr) -> IpAddr>,
    totals: Totals,
    /// Of all records read, if times are relative to now.
    times_read_ns: Option<(u64, u64)>,
}

/// The time of the last packet of all records; `None` if no record has a time.
///
/// # Errors
/// Errors of `input`.
pub fn last_packet_ns(input: &mut Input) -> Result<Option<u64>, QueryError> {
    Ok(last_packet_until(input, u64::MAX)?.time_ns)
}

/// The last packet of records some of whose times may be wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastPacket {
    /// The time of the last packet, ignoring records that end too late; `None` if there is none.
    pub time_ns: Option<u64>,
    /// Number of records that were ignored because their last packet is later.
    pub later: u64,
}

/// The last packet of all records that end at or before `until_ns`.
///
/// # Errors
/// Errors of `input`.
pub fn last_packet_until(input: &mut Input, until_ns: u64) -> Result<LastPacket, QueryError> {
    let columns = TimeColumns::of(input.schema());
    input.read_apart(columns.columns().collect(), Vec::new());
    let mut last = LastPacket::default();
    while let Some(batch) = input.next_batch()? {
        let times = columns.of_batch(&batch);
        for span in (0..batch.rows()).filter_map(|row| times.times(row).whole()) {
            match span.last_ns <= until_ns {
                true => last.time_ns = last.time_ns.max(Some(span.last_ns)),
                false => last.later += 1,
            }
        }
    }
    Ok(last)
}

impl<'a> Pass<'a> {
    fn new(query: &'a Query, replacement: Option<&'a dyn Fn(IpAddr) -> IpAddr>) -> Self {
        let sources = &query.sources;
        let none = Counts::none(sources.packets.is_some(), sources.bytes.is_some());
        Self {
            query,
            replacement,
            totals: Totals {
                read: none,
                matched: none,
                rows: 0,
            },
            times_read_ns: None,
        }
    }

    fn answer(self, source: &mut dyn Source) -> Result<Answer, QueryError> {
        let (first, then) = self.query.columns_read();
        source.read_apart(first, then);
        match &self.query.shape {
            Shape::Records { .. } => self.records(source),
            Shape::Groups(_) => self.groups(source),
        }
    }

    fn records(mut self, source: &mut dyn Source) -> Result<Answer, QueryError> {
        let query = self.query;
        let Shape::Records {
            select,
            columns,
            by,
        } = &query.shape
        else {
            unreachable!("groups are answered elsewhere")
        };
        let mut top = TopRows::new(query.top, query.ascending);
        while let Some(mut batch) = source.next()? {
            let rows = self.choose(&batch);
            // Pseudonyms are made for a whole batch at once.
            let mut is_complete = self.replacement.is_some() && !rows.is_empty();
            if is_complete {
                source.complete(&mut batch)?;
                batch = self.shown(Cow::Owned(batch)).into_owned();
            }
            for row in rows {
                let row = row as usize;
                let rank = by.map_or(Cell::Absent, |by| Cell::from(by.value(&batch, row)));
                let Some(place) = top.offer(rank)? else {
                    continue;
                };
                if !is_complete {
                    source.complete(&mut batch)?;
                    is_complete = true;
                }
                let cells = select.iter().map(|field| field.value(&batch, row).into());
                top.put(place, cells.collect());
            }
        }
        let rows = self.totals.matched.records;
        Ok(Answer {
            columns: columns.clone(),
            rows: top.into_sorted(),
            totals: Totals {
                rows,
                ..self.totals
            },
            times_read_ns: self.times_read_ns,
            shares: None,
            order: query.order,
        })
    }

    fn groups(self, source: &mut dyn Source) -> Result<Answer, QueryError> {
        let Some(grouping) = self.query.grouping() else {
            unreachable!("records are answered elsewhere")
        };
        let mut pass = GroupPass::new(self, grouping, source.stop());
        while let Some(batch) = source.next()? {
            pass.add(&batch)?;
        }
        pass.finish()
    }

    /// The batch with replaced addresses. Filters apply to the true addresses.
    fn shown<'b>(&self, batch: Cow<'b, FlowBatch>) -> Cow<'b, FlowBatch> {
        match self.replacement {
            Some(of) => Cow::Owned(batch.with_addresses(of)),
            None => batch,
        }
    }

    /// Counts all records of the batch, and returns those that pass the filter.
    fn choose(&mut self, batch: &FlowBatch) -> Vec<u32> {
        let sources = &self.query.sources;
        let numbers =
            |field: Option<Field>| field.map_or(Numbers::none(), |field| Numbers::of(field, batch));
        let (packets, bytes) = (numbers(sources.packets), numbers(sources.bytes));
        let count = batch.rows() as u64;
        self.totals.read.add(count, packets.total(), bytes.total());
        if self.query.reads_times() {
            let times = sources.times.of_batch(batch);
            for span in (0..batch.rows()).filter_map(|row| times.times(row).whole()) {
                let (first, last) = self.times_read_ns.unwrap_or((u64::MAX, 0));
                self.times_read_ns = Some((first.min(span.first_ns), last.max(span.last_ns)));
            }
        }
        let rows = 0..batch.rows() as u32;
        let mut rows: Vec<u32> = match &self.query.filter {
            None => rows.collect(),
            Some(filter) => {
                let passes = filter.mask(batch);
                rows.filter(|&row| passes[row as usize]).collect()
            }
        };
        if let Some(within) = &self.query.within {
            let times = sources.times.of_batch(batch);
            rows.retain(|&row| within.has(&times.times(row as usize)));
        }
        let sums = match rows.len() == batch.rows() {
            true => (packets.total(), bytes.total()),
            false => (packets.sum(&rows), bytes.sum(&rows)),
        };
        self.totals.matched.add(rows.len() as u64, sums.0, sums.1);
        rows
    }
}

/// A question about groups while batches are added.
struct GroupPass<'a> {
    pass: Pass<'a>,
    groups: Groups<'a>,
    grouping: &'a Grouping,
}

impl<'a> GroupPass<'a> {
    fn new(pass: Pass<'a>, grouping: &'a Grouping, stop: Option<Arc<AtomicBool>>) -> Self {
        let query = pass.query;
        let groups = Groups::new(grouping, query.sources.times);
        Self {
            groups: groups.within(query.within).until(stop),
            pass,
            grouping,
        }
    }

    fn add(&mut self, batch: &FlowBatch) -> Result<(), QueryError> {
        let rows = self.pass.choose(batch);
        let batch = self.pass.shown(Cow::Borrowed(batch));
        self.groups.add(&batch, &rows)
    }

    fn finish(self) -> Result<Answer, QueryError> {
        let Self {
            pass,
            mut groups,
            grouping,
        } = self;
        groups.fill_silences()?;
        let query = pass.query;
        Ok(Answer {
            columns: grouping.answer_columns(),
            times_read_ns: pass.times_read_ns,
            shares: groups.shares(),
            order: query.order,
            totals: Totals {
                rows: groups.count(),
                ..pass.totals
            },
            rows: groups.into_rows(query.ascending, query.top),
        })
    }
}
