// SPDX-License-Identifier: Apache-2.0
//! The progress bar on standard error.

use std::io::Write;
use std::time::{Duration, Instant};

use turboflow_formats::table::{bytes, count};
#[cfg(target_os = "linux")]
use turboflow_run::LiveProgress;
use turboflow_run::Progress;

use crate::log;

/// How often the line is drawn again.
const REDRAW: Duration = Duration::from_millis(100);
/// Characters of the bar.
const BAR: usize = 24;
const CLEAR_LINE: &str = "\r\x1b[K";

/// Over how much time the rate of live packets is taken.
const RATE_OVER: Duration = Duration::from_secs(1);

/// How far a live run has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    packets: u64,
    bytes: u64,
    dropped: u64,
}

#[cfg(target_os = "linux")]
impl From<LiveProgress> for Pace {
    fn from(progress: LiveProgress) -> Self {
        let LiveProgress {
            packets,
            bytes,
            dropped,
        } = progress;
        Self {
            packets,
            bytes,
            dropped,
        }
    }
}

/// A line that is drawn over and over.
pub(super) struct ProgressBar {
    started: Instant,
    drawn: Option<Instant>,
    shown: bool,
    /// Where the rate that is shown was taken from, and that rate, per second.
    rate_from: (Instant, Pace),
    rate: (u64, u64),
}

impl ProgressBar {
    /// A bar that is shown where somebody can see it.
    pub(super) fn new(quiet: bool) -> Self {
        let shown = !quiet && log::is_watched();
        Self {
            started: now(),
            drawn: None,
            shown,
            rate_from: (now(), Pace::default()),
            rate: (0, 0),
        }
    }

    pub(super) fn draw(&mut self, progress: &Progress) {
        if let Some(now) = self.is_due() {
            print(&line(progress, now - self.started));
        }
    }

    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "only Linux has interfaces")
    )]
    pub(super) fn draw_live(&mut self, pace: Pace) {
        let Some(now) = self.is_due() else {
            return;
        };
        let (since, before) = self.rate_from;
        if now - since >= RATE_OVER {
            let elapsed = now - since;
            let bits = (pace.bytes - before.bytes) * 8;
            self.rate = (
                rate(pace.packets - before.packets, elapsed),
                rate(bits, elapsed),
            );
            self.rate_from = (now, pace);
        }
        print(&live_line(&pace, self.rate));
    }

    /// Takes the line away, so that another can be written; it comes back.
    #[cfg_attr(
        not(target_os = "linux"),
        allow(dead_code, reason = "only Linux has interfaces")
    )]
    pub(super) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            print("");
        }
    }

    /// Whether the line is to be drawn again: then, now.
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

    /// Takes the line away. Says how long the run took.
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

fn live_line(pace: &Pace, (packets, bits): (u64, u64)) -> String {
    let total = count(pace.packets);
    let (packets, bits, dropped) = (count(packets), count(bits), count(pace.dropped));
    format!("{total} packets, {packets}/s, {bits}b/s, {dropped} dropped by the kernel")
}

fn line(progress: &Progress, elapsed: Duration) -> String {
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

/// So many a second.
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
    fn says_rate_and_time_left() {
        let elapsed = Duration::from_secs(10);
        let progress = Progress {
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
            &Progress {
                bytes_total: None,
                ..progress
            },
            elapsed,
        );
        assert_eq!(pipe, "20.0 M packets, 2.0 M/s, 250 B read");
        let none = Progress {
            packets: 0,
            bytes_read: 0,
            bytes_total: Some(1000),
        };
        assert!(line(&none, Duration::ZERO).contains("0 %"));
    }
}
