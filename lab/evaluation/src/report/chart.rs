// SPDX-License-Identifier: Apache-2.0
//! Plots: lines over two axes, labelled at their ends.

use super::axis::{Axis, Spacing, short};
use super::svg::{Anchor, COLOURS, Drawing, Stroke, text_width};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 76.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 360.0;
/// Minimum distance between the labels of two lines.
const NAME_HEIGHT: f64 = 18.0;
const GRID: &str = "#ddd";
const INK: &str = "#222";

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    LineAndDots,
    /// Dots labelled with their numbers.
    LineAndNumbers,
    /// For many points.
    Line,
}

/// A line of points.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Label at the end of the line; empty if another line of the same colour is labelled.
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) stroke: Stroke,
    pub(crate) marks: Marks,
    /// Index of the colour. Series of one subject share it.
    pub(crate) colour: usize,
}

impl Series {
    pub(crate) fn ours(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Self {
        Self {
            name: name.into(),
            points,
            stroke: Stroke::Solid,
            marks: Marks::LineAndDots,
            colour,
        }
    }

    pub(crate) fn papers(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Self {
        Self {
            stroke: Stroke::Dashed,
            ..Self::ours(name, colour, points)
        }
    }

    pub(crate) fn marked(self, marks: Marks) -> Self {
        Self { marks, ..self }
    }

    fn colour(&self) -> &'static str {
        COLOURS[self.colour % COLOURS.len()]
    }
}

/// Lines over two axes.
pub(crate) struct Plot<'a> {
    pub(crate) title: &'a str,
    /// A line below the title that explains the drawing.
    pub(crate) note: &'a str,
    pub(crate) x: (&'a str, Spacing),
    pub(crate) y: (&'a str, Spacing),
    pub(crate) series: Vec<Series>,
}

impl Plot<'_> {
    pub(crate) fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = Axis::over(self.x.1, points().map(|point| point.0));
        let y = Axis::over(self.y.1, points().map(|point| point.1));
        let names = self.series.iter().map(|series| text_width(&series.name));
        let right = WIDTH - 24.0 - names.fold(0.0, f64::max);
        let place = |(px, py): (f64, f64)| {
            let across = LEFT + x.share(px) * (right - LEFT);
            (across, BOTTOM - y.share(py) * (BOTTOM - TOP))
        };
        let mut drawing = Drawing::new(WIDTH, HEIGHT);
        drawing.title((LEFT, 24.0), self.title);
        drawing.text((LEFT, 44.0), Anchor::Start, self.note);
        self.grid(&mut drawing, right, (&x, &y));
        let mut ends = Vec::new();
        for series in &self.series {
            let points: Vec<(f64, f64)> = series.points.iter().copied().map(place).collect();
            series.draw(&mut drawing, &points);
            if let (Some(end), false) = (points.last(), series.name.is_empty()) {
                ends.push((end.1, series));
            }
        }
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut next = f64::NEG_INFINITY;
        for (at, series) in ends {
            // A label that would overlap the one above it moves down.
            let at = at.max(next);
            next = at + NAME_HEIGHT;
            // Below the number of the last dot.
            let below = match series.marks {
                Marks::LineAndNumbers => 8.0,
                Marks::Line | Marks::LineAndDots => 4.5,
            };
            let place = (right + 12.0, at + below);
            drawing.coloured_text(place, series.colour(), &series.name);
        }
        drawing.finish()
    }

    fn grid(&self, drawing: &mut Drawing, right: f64, (x, y): (&Axis, &Axis)) {
        for tick in y.ticks() {
            let at = BOTTOM - y.share(tick) * (BOTTOM - TOP);
            drawing.line((LEFT, at), (right, at), GRID);
            drawing.text((LEFT - 8.0, at + 4.5), Anchor::End, &short(tick));
        }
        for tick in x.ticks() {
            let at = LEFT + x.share(tick) * (right - LEFT);
            drawing.line((at, TOP), (at, BOTTOM), GRID);
            drawing.text((at, BOTTOM + 20.0), Anchor::Middle, &short(tick));
        }
        drawing.line((LEFT, TOP), (LEFT, BOTTOM), INK);
        drawing.line((LEFT, BOTTOM), (right, BOTTOM), INK);
        let below = (f64::midpoint(LEFT, right), HEIGHT - 14.0);
        drawing.text(below, Anchor::Middle, self.x.0);
        drawing.upright_text((20.0, f64::midpoint(TOP, BOTTOM)), self.y.0);
    }
}

impl Series {
    fn draw(&self, drawing: &mut Drawing, points: &[(f64, f64)]) {
        let colour = self.colour();
        drawing.path(points, colour, self.stroke);
        if self.marks == Marks::Line {
            return;
        }
        for (point, (_, value)) in points.iter().zip(&self.points) {
            drawing.dot(*point, colour, self.stroke);
            if self.marks == Marks::LineAndNumbers {
                let above = (point.0 + 2.0, point.1 - 10.0);
                drawing.text(above, Anchor::Start, &short(*value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(series: Vec<Series>) -> String {
        let plot = Plot {
            title: "ratio",
            note: "",
            x: ("bytes", Spacing::Logarithmic),
            y: ("packets", Spacing::Linear),
            series,
        };
        plot.svg()
    }

    #[test]
    fn a_plot_shows_ours_in_full_and_the_papers_dashed() {
        let svg = plot(vec![
            Series::ours("ours", 0, vec![(10.0, 1.0), (1_000.0, 5.0)]),
            Series::papers("paper", 0, vec![(100.0, 2.0)]),
        ]);
        // The top right corner of the plot area is the largest number of both series; right of it
        // is the space for the longest label.
        let right = WIDTH - 24.0 - text_width("paper");
        assert!(svg.contains(&format!("{right:.1},{TOP:.1}")), "{svg}");
        assert_eq!(svg.matches("stroke-dasharray").count(), 1);
        assert_eq!(svg.matches("<circle").count(), 3);
    }

    #[test]
    fn names_of_lines_that_end_together_lie_below_each_other() {
        let line = |name: &str| Series::ours(name, 0, vec![(10.0, 1.0), (100.0, 1.0)]);
        let svg = plot(vec![line("one"), line("two")]);
        let height = |name: &str| -> f64 {
            let at = svg
                .find(&format!(">{name}<"))
                .expect("the line has a label");
            let (_, after) = svg[..at]
                .rsplit_once(" y=\"")
                .expect("the label has a position");
            after.split('"').next().unwrap().parse().unwrap()
        };
        assert!(height("two") - height("one") >= NAME_HEIGHT);
    }
}
