// SPDX-License-Identifier: Apache-2.0
//! Plots: lines over two axes, and groups of bars.

use super::axis::{Axis, Spacing, short};
use super::svg::{Anchor, COLOURS, Drawing, Stroke};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 540.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 345.0;
const GRID: &str = "#ddd";
const INK: &str = "#222";

/// What a series is drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marks {
    LineAndDots,
    /// For many points.
    Line,
}

/// Points that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    pub(crate) stroke: Stroke,
    pub(crate) marks: Marks,
    /// Which colour; series of the same subject share one.
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

    pub(crate) fn without_dots(self) -> Self {
        Self {
            marks: Marks::Line,
            ..self
        }
    }
}

/// Lines over two axes.
pub(crate) struct Plot<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: (&'a str, Spacing),
    pub(crate) y: (&'a str, Spacing),
    pub(crate) series: Vec<Series>,
}

impl Plot<'_> {
    pub(crate) fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = Axis::over(self.x.1, points().map(|point| point.0));
        let y = Axis::over(self.y.1, points().map(|point| point.1));
        let mut drawing = frame(self.title, self.x.0, self.y.0, &y);
        for tick in x.ticks() {
            let at = across(x.share(tick));
            drawing.line((at, TOP), (at, BOTTOM), GRID);
            drawing.text((at, BOTTOM + 18.0), Anchor::Middle, &short(tick));
        }
        axes(&mut drawing);
        for (index, series) in self.series.iter().enumerate() {
            let colour = COLOURS[series.colour % COLOURS.len()];
            let points: Vec<(f64, f64)> = series
                .points
                .iter()
                .map(|(px, py)| (across(x.share(*px)), up(y.share(*py))))
                .collect();
            drawing.path(&points, colour, series.stroke);
            if series.marks == Marks::LineAndDots {
                for point in &points {
                    drawing.dot(*point, colour, series.stroke);
                }
            }
            let at = TOP + 6.0 + 20.0 * index as f64;
            drawing.path(
                &[(RIGHT + 18.0, at), (RIGHT + 46.0, at)],
                colour,
                series.stroke,
            );
            drawing.text((RIGHT + 54.0, at + 4.0), Anchor::Start, &series.name);
        }
        drawing.finish()
    }
}

/// Bars in groups.
pub(crate) struct Bars<'a> {
    pub(crate) title: &'a str,
    pub(crate) x: &'a str,
    pub(crate) y: (&'a str, Spacing),
    pub(crate) groups: Vec<String>,
    pub(crate) bars: Vec<Bar>,
}

/// One bar in each group.
pub(crate) struct Bar {
    pub(crate) name: String,
    /// For each group; `None` where there is none.
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) stroke: Stroke,
    /// Which colour; a bar of ours and the paper's for the same share one.
    pub(crate) colour: usize,
}

impl Bar {
    pub(crate) fn ours(name: impl Into<String>, colour: usize, values: Vec<Option<f64>>) -> Self {
        Self {
            name: name.into(),
            values,
            stroke: Stroke::Solid,
            colour,
        }
    }

    pub(crate) fn papers(name: impl Into<String>, colour: usize, values: Vec<Option<f64>>) -> Self {
        Self {
            stroke: Stroke::Dashed,
            ..Self::ours(name, colour, values)
        }
    }

    fn draw(&self, drawing: &mut Drawing, corner: (f64, f64), size: (f64, f64)) {
        drawing.rectangle(
            corner,
            size,
            COLOURS[self.colour % COLOURS.len()],
            self.stroke,
        );
    }
}

impl Bars<'_> {
    pub(crate) fn svg(&self) -> String {
        let values = self.bars.iter().flat_map(|bar| bar.values.iter().flatten());
        let y = Axis::over(self.y.1, values.copied());
        let mut drawing = frame(self.title, self.x, self.y.0, &y);
        let group_width = (RIGHT - LEFT) / self.groups.len().max(1) as f64;
        let bar_width = group_width * 0.84 / self.bars.len().max(1) as f64;
        for (group, name) in self.groups.iter().enumerate() {
            let left = LEFT + group_width * (group as f64 + 0.08);
            let middle = left + group_width * 0.42;
            drawing.text((middle, BOTTOM + 18.0), Anchor::Middle, name);
            for (index, bar) in self.bars.iter().enumerate() {
                if let Some(value) = bar.values.get(group).copied().flatten() {
                    let height = BOTTOM - up(y.share(value));
                    let corner = (left + bar_width * index as f64, BOTTOM - height);
                    let size = (bar_width * 0.92, height);
                    bar.draw(&mut drawing, corner, size);
                    if bar_width > 22.0 {
                        let above = (corner.0 + size.0 / 2.0, corner.1 - 4.0);
                        drawing.text(above, Anchor::Middle, &short(value));
                    }
                }
            }
        }
        axes(&mut drawing);
        for (index, bar) in self.bars.iter().enumerate() {
            let at = TOP + 20.0 * index as f64;
            bar.draw(&mut drawing, (RIGHT + 18.0, at), (14.0, 12.0));
            drawing.text((RIGHT + 40.0, at + 10.0), Anchor::Start, &bar.name);
        }
        drawing.finish()
    }
}

/// Title, names of the axes, and the horizontal grid.
fn frame(title: &str, x: &str, y: &str, axis: &Axis) -> Drawing {
    let mut drawing = Drawing::new(WIDTH, HEIGHT);
    drawing.title((LEFT, 22.0), title);
    drawing.text(
        (f64::midpoint(LEFT, RIGHT), HEIGHT - 14.0),
        Anchor::Middle,
        x,
    );
    drawing.upright_text((18.0, f64::midpoint(TOP, BOTTOM)), y);
    for tick in axis.ticks() {
        let at = up(axis.share(tick));
        drawing.line((LEFT, at), (RIGHT, at), GRID);
        drawing.text((LEFT - 8.0, at + 4.0), Anchor::End, &short(tick));
    }
    drawing
}

fn axes(drawing: &mut Drawing) {
    drawing.line((LEFT, TOP), (LEFT, BOTTOM), INK);
    drawing.line((LEFT, BOTTOM), (RIGHT, BOTTOM), INK);
}

fn across(share: f64) -> f64 {
    LEFT + share * (RIGHT - LEFT)
}

fn up(share: f64) -> f64 {
    BOTTOM - share * (BOTTOM - TOP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_shows_ours_in_full_and_the_papers_dashed() {
        let plot = Plot {
            title: "ratio",
            x: ("bytes", Spacing::Logarithmic),
            y: ("packets", Spacing::Linear),
            series: vec![
                Series::ours("ours", 0, vec![(10.0, 1.0), (1_000.0, 5.0)]),
                Series::papers("paper", 0, vec![(100.0, 2.0)]),
            ],
        };
        let svg = plot.svg();
        // The upper right corner: the greatest of both.
        assert!(svg.contains(&format!("{RIGHT:.1},{TOP:.1}")), "{svg}");
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 3);
    }

    #[test]
    fn a_bar_that_is_not_there_leaves_its_place_empty() {
        let bars = Bars {
            title: "throughput",
            x: "cores",
            y: ("M/s", Spacing::Linear),
            groups: vec!["1".to_owned(), "2".to_owned()],
            bars: vec![
                Bar::ours("a", 0, vec![Some(1.0), Some(2.0)]),
                Bar::papers("b", 0, vec![None, Some(4.0)]),
            ],
        };
        let svg = bars.svg();
        // Three bars, two legends, the sheet.
        assert_eq!(svg.matches("<rect").count(), 6);
        assert_eq!(svg.matches("stroke-dasharray").count(), 2);
    }
}
