// SPDX-License-Identifier: Apache-2.0
//! A number printed in the paper, and the number that the model gives.

use serde::Serialize;

use super::DEVIATIONS;

/// How a printed number was rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// Truncated.
    Down,
    /// Truncated or rounded: the table does not show which.
    Either,
    /// To the nearest.
    Nearest,
}

/// A number as printed in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Printed {
    /// The number.
    pub value: f64,
    /// One unit of its last digit.
    pub step: f64,
    /// How it was rounded.
    pub rounding: Rounding,
}

impl Printed {
    /// The numbers that are printed like this one: from the first, inclusive, to the second,
    /// exclusive.
    fn range(self) -> (f64, f64) {
        let (below, above) = match self.rounding {
            Rounding::Down => (0.0, 1.0),
            Rounding::Either => (0.5, 1.0),
            Rounding::Nearest => (0.5, 0.5),
        };
        (
            self.value - below * self.step,
            self.value + above * self.step,
        )
    }

    /// Whether some number from `least` to `most` is printed like this one.
    fn is_reached(self, least: f64, most: f64) -> bool {
        let (from, to) = self.range();
        // Halves of printed digits are not exact in binary.
        let tolerance = match self.rounding {
            Rounding::Down => 0.0,
            Rounding::Either | Rounding::Nearest => 1e-9 * self.value.abs(),
        };
        most >= from - tolerance && least < to
    }

    /// Whether `computed` is printed like this one. If the rounding is unknown, truncating and
    /// rounding must both give the printed number.
    fn is_digit_for_digit(self, computed: f64) -> bool {
        let ways: &[Rounding] = match self.rounding {
            Rounding::Either => &[Rounding::Down, Rounding::Nearest],
            Rounding::Down => &[Rounding::Down],
            Rounding::Nearest => &[Rounding::Nearest],
        };
        let by = |rounding: &Rounding| {
            let printed = Self {
                rounding: *rounding,
                ..self
            };
            printed.is_reached(computed, computed)
        };
        ways.iter().all(by)
    }
}

/// How closely the model agrees with the printed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The printed inputs produce all printed digits.
    ToTheDigit,
    /// The numbers agree only within rounding: of the inputs, which have few digits, or of the
    /// cell, because its table does not show how it rounds.
    WithinRounding,
    /// The difference is larger than rounding. [`DEVIATIONS`] explains it as far as possible.
    Deviates,
}

/// The reason for cells that agree only within the rounding of their inputs.
pub const WITHIN_INPUTS: &str = "the printed inputs give other digits; inputs that would be \
     printed alike give these";
/// The reason for cells in a table that rounds some numbers and truncates others.
pub const EITHER_WAY: &str = "the paper does not say whether this table rounds or truncates: only \
     one of the two gives the printed digits of this cell, and neither gives those of all cells";

/// One cell of a table of the paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The table's number.
    pub table: u32,
    /// The row, in the paper's words.
    pub row: String,
    /// The column, in the paper's words.
    pub column: String,
    /// Unit of the numbers; empty if they have none.
    pub unit: &'static str,
    /// The printed number.
    pub printed: Printed,
    /// The model's number; `None` if the cell is itself an input, because its own inputs were not
    /// printed.
    pub computed: Option<f64>,
    /// The smallest and the largest number of the model, within the rounding of its inputs.
    pub range: Option<(f64, f64)>,
}

impl Cell {
    /// A cell computed from exact inputs.
    pub(super) fn new(
        table: u32,
        row: impl Into<String>,
        column: impl Into<String>,
        unit: &'static str,
        printed: Printed,
        computed: f64,
    ) -> Self {
        Self {
            table,
            row: row.into(),
            column: column.into(),
            unit,
            printed,
            computed: Some(computed),
            range: Some((computed, computed)),
        }
    }

    /// Sets the range of the model's number, for inputs with few digits.
    pub(super) fn between(mut self, least: f64, most: f64) -> Self {
        self.range = Some((least, most));
        self
    }

    /// Makes the cell an input of the model.
    pub(super) fn taken(mut self) -> Self {
        self.computed = None;
        self.range = None;
        self
    }

    /// Its name: table, row and column.
    #[must_use]
    pub fn name(&self) -> String {
        format!("Table {}, {}, {}", self.table, self.row, self.column)
    }

    /// How closely the numbers agree; `None` for an input.
    #[must_use]
    pub fn agreement(&self) -> Option<Agreement> {
        let (computed, (least, most)) = (self.computed?, self.range?);
        Some(if self.printed.is_digit_for_digit(computed) {
            Agreement::ToTheDigit
        } else if self.printed.is_reached(least, most) {
            Agreement::WithinRounding
        } else {
            Agreement::Deviates
        })
    }

    /// Why the numbers do not agree to the digit, as far as known; `None` if they do, and for
    /// inputs.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        match self.agreement()? {
            Agreement::ToTheDigit => None,
            Agreement::WithinRounding if self.printed.rounding == Rounding::Either => {
                Some(EITHER_WAY)
            }
            Agreement::WithinRounding => Some(WITHIN_INPUTS),
            Agreement::Deviates => {
                let name = self.name();
                let listed = DEVIATIONS.iter().find(|listed| listed.cell == name);
                listed.map(|listed| listed.why)
            }
        }
    }

    /// Relative difference of the model from the printed number; `None` for an input.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        Some(self.computed? / self.printed.value - 1.0)
    }
}
