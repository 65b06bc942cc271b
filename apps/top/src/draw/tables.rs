// SPDX-License-Identifier: Apache-2.0
//! The views of the traffic: flows, hosts, protocols and ports.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::grid::{self, Column, Width, column};
use super::text::{bar, count, duration, end, percent, protocol};
use super::{BOLD, Pen};
use crate::bins::Measured;
use crate::picture::{Picture, ShareRow};
use crate::screen::Screen;

/// The column with the application of a flow, shown if packets are inspected.
const APPLICATION: Column = column("application", Width::Text(16), 60);
const APPLICATION_AT: usize = 3;
const PACKETS_AT: usize = 5;
const FLOWS: [Column; 8] = [
    column("source", Width::Share(47), 0),
    column("destination", Width::Share(47), 0),
    column("proto", Width::Text(7), 50),
    column("bit/s", Width::Number(6), 0),
    column("10 s", Width::Number(6), 90),
    column("packet/s", Width::Number(8), 60),
    column("bytes", Width::Number(6), 70),
    column("age", Width::Number(6), 78),
];

pub(super) fn flows(pen: &mut Pen<'_>, area: Rect, screen: &Screen, picture: &Picture) {
    let mut columns = FLOWS.to_vec();
    if screen.has_applications {
        columns.insert(APPLICATION_AT, APPLICATION);
        // It takes the space of the packets column, because otherwise addresses would be cut.
        columns[PACKETS_AT + 1].from = 100;
    }
    let quiet = pen.colours.quiet();
    let row = |index: usize| {
        let flow = &picture.flows[index];
        let (key, measured) = (&flow.key, &flow.measured);
        let mut texts = vec![
            end(key.source, key.source_port),
            end(key.destination, key.destination_port),
            protocol(key.protocol),
            count(measured.now.bits),
            count(measured.average.bits),
            count(measured.now.packets),
            count(measured.total.bytes),
            duration(flow.age_ns(picture.end_ns)),
        ];
        if screen.has_applications {
            let name = &picture.names[flow.application.index()];
            texts.insert(
                APPLICATION_AT,
                match flow.application.is_known() {
                    true => name.to_string(),
                    false => "-".to_owned(),
                },
            );
        }
        let style = match measured.now.packets {
            0 => quiet,
            _ => Style::new(),
        };
        (texts, style)
    };
    let rows = picture.flows.len();
    grid::draw(pen, area, &columns, rows, screen.scroll, row);
}

const HOSTS: [Column; 8] = [
    column("host", Width::Share(39), 0),
    column("bit/s", Width::Number(6), 0),
    column("sent", Width::Number(6), 40),
    column("received", Width::Number(8), 40),
    column("packet/s", Width::Number(8), 60),
    column("10 s", Width::Number(6), 70),
    column("bytes", Width::Number(6), 60),
    column("flows", Width::Number(6), 50),
];

pub(super) fn hosts(pen: &mut Pen<'_>, area: Rect, screen: &Screen, picture: &Picture) {
    let quiet = pen.colours.quiet();
    let row = |index: usize| {
        let host = &picture.hosts[index];
        let both = host.both();
        let texts = vec![
            host.address.to_string(),
            count(both.now.bits),
            count(host.sent.now.bits),
            count(host.received.now.bits),
            count(both.now.packets),
            count(both.average.bits),
            count(both.total.bytes),
            count(host.flows),
        ];
        let style = if host.is_silent() {
            quiet
        } else {
            Style::new()
        };
        (texts, style)
    };
    let rows = picture.hosts.len();
    grid::draw(pen, area, &HOSTS, rows, screen.scroll, row);
}

const SHARES: [Column; 6] = [
    column("protocol", Width::Text(14), 0),
    column("bit/s", Width::Number(6), 0),
    column("packet/s", Width::Number(8), 50),
    column("bytes", Width::Number(6), 40),
    column("share", Width::Number(6), 0),
    column("of bytes in all", Width::Share(60), 50),
];

/// Computes shares of recent traffic; at the end of a capture, or without recent traffic, shares of
/// the total.
struct Shares {
    whole: Measured,
    is_of_all: bool,
}

impl Shares {
    const fn of(picture: &Picture) -> Self {
        Self {
            whole: picture.all,
            is_of_all: picture.is_final || picture.all.average.bits == 0,
        }
    }

    const fn title(&self) -> &'static str {
        match self.is_of_all {
            true => "of bytes in all",
            false => "of bits in the last 10 s",
        }
    }

    /// A part, and the whole.
    const fn fraction(&self, measured: &Measured) -> (u64, u64) {
        match self.is_of_all {
            true => (measured.total.bytes, self.whole.total.bytes),
            false => (measured.average.bits, self.whole.average.bits),
        }
    }
}

/// Draws protocols, and their ports below.
pub(super) fn protocols(pen: &mut Pen<'_>, area: Rect, screen: &Screen, picture: &Picture) {
    let shares = Shares::of(picture);
    let mut columns = SHARES;
    columns[5].title = shares.title();
    let rows: Vec<&ShareRow> = picture.protocols.iter().chain(&picture.ports).collect();
    let accent = pen.colours.accent();
    let width = usize::from(area.width.saturating_sub(45)).min(60);
    let row = |index: usize| {
        let share = rows[index];
        let measured = &share.measured;
        let (part, whole) = shares.fraction(measured);
        let name = protocol(share.protocol);
        let (name, style) = match share.port {
            None => (name, accent.patch(BOLD)),
            Some(0) => (format!("  {name} -"), Style::new()),
            Some(port) => (format!("  {name}/{port}"), Style::new()),
        };
        let texts = vec![
            name,
            count(measured.now.bits),
            count(measured.now.packets),
            count(measured.total.bytes),
            percent(part, whole),
            bar(part, whole, width),
        ];
        (texts, style)
    };
    grid::draw(pen, area, &columns, rows.len(), screen.scroll, row);
}

const APPLICATIONS: [Column; 7] = [
    column("application", Width::Text(24), 0),
    column("bit/s", Width::Number(6), 0),
    column("packet/s", Width::Number(8), 60),
    column("bytes", Width::Number(6), 50),
    column("flows", Width::Number(6), 50),
    column("share", Width::Number(6), 0),
    column("of bytes in all", Width::Share(60), 70),
];

pub(super) fn applications(pen: &mut Pen<'_>, area: Rect, screen: &Screen, picture: &Picture) {
    let shares = Shares::of(picture);
    let mut columns = APPLICATIONS;
    columns[6].title = shares.title();
    let quiet = pen.colours.quiet();
    let width = usize::from(area.width.saturating_sub(62)).min(60);
    let row = |index: usize| {
        let application = &picture.applications[index];
        let measured = &application.measured;
        let (part, whole) = shares.fraction(measured);
        let texts = vec![
            application.name.to_string(),
            count(measured.now.bits),
            count(measured.now.packets),
            count(measured.total.bytes),
            count(application.flows),
            percent(part, whole),
            bar(part, whole, width),
        ];
        let style = match measured.now.packets {
            0 => quiet,
            _ => Style::new(),
        };
        (texts, style)
    };
    let rows = picture.applications.len();
    grid::draw(pen, area, &columns, rows, screen.scroll, row);
}
