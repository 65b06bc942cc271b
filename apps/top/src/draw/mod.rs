// SPDX-License-Identifier: Apache-2.0
//! Draws a screen into cells of text: a pure function of its content and the user's choices.

mod grid;
mod health;
mod help;
mod tables;
mod text;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::health::{Health, not_metered};
use crate::picture::Picture;
use crate::screen::{Screen, Source, View};
use text::{bits, clock, count, fit, grouped, seconds_of};

/// Whether colours are used. Bold and reversed text is used in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colours {
    /// The terminal's colours.
    Some,
    /// No colours (`NO_COLOR`).
    None,
}

impl Colours {
    fn style(self, colour: Color) -> Style {
        match self {
            Self::Some => Style::new().fg(colour),
            Self::None => Style::new(),
        }
    }

    /// Style for problems.
    pub(crate) fn alarm(self) -> Style {
        self.style(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn quiet(self) -> Style {
        self.style(Color::DarkGray)
    }

    pub(crate) fn accent(self) -> Style {
        self.style(Color::Cyan)
    }
}

pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Lines above and below the rows of a view.
const HEAD_LINES: u16 = 4;

/// Draws the screen. `picture` is the result of [`Screen::arrange`].
pub fn draw(
    buffer: &mut Buffer,
    screen: &Screen,
    source: &Source,
    picture: &Picture,
    health: &Health,
    colours: Colours,
) {
    let area = buffer.area;
    let mut pen = Pen {
        buffer,
        area,
        colours,
    };
    pen.head(screen, source, picture, health);
    let foot = area.height.saturating_sub(1);
    let body = Rect {
        y: area.y + HEAD_LINES.min(area.height),
        height: foot.saturating_sub(HEAD_LINES),
        ..area
    };
    if screen.is_help {
        help::draw(&mut pen, body);
    } else {
        match screen.view {
            View::Flows => tables::flows(&mut pen, body, screen, picture),
            View::Hosts => tables::hosts(&mut pen, body, screen, picture),
            View::Protocols => tables::protocols(&mut pen, body, screen, picture),
            View::Health => health::draw(&mut pen, body, screen, health),
            View::Applications => tables::applications(&mut pen, body, screen, picture),
        }
    }
    if area.height > HEAD_LINES {
        pen.foot(foot, screen, picture);
    }
}

/// The content of a buffer as lines of text, without trailing spaces.
#[must_use]
pub fn lines(buffer: &Buffer) -> Vec<String> {
    let width = usize::from(buffer.area.width).max(1);
    let rows = buffer.content.chunks(width).map(|cells| {
        let text: String = cells.iter().map(|cell| cell.symbol()).collect();
        text.trim_end().to_owned()
    });
    rows.collect()
}

/// Writes into a buffer, and clips at its edges.
pub(crate) struct Pen<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    pub(crate) colours: Colours,
}

impl Pen<'_> {
    /// Writes text at a position, and returns the column after it.
    pub(crate) fn write(&mut self, x: u16, y: u16, text: &str, style: Style) -> u16 {
        if x >= self.area.right() || y >= self.area.bottom() {
            return x;
        }
        let room = usize::from(self.area.right() - x);
        self.buffer.set_stringn(x, y, text, room, style).0
    }

    fn head(&mut self, screen: &Screen, source: &Source, picture: &Picture, health: &Health) {
        let (now, ledger) = (&picture.all.now, &health.now.ledger);
        let mut x = self.write(0, 0, "turboflow top  ", self.colours.accent().patch(BOLD));
        let time = format!(
            "{}  every {}  ",
            clock(picture.end_ns),
            seconds_of(screen.interval)
        );
        x = self.write(x, 0, &time, Style::new());
        if screen.is_paused {
            x = self.write(x, 0, "PAUSED  ", self.colours.alarm());
        }
        if !source.state.is_empty() {
            x = self.write(x, 0, &format!("{}  ", source.state), Style::new());
        }
        // Names may be long, so they come last.
        let room = usize::from(self.area.width.saturating_sub(x));
        self.write(x, 0, &fit(&source.name, room), BOLD);
        let rates = format!(
            "{}/s  {} packets/s  {} flows  {} hosts  ",
            bits(now.bits),
            count(now.packets),
            grouped(picture.flows.len() as u64),
            grouped(picture.hosts.len() as u64),
        );
        let x = self.write(0, 1, &rates, Style::new());
        let lost = format!("{} dropped", grouped(ledger.source_dropped));
        let style = match ledger.source_dropped {
            0 => Style::new(),
            _ => self.colours.alarm(),
        };
        self.write(x, 1, &lost, style);
        let total = format!(
            "total {} packets  {} bytes in flows  {} packets not metered",
            grouped(picture.all.total.packets),
            grouped(picture.all.total.bytes),
            grouped(not_metered(ledger)),
        );
        self.write(0, 2, &total, self.colours.quiet());
        let mut x = 0;
        for (view, key) in screen.views().iter().zip('1'..) {
            let style = match *view == screen.view {
                true => REVERSED,
                false => Style::new(),
            };
            x = self.write(x, 3, &format!(" {key} {} ", view.name()), style);
            x = self.write(x, 3, " ", Style::new());
        }
        if let Some((words, _)) = &screen.filter {
            self.write(x, 3, &format!(" filter: {words}"), self.colours.accent());
        }
    }

    fn foot(&mut self, y: u16, screen: &Screen, picture: &Picture) {
        let mut x = 0;
        if let Some(words) = &screen.typing {
            x = self.write(0, y, &format!("filter: {words}_  "), BOLD);
        }
        if let Some(message) = &screen.message {
            self.write(x, y, message, self.colours.alarm());
        } else if screen.typing.is_some() {
            let hint = "Enter accepts, Esc leaves; such as host 10.0.0.1 and bps > 1M";
            self.write(x, y, hint, self.colours.quiet());
        } else if picture.skipped_records > 0 {
            let records = grouped(picture.skipped_records);
            let message = format!("{records} records came too fast: in the sums, in no row");
            self.write(x, y, &message, self.colours.alarm());
        } else if let Some(left) = picture.left.first() {
            let message = format!(
                "table of {} {} full: {} small ones left it  ",
                grouped(left.limit as u64),
                left.what,
                grouped(left.entries),
            );
            self.write(x, y, &message, self.colours.alarm());
        } else {
            let way = if screen.is_reversed { " reversed" } else { "" };
            let sort = screen.sort.name();
            let keys =
                format!("q quit  p pause  s sort ({sort}{way})  r reverse  / filter  ? help");
            self.write(x, y, &keys, self.colours.quiet());
        }
    }
}
