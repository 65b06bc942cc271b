// SPDX-License-Identifier: Apache-2.0
//! Drawings of lines, boxes, dots and text, as SVG that every browser shows.

use std::fmt::Write as _;

/// Colours that colour-blind people can tell apart (Okabe and Ito), darkest first.
pub(crate) const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#222222",
];

const FONT_SIZE: f64 = 13.0;

/// Approximate width of a text, enough to reserve space for it.
pub(crate) fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * FONT_SIZE * 0.6
}

/// Where a text is anchored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stroke {
    Solid,
    /// For the paper's numbers.
    Dashed,
}

/// The SVG elements drawn so far.
pub(crate) struct Drawing {
    body: String,
    width: f64,
    height: f64,
}

impl Drawing {
    pub(crate) const fn new(width: f64, height: f64) -> Self {
        Self {
            body: String::new(),
            width,
            height,
        }
    }

    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.add(format_args!(
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{colour}"/>"#
        ));
    }

    pub(crate) fn path(&mut self, points: &[(f64, f64)], colour: &str, stroke: Stroke) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let dashes = match stroke {
            Stroke::Solid => "",
            Stroke::Dashed => r#" stroke-dasharray="6 4""#,
        };
        self.add(format_args!(
            r#"<polyline fill="none" stroke="{colour}" stroke-width="2"{dashes} points="{}"/>"#,
            points.join(" ")
        ));
    }

    pub(crate) fn dot(&mut self, (x, y): (f64, f64), colour: &str, stroke: Stroke) {
        // Dots of dashed lines are hollow.
        let fill = if stroke == Stroke::Solid {
            colour
        } else {
            "#fff"
        };
        self.add(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.2" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>"#
        ));
    }

    pub(crate) fn rectangle(
        &mut self,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        colour: &str,
        stroke: Stroke,
    ) {
        let paint = match stroke {
            Stroke::Solid => format!(r#"fill="{colour}""#),
            Stroke::Dashed => {
                format!(
                    r##"fill="#fff" stroke="{colour}" stroke-width="1.5" stroke-dasharray="4 3""##
                )
            }
        };
        self.add(format_args!(
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" {paint}/>"#
        ));
    }

    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{}">{}</text>"#,
            anchor.name(),
            escaped(text)
        ));
    }

    /// Draws bold text to the right of its position.
    pub(crate) fn coloured_text(&mut self, (x, y): (f64, f64), colour: &str, text: &str) {
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" fill="{colour}" font-weight="bold">{}</text>"#,
            escaped(text)
        ));
    }

    pub(crate) fn title(&mut self, (x, y): (f64, f64), text: &str) {
        self.add(format_args!(
            r#"<text x="{x:.1}" y="{y:.1}" font-weight="bold" font-size="15">{}</text>"#,
            escaped(text)
        ));
    }

    /// Draws text from bottom to top, vertically centred.
    pub(crate) fn upright_text(&mut self, (x, y): (f64, f64), text: &str) {
        self.add(format_args!(
            r#"<text transform="translate({x:.1} {y:.1}) rotate(-90)" text-anchor="middle">{}</text>"#,
            escaped(text)
        ));
    }

    /// The complete SVG file, on a white background that stays readable on any page.
    pub(crate) fn finish(self) -> String {
        let (width, height) = (self.width, self.height);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
             {height}\" font-family=\"sans-serif\" font-size=\"{FONT_SIZE}\" fill=\"#222\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
            self.body
        )
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.body, "{element}").expect("a string takes any text");
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_is_one_element_with_its_text_escaped() {
        let mut drawing = Drawing::new(100.0, 50.0);
        drawing.text((1.0, 2.0), Anchor::Middle, "a < b & c");
        drawing.dot((3.0, 4.0), COLOURS[0], Stroke::Dashed);
        let svg = drawing.finish();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains(r#"text-anchor="middle">a &lt; b &amp; c</text>"#));
        assert!(svg.contains(r##"fill="#fff" stroke="#0072b2""##));
    }
}
