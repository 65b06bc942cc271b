// SPDX-License-Identifier: Apache-2.0
//! The columns and the order of a grouped answer.

use crate::amounts::{Amount, amount};
use crate::answer::{AnswerColumn, Show};
use crate::field::{self, Field};
use crate::fold::Fold;
use crate::group::{self, GroupKey};
use crate::query::misread;
use crate::record_shape::RecordShape;
use crate::span::TimeColumns;
use crate::{Part, QueryError, Question};

/// The keys by which records are grouped, and the measures of each group.
#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    pub(crate) keys: Vec<GroupKey>,
    /// Values folded over each group's records.
    pub(crate) amounts: Vec<Amount>,
    /// The columns after those of the key.
    pub(crate) columns: Vec<(AnswerColumn, Measure)>,
    pub(crate) by: GroupSort,
    /// Whether only the parts of records within the requested time count.
    pub(crate) clip: bool,
    /// The measure that shares are percentages of: records or an amount.
    pub(crate) share: Measure,
    /// Measures that are divided by others.
    pub(crate) ratios: Vec<GroupRatio>,
    /// Index of the time key and maximum number of rows per bucket, if rows are ranked within each
    /// time bucket.
    pub(crate) each: Option<(usize, usize)>,
    /// Maximum number of groups; more are an error.
    pub(crate) most: usize,
}

/// An amount of a group, divided by another or by time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupRatio {
    pub(crate) over: usize,
    pub(crate) under: Under,
    pub(crate) factor: u64,
}

/// What an amount of a group is divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Under {
    /// Another amount.
    Amount(usize),
    /// The width of the time bucket.
    Width(u64),
    /// The time from the group's first packet to its last.
    Span,
}

/// A measure of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Number of records.
    Records,
    /// A folded value, by its index.
    Amount(usize),
    /// Its percentage of the total of the measure that shares refer to.
    Share,
    /// A ratio, by its index.
    Ratio(usize),
    /// The first time.
    First,
    /// The last time.
    Last,
}

/// The order of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupSort {
    Key(usize),
    Measure(Measure),
}

/// Parses the keys, order and columns of a grouped question.
pub(crate) fn parse(
    question: &Question,
    group_by: &str,
    records: RecordShape<'_>,
) -> Result<Grouping, QueryError> {
    let keys = group::parse(group_by, records)?;
    if question.clip && keys.iter().any(|key| key.time_width_ns().is_some()) {
        let reason = "time buckets count records in part already: leave out the clipping";
        return Err(misread(Part::Groups, group_by, reason.to_owned()));
    }
    let mut measures = Measures::new(keys, records, question.clip);
    let by = match question.by.as_deref() {
        Some(name) => Some(measures.sort(name)?),
        None => None,
    };
    if let Some(select) = &question.select {
        measures.select(select)?;
    }
    let Measures {
        keys,
        amounts,
        columns,
        ratios,
        ..
    } = measures;
    let added_up = |amount: &Amount| amount.fold == Fold::Sum;
    let named = |wanted: &str| {
        let is_it = |amount: &Amount| amount.name == wanted && added_up(amount);
        amounts.iter().position(is_it)
    };
    let own = |amount: &Amount| amount.name != "packets" && added_up(amount);
    let asked = named("total_bytes").or_else(|| named("bytes"));
    let asked = asked.or_else(|| amounts.iter().position(own));
    let basis = asked.map_or(Measure::Records, Measure::Amount);
    let is_sum = |measure| match measure {
        Measure::Amount(index) => amounts[index].fold == Fold::Sum,
        measure => measure == Measure::Records,
    };
    let time = keys.iter().position(|key| key.bucket_ns().is_some());
    let each = match (question.top_each, time) {
        (Some(rows), Some(time)) => Some((time, rows)),
        (Some(_), None) => return Err(misread(Part::Groups, group_by, NO_BUCKETS.to_owned())),
        (None, _) => None,
    };
    let time = time.filter(|_| each.is_none()).map(GroupSort::Key);
    let by = by.or(time).unwrap_or(GroupSort::Measure(basis));
    let share = match by {
        GroupSort::Measure(measure) if is_sum(measure) => measure,
        _ => basis,
    };
    Ok(Grouping {
        by: match by {
            GroupSort::Measure(Measure::Share) => GroupSort::Measure(share),
            by => by,
        },
        keys,
        clip: question.clip,
        amounts,
        columns,
        most: usize::MAX,
        share,
        ratios,
        each,
    })
}

pub(crate) const NO_BUCKETS: &str = "the largest rows of each time bucket need time buckets: \
                                     write time:5m,src_addr";

/// The measures of a question, extended while it is parsed.
struct Measures<'a> {
    records: RecordShape<'a>,
    keys: Vec<GroupKey>,
    clip: bool,
    amounts: Vec<Amount>,
    columns: Vec<(AnswerColumn, Measure)>,
    ratios: Vec<GroupRatio>,
}

impl<'a> Measures<'a> {
    /// Default columns of a group.
    fn new(keys: Vec<GroupKey>, records: RecordShape<'a>, clip: bool) -> Self {
        let mut measures = Self {
            records,
            keys,
            clip,
            amounts: Vec::new(),
            columns: Vec::new(),
            ratios: Vec::new(),
        };
        measures.push("records", Show::Count, Measure::Records);
        let total = |name| Field::find(name, records.schema).is_some();
        // A host can be initiator and responder in turn, so only totals are meaningful.
        let usual = match measures.keys.iter().any(GroupKey::is_host) && total("total_bytes") {
            true => &["total_packets", "total_bytes"][..],
            false => &["packets", "bytes", "reverse_packets", "reverse_bytes"],
        };
        for name in usual {
            if let Ok(amount) = amount(name, records) {
                measures.add_up(amount);
            }
        }
        // Shares refer to this total, which is shown only on request.
        let is_total = |amount: &Amount| amount.name == "total_bytes";
        if !measures.amounts.iter().any(is_total)
            && let Ok(total) = amount("total_bytes", records)
        {
            measures.amounts.push(total);
        }
        measures.push("share", Show::Percent, Measure::Share);
        for (name, measure) in [("first_ns", Measure::First), ("last_ns", Measure::Last)] {
            if Field::exact(name, records.schema).is_some() && !measures.is_spread() {
                measures.push(name, Show::Time, measure);
            }
        }
        measures
    }

    /// Whether groups hold parts of records. The times of the packets in a part are unknown.
    fn is_spread(&self) -> bool {
        self.clip || self.keys.iter().any(|key| key.time_width_ns().is_some())
    }

    /// Adds a column. Its name must not be that of a key, or of a column with another meaning.
    fn push(&mut self, name: &str, show: Show, measure: Measure) {
        let is_made = matches!(measure, Measure::Records | Measure::Share);
        let free = field::free_name(name, |tried| {
            let is_key = self.keys.iter().any(|key| key.name == tried);
            is_key || (is_made || tried != name) && Field::is_column(tried, self.records.schema)
        });
        self.columns
            .push((AnswerColumn { name: free, show }, measure));
    }

    fn add_up(&mut self, amount: Amount) -> Measure {
        let measure = Measure::Amount(self.amounts.len());
        let show = match amount.field.show(self.records) {
            Show::Number => Show::Count,
            show => show,
        };
        self.push(&amount.name, show, measure);
        self.amounts.push(amount);
        measure
    }

    /// Finds the sort key. If no column shows it yet, one is added before the shares.
    fn sort(&mut self, name: &str) -> Result<GroupSort, QueryError> {
        if let Some(key) = self.key(name) {
            return Ok(GroupSort::Key(key));
        }
        let measure = self
            .find(name)
            .map_err(|reason| misread(Part::Order, name, reason))?;
        let is_share = |(_, measure): &(_, Measure)| *measure == Measure::Share;
        let share = self.columns.iter().position(is_share);
        if let (Some(share), Some((_, last))) = (share, self.columns.last())
            && *last == measure
            && matches!(measure, Measure::Amount(_) | Measure::Ratio(_))
        {
            self.columns[share..].rotate_right(1);
        }
        Ok(GroupSort::Measure(measure))
    }

    /// Keeps only the listed columns, in that order. Keys are always shown.
    fn select(&mut self, text: &str) -> Result<(), QueryError> {
        let mut columns = Vec::new();
        for (name, span) in field::listed(text) {
            let wrong = |reason| QueryError::misread(Part::Columns, text, span, reason);
            if self.key(name).is_some() {
                continue;
            }
            let measure = self.find(name).map_err(wrong)?;
            let found = self.columns.iter().find(|(_, known)| *known == measure);
            let column = found.map(|(column, _)| column.clone());
            let column = column.expect("a measure that was found has a column");
            if columns.iter().any(|(known, _)| *known == column) {
                return Err(wrong(format!("{name} is given twice")));
            }
            columns.push((column, measure));
        }
        self.columns = columns;
        Ok(())
    }

    /// The index of the key with that name, with or without its bucket width.
    fn key(&self, name: &str) -> Option<usize> {
        let is_measure = self.columns.iter().any(|(column, _)| column.name == name);
        let field = Field::full_name(name, self.records.schema);
        let is_called = |key: &GroupKey| key.is_called(name) || key.is_called(&field);
        let exact = self.keys.iter().position(|key| key.name == name);
        exact.or_else(|| self.keys.iter().position(is_called).filter(|_| !is_measure))
    }

    /// The measure with that name.
    fn find(&mut self, name: &str) -> Result<Measure, String> {
        let full_name = Field::full_name(name, self.records.schema);
        let lower = name.to_lowercase();
        let lower = lower.strip_suffix("_percent").unwrap_or(&lower);
        let names = [name, &full_name, lower];
        let column = |name: &&str| {
            self.columns
                .iter()
                .find(|(column, _)| column.name == **name)
        };
        let known = names.iter().find_map(column);
        if let Some((_, measure)) = known {
            return Ok(*measure);
        }
        if self.is_spread() && ["first_ns", "last_ns"].contains(&&*full_name) {
            if self.clip {
                return Err(format!(
                    "records are clipped, so {full_name} of the packets in that time is not known"
                ));
            }
            return Err(format!(
                "records are spread over the buckets, so {full_name} of the packets in one is not \
                 known; group by first_ns:5m instead for whole records"
            ));
        }
        let name = &*full_name;
        if let Some(ratio) = self.ratio(name) {
            return Ok(ratio);
        }
        match amount(name, self.records) {
            Ok(amount) => Ok(self.add_up(amount)),
            Err(reason) => {
                let made = self.columns.iter().map(|(column, _)| column.name.clone());
                let keys = self.keys.iter().map(|key| key.name.clone());
                let mut names: Vec<String> = keys.chain(made).collect();
                for other in Field::names(self.records.schema) {
                    let is_ratio = || self.ratio_parts(&other).is_some();
                    let is_known = amount(&other, self.records).is_ok() || is_ratio();
                    if is_known && !names.contains(&other) {
                        names.push(other);
                    }
                }
                Err(match reason {
                    Some(reason) => format!("{reason}; known are {}", names.join(", ")),
                    None => field::unknown(name, &names, &[]),
                })
            }
        }
    }
}

impl Measures<'_> {
    /// Adds the ratio with that name, if its terms are amounts that groups can add up.
    fn ratio(&mut self, name: &str) -> Option<Measure> {
        let (over, under, factor) = self.ratio_parts(name)?;
        let under = match under {
            Some(amount) => Under::Amount(self.hidden(amount)),
            None => {
                // With clipping, a part of a record may lie outside the bucket that it counts in.
                let keys = self.keys.iter().filter(|_| !self.clip);
                let width_ns = keys.into_iter().find_map(GroupKey::bucket_ns);
                width_ns.map_or(Under::Span, Under::Width)
            }
        };
        let show = match under {
            Under::Amount(_) => Show::Float,
            Under::Width(_) | Under::Span => Show::Rate,
        };
        let ratio = GroupRatio {
            over: self.hidden(over),
            under,
            factor,
        };
        let measure = Measure::Ratio(self.ratios.len());
        self.push(name, show, measure);
        self.ratios.push(ratio);
        Some(measure)
    }

    /// The dividend, the divisor and a factor; without a divisor, the dividend is divided by time.
    fn ratio_parts(&self, name: &str) -> Option<(Amount, Option<Amount>, u64)> {
        let records = self.records;
        let Field::Ratio(_) = Field::find(name, records.schema)? else {
            return None;
        };
        let (over, under, factor) = field::ratio_of(name)?;
        let part = |part: &str| {
            let total = format!("total_{part}");
            let both = match name.contains('/') {
                true => None,
                false => amount(&total, records).ok(),
            };
            let found = both.or_else(|| amount(part, records).ok());
            found.filter(|amount| amount.fold == Fold::Sum)
        };
        let over = part(over)?;
        match under {
            "duration" => Some((over, None, factor)),
            under => Some((over, Some(part(under)?), factor)),
        }
    }

    /// The index of an amount; a new one is added without a column of its own.
    fn hidden(&mut self, amount: Amount) -> usize {
        let known = self.amounts.iter().position(|known| *known == amount);
        known.unwrap_or_else(|| {
            self.amounts.push(amount);
            self.amounts.len() - 1
        })
    }
}

impl Grouping {
    /// Whether the times of records are needed.
    pub(crate) fn has_times(&self) -> bool {
        let is_time = |measure: Measure| matches!(measure, Measure::First | Measure::Last);
        let is_spread = |key: &GroupKey| key.time_width_ns().is_some();
        self.clip
            || self.keys.iter().any(is_spread)
            || self.columns.iter().any(|(_, measure)| is_time(*measure))
            || self.ratios.iter().any(|ratio| ratio.under == Under::Span)
            || matches!(self.by, GroupSort::Measure(measure) if is_time(measure))
    }

    /// The columns that are read for each record.
    pub(crate) fn columns_read(&self, times: TimeColumns) -> Vec<usize> {
        let keys = self.keys.iter();
        let keys = keys.flat_map(|key| [Some(key.field()), key.other()].into_iter().flatten());
        let fields = keys.chain(self.amounts.iter().map(|amount| amount.field));
        let mut columns: Vec<usize> = fields.flat_map(Field::columns).collect();
        if self.has_times() {
            columns.extend(times.columns());
        }
        columns
    }

    /// The columns of a row: the keys, then the measures.
    pub(crate) fn answer_columns(&self) -> Vec<AnswerColumn> {
        let keys = self.keys.iter().map(GroupKey::column);
        let others = self.columns.iter().map(|(column, _)| column.clone());
        keys.chain(others).collect()
    }

    /// The name of the measure that shares are of.
    pub(crate) fn share_name(&self) -> &str {
        match self.share {
            Measure::Amount(index) => &self.amounts[index].name,
            _ => "records",
        }
    }
}
