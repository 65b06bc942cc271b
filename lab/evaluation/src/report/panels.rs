// SPDX-License-Identifier: Apache-2.0
//! Bars: a row for each subject, with its name before it and its number behind, and a panel for
//! each thing that is compared.

use super::axis::{Axis, Spacing, short};
use super::svg::{Anchor, COLOURS, Drawing, Stroke, text_width};

const WIDTH: f64 = 760.0;
const TOP: f64 = 66.0;
const ROW_HEIGHT: f64 = 24.0;
const BAR_HEIGHT: f64 = 15.0;
/// Between panels.
const GAP: f64 = 18.0;
/// For the number behind the longest bar.
const NUMBER_WIDTH: f64 = 46.0;
const GRID: &str = "#ddd";
const INK: &str = "#222";
/// What others than ours are drawn in.
const GREY: &str = "#8a8a8a";

/// Whose numbers a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Ours,
    /// Measured here, for comparison.
    Others,
    /// Read in the paper.
    Paper,
}

/// One bar in each panel.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) of: Of,
    /// For each panel; `None` where there is none.
    pub(crate) values: Vec<Option<f64>>,
}

impl Row {
    pub(crate) fn new(name: impl Into<String>, of: Of, values: Vec<Option<f64>>) -> Self {
        Self {
            name: name.into(),
            of,
            values,
        }
    }

    fn draw(&self, drawing: &mut Drawing, corner: (f64, f64), width: f64) {
        let (colour, stroke) = match self.of {
            Of::Ours => (COLOURS[0], Stroke::Solid),
            Of::Others => (GREY, Stroke::Solid),
            Of::Paper => (COLOURS[1], Stroke::Dashed),
        };
        drawing.rectangle(corner, (width, BAR_HEIGHT), colour, stroke);
    }
}

/// Bars in rows and panels, all on the same axis.
pub(crate) struct Panels<'a> {
    pub(crate) title: &'a str,
    /// Unit of the axis, and how it is spread.
    pub(crate) axis: (&'a str, Spacing),
    pub(crate) panels: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

impl Panels<'_> {
    pub(crate) fn svg(&self) -> String {
        let values = self.rows.iter().flat_map(|row| row.values.iter().flatten());
        let axis = Axis::over(self.axis.1, values.copied());
        let names = self.rows.iter().map(|row| text_width(&row.name));
        let left = 20.0 + names.fold(0.0, f64::max);
        let count = self.panels.len().max(1) as f64;
        let width = (WIDTH - left - GAP * count) / count;
        let bottom = TOP + ROW_HEIGHT * self.rows.len() as f64;
        let mut drawing = Drawing::new(WIDTH, bottom + 52.0);
        drawing.title((12.0, 24.0), self.title);
        for (index, row) in self.rows.iter().enumerate() {
            let middle = TOP + ROW_HEIGHT * (index as f64 + 0.5);
            drawing.text((left - 8.0, middle + 4.5), Anchor::End, &row.name);
        }
        for (index, name) in self.panels.iter().enumerate() {
            let at = left + (width + GAP) * index as f64;
            drawing.text((at, TOP - 10.0), Anchor::Start, name);
            self.panel(&mut drawing, index, (at, width - NUMBER_WIDTH), &axis);
        }
        let below = (f64::midpoint(left, WIDTH), bottom + 42.0);
        drawing.text(below, Anchor::Middle, self.axis.0);
        drawing.finish()
    }

    fn panel(&self, drawing: &mut Drawing, index: usize, (left, width): (f64, f64), axis: &Axis) {
        let bottom = TOP + ROW_HEIGHT * self.rows.len() as f64;
        for tick in axis.few_ticks() {
            let at = left + axis.share(tick) * width;
            drawing.line((at, TOP), (at, bottom + 4.0), GRID);
            drawing.text((at, bottom + 20.0), Anchor::Middle, &short(tick));
        }
        drawing.line((left, TOP), (left, bottom), INK);
        for (place, row) in self.rows.iter().enumerate() {
            let Some(value) = row.values.get(index).copied().flatten() else {
                continue;
            };
            let top = TOP + ROW_HEIGHT * place as f64 + (ROW_HEIGHT - BAR_HEIGHT) / 2.0;
            let length = axis.share(value) * width;
            row.draw(drawing, (left, top), length);
            let behind = (left + length + 5.0, top + BAR_HEIGHT - 3.0);
            drawing.text(behind, Anchor::Start, &short(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_has_its_name_and_its_number_and_one_that_is_missing_has_none() {
        let panels = Panels {
            title: "throughput",
            axis: ("M/s", Spacing::Linear),
            panels: vec!["1 core".to_owned(), "2 cores".to_owned()],
            rows: vec![
                Row::new("a", Of::Ours, vec![Some(1.25), Some(2.0)]),
                Row::new("b", Of::Paper, vec![None, Some(4.0)]),
            ],
        };
        let svg = panels.svg();
        // Three bars, and the sheet.
        assert_eq!(svg.matches("<rect").count(), 4);
        assert_eq!(svg.matches("stroke-dasharray").count(), 1);
        for text in ["1 core", "2 cores", "a", "b", "1.25"] {
            assert_eq!(svg.matches(&format!(">{text}<")).count(), 1, "{text}");
        }
    }
}
