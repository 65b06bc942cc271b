// SPDX-License-Identifier: Apache-2.0
//! One number of the paper beside ours.

use serde::Serialize;

use super::DEVIATIONS;

/// How a number was shortened for print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rounding {
    /// Digits were cut off.
    Down,
    /// Cut off or rounded: the table does not tell.
    Either,
    /// To the nearest.
    Nearest,
}

/// A number as it stands in the paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Printed {
    /// The number.
    pub value: f64,
    /// One in its last digit.
    pub step: f64,
    /// How it was shortened.
    pub rounding: Rounding,
}

impl Printed {
    /// The numbers that would have been printed so: from the first up to the second.
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

    /// Whether some number from `least` to `most` would have been printed so.
    fn is_reached(self, least: f64, most: f64) -> bool {
        let (from, to) = self.range();
        // Halves of printed digits are no exact binary numbers.
        let tolerance = match self.rounding {
            Rounding::Down => 0.0,
            Rounding::Either | Rounding::Nearest => 1e-9 * self.value.abs(),
        };
        most >= from - tolerance && least < to
    }

    /// Whether that very number would have been printed so; where it is not known whether digits
    /// were cut off or rounded, by either.
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

/// How far what the model gives is what was printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The printed inputs give the printed digits, all of them.
    ToTheDigit,
    /// Only within rounding: of the inputs, known to the digits that were printed, or of the cell,
    /// where its table does not tell how that was done.
    WithinRounding,
    /// By more than rounding explains: [`DEVIATIONS`] says what is known of it.
    Deviates,
}

/// Why cells agree within rounding only: those whose inputs are printed with few digits.
pub const WITHIN_INPUTS: &str = "the inputs as they stand give other digits; numbers that would have \
     been printed as those inputs give these";
/// Why cells agree within rounding only: those of a table that rounds some and cuts off others.
pub const EITHER_WAY: &str = "the table does not tell whether it rounds or cuts off: this cell has the \
     printed digits by the one, not by the other, and no way gives all cells";

/// One cell of a table of the paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The table's number.
    pub table: u32,
    /// Which row, in the paper's words.
    pub row: String,
    /// Which column, in the paper's words.
    pub column: String,
    /// Unit of the numbers; empty for plain ones.
    pub unit: &'static str,
    /// What was printed.
    pub printed: Printed,
    /// What the model gives; `None` where the cell is itself an input, because what it was computed from
    /// was not printed.
    pub computed: Option<f64>,
    /// The smallest and the largest that the model gives, for inputs that were printed with few digits.
    pub range: Option<(f64, f64)>,
}

impl Cell {
    /// A cell that follows exactly from its inputs.
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

    /// The same with inputs that are known from one number to another.
    pub(super) fn between(mut self, least: f64, most: f64) -> Self {
        self.range = Some((least, most));
        self
    }

    /// A cell that the model takes rather than gives.
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

    /// How far it agrees; `None` for an input.
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

    /// Why it does not agree to the digit, as far as print tells; `None` where it does, and for an
    /// input.
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

    /// How far the model is from the printed number, as a share of that; `None` for an input.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        Some(self.computed? / self.printed.value - 1.0)
    }
}
