// SPDX-License-Identifier: Apache-2.0
//! Values that are folded over the records of a group, and what of them is in a part of time.

use turboflow_record::{ColumnKind, FlowBatch};

use crate::QueryError;
use crate::field::Field;
use crate::fold::{Fold, NoFold};
use crate::numbers::Numbers;
use crate::record_shape::RecordShape;
use crate::span::{Direction, Times};

/// A value folded over the records of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) name: String,
    pub(crate) field: Field,
    pub(crate) fold: Fold,
    direction: Direction,
}

/// The amount of that name, or of `sum(COLUMN)` and the like. The error gives the reason if there
/// is such a field.
pub(crate) fn amount(name: &str, records: RecordShape<'_>) -> Result<Amount, Option<String>> {
    let schema = records.schema;
    let (column, asked) = asked_fold(name).unwrap_or((name, None));
    let field = Field::find(column, schema).ok_or(None)?;
    let fold = asked.map_or_else(|| fold_of(name, field, records), Ok);
    let is_number = matches!(field.kind(schema), ColumnKind::Unsigned { .. });
    match fold {
        Ok(fold) if is_number => Ok(Amount {
            name: name.to_owned(),
            field,
            fold,
            direction: Direction::of(column, schema),
        }),
        Err(NoFold::Unknown) if is_number => Err(Some(format!(
            "the file does not say whether {name} can be added up: write sum({name}), \
             max({name}) or min({name}); Parquet and IPFIX files hold the definition"
        ))),
        _ => Err(Some(format!(
            "{name} is no amount that groups could add up"
        ))),
    }
}

fn fold_of(name: &str, field: Field, records: RecordShape<'_>) -> Result<Fold, NoFold> {
    match field {
        // The total of both directions is always a sum.
        Field::Total { forward, .. } => match records.fold_of(&records.schema[forward].name)? {
            Fold::Sum => Ok(Fold::Sum),
            _ => Err(NoFold::Never),
        },
        Field::Column(_) | Field::Duration(_) => records.fold_of(name),
        Field::Ratio(_) => Err(NoFold::Never),
    }
}

/// The field and the fold of `max(FIELD)`.
fn asked_fold(text: &str) -> Option<(&str, Option<Fold>)> {
    let (word, rest) = text.strip_suffix(')')?.split_once('(')?;
    let fold = Fold::from_word(word.trim())?;
    Some((rest.trim(), Some(fold)))
}

/// The numbers of an amount, for all records of a batch.
pub(crate) struct AmountNumbers<'a> {
    pub(crate) whole: Numbers<'a>,
    fold: Fold,
    parts: Parts<'a>,
}

/// What is spread over the time of the packets that it counts.
enum Parts<'a> {
    /// The whole, in this direction.
    One(Direction),
    /// The initiator's and the responder's.
    Two(Numbers<'a>, Numbers<'a>),
}

impl Amount {
    #[cold]
    pub(crate) fn too_large(&self) -> QueryError {
        QueryError::Sum {
            column: self.name.clone(),
        }
    }

    pub(crate) fn numbers<'a>(&self, batch: &'a FlowBatch) -> AmountNumbers<'a> {
        AmountNumbers {
            whole: Numbers::of(self.field, batch),
            fold: self.fold,
            parts: match self.field {
                Field::Total { forward, reverse } => {
                    let of = |column| Numbers::of_column(batch.column(column));
                    Parts::Two(of(forward), of(reverse))
                }
                _ => Parts::One(self.direction),
            },
        }
    }
}

impl AmountNumbers<'_> {
    /// Adds the parts of a record's number in the buckets from `first` on: `add` takes the place
    /// of a bucket, and what its group takes. A sum is spread; any other fold takes the whole
    /// number in every bucket.
    #[inline]
    pub(crate) fn spread(
        &self,
        row: usize,
        times: &Times,
        buckets: Buckets,
        mut add: impl FnMut(usize, u64),
    ) {
        let Buckets {
            first,
            count,
            width_ns,
        } = buckets;
        let last = first + count as u64 - 1;
        let mut parts = |numbers: &Numbers<'_>, direction| {
            let (number, span) = (numbers.get(row)?, times.of(direction)?);
            span.parts_in(number, width_ns, (first, last), |bucket, part| {
                add((bucket - first) as usize, part);
            });
            Some(())
        };
        match &self.parts {
            _ if self.fold != Fold::Sum => {
                if let Some(number) = self.whole.get(row) {
                    (0..count).for_each(|place| add(place, number));
                }
            }
            Parts::One(direction) => {
                parts(&self.whole, *direction);
            }
            // A responder that sent nothing has no number.
            Parts::Two(forward, reverse) => {
                if parts(forward, Direction::Forward).is_some() {
                    parts(reverse, Direction::Reverse);
                }
            }
        }
    }

    /// The part of a record's number in the nanoseconds from `from_ns` to `to_ns` inclusive, as
    /// [`Self::spread`] has it of buckets.
    pub(crate) fn part(
        &self,
        row: usize,
        times: &Times,
        (from_ns, to_ns): (u64, u64),
    ) -> Option<u64> {
        let part = |numbers: &Numbers<'_>, direction| {
            let (number, span) = (numbers.get(row)?, times.of(direction)?);
            Some(span.part(number, from_ns, to_ns))
        };
        match &self.parts {
            _ if self.fold != Fold::Sum => self.whole.get(row),
            Parts::One(direction) => part(&self.whole, *direction),
            Parts::Two(forward, reverse) => {
                let forward = part(forward, Direction::Forward)?;
                forward.checked_add(part(reverse, Direction::Reverse).unwrap_or(0))
            }
        }
    }
}

/// The buckets that a record is spread over, as far as they are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buckets {
    /// Number of the first one.
    pub(crate) first: u64,
    pub(crate) count: usize,
    pub(crate) width_ns: u64,
}
