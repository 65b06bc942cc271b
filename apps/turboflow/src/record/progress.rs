// SPDX-License-Identifier: Apache-2.0
//! The progress bar on standard error.

use std::io::Write;
use std::time::{Duration, Instant};

use turboflow_formats::table::{bytes, count};
use turboflow_run::{FilesProgress, LiveProgress, Progress};

use crate::log;

/// Redraw interval.
const REDRAW: Duration = Duration::from_millis(100);
/// Width of the bar in characters.
const BAR: usize = 24;
const CLEAR_LINE: &str = "\r\x1b[K";

/// Time span over which the displayed rate of a live run is computed.
const RATE_OVER: Duration = Duration::from_secs(1);

/// A line that is redrawn in place.
pub(super) struct ProgressBar {
    started: Instant,
    drawn: Option<Instant>,
    shown: bool,
    /// Start of the span for the displayed rate with the progress at that time, and the rate:
    /// packets and bits per second.
    rate_from: (Instant, LiveProgress),
    rate: (u64, u64),
}

impl ProgressBar {
    /// A progress bar; hidden if no one watches standard error.
    pub(super) fn new(quiet: bool) -> Self {
        let shown = !quiet && log::is_watched();
        Self {
            started: now(),
            drawn: None,
            shown,
            rate_from: (now(), LiveProgress::default()),
            rate: (0, 0),
        }
    }

    pub(super) fn draw(&mut self, progress: &Progress) {
        let Some(now) = self.is_due() else {
            return;
        };
        match *progress {
            Progress::Files(progress) => print(&line(&progress, now - self.started)),
            Progress::Live(progress) => self.draw_live(progress, now),
        }
    }

    fn draw_live(&mut self, progress: LiveProgress, now: Instant) {
        let (since, before) = self.rate_from;
        if now - since >= RATE_OVER {
            let elapsed = now - since;
            let bits = (progress.bytes - before.bytes) * 8;
            self.rate = (
                rate(progress.packets - before.packets, elapsed),
                rate(bits, elapsed),
            );
            self.rate_from = (now, progress);
        }
        print(&live_line(&progress, self.rate));
    }

    /// Clears the line so that other text can be written. The next draw shows it again.
    pub(super) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            print("");
        }
    }

    /// The current time, if a redraw is due.
    fn is_due(&mut self) -> Option<Instant> {
        if !self.shown {
            return None;
        }
        let now = now();
        if self.drawn.is_some_and(|drawn| now - drawn < REDRAW) {
            return None;
        }
        self.drawn = Some(now);
        Some(now)
    }

    /// Clears the line. Returns the duration of the run.
    pub(super) fn finish(self) -> Duration {
        if self.drawn.is_some() {
            let _ = write!(std::io::stderr(), "{CLEAR_LINE}");
        }
        now() - self.started
    }
}

fn print(line: &str) {
    let mut stderr = std::io::stderr();
    let _ = write!(stderr, "{CLEAR_LINE}{line}");
    let _ = stderr.flush();
}

fn live_line(progress: &LiveProgress, (packets, bits): (u64, u64)) -> String {
    let total = count(progress.packets);
    let (packets, bits, dropped) = (count(packets), count(bits), count(progress.dropped));
    format!("{total} packets, {packets}/s, {bits}b/s, {dropped} dropped")
}

fn line(progress: &FilesProgress, elapsed: Duration) -> String {
    let rate = rate(progress.packets, elapsed);
    let packets = count(progress.packets);
    let Some(total) = progress.bytes_total.filter(|&total| total > 0) else {
        let read = bytes(progress.bytes_read);
        return format!("{packets} packets, {}/s, {read} read", count(rate));
    };
    let part = (progress.bytes_read as f64 / total as f64).min(1.0);
    let done = (part * BAR as f64) as usize;
    let bar = format!("{}{}", "█".repeat(done), "░".repeat(BAR - done));
    let left = elapsed
        .mul_f64(((1.0 - part) / part.max(1e-6)).min(1e6))
        .as_secs();
    let percent = part * 100.0;
    let (minutes, seconds) = (left / 60, left % 60);
    let rate = count(rate);
    format!("{bar} {percent:3.0} %  {packets} packets, {rate}/s, {minutes}:{seconds:02} left")
}

/// A rate per second.
pub(super) fn rate(number: u64, elapsed: Duration) -> u64 {
    (number as f64 / elapsed.as_secs_f64().max(1e-9)) as u64
}

#[allow(
    clippy::disallowed_methods,
    reason = "people want to know how long it takes"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_rate_and_time_left() {
        let elapsed = Duration::from_secs(10);
        let progress = FilesProgress {
            packets: 20_000_000,
            bytes_read: 250,
            bytes_total: Some(1000),
        };
        let text = line(&progress, elapsed);
        assert!(
            text.contains("25 %  20.0 M packets, 2.0 M/s, 0:30 left"),
            "{text}"
        );
        let pipe = line(
            &FilesProgress {
                bytes_total: None,
                ..progress
            },
            elapsed,
        );
        assert_eq!(pipe, "20.0 M packets, 2.0 M/s, 250 B read");
        let none = FilesProgress {
            packets: 0,
            bytes_read: 0,
            bytes_total: Some(1000),
        };
        assert!(line(&none, Duration::ZERO).contains("0 %"));
    }
}
