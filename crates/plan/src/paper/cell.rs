// SPDX-License-Identifier: Apache-2.0
//! One number of the paper beside ours.

use serde::Serialize;

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
}

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

    /// Whether what the model gives would have been printed so; `None` for an input.
    #[must_use]
    pub fn agrees(&self) -> Option<bool> {
        let (least, most) = self.range?;
        let (from, to) = self.printed.range();
        // Halves of printed digits are no exact binary numbers.
        let tolerance = 1e-9 * self.printed.value.abs();
        let reaches = match self.printed.rounding {
            Rounding::Down => most >= from,
            _ => most >= from - tolerance,
        };
        Some(reaches && least < to)
    }

    /// How far the model is from the printed number, as a share of that; `None` for an input.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        Some(self.computed? / self.printed.value - 1.0)
    }
}
