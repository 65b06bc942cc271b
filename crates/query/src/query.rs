// SPDX-License-Identifier: Apache-2.0
//! A question, understood.

use turboflow_record::Column;

use crate::answer::AnswerColumn;
use crate::field::{self, Field, Show};
use crate::group::{self, GroupKey};
use crate::{Filter, QueryError};

/// A question as a user writes it: the options of `turboflow show`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// `--where`: which records; all of them without.
    pub filter: Option<String>,
    /// `--group-by`: fields whose values records are added up by, with commas between.
    pub group_by: Option<String>,
    /// `--by`: the field rows are sorted by; default `bytes`, in groups by time the time.
    pub by: Option<String>,
    /// `--select`: the columns of an answer without groups, with commas between.
    pub select: Option<String>,
    /// Smallest first. Default: largest first.
    pub ascending: bool,
    /// `--top`: how many rows; all of them without.
    pub top: Option<usize>,
    /// Without `select`: every column rather than those that fit a terminal.
    pub all_columns: bool,
}

/// A question bound to a schema, ready to be asked with [`run`](crate::run).
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) filter: Option<Filter>,
    pub(crate) shape: Shape,
    pub(crate) ascending: bool,
    pub(crate) top: Option<usize>,
    pub(crate) sources: Sources,
}

/// What a row of the answer is.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A record.
    Records {
        select: Vec<Field>,
        columns: Vec<AnswerColumn>,
        by: Option<Field>,
    },
    /// A group of records.
    Groups { keys: Vec<GroupKey>, by: GroupSort },
}

/// What groups are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupSort {
    Key(usize),
    Records,
    Packets,
    Bytes,
    First,
    Last,
}

/// Where the records have what groups add up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources {
    pub(crate) packets: Option<Field>,
    pub(crate) bytes: Option<Field>,
    pub(crate) first: Option<Field>,
    pub(crate) last: Option<Field>,
}

/// The columns of records in a table, as far as the schema has them.
const SHORT: [&str; 11] = [
    "src_addr",
    "src_port",
    "dst_addr",
    "dst_port",
    "protocol",
    "packets",
    "bytes",
    "first_ns",
    "duration",
    "tcp_flags",
    "end_reason",
];

impl Query {
    /// Understands a question about records of that schema.
    ///
    /// # Errors
    /// [`QueryError::Question`] points at the word that is wrong and lists the fields there are.
    pub fn parse(question: &Question, schema: &[Column]) -> Result<Self, QueryError> {
        let filter = question
            .filter
            .as_deref()
            .map(|text| Filter::parse(text, schema));
        let filter = filter.transpose()?;
        let find = |name: &str| Field::find(name, schema);
        let sources = Sources {
            packets: find("packets"),
            bytes: find("bytes"),
            first: find("first_ns"),
            last: find("last_ns"),
        };
        let by = question.by.as_deref();
        let shape = match &question.group_by {
            Some(text) => {
                if let Some(select) = &question.select {
                    let reason = "groups have columns of their own; leave --select out".to_owned();
                    return Err(misread("--select", select, reason));
                }
                let keys = group::parse(text, schema)?;
                let by = group_sort(by, &keys, sources)?;
                Shape::Groups { keys, by }
            }
            None => records(question, schema)?,
        };
        // Time runs forward: the newest bucket first is not what a person expects to read.
        let in_time = |by: &GroupSort, keys: &[GroupKey]| matches!(by, GroupSort::Key(key) if keys[*key].column().show == Show::Time);
        let forward = match &shape {
            Shape::Groups { keys, by } => question.by.is_none() && in_time(by, keys),
            Shape::Records { .. } => false,
        };
        let ascending = question.ascending || forward;
        Ok(Self {
            filter,
            shape,
            ascending,
            top: question.top,
            sources,
        })
    }
}

fn records(question: &Question, schema: &[Column]) -> Result<Shape, QueryError> {
    let names: Vec<String> = match &question.select {
        Some(text) => text.split(',').map(|name| name.trim().to_owned()).collect(),
        None if question.all_columns => schema.iter().map(|column| column.name.clone()).collect(),
        None => {
            let known = SHORT
                .iter()
                .filter(|name| Field::find(name, schema).is_some());
            let short: Vec<String> = known.map(|name| (*name).to_owned()).collect();
            if short.is_empty() {
                Field::names(schema)
            } else {
                short
            }
        }
    };
    let text = question.select.as_deref().unwrap_or_default();
    let mut start = 0;
    let mut select = Vec::new();
    for name in &names {
        let end = text
            .get(start..)
            .and_then(|rest| rest.find(','))
            .map(|end| start + end);
        let span = (start, end.unwrap_or(text.len()));
        start = span.1 + 1;
        let unknown = || field::unknown(name, &Field::names(schema));
        let field = Field::find(name, schema);
        select.push(field.ok_or_else(|| QueryError::misread("--select", text, span, unknown()))?);
    }
    let by = match question.by.as_deref() {
        Some(name) => {
            let unknown = || misread("--by", name, field::unknown(name, &Field::names(schema)));
            Some(Field::find(name, schema).ok_or_else(unknown)?)
        }
        // Without --top and --by, records stay in their order.
        None => question.top.and_then(|_| Field::find("bytes", schema)),
    };
    let columns = names.into_iter().zip(&select);
    let column = |(name, field): (String, &Field)| AnswerColumn {
        name,
        show: field.show(schema),
    };
    Ok(Shape::Records {
        columns: columns.map(column).collect(),
        select,
        by,
    })
}

fn group_sort(
    by: Option<&str>,
    keys: &[GroupKey],
    sources: Sources,
) -> Result<GroupSort, QueryError> {
    let Some(name) = by else {
        return Ok(
            match keys.iter().position(|key| key.column().show == Show::Time) {
                Some(time) => GroupSort::Key(time),
                None if sources.bytes.is_some() => GroupSort::Bytes,
                None => GroupSort::Records,
            },
        );
    };
    if let Some(key) = keys.iter().position(|key| key.name == name) {
        return Ok(GroupSort::Key(key));
    }
    let sums = [
        ("records", GroupSort::Records, true),
        ("packets", GroupSort::Packets, sources.packets.is_some()),
        ("bytes", GroupSort::Bytes, sources.bytes.is_some()),
        ("first_ns", GroupSort::First, sources.first.is_some()),
        ("last_ns", GroupSort::Last, sources.last.is_some()),
    ];
    let there: Vec<_> = sums.into_iter().filter(|(_, _, there)| *there).collect();
    let found = there
        .iter()
        .find(|(known, _, _)| *known == name)
        .map(|(_, sort, _)| *sort);
    found.ok_or_else(|| {
        let keys = keys.iter().map(|key| key.name.clone());
        let names: Vec<String> = keys
            .chain(there.iter().map(|(name, _, _)| (*name).to_owned()))
            .collect();
        misread("--by", name, field::unknown(name, &names))
    })
}

fn misread(option: &'static str, text: &str, reason: String) -> QueryError {
    QueryError::misread(option, text, (0, text.len()), reason)
}
