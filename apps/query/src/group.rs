// SPDX-License-Identifier: Apache-2.0
//! The keys by which records are grouped.

use turboflow_record::{Column, ColumnKind};

use crate::answer::AnswerColumn;
use crate::compare;
use crate::error::{Part, QueryError};
use crate::field::{self, Field, Show};
use crate::group_keys::KeyForm;
use crate::record_shape::RecordShape;

/// One field of the groups' key.
#[derive(Clone, Debug)]
pub(crate) struct GroupKey {
    /// Its name in questions.
    pub(crate) name: String,
    /// The name of its column in answers.
    column: String,
    field: Field,
    /// The field of the other host, for the key `host`: a record counts at both of its hosts.
    other: Option<Field>,
    show: Show,
    by: Grain,
    form: KeyForm,
}

#[derive(Clone, Copy, Debug)]
enum Grain {
    /// One group per value.
    Value,
    /// One group per interval of this width, aligned to multiples of the width.
    Bucket(u64),
    /// One group per network, with these prefix lengths.
    Prefix { v4: u8, v6: u8 },
    /// One group per time bucket of this width in ns; a record's counts are spread over its
    /// buckets. The column holds the start of the bucket.
    Time(u64),
}

/// Prefix length for IPv6 if only one for IPv4 was given: the usual subnet of a site.
const V6_PREFIX: u8 = 64;

/// Parses `FIELD,FIELD:BUCKET,FIELD/PREFIX,time:5m`.
pub(crate) fn parse(text: &str, records: RecordShape<'_>) -> Result<Vec<GroupKey>, QueryError> {
    let mut keys = Vec::<GroupKey>::new();
    for (part, span) in field::listed(text) {
        let wrong = |why| QueryError::misread(Part::Groups, text, span, why);
        let key = key(part, records).map_err(wrong)?;
        if keys.iter().any(|known| known.name == key.name) {
            return Err(wrong(format!("{part} is given twice")));
        }
        let is_time = |key: &GroupKey| key.time_width_ns().is_some();
        if is_time(&key) && keys.iter().any(is_time) {
            return Err(wrong("one width for the time is enough".to_owned()));
        }
        if key.other.is_some() && keys.iter().any(|known| known.other.is_some()) {
            return Err(wrong("host is given twice".to_owned()));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// The name of the key that groups records by time buckets.
pub(crate) fn time_name(schema: &[Column]) -> String {
    field::free_name("time", |name| Field::is_column(name, schema))
}

fn key(text: &str, records: RecordShape<'_>) -> Result<GroupKey, String> {
    let schema = records.schema;
    let end = text.find([':', '/']).unwrap_or(text.len());
    let (name, suffix) = text.split_at(end);
    let time_name = time_name(schema);
    let is_time = name.eq_ignore_ascii_case(&time_name) && Field::exact(name, schema).is_none();
    let time = Field::exact("first_ns", schema).filter(|_| is_time);
    if let Some(field) = time {
        return time_key(text, field, schema);
    }
    let either_end = || {
        Some((
            Field::find("src_addr", schema)?,
            Field::find("dst_addr", schema)?,
        ))
    };
    let (field, other) = match Field::find(name, schema) {
        Some(field) => (field, None),
        None if name.eq_ignore_ascii_case("host") => {
            let (field, other) = either_end().ok_or_else(|| unknown(name, schema))?;
            (field, Some(other))
        }
        None => return Err(unknown(name, schema)),
    };
    let full_name = match other {
        Some(_) => "host".to_owned(),
        None => Field::full_name(name, schema),
    };
    if matches!(field, Field::Ratio(_)) {
        return Err(format!(
            "{name} differs in nearly every record, so it cannot be a key of groups"
        ));
    }
    let (kind, show) = (field.kind(schema), field.show(records));
    let by = match (suffix.split_at_checked(1), kind) {
        (None, ColumnKind::List) => return Err(format!("{name} is a list: it cannot be a key")),
        (None, ColumnKind::TimestampNs) => {
            return Err(format!("times need a width to group by: write {name}:5m"));
        }
        (None, _) => Grain::Value,
        (Some((":", width)), ColumnKind::Unsigned { .. } | ColumnKind::TimestampNs) => {
            bucket(width, show)?
        }
        (Some(("/", lengths)), ColumnKind::Address) => prefix(lengths)?,
        (Some((sign, _)), _) => {
            let what = if sign == ":" {
                "not a number or a time"
            } else {
                "not an address"
            };
            return Err(format!("{name} is {what}, so {suffix:?} cannot follow it"));
        }
    };
    let name = format!("{full_name}{suffix}");
    Ok(GroupKey {
        column: name.clone(),
        name,
        field,
        other,
        show,
        by,
        form: form(by, kind),
    })
}

/// The form in which keys of that kind are stored.
const fn form(by: Grain, kind: ColumnKind) -> KeyForm {
    match (by, kind) {
        (Grain::Prefix { v4, v6 }, _) => KeyForm::Network { v4, v6 },
        (Grain::Bucket(width) | Grain::Time(width), _) => KeyForm::Number { width },
        (Grain::Value, ColumnKind::Address) => KeyForm::Address,
        (Grain::Value, ColumnKind::Float) => KeyForm::Float,
        (Grain::Value, ColumnKind::Text) => KeyForm::Text,
        (Grain::Value, _) => KeyForm::Number { width: 1 },
    }
}

fn time_key(text: &str, field: Field, schema: &[Column]) -> Result<GroupKey, String> {
    let Some((_, width)) = text.split_once(':') else {
        return Err(format!("times need a width to group by: write {text}:5m"));
    };
    let width = width_of(width, Show::Duration)?;
    Ok(GroupKey {
        name: text.to_owned(),
        column: field::free_name("start_ns", |name| Field::is_column(name, schema)),
        field,
        other: None,
        show: Show::Time,
        by: Grain::Time(width),
        form: KeyForm::Number { width },
    })
}

fn unknown(name: &str, schema: &[Column]) -> String {
    match name {
        "net" => "for networks write host/24, src_addr/24 or dst_addr/24".to_owned(),
        "port" => "a record has two ports, and one of them is random: group by dst_port, by \
                   src_port, or by src_port,dst_port"
            .to_owned(),
        _ => {
            let mut names = Field::names(schema);
            if Field::find("first_ns", schema).is_some() {
                names.push(time_name(schema));
            }
            names.push("host".to_owned());
            field::unknown(name, &names, &["time"])
        }
    }
}

fn bucket(width: &str, show: Show) -> Result<Grain, String> {
    let show = if show == Show::Time {
        Show::Duration
    } else {
        show
    };
    width_of(width, show).map(Grain::Bucket)
}

fn width_of(text: &str, show: Show) -> Result<u64, String> {
    match compare::number(text, show)? {
        0 => Err("a bucket must be wider than 0".to_owned()),
        width => Ok(width),
    }
}

fn prefix(lengths: &str) -> Result<Grain, String> {
    let (first, second) = lengths.split_once('/').unwrap_or((lengths, ""));
    let length = |text: &str, most: u8| {
        text.parse::<u8>()
            .ok()
            .filter(|length| *length <= most)
            .ok_or_else(|| {
                format!("{text:?} is not the length of a prefix: write /24, or /24/48 for IPv6 too")
            })
    };
    if !second.is_empty() {
        return Ok(Grain::Prefix {
            v4: length(first, 32)?,
            v6: length(second, 128)?,
        });
    }
    Ok(match length(first, 128)? {
        v4 @ 0..=32 => Grain::Prefix { v4, v6: V6_PREFIX },
        v6 => Grain::Prefix { v4: 32, v6 },
    })
}

impl GroupKey {
    /// Width of the time buckets that records are spread over, if they are.
    pub(crate) const fn time_width_ns(&self) -> Option<u64> {
        match self.by {
            Grain::Time(width_ns) => Some(width_ns),
            _ => None,
        }
    }

    /// Width of the time buckets, if the key is a time.
    pub(crate) fn bucket_ns(&self) -> Option<u64> {
        match self.by {
            Grain::Time(width_ns) => Some(width_ns),
            Grain::Bucket(width_ns) if self.show == Show::Time => Some(width_ns),
            _ => None,
        }
    }

    /// How many values share a group; 1 if each has its own.
    pub(crate) const fn width(&self) -> u64 {
        match self.by {
            Grain::Bucket(width) | Grain::Time(width) => width,
            Grain::Value | Grain::Prefix { .. } => 1,
        }
    }

    /// Whether a record counts at both of its hosts.
    pub(crate) const fn is_host(&self) -> bool {
        self.other.is_some()
    }

    /// The field that the key is made from; for time buckets, the time of the first packet.
    pub(crate) const fn field(&self) -> Field {
        self.field
    }

    /// The field of the other host, if the record counts there too.
    pub(crate) const fn other(&self) -> Option<Field> {
        self.other
    }

    /// The form in which the key is stored.
    pub(crate) const fn form(&self) -> KeyForm {
        self.form
    }

    /// Whether a question can refer to it by this name: its own name, with or without the bucket
    /// width, or the name of its column.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        let field = self.name.split(':').next().unwrap_or_default();
        let in_table = self
            .column
            .strip_suffix("_ns")
            .filter(|_| self.show == Show::Time);
        [field, &self.name, &self.column].contains(&name) || in_table == Some(name)
    }

    pub(crate) fn column(&self) -> AnswerColumn {
        AnswerColumn {
            name: self.column.clone(),
            show: self.show,
        }
    }
}
