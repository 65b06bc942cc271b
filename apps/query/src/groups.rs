// SPDX-License-Identifier: Apache-2.0
//! Groups while records are added to them, one batch at a time.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool};

use turboflow_record::FlowBatch;

use crate::QueryError;
use crate::amounts::{AmountNumbers, Buckets};
use crate::answer::{Cell, Shares, Show};
use crate::field::Field;
use crate::group_keys::{KeyLayout, Texts};
use crate::group_rows::SumLayout;
use crate::group_table::{BLOCK, GroupTable};
use crate::grouping::{GroupSort, Grouping, Measure};
use crate::literal::{duration_text, time_text};
use crate::span::{BatchTimes, TimeColumns, Times};
use crate::within::Within;

/// Maximum number of time buckets between the first and the last. It keeps answers usable, and
/// bounds the work per record.
const BUCKETS_MAX: u64 = 100_000;

/// Number of buckets that records are spread over between two checks of the stop flag: a few
/// milliseconds of work.
const BUCKETS_BETWEEN: usize = 1 << 18;

/// Groups by their keys.
pub(crate) struct Groups<'a> {
    grouping: &'a Grouping,
    times: TimeColumns,
    time: Option<Time>,
    /// The part of time that records are clipped to: its first and last nanosecond.
    clip: Option<(u64, u64)>,
    /// Index of the `host` key, if there is one.
    host: Option<usize>,
    keys: KeyLayout,
    texts: Texts,
    /// The keys of a batch, one after another.
    written: Vec<u64>,
    /// The groups of one block of keys.
    found: Vec<u32>,
    sums: SumLayout,
    table: GroupTable,
    /// The total of the measure that shares refer to.
    whole: u128,
    /// Set when no one waits for the answer any more.
    stop: Option<Arc<AtomicBool>>,
    /// Buckets that records were spread over since the flag was last checked.
    unasked: usize,
}

/// The time buckets that records are spread over.
struct Time {
    /// Index of the key that holds the time.
    index: usize,
    width_ns: u64,
    /// Numbers of the first and last bucket so far.
    buckets: Option<(u64, u64)>,
    /// Numbers of the first and last bucket that lie in the requested time.
    made: (u64, u64),
    /// Whether time is the only key. Then each bucket is one group.
    is_alone: bool,
    /// Groups of the buckets from `base` on: of all buckets if time is the only key, otherwise of
    /// those of the last record.
    groups: Vec<u32>,
    base: u64,
}

/// Marks a bucket that has no group yet.
const NO_GROUP: u32 = u32::MAX;

impl<'a> Groups<'a> {
    pub(crate) fn new(grouping: &'a Grouping, times: TimeColumns) -> Self {
        let time = grouping.keys.iter().enumerate().find_map(|(index, key)| {
            Some(Time {
                index,
                width_ns: key.time_width_ns()?,
                buckets: None,
                made: (0, u64::MAX),
                is_alone: grouping.keys.len() == 1,
                groups: Vec::new(),
                base: 0,
            })
        });
        let (keys, sums) = (KeyLayout::of(&grouping.keys), SumLayout::of(grouping));
        Self {
            grouping,
            // Times are not read if nothing needs them.
            times: match grouping.has_times() {
                true => times,
                false => TimeColumns::default(),
            },
            time,
            clip: None,
            host: grouping.keys.iter().position(|key| key.is_host()),
            table: GroupTable::new(keys.words(), sums.neutral(grouping), grouping.most),
            keys,
            texts: Texts::default(),
            written: Vec::new(),
            found: Vec::new(),
            sums,
            whole: 0,
            stop: None,
            unasked: 0,
        }
    }

    /// Drops time buckets outside a range of time, or clips records to that range.
    pub(crate) fn within(mut self, within: Option<Within>) -> Self {
        if let (Some(time), Some(within)) = (&mut self.time, within) {
            time.made = within.buckets(time.width_ns);
        }
        let clips = within.filter(|_| self.grouping.clip);
        self.clip = clips.map(|within| within.ends_ns());
        self
    }

    /// Stops with an error once this flag is set.
    pub(crate) fn until(mut self, stop: Option<Arc<AtomicBool>>) -> Self {
        self.stop = stop;
        self
    }

    /// What the shares are percentages of, if the rows have shares.
    pub(crate) fn shares(&self) -> Option<Shares> {
        let is_share = |(_, measure): &(_, Measure)| *measure == Measure::Share;
        let has_share = self.grouping.columns.iter().any(is_share);
        let of = self.grouping.share_name();
        has_share.then(|| Shares {
            of: of.to_owned(),
            whole: self.whole,
            show: match of.ends_with("bytes") {
                true => Show::Bytes,
                false => Show::Count,
            },
            at_both_ends: self.host.is_some(),
            is_clipped: self.clip.is_some(),
        })
    }

    pub(crate) fn count(&self) -> u64 {
        self.table.count() as u64
    }

    /// Adds these records to their groups; with time buckets, to one group per bucket.
    pub(crate) fn add(&mut self, batch: &FlowBatch, rows: &[u32]) -> Result<(), QueryError> {
        let grouping = self.grouping;
        let amounts = grouping.amounts.iter();
        let amounts: Vec<AmountNumbers<'_>> = amounts.map(|its| its.numbers(batch)).collect();
        let times = self.times.of_batch(batch);
        self.whole += self.shared(rows, &times, &amounts);
        let words = self.keys.words();
        let mut keys = std::mem::take(&mut self.written);
        keys.clear();
        keys.resize(words * rows.len(), 0);
        for (index, key) in grouping.keys.iter().enumerate() {
            self.write(index, key.field(), (batch, rows), &mut keys);
        }
        self.add_keys(&mut keys, rows, &times, &amounts)?;
        let other = self.host.and_then(|it| grouping.keys[it].other());
        // A record also counts at its other host, unless both hosts are the same.
        if let Some((index, other)) = self.host.zip(other) {
            let mut others = keys.clone();
            self.write(index, other, (batch, rows), &mut others);
            let (mut other_keys, mut other_rows) = (Vec::new(), Vec::new());
            let pairs = keys.chunks_exact(words).zip(others.chunks_exact(words));
            for ((_, other), row) in pairs.zip(rows).filter(|((one, other), _)| one != other) {
                other_keys.extend_from_slice(other);
                other_rows.push(*row);
            }
            self.add_keys(&mut other_keys, &other_rows, &times, &amounts)?;
        }
        self.written = keys;
        Ok(())
    }

    /// As [`Self::add`], for one way to form the keys.
    fn add_keys(
        &mut self,
        keys: &mut [u64],
        rows: &[u32],
        times: &BatchTimes<'_>,
        amounts: &[AmountNumbers<'_>],
    ) -> Result<(), QueryError> {
        let words = self.keys.words();
        if self.time.is_none() {
            let blocks = keys.chunks(words * BLOCK).zip(rows.chunks(BLOCK));
            for (keys, rows) in blocks {
                self.add_block(keys, rows, times, amounts)?;
            }
            return Ok(());
        }
        for (key, row) in keys.chunks_exact_mut(words).zip(rows) {
            let its = times.times(*row as usize);
            match its.first_ns {
                Some(_) => self.spread(key, *row as usize, &its, amounts)?,
                // A record without times counts in the group whose bucket is absent.
                None => self.add_block(key, &[*row], times, amounts)?,
            }
        }
        Ok(())
    }

    /// Adds each record to the group of its key.
    fn add_block(
        &mut self,
        keys: &[u64],
        rows: &[u32],
        times: &BatchTimes<'_>,
        amounts: &[AmountNumbers<'_>],
    ) -> Result<(), QueryError> {
        let mut found = std::mem::take(&mut self.found);
        self.table.groups(keys, &mut found)?;
        let layout = self.sums;
        let rows = || found.iter().zip(rows.iter().map(|row| *row as usize));
        let clip = self.clip;
        for (group, row) in rows() {
            let sums = self.table.sums_mut(*group);
            if times.are_none() {
                SumLayout::count(sums, 1);
                continue;
            }
            let times = times.times(row);
            let (records, (first_ns, last_ns)) = match clip {
                Some(clip) => (times.begin_in(clip).into(), times.clipped(clip)),
                None => (1, (times.first_ns, times.last_ns)),
            };
            SumLayout::count(sums, records);
            layout.extend(sums, first_ns, last_ns);
        }
        for (index, (amount, numbers)) in self.grouping.amounts.iter().zip(amounts).enumerate() {
            let mut fits = true;
            for (group, row) in rows() {
                let number = match clip {
                    Some(clip) => numbers.part(row, &times.times(row), clip),
                    None => numbers.whole.get(row),
                };
                let sums = self.table.sums_mut(*group);
                fits &= layout.fold(sums, (index, amount.fold), number);
            }
            if !fits {
                return Err(amount.too_large());
            }
        }
        self.found = found;
        Ok(())
    }

    /// The contribution of these records to the total that shares refer to.
    fn shared(&self, rows: &[u32], times: &BatchTimes<'_>, amounts: &[AmountNumbers<'_>]) -> u128 {
        let amount = match self.grouping.share {
            Measure::Amount(index) => Some(&amounts[index]),
            _ => None,
        };
        let Some(clip) = self.clip else {
            return amount.map_or(rows.len() as u128, |amount| amount.whole.sum(rows));
        };
        let part = |row: &u32| {
            let (row, times) = (*row as usize, times.times(*row as usize));
            let part = amount.map(|amount| amount.part(row, &times, clip).unwrap_or(0));
            u128::from(part.unwrap_or_else(|| times.begin_in(clip).into()))
        };
        rows.iter().map(part).sum()
    }

    fn write(
        &mut self,
        index: usize,
        field: Field,
        records: (&FlowBatch, &[u32]),
        keys: &mut [u64],
    ) {
        self.keys
            .write(index, field, records, &mut self.texts, keys);
    }

    /// Adds a record to every requested bucket that it overlaps, with a proportional part of its
    /// sums. Each direction of a biflow is spread over its own time. Other folds take the whole
    /// value in every bucket. The record itself is counted in the bucket where it begins.
    fn spread(
        &mut self,
        key: &mut [u64],
        row: usize,
        times: &Times,
        amounts: &[AmountNumbers<'_>],
    ) -> Result<(), QueryError> {
        let (Some(time), Some(whole)) = (&mut self.time, times.whole()) else {
            return Ok(());
        };
        let (index, width_ns) = (time.index, time.width_ns);
        let begun = whole.first_ns / width_ns;
        let (first, last) = (
            begun.max(time.made.0),
            (whole.last_ns / width_ns).min(time.made.1),
        );
        if first > last {
            return Ok(());
        }
        time.cover(first, last)?;
        let groups = time.groups(first, last, |bucket| {
            self.keys.put_number(index, key, bucket * width_ns);
            self.table.group(key)
        })?;
        let buckets = Buckets {
            first,
            count: groups.len(),
            width_ns,
        };
        if begun == first {
            SumLayout::count(self.table.sums_mut(groups[0]), 1);
        }
        for (place, (amount, numbers)) in self.grouping.amounts.iter().zip(amounts).enumerate() {
            let mut fits = true;
            numbers.spread(row, times, buckets, |bucket, part| {
                let sums = self.table.sums_mut(groups[bucket]);
                fits &= self.sums.fold(sums, (place, amount.fold), Some(part));
            });
            if !fits {
                return Err(amount.too_large());
            }
        }
        self.unasked += buckets.count;
        self.ask()
    }

    /// Checks the stop flag from time to time, and fails if it is set.
    #[inline]
    fn ask(&mut self) -> Result<(), QueryError> {
        if self.unasked < BUCKETS_BETWEEN {
            return Ok(());
        }
        self.unasked = 0;
        let is_set = |stop: &Arc<AtomicBool>| stop.load(atomic::Ordering::Relaxed);
        match self.stop.as_ref().is_some_and(is_set) {
            true => Err(QueryError::Stopped),
            false => Ok(()),
        }
    }

    /// If time is the only key, adds the empty buckets between the first and the last, so that
    /// periods without traffic are visible.
    pub(crate) fn fill_silences(&mut self) -> Result<(), QueryError> {
        let Some(time) = self.time.as_ref().filter(|time| time.is_alone) else {
            return Ok(());
        };
        let Some((first, last)) = time.buckets else {
            return Ok(());
        };
        let mut key = vec![0; self.keys.words()];
        for bucket in first..=last {
            let start_ns = bucket * time.width_ns;
            self.keys.put_number(time.index, &mut key, start_ns);
            self.table.group(&key)?;
        }
        Ok(())
    }

    /// The first rows in the requested order.
    pub(crate) fn into_rows(self, ascending: bool, top: Option<usize>) -> Vec<Vec<Cell>> {
        let groups = self.ranked(ascending, top);
        let row = |group: u32| {
            let key = self.table.key(group);
            let keys = 0..self.grouping.keys.len();
            let keys = keys.map(|index| self.keys.cell(index, key, &self.texts));
            let columns = self.grouping.columns.iter();
            keys.chain(columns.map(|(_, each)| self.measure(group, *each)))
                .collect()
        };
        groups.into_iter().map(row).collect()
    }

    fn measure(&self, group: u32, measure: Measure) -> Cell {
        let sums = self.table.sums(group);
        self.sums.measure(sums, measure, self.grouping, self.whole)
    }

    /// The numbers of the first groups in the requested order.
    fn ranked(&self, ascending: bool, top: Option<usize>) -> Vec<u32> {
        let rank = |group: u32| match self.grouping.by {
            GroupSort::Key(_) => 0,
            GroupSort::Measure(by) => rank(&self.measure(group, by)),
        };
        let groups = 0..self.table.count() as u32;
        let mut groups: Vec<_> = groups.map(|group| (rank(group), group)).collect();
        let order = |left: &(u128, u32), right: &(u128, u32)| {
            let [left_key, right_key] = [left.1, right.1].map(|group| self.table.key(group));
            let order = match self.grouping.by {
                GroupSort::Key(index) => {
                    self.keys
                        .compare_field(index, left_key, right_key, &self.texts)
                }
                GroupSort::Measure(_) => left.0.cmp(&right.0),
            };
            let order = if ascending { order } else { order.reverse() };
            order.then_with(|| self.keys.compare(left_key, right_key, &self.texts))
        };
        // If each bucket has its own top rows, all groups must be sorted.
        if let Some(top) = top.filter(|top| self.grouping.each.is_none() && *top < groups.len()) {
            groups.select_nth_unstable_by(top, order);
            groups.truncate(top);
        }
        groups.sort_unstable_by(order);
        let mut groups: Vec<u32> = groups.into_iter().map(|(_, group)| group).collect();
        if let Some((time, rows)) = self.grouping.each {
            let in_time = |left: u32, right: u32| {
                let [left, right] = [left, right].map(|group| self.table.key(group));
                self.keys.compare_field(time, left, right, &self.texts)
            };
            first_of_each(&mut groups, in_time, rows);
            groups.truncate(top.unwrap_or(usize::MAX));
        }
        groups
    }
}

/// Maps a value to an integer that sorts like the values of its column.
fn rank(cell: &Cell) -> u128 {
    let there = |bits: u64| 1 << 64 | u128::from(bits);
    match cell {
        Cell::Unsigned(number) => there(*number),
        Cell::Float(float) => {
            let bits = float.to_bits();
            // The order of `f64::total_cmp`.
            there(if bits >> 63 == 1 {
                !bits
            } else {
                bits | 1 << 63
            })
        }
        _ => 0,
    }
}

/// Sorts ranked groups by time bucket, and keeps the first `rows` groups of each.
fn first_of_each(ranked: &mut Vec<u32>, in_time: impl Fn(u32, u32) -> Ordering, rows: usize) {
    // The sort is stable: the ranking within a bucket is kept.
    ranked.sort_by(|left, right| in_time(*left, *right));
    let (mut last, mut taken) = (None, 0);
    ranked.retain(|&group| {
        if last.is_none_or(|last| in_time(last, group).is_ne()) {
            (last, taken) = (Some(group), 0);
        }
        taken += 1;
        taken <= rows
    });
}

impl Time {
    /// Extends the range of buckets to include those of a record.
    fn cover(&mut self, first: u64, last: u64) -> Result<(), QueryError> {
        let (from, to) = self.buckets.unwrap_or((first, last));
        let (from, to) = (from.min(first), to.max(last));
        if to - from >= BUCKETS_MAX {
            return Err(QueryError::Buckets {
                from: time_text(from * self.width_ns),
                to: time_text(to * self.width_ns),
                width: duration_text(self.width_ns),
                limit: BUCKETS_MAX,
            });
        }
        self.buckets = Some((from, to));
        Ok(())
    }

    /// The groups of the buckets from `first` to `last`, which [`Self::cover`] has already
    /// included. `group` finds the group of one bucket.
    #[inline]
    fn groups(
        &mut self,
        first: u64,
        last: u64,
        mut group: impl FnMut(u64) -> Result<u32, QueryError>,
    ) -> Result<&[u32], QueryError> {
        if !self.is_alone {
            self.groups.clear();
            for bucket in first..=last {
                self.groups.push(group(bucket)?);
            }
            return Ok(&self.groups);
        }
        if self.groups.is_empty() {
            self.base = first;
        }
        if first < self.base {
            let new = (self.base - first) as usize;
            self.groups.splice(0..0, std::iter::repeat_n(NO_GROUP, new));
            self.base = first;
        }
        let places = (first - self.base) as usize..(last - self.base + 1) as usize;
        if places.end > self.groups.len() {
            self.groups.resize(places.end, NO_GROUP);
        }
        let groups = &mut self.groups[places];
        for (bucket, known) in (first..=last).zip(groups.iter_mut()) {
            if *known == NO_GROUP {
                *known = group(bucket)?;
            }
        }
        Ok(groups)
    }
}

#[cfg(test)]
mod tests {
    use turboflow_record::{Column, ColumnKind, Value};

    use super::*;
    use crate::query::Shape;
    use crate::{Query, Question};

    /// A single batch can take hours.
    #[test]
    fn a_question_is_given_up_within_a_batch() {
        let column = |name: &str, kind| Column {
            name: name.to_owned(),
            kind,
            nullable: false,
        };
        let schema = vec![
            column("bytes", ColumnKind::Unsigned { bits: 64 }),
            column("first_ns", ColumnKind::TimestampNs),
            column("last_ns", ColumnKind::TimestampNs),
        ];
        let question = Question {
            group_by: Some("time:1ns".to_owned()),
            ..Question::default()
        };
        let query = Query::parse(&question, &schema).expect("a question");
        let Shape::Groups(grouping) = &query.shape else {
            unreachable!("it has groups")
        };
        let mut batch = FlowBatch::new(&schema);
        for _ in 0..4 {
            batch.push_row(&[1, 0, BUCKETS_MAX - 1].map(Value::Unsigned));
        }
        let added = |is_set: bool| {
            let stop = Arc::new(AtomicBool::new(is_set));
            let groups = Groups::new(grouping, query.sources.times);
            groups.until(Some(stop)).add(&batch, &[0, 1, 2, 3])
        };
        assert!(added(false).is_ok());
        assert!(matches!(added(true), Err(QueryError::Stopped)));
    }
}
