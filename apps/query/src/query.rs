// SPDX-License-Identifier: Apache-2.0
//! Questions, and queries bound to a schema.

use turboflow_record::Column;

use crate::answer::{AnswerColumn, ColumnOrder};
use crate::field::{self, Field, Show};
use crate::fold::Fold;
use crate::grouping::{self, GroupSort, Grouping};
use crate::record_shape::RecordShape;
use crate::span::TimeColumns;
use crate::within::Within;
use crate::{Filter, Part, QueryError};

/// A question in the words of a user. The program has an option for each field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The filter expression; `None` selects all records.
    pub filter: Option<String>,
    /// The time that `-1h` in `filter` and `within` is relative to, in nanoseconds since 1970;
    /// `None` refuses relative times.
    pub now_ns: Option<u64>,
    /// The requested range of time, `FROM..TO`: FROM is included, TO is not, and one of the two may
    /// be absent. It selects the records that have packets in it, and each of them counts as a
    /// whole. Time buckets outside it are left out. Each direction of a biflow has its own times.
    pub within: Option<String>,
    /// Whether groups count only the part of each record that lies in `within`: sums are split as
    /// for time buckets, and the record itself counts if it began in that range.
    pub clip: bool,
    /// The fields to group by, comma-separated.
    pub group_by: Option<String>,
    /// The field to sort rows by. Default: `bytes` (`total_bytes` in biflows), or the time if
    /// groups are by time. It is shown unless `select` is given, and groups fold it if they do not
    /// already.
    pub by: Option<String>,
    /// The columns of the answer, comma-separated; for groups, only those after the key.
    pub select: Option<String>,
    /// Sorts the smallest values first. Default: largest first.
    pub ascending: bool,
    /// Maximum number of rows; `None`: all.
    pub top: Option<usize>,
    /// Maximum number of rows in each time bucket, the largest first; `None`: all.
    pub top_each: Option<usize>,
    /// Shows all columns, not only those that fit in a terminal, if `select` is absent.
    pub all_columns: bool,
}

/// A question bound to a schema, to be answered by [`run`](crate::run).
#[derive(Clone, Debug)]
pub struct Query {
    pub(crate) filter: Option<Filter>,
    pub(crate) within: Option<Within>,
    pub(crate) shape: Shape,
    pub(crate) ascending: bool,
    pub(crate) top: Option<usize>,
    pub(crate) sources: Sources,
    pub(crate) order: ColumnOrder,
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
    Groups(Grouping),
}

/// The fields that every question needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sources {
    pub(crate) packets: Option<Field>,
    pub(crate) bytes: Option<Field>,
    pub(crate) times: TimeColumns,
}

/// Default columns of records, if the schema has them.
const SHORT: [&str; 13] = [
    "src_addr",
    "src_port",
    "dst_addr",
    "dst_port",
    "protocol",
    "packets",
    "bytes",
    "reverse_packets",
    "reverse_bytes",
    "first_ns",
    "duration",
    "tcp_flags",
    "end_reason",
];

/// Number of columns that usually fit in a terminal.
const FITTING: usize = 11;

impl Query {
    /// Parses a question about records of that shape.
    ///
    /// # Errors
    /// [`QueryError::Question`] points at the invalid word and lists the known fields.
    pub fn parse<'a>(
        question: &Question,
        shape: impl Into<RecordShape<'a>>,
    ) -> Result<Self, QueryError> {
        let known = shape.into();
        let schema = known.schema;
        let counted = |name: &str| {
            let is_sum = known.fold_of(name) == Ok(Fold::Sum);
            is_sum.then(|| Field::all_of(name, schema)).flatten()
        };
        let filter = question
            .filter
            .as_deref()
            .map(|text| Filter::parse_at(text, known, question.now_ns));
        let filter = filter.transpose()?;
        let times = TimeColumns::of(schema);
        let within = question.within.as_deref();
        let within = within.map(|text| Within::parse(text, times, question.now_ns));
        let within = within.transpose()?;
        if question.clip && (within.is_none() || question.group_by.is_none()) {
            let reason = "clipping needs both a part of time and fields to group by";
            let text = question.within.as_deref().unwrap_or_default();
            return Err(misread(Part::Time, text, reason.to_owned()));
        }
        let sources = Sources {
            packets: counted("packets"),
            bytes: counted("bytes"),
            times,
        };
        let shape = match &question.group_by {
            Some(text) => Shape::Groups(grouping::parse(question, text, known)?),
            None => match question.top_each {
                None => records(question, known)?,
                Some(_) => {
                    let reason = grouping::NO_BUCKETS.to_owned();
                    return Err(misread(Part::Groups, "", reason));
                }
            },
        };
        // Times sort ascending by default, as readers expect.
        let forward = match &shape {
            Shape::Groups(Grouping { keys, by, .. }) => {
                let in_time = |key: usize| keys[key].column().show == Show::Time;
                question.by.is_none() && matches!(by, GroupSort::Key(key) if in_time(*key))
            }
            Shape::Records { .. } => false,
        };
        let ascending = question.ascending || forward;
        let order = ColumnOrder {
            is_listed: question.select.is_some(),
            ..shape.order(question, schema)
        };
        Ok(Self {
            order,
            filter,
            within,
            shape,
            ascending,
            top: question.top,
            sources,
        })
    }
}

impl Query {
    /// Notes for readers of the answer about words in the filter that may not mean what they seem
    /// to mean.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        self.filter.as_ref().map_or(&[], Filter::notes)
    }

    /// The columns that are read for every record, and those that are read only for records shown.
    pub(crate) fn columns_read(&self) -> (Vec<usize>, Vec<usize>) {
        let Sources {
            packets,
            bytes,
            times,
        } = self.sources;
        let counted = [packets, bytes].into_iter().flatten();
        let mut first: Vec<usize> = counted.flat_map(Field::columns).collect();
        if let Some(filter) = &self.filter {
            filter.columns(&mut first);
        }
        if self.reads_times() {
            first.extend(times.columns());
        }
        let mut then = Vec::new();
        match &self.shape {
            Shape::Records { select, by, .. } => {
                first.extend(by.iter().flat_map(|by| by.columns()));
                then.extend(select.iter().flat_map(|field| field.columns()));
            }
            Shape::Groups(grouping) => first.extend(grouping.columns_read(times)),
        }
        (first, then)
    }

    /// The keys and measures of groups, if the question is about groups.
    pub(crate) const fn grouping(&self) -> Option<&Grouping> {
        match &self.shape {
            Shape::Groups(grouping) => Some(grouping),
            Shape::Records { .. } => None,
        }
    }

    /// Sets a limit on groups; exceeding it is an error. It is for questions of untrusted users,
    /// whose memory must be bounded below the general limit.
    #[must_use]
    pub fn with_most_groups(mut self, groups: usize) -> Self {
        if let Shape::Groups(grouping) = &mut self.shape {
            grouping.most = groups;
        }
        self
    }

    /// The first and last nanosecond of the requested range of time. An open end is the first or
    /// last possible time.
    #[must_use]
    pub fn within_ns(&self) -> Option<(u64, u64)> {
        self.within.map(|within| within.ends_ns())
    }

    /// Whether the filter or the range of time is relative to now.
    #[must_use]
    pub fn counts_from_now(&self) -> bool {
        self.filter.as_ref().is_some_and(Filter::counts_from_now)
            || self.within.is_some_and(|within| within.counts_from_now)
    }

    /// Whether the times of all records are read, also of those that do not match.
    pub(crate) fn reads_times(&self) -> bool {
        self.within.is_some() || self.counts_from_now()
    }
}

impl Shape {
    fn order(&self, question: &Question, schema: &[Column]) -> ColumnOrder {
        match self {
            Self::Records { columns, .. } => {
                // Without a sort key, the largest rows are those with most bytes.
                let implied = question.top.map(|_| "bytes");
                let by = question.by.as_deref().or(implied);
                let by = by.map(|by| Field::full_name(by, schema));
                let is_by = |column: &AnswerColumn| Some(&column.name) == by.as_ref();
                ColumnOrder {
                    sorted_by: columns.iter().position(is_by),
                    ..ColumnOrder::default()
                }
            }
            Self::Groups(Grouping {
                keys, by, columns, ..
            }) => {
                let at = |measure| columns.iter().position(|(_, each)| *each == measure);
                let by = match by {
                    GroupSort::Key(_) => None,
                    GroupSort::Measure(measure) => at(*measure),
                };
                ColumnOrder {
                    keys: keys.len(),
                    sorted_by: by.map(|column| keys.len() + column),
                    is_listed: false,
                }
            }
        }
    }
}

fn records(question: &Question, known: RecordShape<'_>) -> Result<Shape, QueryError> {
    let schema = known.schema;
    let unknown = |name: &str| field::unknown(name, &Field::names(schema), &[]);
    let by = match question.by.as_deref() {
        Some(name) => {
            let found = Field::find(name, schema);
            Some(found.ok_or_else(|| misread(Part::Order, name, unknown(name)))?)
        }
        // Without a limit on rows and a sort key, records keep their order.
        None => question.top.and_then(|_| Field::all_of("bytes", schema)),
    };
    let mut select = Vec::<(String, Field)>::new();
    match &question.select {
        Some(text) => {
            for (name, span) in field::listed(text) {
                let wrong = |reason| QueryError::misread(Part::Columns, text, span, reason);
                let field = Field::find(name, schema).ok_or_else(|| wrong(unknown(name)))?;
                let name = Field::full_name(name, schema);
                if select.iter().any(|(known, _)| *known == name) {
                    return Err(wrong(format!("{name} is given twice")));
                }
                select.push((name, field));
            }
        }
        None => {
            let names = usual_columns(question, schema);
            let found = |name: String| Field::find(&name, schema).map(|field| (name, field));
            select.extend(names.into_iter().filter_map(found));
        }
    }
    let column = |(name, field): &(String, Field)| AnswerColumn {
        name: name.clone(),
        show: field.show(known),
    };
    Ok(Shape::Records {
        columns: select.iter().map(column).collect(),
        select: select.into_iter().map(|(_, field)| field).collect(),
        by,
    })
}

/// Default columns of records: all, or those of [`SHORT`], filled up with other columns of the file
/// and including the sort key.
fn usual_columns(question: &Question, schema: &[Column]) -> Vec<String> {
    let columns = || schema.iter().map(|column| column.name.clone());
    let known = SHORT.map(str::to_owned).into_iter();
    let mut names: Vec<String> = match question.all_columns {
        true => columns().collect(),
        false => known
            .filter(|name| Field::find(name, schema).is_some())
            .collect(),
    };
    for name in question.by.iter().map(|by| Field::full_name(by, schema)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    for name in columns() {
        if names.len() < FITTING && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

pub(crate) fn misread(part: Part, text: &str, reason: String) -> QueryError {
    QueryError::misread(part, text, (0, text.len()), reason)
}
