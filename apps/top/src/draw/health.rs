// SPDX-License-Identifier: Apache-2.0
//! The view of the meter: its rates, its memory, and its losses.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::text::{bar, count, grouped, percent};
use super::{BOLD, Pen};
use crate::health::{Health, evicted};
use crate::screen::Screen;

/// Column where values begin, after the longest name.
const NUMBERS: u16 = 38;

struct Line {
    name: String,
    value: String,
    style: Style,
}

/// The lines of the view; problems are in the style `alarm`.
struct Lines {
    lines: Vec<Line>,
    alarm: Style,
}

impl Lines {
    fn title(&mut self, name: &str) {
        self.push(name, String::new(), false);
    }

    fn push(&mut self, name: &str, value: String, is_bad: bool) {
        let style = if is_bad { self.alarm } else { Style::new() };
        self.lines.push(Line {
            name: name.to_owned(),
            value,
            style,
        });
    }
}

pub(super) fn draw(pen: &mut Pen<'_>, area: Rect, screen: &Screen, health: &Health) {
    let lines = lines(health, pen.colours.alarm());
    let room = usize::from(area.height);
    let first = screen.scroll.min(lines.len().saturating_sub(room));
    for (y, line) in (area.y..).zip(lines.iter().skip(first).take(room)) {
        let name_style = match line.value.is_empty() {
            true => pen.colours.accent().patch(BOLD),
            false => Style::new(),
        };
        pen.write(area.x, y, &line.name, name_style);
        pen.write(area.x + NUMBERS, y, &line.value, line.style);
    }
}

fn lines(health: &Health, alarm: Style) -> Vec<Line> {
    let mut lines = Lines {
        lines: Vec::new(),
        alarm,
    };
    engine(&mut lines, health);
    lost(&mut lines, health);
    not_metered(&mut lines, health);
    lines.lines
}

fn engine(lines: &mut Lines, health: &Health) {
    let ledger = &health.now.ledger;
    let packets = health.a_second(|ledger| ledger.packets_received);
    let bits = health
        .a_second(|ledger| ledger.bytes_received)
        .saturating_mul(8);
    lines.title("Engine");
    lines.push("  packets", rate(ledger.packets_received, packets), false);
    lines.push("  bits a second on the wire", count(bits), false);
    let ratio = health.microflows_a_packet();
    let ratio = ratio.map_or("-".to_owned(), |ratio| format!("1 : {ratio:.3}"));
    lines.push("  packets : microflow records", ratio, false);
    let microflows = health.a_second(evicted);
    lines.push(
        "  microflow records",
        rate(evicted(ledger), microflows),
        false,
    );
    let opened = health.a_second(|ledger| ledger.flows_opened);
    lines.push("  records opened", rate(ledger.flows_opened, opened), false);
    let max = health.flows_max;
    let full = format!(
        "{} of {} ({})  {}",
        grouped(ledger.flows_resident),
        grouped(max),
        percent(ledger.flows_resident, max),
        bar(ledger.flows_resident, max, 20),
    );
    lines.push("  flow cache", full, false);
    let early = ledger.flows_exported.lack_of_resources;
    lines.push("  left a full cache early", grouped(early), early > 0);
    lines.push("  threads", grouped(health.threads), false);
    lines.push(
        "  clock set back",
        grouped(ledger.clock_steps),
        ledger.clock_steps > 0,
    );
}

fn lost(lines: &mut Lines, health: &Health) {
    let ledger = &health.now.ledger;
    lines.title("Lost");
    let dropped = health.a_second(|ledger| ledger.source_dropped);
    let lost = ledger.source_dropped;
    lines.push("  dropped", rate(lost, dropped), lost > 0);
    lines.push(
        "  waiting in the ring",
        grouped(ledger.source_unread),
        false,
    );
    lines.push(
        "  merge losses",
        grouped(ledger.microflows_dropped),
        ledger.microflows_dropped > 0,
    );
    for interface in &health.interfaces {
        let value = format!(
            "{}, {} seen, {} dropped, {} merged",
            interface.state,
            grouped(interface.seen),
            grouped(interface.dropped),
            grouped(interface.merged),
        );
        let is_bad = interface.state != "up" || interface.dropped > 0;
        lines.push(&format!("  {}", interface.name), value, is_bad);
    }
}

fn not_metered(lines: &mut Lines, health: &Health) {
    let ledger = &health.now.ledger;
    lines.title("Not metered");
    lines.push(
        "  left out by the filter",
        grouped(ledger.packets_filtered),
        false,
    );
    let unknown = ledger.packets_unknown_link_type;
    lines.push("  of unknown link type", grouped(unknown), unknown > 0);
    for class in ["non_ip", "malformed"] {
        let reasons = ledger
            .rejected
            .iter()
            .filter(|reason| reason.class == class);
        for reason in reasons {
            let name = format!("  {}: {}", class.replace("non_ip", "not IP"), reason.reason);
            let per_second = health.a_second(|ledger| {
                let same = |known: &&_| same_reason(known, reason.reason);
                ledger
                    .rejected
                    .iter()
                    .find(same)
                    .map_or(0, |known| known.packets)
            });
            lines.push(
                &name.replace('_', " "),
                rate(reason.packets, per_second),
                class == "malformed",
            );
        }
    }
}

fn same_reason(known: &turboflow_run::ReasonCount, reason: &str) -> bool {
    known.reason == reason
}

fn rate(total: u64, per_second: u64) -> String {
    format!("{}  {}/s", grouped(total), count(per_second))
}
