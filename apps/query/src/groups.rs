// SPDX-License-Identifier: Apache-2.0
//! Groups while records are added.

use std::collections::HashMap;

use turboflow_record::FlowBatch;

use crate::QueryError;
use crate::answer::{AnswerColumn, Cell, Shares, Show};
use crate::field::divided;
use crate::grouping::{Amount, GroupRatio, GroupSort, Grouping, Measure, Under};
use crate::literal::{duration_text, time_text};
use crate::run::number;
use crate::span::{Span, Times};

/// Limit on groups: about 2 GiB with a key of two addresses.
const GROUPS_MAX: usize = 10_000_000;
/// Limit on time buckets from the first to the last: it keeps answers usable, and bounds the work
/// per record.
const BUCKETS_MAX: u64 = 100_000;

/// Groups by their keys.
pub(crate) struct Groups<'a> {
    grouping: &'a Grouping,
    time: Option<Time>,
    map: HashMap<Box<[Cell]>, Group>,
    key: Vec<Cell>,
    /// Index of the key of hosts, if there is one.
    host: Option<usize>,
    /// The total of the measure that shares are of.
    whole: u128,
}

/// The time buckets that records are spread over.
struct Time {
    /// Index of the key that holds the time.
    index: usize,
    width_ns: u64,
    /// Numbers of the first and last bucket so far.
    buckets: Option<(u64, u64)>,
}

#[derive(Default)]
struct Group {
    records: u64,
    amounts: Box<[Option<u64>]>,
    first_ns: Option<u64>,
    last_ns: Option<u64>,
}

impl Grouping {
    /// The columns of a row: the keys, then the measures.
    pub(crate) fn answer_columns(&self) -> Vec<AnswerColumn> {
        let keys = self.keys.iter().map(|key| key.column());
        let others = self.columns.iter().map(|(column, _)| column.clone());
        keys.chain(others).collect()
    }
}

impl<'a> Groups<'a> {
    pub(crate) fn new(grouping: &'a Grouping) -> Self {
        let time = grouping.keys.iter().enumerate().find_map(|(index, key)| {
            Some(Time {
                index,
                width_ns: key.time_width_ns()?,
                buckets: None,
            })
        });
        Self {
            grouping,
            time,
            map: HashMap::new(),
            key: Vec::new(),
            host: grouping.keys.iter().position(|key| key.is_host()),
            whole: 0,
        }
    }

    /// What the shares of rows are of, if the rows have them.
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
        })
    }

    pub(crate) fn count(&self) -> u64 {
        self.map.len() as u64
    }

    /// Adds a record to its group, or to a group per time bucket.
    pub(crate) fn add(
        &mut self,
        batch: &FlowBatch,
        row: usize,
        times: Times,
    ) -> Result<(), QueryError> {
        let Grouping { keys, share, .. } = self.grouping;
        self.whole += match *share {
            Measure::Amount(index) => {
                number(self.grouping.amounts[index].field, batch, row).map_or(0, u128::from)
            }
            _ => 1,
        };
        self.key.clear();
        self.key.extend(keys.iter().map(|key| key.cell(batch, row)));
        self.add_at_end(batch, row, times)?;
        // A record also counts at its other host, unless both are one.
        if let Some(index) = self.host
            && let Some(other) = keys[index].other_cell(batch, row)
            && other != keys[index].cell(batch, row)
        {
            self.key[index] = other;
            self.add_at_end(batch, row, times)?;
        }
        Ok(())
    }

    /// Adds a record to the group of the key.
    fn add_at_end(
        &mut self,
        batch: &FlowBatch,
        row: usize,
        times: Times,
    ) -> Result<(), QueryError> {
        let amounts = &self.grouping.amounts;
        match times.whole() {
            Some(whole) if self.time.is_some() => self.spread(batch, row, &times, whole),
            _ => in_group(&mut self.map, &self.key, amounts, |group| {
                let numbers = amounts.iter();
                let numbers = numbers.map(|amount| number(amount.field, batch, row));
                group.add(1, amounts, numbers, (times.first_ns, times.last_ns))
            }),
        }
    }

    /// Adds a record to every bucket that it overlaps, with a proportional part of its sums. Each
    /// direction of a biflow is spread over its own time. Other folds take the whole value in every
    /// bucket. The record itself counts in its first bucket.
    fn spread(
        &mut self,
        batch: &FlowBatch,
        row: usize,
        times: &Times,
        whole: Span,
    ) -> Result<(), QueryError> {
        let Some(time) = &mut self.time else {
            return Ok(());
        };
        let amounts = &self.grouping.amounts;
        let width_ns = time.width_ns;
        let (first, last) = (whole.first_ns / width_ns, whole.last_ns / width_ns);
        time.cover(first, last)?;
        for bucket in first..=last {
            let start_ns = bucket * width_ns;
            let from_ns = start_ns.max(whole.first_ns);
            let to_ns = start_ns.saturating_add(width_ns - 1).min(whole.last_ns);
            self.key[time.index] = Cell::Unsigned(start_ns);
            let within = (from_ns, to_ns);
            let parts = amounts.iter();
            let parts = parts.map(|amount| amount.part(batch, row, times, within));
            let records = u64::from(bucket == first);
            in_group(&mut self.map, &self.key, amounts, |group| {
                group.add(records, amounts, parts, (Some(from_ns), Some(to_ns)))
            })?;
        }
        Ok(())
    }

    /// If time is the only key, adds the empty buckets between the first and the last, so that
    /// silence is visible.
    pub(crate) fn fill_silences(&mut self) {
        let Some(Time {
            width_ns,
            buckets: Some((first, last)),
            ..
        }) = self.time
        else {
            return;
        };
        if self.grouping.keys.len() > 1 {
            return;
        }
        for bucket in first..=last {
            let key = Box::new([Cell::Unsigned(bucket * width_ns)]);
            let amounts = &self.grouping.amounts;
            self.map.entry(key).or_insert_with(|| Group::new(amounts));
        }
    }

    /// The first rows in the requested order.
    pub(crate) fn into_rows(self, ascending: bool, top: Option<usize>) -> Vec<Vec<Cell>> {
        let (grouping, whole) = (self.grouping, self.whole);
        let measure = |group: &Group, measure| match measure {
            Measure::Records => Cell::Unsigned(group.records),
            Measure::Amount(index) => group.amounts[index].map_or(Cell::Absent, Cell::Unsigned),
            Measure::Ratio(index) => group.ratio(&grouping.ratios[index]),
            Measure::Share => percent(group.part(grouping.share), whole),
            Measure::First => group.first_ns.map_or(Cell::Absent, Cell::Unsigned),
            Measure::Last => group.last_ns.map_or(Cell::Absent, Cell::Unsigned),
        };
        let rank = |key: &[Cell], group: &Group| match grouping.by {
            GroupSort::Key(index) => key[index].clone(),
            GroupSort::Measure(by) => measure(group, by),
        };
        let mut groups: Vec<_> = self
            .map
            .into_iter()
            .map(|(key, group)| (rank(&key, &group), key, group))
            .collect();
        groups.sort_unstable_by(|(left, left_key, _), (right, right_key, _)| {
            let order = if ascending {
                left.cmp(right)
            } else {
                right.cmp(left)
            };
            order.then_with(|| left_key.cmp(right_key))
        });
        if let Some((time, rows)) = grouping.each {
            first_of_each(&mut groups, |(_, key, _)| key[time].clone(), rows);
        }
        groups.truncate(top.unwrap_or(usize::MAX));
        let row = |(_, key, group): (Cell, Box<[Cell]>, Group)| {
            let columns = grouping.columns.iter();
            let measures = columns.map(|(_, each)| measure(&group, *each));
            key.into_vec().into_iter().chain(measures).collect()
        };
        groups.into_iter().map(row).collect()
    }
}

/// Puts ranked items in the order of their buckets, and keeps the first ones of each.
fn first_of_each<T>(ranked: &mut Vec<T>, bucket: impl Fn(&T) -> Cell, rows: usize) {
    // Stable: within a bucket the ranks stay in order.
    ranked.sort_by_cached_key(|item| bucket(item));
    let (mut last, mut taken) = (None, 0);
    ranked.retain(|item| {
        let bucket = bucket(item);
        if last.as_ref() != Some(&bucket) {
            (last, taken) = (Some(bucket), 0);
        }
        taken += 1;
        taken <= rows
    });
}

impl Time {
    /// Extends the range of buckets by those of a record.
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
}

/// Calls `add` with the group of that key, which is created if it is new.
fn in_group(
    map: &mut HashMap<Box<[Cell]>, Group>,
    key: &[Cell],
    amounts: &[Amount],
    add: impl FnOnce(&mut Group) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    let full = map.len() == GROUPS_MAX;
    match map.get_mut(key) {
        Some(group) => add(group),
        None if full => Err(QueryError::Groups { limit: GROUPS_MAX }),
        None => add(map.entry(key.into()).or_insert_with(|| Group::new(amounts))),
    }
}

impl Group {
    fn new(amounts: &[Amount]) -> Self {
        Self {
            amounts: amounts.iter().map(|amount| amount.fold.neutral()).collect(),
            ..Self::default()
        }
    }

    fn add(
        &mut self,
        records: u64,
        amounts: &[Amount],
        numbers: impl Iterator<Item = Option<u64>>,
        (first_ns, last_ns): (Option<u64>, Option<u64>),
    ) -> Result<(), QueryError> {
        self.records += records;
        for ((sum, amount), number) in self.amounts.iter_mut().zip(amounts).zip(numbers) {
            *sum = amount.fold(*sum, number)?;
        }
        // `None` is less than any time, so it must be left out of the minimum.
        self.first_ns = [self.first_ns, first_ns].into_iter().flatten().min();
        self.last_ns = self.last_ns.max(last_ns);
        Ok(())
    }

    fn ratio(&self, ratio: &GroupRatio) -> Cell {
        let under = match ratio.under {
            Under::Amount(index) => self.amounts[index],
            Under::Width(width_ns) => Some(width_ns),
            Under::Span => self
                .last_ns
                .zip(self.first_ns)
                .and_then(|(last, first)| last.checked_sub(first)),
        };
        let parts = self.amounts[ratio.over].zip(under);
        let value = parts.and_then(|(over, under)| divided(over, under, ratio.factor));
        value.map_or(Cell::Absent, Cell::Float)
    }

    fn part(&self, share: Measure) -> u64 {
        match share {
            Measure::Amount(index) => self.amounts[index].unwrap_or(0),
            _ => self.records,
        }
    }
}

fn percent(part: u64, whole: u128) -> Cell {
    // Four decimals: more would suggest false precision.
    let share = if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    };
    Cell::Float((share * 1e6).round() / 1e4)
}
