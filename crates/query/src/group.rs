// SPDX-License-Identifier: Apache-2.0
//! `--group-by`: what records are added up by.

use std::net::IpAddr;

use turboflow_record::{Column, ColumnKind, FlowBatch, Value};

use crate::QueryError;
use crate::answer::{AnswerColumn, Cell};
use crate::compare;
use crate::field::{self, Field, Show};
use crate::literal::masked;

const OPTION: &str = "--group-by";

/// One field of the groups' key.
#[derive(Clone, Debug)]
pub(crate) struct GroupKey {
    pub(crate) name: String,
    field: Field,
    show: Show,
    by: By,
}

#[derive(Clone, Copy, Debug)]
enum By {
    /// Every value its own group.
    Value,
    /// Values from a multiple of the width to the next.
    Bucket(u64),
    /// Networks of these lengths.
    Prefix { v4: u8, v6: u8 },
}

/// IPv6 networks where only the length of IPv4 networks was given: a site's usual subnet.
const V6_PREFIX: u8 = 64;

/// Understands `FIELD,FIELD:BUCKET,FIELD/PREFIX,time:5m`.
pub(crate) fn parse(text: &str, schema: &[Column]) -> Result<Vec<GroupKey>, QueryError> {
    let mut start = 0;
    let parts = text.split(',').map(|part| {
        let span = (start, start + part.len());
        start = span.1 + 1;
        key(part.trim(), schema).map_err(|why| QueryError::misread(OPTION, text, span, why))
    });
    parts.collect()
}

fn key(text: &str, schema: &[Column]) -> Result<GroupKey, String> {
    let end = text.find([':', '/']).unwrap_or(text.len());
    let (name, suffix) = text.split_at(end);
    let column = if name == "time" { "first_ns" } else { name };
    let found = Field::find(name, schema).or_else(|| Field::find(column, schema));
    let field = found.ok_or_else(|| {
        let mut names = Field::names(schema);
        if Field::find("first_ns", schema).is_some() {
            names.push("time".to_owned());
        }
        field::unknown(name, &names)
    })?;
    let (kind, show) = (field.kind(schema), field.show(schema));
    let by = match (suffix.split_at_checked(1), kind) {
        (None, ColumnKind::List) => return Err(format!("{name} is a list: no key for a group")),
        (None, ColumnKind::TimestampNs) => {
            return Err(format!("times need a width to group by: write {name}:5m"));
        }
        (None, _) => By::Value,
        (Some((":", width)), ColumnKind::Unsigned { .. } | ColumnKind::TimestampNs) => {
            bucket(width, show)?
        }
        (Some(("/", lengths)), ColumnKind::Address) => prefix(lengths)?,
        (Some((sign, _)), _) => {
            let what = if sign == ":" {
                "no number or time"
            } else {
                "no address"
            };
            return Err(format!("{name} is {what}, so {suffix:?} cannot follow it"));
        }
    };
    Ok(GroupKey {
        name: text.to_owned(),
        field,
        show,
        by,
    })
}

fn bucket(width: &str, show: Show) -> Result<By, String> {
    let show = if show == Show::Time {
        Show::Duration
    } else {
        show
    };
    match compare::number(width, show)? {
        0 => Err("a bucket must be wider than nothing".to_owned()),
        width => Ok(By::Bucket(width)),
    }
}

fn prefix(lengths: &str) -> Result<By, String> {
    let (first, second) = lengths.split_once('/').unwrap_or((lengths, ""));
    let length = |text: &str, most: u8| {
        text.parse::<u8>()
            .ok()
            .filter(|length| *length <= most)
            .ok_or_else(|| {
                format!("{text:?} is not the length of a prefix: write /24, or /24/48 with IPv6's")
            })
    };
    if !second.is_empty() {
        return Ok(By::Prefix {
            v4: length(first, 32)?,
            v6: length(second, 128)?,
        });
    }
    Ok(match length(first, 128)? {
        v4 @ 0..=32 => By::Prefix { v4, v6: V6_PREFIX },
        v6 => By::Prefix { v4: 32, v6 },
    })
}

impl GroupKey {
    /// The key's part of a record.
    pub(crate) fn cell(&self, batch: &FlowBatch, row: usize) -> Cell {
        match (self.field.value(batch, row), self.by) {
            (Value::Unsigned(value), By::Bucket(width)) => Cell::Unsigned(value - value % width),
            (Value::Address(address), By::Prefix { v4, v6 }) => {
                let length = if matches!(address, IpAddr::V4(_)) {
                    v4
                } else {
                    v6
                };
                Cell::Network(masked(address, length), length)
            }
            (value, _) => Cell::from(value),
        }
    }

    pub(crate) fn column(&self) -> AnswerColumn {
        AnswerColumn {
            name: self.name.clone(),
            show: self.show,
        }
    }
}
