// SPDX-License-Identifier: Apache-2.0
//! `--batch N`: screens as text, for files, pipes and users without a terminal.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use turboflow_top::{BIN_NS, Colours, Screen, draw, lines};

use super::terminal::instant;
use super::watch::{Metering, Watch};
use crate::exit::{Outcome, print};
use crate::signals::STOP;

/// Maximum delay in noticing a signal.
const TICK: Duration = Duration::from_millis(20);
/// Delay before the first screen of an interface, until its first bins are complete.
const SETTLING: Duration = Duration::from_millis(2_000);
/// Columns if the environment does not set them.
const WIDTH: u16 = 100;
/// Lines of a screen besides rows: header, headings and last line.
const OTHER_LINES: u16 = 6;

/// Prints `screens` screens. The last screen of a capture shows its end.
pub(super) fn run(
    screens: u64,
    rows: u16,
    screen: &Screen,
    mut watch: Watch,
    mut metering: Metering,
) -> anyhow::Result<Outcome> {
    let interval = Duration::from_nanos(screen.interval * BIN_NS);
    let in_between = if watch.is_live {
        screens
    } else {
        screens.saturating_sub(1)
    };
    for number in 0..in_between {
        let first = if watch.is_live {
            SETTLING
        } else {
            Duration::ZERO
        };
        wait(
            if number == 0 {
                interval + first
            } else {
                interval
            },
            &metering,
        );
        if metering.is_over() || STOP.asked() {
            break;
        }
        watch.refresh(screen);
        print(&text(screen, rows, &watch))?;
    }
    if watch.is_live {
        return Ok(metering.end()?.say_losses());
    }
    let ended = metering.join()?;
    watch.finish(&ended, screen);
    print(&text(screen, rows, &watch))?;
    Ok(ended.say_losses())
}

fn wait(time: Duration, metering: &Metering) {
    let began = instant();
    while !STOP.asked() && !metering.is_over() && instant() - began < time {
        let left = time.saturating_sub(instant() - began);
        #[allow(
            clippy::disallowed_methods,
            reason = "screens are an interval apart, and a tick is short"
        )]
        std::thread::sleep(left.min(TICK));
    }
}

/// A screen without the key help, followed by an empty line.
fn text(screen: &Screen, rows: u16, watch: &Watch) -> String {
    let columns = std::env::var("COLUMNS").ok();
    let width = columns.and_then(|columns| columns.parse().ok());
    let width: u16 = width
        .filter(|width| (20..=1_000).contains(width))
        .unwrap_or(WIDTH);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, rows + OTHER_LINES));
    let picture = screen.arrange(&watch.picture);
    let (source, health) = (&watch.source, &watch.health);
    draw(&mut buffer, screen, source, &picture, health, Colours::None);
    let mut lines = lines(&buffer);
    if picture.left.is_empty() && picture.skipped_records == 0 {
        lines.pop();
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n") + "\n\n"
}
