// SPDX-License-Identifier: Apache-2.0
//! Bar charts: one row per subject with its name and numbers, one panel per compared quantity.

use super::axis::{Axis, Spacing, short};
use super::svg::{Anchor, COLOURS, Drawing, Stroke, text_width};

const WIDTH: f64 = 760.0;
const TOP: f64 = 66.0;
const ROW_HEIGHT: f64 = 24.0;
const BAR_HEIGHT: f64 = 15.0;
/// Gap between panels.
const GAP: f64 = 18.0;
/// Space for the number of the longest bar.
const NUMBER_WIDTH: f64 = 46.0;
const GRID: &str = "#ddd";
const INK: &str = "#222";
/// Colour of designs other than TurboFlow.
const GREY: &str = "#8a8a8a";

/// The source of a row's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarSource {
    Ours,
    /// Another design, measured here for comparison.
    Others,
    /// Stated in the paper.
    Paper,
}

/// One bar in each panel.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) source: BarSource,
    /// One number per panel; `None` if there is no bar.
    pub(crate) values: Vec<Option<f64>>,
}

impl Row {
    pub(crate) fn new(
        name: impl Into<String>,
        source: BarSource,
        values: Vec<Option<f64>>,
    ) -> Self {
        Self {
            name: name.into(),
            source,
            values,
        }
    }

    fn draw(&self, drawing: &mut Drawing, corner: (f64, f64), width: f64) {
        let (colour, stroke) = match self.source {
            BarSource::Ours => (COLOURS[0], Stroke::Solid),
            BarSource::Others => (GREY, Stroke::Solid),
            BarSource::Paper => (COLOURS[1], Stroke::Dashed),
        };
        drawing.rectangle(corner, (width, BAR_HEIGHT), colour, stroke);
    }
}

/// Bars in rows and panels, with one scale for all panels.
pub(crate) struct Panels<'a> {
    pub(crate) title: &'a str,
    /// Unit and scale of the axis.
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
    fn bars_have_names_and_numbers_and_missing_bars_have_none() {
        let panels = Panels {
            title: "throughput",
            axis: ("M/s", Spacing::Linear),
            panels: vec!["1 core".to_owned(), "2 cores".to_owned()],
            rows: vec![
                Row::new("a", BarSource::Ours, vec![Some(1.25), Some(2.0)]),
                Row::new("b", BarSource::Paper, vec![None, Some(4.0)]),
            ],
        };
        let svg = panels.svg();
        // Three bars and the background.
        assert_eq!(svg.matches("<rect").count(), 4);
        assert_eq!(svg.matches("stroke-dasharray").count(), 1);
        for text in ["1 core", "2 cores", "a", "b", "1.25"] {
            assert_eq!(svg.matches(&format!(">{text}<")).count(), 1, "{text}");
        }
    }
}
