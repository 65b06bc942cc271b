// SPDX-License-Identifier: Apache-2.0
//! Values that are folded over the records of a group, and the part of each within a range of time.

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

/// Finds the amount named by a column or by a call such as `sum(COLUMN)`. The error holds the
/// reason if the field exists but cannot be folded.
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
            "{name} is not an amount that groups could add up"
        ))),
    }
}

fn fold_of(name: &str, field: Field, records: RecordShape<'_>) -> Result<Fold, NoFold> {
    match field {
        // The total over both directions is always a sum.
        Field::Total { forward, .. } => match records.fold_of(&records.schema[forward].name)? {
            Fold::Sum => Ok(Fold::Sum),
            _ => Err(NoFold::Never),
        },
        Field::Column(_) | Field::Duration(_) => records.fold_of(name),
        Field::Ratio(_) => Err(NoFold::Never),
    }
}

/// Splits `max(FIELD)` into the field and the fold.
fn asked_fold(text: &str) -> Option<(&str, Option<Fold>)> {
    let (word, rest) = text.strip_suffix(')')?.split_once('(')?;
    let fold = Fold::from_word(word.trim())?;
    Some((rest.trim(), Some(fold)))
}

/// The values of an amount for all records of a batch.
pub(crate) struct AmountNumbers<'a> {
    pub(crate) whole: Numbers<'a>,
    fold: Fold,
    parts: Parts<'a>,
}

/// The numbers that are spread over time, each over the packets that it counts.
enum Parts<'a> {
    /// One number, spread over the packets of this direction.
    One(Direction),
    /// The initiator's number and the responder's, each spread over its own packets.
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
    /// Distributes a record's number over `buckets`. `add` receives the index of a bucket, relative
    /// to the first one, and the value for that bucket. A sum is spread in proportion to time; any
    /// other fold contributes the whole number to every bucket.
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

    /// The part of a record's number that falls between `from_ns` and `to_ns`, both inclusive. It
    /// is computed as in [`Self::spread`].
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

/// The buckets that a record is spread over, without those outside the requested range of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buckets {
    /// Number of the first bucket.
    pub(crate) first: u64,
    pub(crate) count: usize,
    pub(crate) width_ns: u64,
}
