// SPDX-License-Identifier: Apache-2.0
//! The fields that a question can name: columns, the duration, totals over both directions of a
//! biflow, and ratios.

use turboflow_record::{Column, ColumnKind, FlowBatch, Value};

use crate::meant;
use crate::record_shape::RecordShape;
use crate::span::TimeColumns;

/// A value of every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// A column.
    Column(usize),
    /// Last time minus first time, over both directions.
    Duration(TimeColumns),
    /// The sum of both directions of a biflow.
    Total {
        /// The initiator's column.
        forward: usize,
        /// The responder's column.
        reverse: usize,
    },
    /// One whole number divided by another.
    Ratio(Ratio),
}

/// `over / under`, times a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ratio {
    pub(crate) over: Term,
    pub(crate) under: Term,
    pub(crate) factor: u64,
}

/// A whole number of a record: any field that is not itself a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    Column(usize),
    Duration(TimeColumns),
    Total { forward: usize, reverse: usize },
}

/// Ratios that have their own name: the name, the dividend, the divisor and a factor. Durations are
/// in nanoseconds.
const RATIOS: [(&str, &str, &str, u64); 3] = [
    ("bps", "bytes", "duration", 8 * NS_PER_SECOND),
    ("pps", "packets", "duration", NS_PER_SECOND),
    ("bytes_per_packet", "bytes", "packets", 1),
];

const NS_PER_SECOND: u64 = 1_000_000_000;

/// The dividend, divisor and factor of a ratio; `name` is, for example, `bps` or `bytes/packets`.
pub(crate) fn ratio_of(name: &str) -> Option<(&str, &str, u64)> {
    let named = RATIOS.iter().find(|(known, ..)| *known == name);
    if let Some(&(_, over, under, factor)) = named {
        return Some((over, under, factor));
    }
    let (over, under) = name.split_once('/')?;
    let per_second = under.trim() == "duration";
    let factor = if per_second { NS_PER_SECOND } else { 1 };
    Some((over.trim(), under.trim(), factor))
}

/// The totals of biflows. Each is the sum of a column and its `reverse_` counterpart.
const TOTALS: [(&str, &str); 2] = [("total_packets", "packets"), ("total_bytes", "bytes")];

/// How people write and read the values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// An IP address or network.
    Address,
    /// A plain number.
    Number,
    /// A port of TCP, UDP or another transport.
    Port,
    /// A count that may be large.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds since 1970.
    Time,
    /// Nanoseconds.
    Duration,
    /// TCP flags.
    Flags,
    /// An IP protocol.
    Protocol,
    /// Why a flow record ended.
    EndReason,
    /// A MAC address.
    Mac,
    /// A real number.
    Float,
    /// A number per second.
    Rate,
    /// A percentage.
    Percent,
    /// A list of numbers.
    List,
    /// A text.
    Text,
}

impl Field {
    /// The field with that name, or with a name that stands for it; see [`Field::full_name`].
    pub(crate) fn find(name: &str, schema: &[Column]) -> Option<Self> {
        Self::exact(name, schema).or_else(|| Self::exact(&Self::meant(name, schema)?, schema))
    }

    /// The name of the field that is meant, or `name` itself if there is none. Case is ignored, and
    /// names may be as in table headers (`first` for `first_ns`).
    pub(crate) fn full_name(name: &str, schema: &[Column]) -> String {
        match Self::exact(name, schema) {
            Some(_) => name.to_owned(),
            None => Self::meant(name, schema).unwrap_or_else(|| name.to_owned()),
        }
    }

    /// The field that the name stands for although it is not the field's exact name.
    fn meant(name: &str, schema: &[Column]) -> Option<String> {
        let lower = name.to_lowercase();
        let names = Self::names(schema);
        let find = |is_it: &dyn Fn(&str) -> bool| names.iter().find(|known| is_it(known)).cloned();
        let in_header = |known: &str| {
            let shows = Self::exact(known, schema).map(|field| field.show_by_name(schema));
            let in_ns = matches!(shows, Some(Show::Time | Show::Duration));
            in_ns
                && known
                    .strip_suffix("_ns")
                    .is_some_and(|it| it.eq_ignore_ascii_case(&lower))
        };
        let other = match lower.as_str() {
            "start" | "time" => "first_ns",
            "end" => "last_ns",
            _ => "",
        };
        find(&|known| known.eq_ignore_ascii_case(&lower))
            .or_else(|| find(&in_header))
            .or_else(|| find(&|known| known == other))
    }

    /// The field with exactly that name.
    pub(crate) fn exact(name: &str, schema: &[Column]) -> Option<Self> {
        let column = |name: &str| schema.iter().position(|column| column.name == name);
        if let Some(index) = column(name) {
            return Some(Self::Column(index));
        }
        if name == "duration" {
            let times = TimeColumns::of(schema);
            return times.have_duration().then_some(Self::Duration(times));
        }
        let Some((_, one_way)) = TOTALS.iter().find(|(total, _)| *total == name) else {
            return Self::ratio(name, schema);
        };
        Some(Self::Total {
            forward: column(one_way)?,
            reverse: column(&format!("reverse_{one_way}"))?,
        })
    }

    /// The ratio with that name. If it has its own name, as `bps` has, it is computed over both
    /// directions.
    fn ratio(name: &str, schema: &[Column]) -> Option<Self> {
        let is_spelled_out = name.contains('/');
        let (over, under, factor) = ratio_of(name)?;
        let term = |name: &str| {
            let field = match is_spelled_out {
                true => Self::find(name, schema),
                false => Self::all_of(name, schema),
            };
            field?.term()
        };
        let (over, under) = (term(over)?, term(under)?);
        let is_number = |term: Term| {
            let shows = [Show::Number, Show::Count, Show::Bytes];
            shows.contains(&Self::from(term).show_by_name(schema))
        };
        let is_divisible = is_number(under) || matches!(under, Term::Duration(_));
        let ratio = Ratio {
            over,
            under,
            factor,
        };
        (is_number(over) && is_divisible).then_some(Self::Ratio(ratio))
    }

    /// The field as a term of a ratio; `None` if the field is itself a ratio.
    const fn term(self) -> Option<Term> {
        match self {
            Self::Column(column) => Some(Term::Column(column)),
            Self::Duration(times) => Some(Term::Duration(times)),
            Self::Total { forward, reverse } => Some(Term::Total { forward, reverse }),
            Self::Ratio(_) => None,
        }
    }

    /// All packets or bytes of a record, in both directions if it has two.
    pub(crate) fn all_of(name: &str, schema: &[Column]) -> Option<Self> {
        let total = TOTALS.iter().find(|(_, one_way)| *one_way == name);
        total
            .and_then(|(total, _)| Self::exact(total, schema))
            .or_else(|| Self::exact(name, schema))
    }

    /// Whether the records have a column with that name.
    pub(crate) fn is_column(name: &str, schema: &[Column]) -> bool {
        schema.iter().any(|column| column.name == name)
    }

    /// The full names of all fields.
    pub(crate) fn names(schema: &[Column]) -> Vec<String> {
        let mut names: Vec<String> = schema.iter().map(|column| column.name.clone()).collect();
        let totals = TOTALS.iter().map(|(total, _)| *total);
        let ratios = RATIOS.iter().map(|(name, ..)| *name);
        for name in totals.chain(["duration"]).chain(ratios) {
            if !Self::is_column(name, schema) && Self::exact(name, schema).is_some() {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// The value of the field in a record.
    pub(crate) fn value(self, batch: &FlowBatch, row: usize) -> Value<'_> {
        match self {
            Self::Column(column) => batch.value(row, column),
            Self::Duration(times) => {
                let duration_ns = times.times(batch, row).duration_ns();
                duration_ns.map_or(Value::Absent, Value::Unsigned)
            }
            Self::Total { forward, reverse } => {
                match (batch.value(row, forward), batch.value(row, reverse)) {
                    (Value::Unsigned(forward), Value::Unsigned(reverse)) => {
                        let total = forward.checked_add(reverse);
                        total.map_or(Value::Absent, Value::Unsigned)
                    }
                    // The responder sent nothing.
                    (forward, _) => forward,
                }
            }
            Self::Ratio(ratio) => ratio.value(batch, row).map_or(Value::Absent, Value::Float),
        }
    }

    /// The columns that the field is computed from.
    pub(crate) fn columns(self) -> Vec<usize> {
        match self {
            Self::Column(column) => vec![column],
            Self::Duration(times) => times.columns().collect(),
            Self::Total { forward, reverse } => vec![forward, reverse],
            Self::Ratio(Ratio { over, under, .. }) => [over, under]
                .map(|term| Self::from(term).columns())
                .concat(),
        }
    }

    pub(crate) fn kind(self, schema: &[Column]) -> ColumnKind {
        match self {
            Self::Column(column) => schema[column].kind,
            Self::Duration(_) | Self::Total { .. } => ColumnKind::Unsigned { bits: 64 },
            Self::Ratio(_) => ColumnKind::Float,
        }
    }

    /// Whether it is a column in nanoseconds, according to its name.
    pub(crate) fn is_in_ns(self, schema: &[Column]) -> bool {
        matches!(self, Self::Column(index) if schema[index].name.ends_with("_ns"))
    }

    /// How its values are shown. For columns of a definition, the unit is known from there.
    pub(crate) fn show(self, records: RecordShape<'_>) -> Show {
        let column = match self {
            Self::Column(index) | Self::Total { forward: index, .. } => Some(index),
            Self::Duration(_) | Self::Ratio(_) => None,
        };
        match column {
            Some(index) if records.is_in_ns(&records.schema[index].name) => Show::Duration,
            _ => self.show_by_name(records.schema),
        }
    }

    /// How its values are shown, as far as the column's name and kind tell.
    fn show_by_name(self, schema: &[Column]) -> Show {
        let index = match self {
            Self::Duration(_) => return Show::Duration,
            Self::Ratio(ratio) => return ratio.show(),
            Self::Column(index) | Self::Total { forward: index, .. } => index,
        };
        let name = schema[index].name.trim_start_matches("reverse_");
        match (schema[index].kind, name) {
            (ColumnKind::Address, _) => Show::Address,
            (ColumnKind::TimestampNs, _) => Show::Time,
            (ColumnKind::Mac, _) => Show::Mac,
            (ColumnKind::Float, _) => Show::Float,
            (ColumnKind::List, _) => Show::List,
            (ColumnKind::Text, _) => Show::Text,
            (ColumnKind::Unsigned { .. }, "protocol") => Show::Protocol,
            (ColumnKind::Unsigned { .. }, "tcp_flags") => Show::Flags,
            (ColumnKind::Unsigned { .. }, "end_reason") => Show::EndReason,
            (ColumnKind::Unsigned { .. }, "src_port" | "dst_port") => Show::Port,
            (ColumnKind::Unsigned { .. }, "packets") => Show::Count,
            (ColumnKind::Unsigned { .. }, "bytes" | "frame_bytes") => Show::Bytes,
            (ColumnKind::Unsigned { .. }, "duration" | "duration_ns") => Show::Duration,
            (ColumnKind::Unsigned { .. }, _) => Show::Number,
        }
    }
}

impl From<Term> for Field {
    fn from(term: Term) -> Self {
        match term {
            Term::Column(column) => Self::Column(column),
            Term::Duration(times) => Self::Duration(times),
            Term::Total { forward, reverse } => Self::Total { forward, reverse },
        }
    }
}

impl Ratio {
    /// The value in a record; `None` if a term is absent or the divisor is zero.
    fn value(self, batch: &FlowBatch, row: usize) -> Option<f64> {
        let number = |term: Term| match Field::from(term).value(batch, row) {
            Value::Unsigned(number) => Some(number),
            _ => None,
        };
        divided(number(self.over)?, number(self.under)?, self.factor)
    }

    pub(crate) const fn show(self) -> Show {
        match self.under {
            Term::Duration(_) => Show::Rate,
            _ => Show::Float,
        }
    }
}

/// `over / under * factor`; `None` for a division by zero.
pub(crate) fn divided(over: u64, under: u64, factor: u64) -> Option<f64> {
    (under > 0).then(|| over as f64 * factor as f64 / under as f64)
}

/// The trimmed items of a comma-separated list, and their positions.
pub(crate) fn listed(text: &str) -> impl Iterator<Item = (&str, (usize, usize))> {
    let mut start = 0;
    text.split(',').map(move |part| {
        let span = (start, start + part.len());
        start = span.1 + 1;
        (part.trim(), span)
    })
}

/// `name`, or `group_NAME` if a column of the file has that name: columns of files take precedence
/// over measures.
pub(crate) fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut free = name.to_owned();
    while is_taken(&free) {
        free.insert_str(0, "group_");
    }
    free
}

/// The error message for an unknown field. For a ratio, it names the term that is unknown. `words`
/// are further words, apart from fields, that are valid in this place.
pub(crate) fn unknown(name: &str, names: &[String], words: &[&str]) -> String {
    if let Some((over, under)) = name.split_once('/') {
        let is_known = |part: &str| names.iter().any(|known| known == part);
        return match [over.trim(), under.trim()]
            .into_iter()
            .find(|part| !is_known(part))
        {
            Some(part) if !part.is_empty() => unknown(part, names, words),
            _ => format!(
                "{name:?} is not a ratio: only numbers can be divided, by numbers or the duration"
            ),
        };
    }
    let hint = match meant::of(name, names, words).or_else(|| nearest(name, names)) {
        Some(known) => format!("did you mean {known}? "),
        None => String::new(),
    };
    let shown: String = name.chars().take(40).collect();
    format!(
        "unknown field {shown:?}: {hint}known are {}",
        names.join(", ")
    )
}

/// The most similar name; `None` if more than a third of the letters, or more than three, differ: a
/// wrong hint is worse than none.
fn nearest<'a>(name: &str, names: &'a [String]) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let near = names.iter().min_by_key(|known| distance(&lower, known))?;
    let most = (name.len() / 3).min(3);
    (distance(&lower, near) <= most).then_some(near)
}

/// Edit distance: letters to change, insert or remove.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, letter) in left.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in right.iter().enumerate() {
            let change = diagonal + usize::from(letter != *other);
            diagonal = row[column + 1];
            row[column + 1] = change.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_nearest_name() {
        let names = ["src_addr", "dst_addr", "bytes"].map(str::to_owned);
        assert!(unknown("src_adr", &names, &[]).contains("did you mean src_addr?"));
        assert!(!unknown("zzz", &names, &[]).contains("did you mean"));
        assert!(!unknown("minute", &["min_ttl".to_owned()], &[]).contains("did you mean"));
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
