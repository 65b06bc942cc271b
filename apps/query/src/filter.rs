// SPDX-License-Identifier: Apache-2.0
//! Filter expressions, which select the records of a question.
//!
//! ```text
//! expression = either { ("or" | "||") either }
//! either     = term { ("and" | "&&") term }
//! term       = ("not" | "!") term | "(" expression ")" | test
//! test       = FIELD OPERATOR VALUE
//!            | FIELD "in" (MEMBER | "(" MEMBER { "," MEMBER } ")")   ranges and networks too
//!            | FIELD "has" VALUE                                     flag bits, list elements
//!            | primitive                                             as capture filters have it
//! primitive  = class | [class] [side] ("host" | "net" | "port" | "portrange") OPERAND
//!            | [class] side ADDRESS | "proto" OPERAND
//!            | OPERAND                                               after and, or: as the last
//! class      = PROTOCOL | "ip" | "ip6"
//! side       = "src" | "dst" | "src or dst" | "src and dst"
//! ```
//!
//! An expression that mixes `or` and `and` at one level must have parentheses if it uses
//! primitives: capture filters read both from left to right. A `port` implies a protocol that has
//! ports.
//!
//! FIELD is a column, or one column divided by another. The value `none` means an absent value. An
//! absent value passes no other test.

mod mend;
mod parser;
mod primitive;

use turboflow_record::{Column, FlowBatch};

use crate::QueryError;
use crate::compare::Test;
use crate::field::Field;
use crate::numbers::Numbers;
use crate::record_shape::RecordShape;
use parser::Parser;

/// A condition on flow records, bound to a schema.
#[derive(Clone, Debug)]
pub struct Filter {
    expression: Expression,
    notes: Vec<String>,
    counts_from_now: bool,
}

#[derive(Clone, Debug)]
enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Not(Box<Expression>),
    Test(Field, Test),
}

impl Filter {
    /// Parses an expression for records of that schema, without a clock: times relative to now are
    /// refused.
    ///
    /// # Errors
    /// As [`Filter::parse_at`].
    pub fn parse(text: &str, schema: &[Column]) -> Result<Self, QueryError> {
        Self::parse_at(text, schema, None)
    }

    /// Parses an expression for records of that shape. `-1h` means one hour before `now_ns`.
    ///
    /// # Errors
    /// [`QueryError::Question`] points at the invalid word and says what would be valid.
    pub fn parse_at<'a>(
        text: &str,
        records: impl Into<RecordShape<'a>>,
        now_ns: Option<u64>,
    ) -> Result<Self, QueryError> {
        Parser::new(text, records.into(), now_ns).whole()
    }

    /// Notes for readers of the answer about words that may not mean what they seem to mean.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether the expression contains times relative to now.
    #[must_use]
    pub const fn counts_from_now(&self) -> bool {
        self.counts_from_now
    }

    /// Whether a record passes.
    ///
    /// # Panics
    /// When the batch has another schema, or fewer rows.
    #[must_use]
    pub fn passes(&self, batch: &FlowBatch, row: usize) -> bool {
        self.expression.holds(batch, row)
    }

    /// Which records pass.
    ///
    /// # Panics
    /// When the batch has another schema.
    pub(crate) fn mask(&self, batch: &FlowBatch) -> Vec<bool> {
        self.expression.mask(batch)
    }

    /// The columns that the expression reads.
    pub(crate) fn columns(&self, columns: &mut Vec<usize>) {
        self.expression.columns(columns);
    }

    /// The records that pass, with all columns.
    #[must_use]
    pub fn apply(&self, batch: &FlowBatch, schema: &[Column]) -> FlowBatch {
        let mut kept = FlowBatch::new(schema);
        let passes = self.mask(batch);
        for row in (0..batch.rows()).filter(|&row| passes[row]) {
            let values: Vec<_> = (0..schema.len())
                .map(|column| batch.value(row, column))
                .collect();
            kept.push_row(&values);
        }
        kept
    }
}

impl Expression {
    fn holds(&self, batch: &FlowBatch, row: usize) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds(batch, row)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(batch, row)),
            Self::Not(part) => !part.holds(batch, row),
            Self::Test(field, test) => test.passes(field.value(batch, row)),
        }
    }

    /// Which records the expression holds for.
    fn mask(&self, batch: &FlowBatch) -> Vec<bool> {
        match self {
            Self::All(parts) => Self::joined(parts, batch, true, |left, right| left & right),
            Self::Any(parts) => Self::joined(parts, batch, false, |left, right| left | right),
            Self::Not(part) => {
                let mut mask = part.mask(batch);
                mask.iter_mut().for_each(|holds| *holds = !*holds);
                mask
            }
            Self::Test(field, test) => {
                let mut mask = vec![false; batch.rows()];
                if !test.mark(|| Numbers::of(*field, batch), &mut mask) {
                    let rows = mask.iter_mut().enumerate();
                    rows.for_each(|(row, it)| *it = test.passes(field.value(batch, row)));
                }
                mask
            }
        }
    }

    fn joined(
        parts: &[Self],
        batch: &FlowBatch,
        of_none: bool,
        join: impl Fn(bool, bool) -> bool,
    ) -> Vec<bool> {
        let Some((first, rest)) = parts.split_first() else {
            return vec![of_none; batch.rows()];
        };
        let mut mask = first.mask(batch);
        for part in rest {
            // The result is already decided for every record.
            if mask.iter().all(|&holds| holds != of_none) {
                break;
            }
            let further = part.mask(batch);
            let pairs = mask.iter_mut().zip(&further);
            pairs.for_each(|(holds, further)| *holds = join(*holds, *further));
        }
        mask
    }

    fn columns(&self, columns: &mut Vec<usize>) {
        match self {
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().for_each(|part| part.columns(columns));
            }
            Self::Not(part) => part.columns(columns),
            Self::Test(field, _) => columns.extend(field.columns()),
        }
    }
}

fn one_or(mut parts: Vec<Expression>, join: fn(Vec<Expression>) -> Expression) -> Expression {
    if parts.len() == 1 {
        parts.remove(0)
    } else {
        join(parts)
    }
}
