// SPDX-License-Identifier: Apache-2.0
//! Rows under a heading; columns are dropped or narrowed if there is little space.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::text::fit;
use super::{Pen, REVERSED};

/// Width and alignment of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Width {
    /// A right-aligned number of this width in characters.
    Number(u16),
    /// A left-aligned text of this width in characters.
    Text(u16),
    /// A share of the remaining width, with this maximum in characters.
    Share(u16),
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) width: Width,
    /// The column is shown if the screen is at least this wide.
    pub(crate) from: u16,
}

pub(crate) const fn column(title: &'static str, width: Width, from: u16) -> Column {
    Column { title, width, from }
}

/// Where a column is drawn: its index among the declared columns, its left edge and its width.
struct Place {
    column: usize,
    x: u16,
    width: u16,
    is_number: bool,
}

/// Spaces between two columns.
const GAP: u16 = 1;

/// The columns shown at that width.
fn places(columns: &[Column], width: u16) -> Vec<Place> {
    let shown: Vec<_> = columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column.from <= width)
        .collect();
    let fixed = |column: &Column| match column.width {
        Width::Number(width) | Width::Text(width) => Some(width),
        Width::Share(_) => None,
    };
    let taken: u16 = shown.iter().filter_map(|(_, column)| fixed(column)).sum();
    let gaps = GAP * (shown.len() as u16).saturating_sub(1);
    let shares = shown.iter().filter(|(_, column)| fixed(column).is_none());
    let share = width.saturating_sub(taken + gaps) / (shares.count() as u16).max(1);
    let mut x = 0;
    let place = |(column, declared): (usize, &Column)| {
        let width = match declared.width {
            Width::Number(width) | Width::Text(width) => width,
            Width::Share(most) => share.min(most),
        };
        let place = Place {
            column,
            x,
            width,
            is_number: matches!(declared.width, Width::Number(_)),
        };
        x += width + GAP;
        place
    };
    shown.into_iter().map(place).collect()
}

/// Draws the heading and as many rows as fit, starting at row `scroll`. If there are enough rows,
/// the last page is full. `row` returns the texts of a row, one per declared column.
pub(crate) fn draw(
    pen: &mut Pen<'_>,
    area: Rect,
    columns: &[Column],
    rows: usize,
    scroll: usize,
    row: impl Fn(usize) -> (Vec<String>, Style),
) {
    if area.height == 0 {
        return;
    }
    let places = places(columns, area.width);
    let heading: Vec<String> = columns
        .iter()
        .map(|column| column.title.to_owned())
        .collect();
    pen.write(area.x, area.y, &" ".repeat(area.width.into()), REVERSED);
    line(pen, area, area.y, &places, &heading, REVERSED);
    let room = usize::from(area.height - 1);
    let first = scroll.min(rows.saturating_sub(room));
    for (y, index) in (area.y + 1..).zip(first..rows.min(first + room)) {
        let (texts, style) = row(index);
        line(pen, area, y, &places, &texts, style);
    }
}

fn line(pen: &mut Pen<'_>, area: Rect, y: u16, places: &[Place], texts: &[String], style: Style) {
    for place in places {
        let width = usize::from(place.width);
        let text = fit(&texts[place.column], width);
        let padding = match place.is_number {
            true => width - text.chars().count().min(width),
            false => 0,
        };
        pen.write(area.x + place.x + padding as u16, y, &text, style);
    }
}
