// SPDX-License-Identifier: Apache-2.0
//! Signals. Ctrl-C and SIGTERM: the first asks the run to finish, the second aborts it. SIGHUP:
//! starts new files, or acts like SIGTERM.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use turboflow_formats::remove_unfinished;
use turboflow_run::Stop;

use crate::exit::ABORTED;
use crate::log::{self, say};

/// Whether the run should end.
pub(crate) static STOP: Stop = Stop::new();

/// The sender of a message for every SIGHUP.
pub(crate) type Hangups = std::sync::mpsc::Sender<()>;

/// How many times SIGHUP has requested new files.
static TURNS: AtomicU64 = AtomicU64::new(0);

/// How many times new files have been requested.
pub(crate) fn turns_asked() -> u64 {
    TURNS.load(Ordering::Relaxed)
}

/// A signal aborts the run only this long after the first one. Service managers, shells and
/// terminals may send one signal twice, to the process and to its group.
const SECOND_AFTER: Duration = Duration::from_millis(500);

/// Receives the signals that ask a run to end: the first asks, a later one aborts. Holds the time
/// of the first.
struct Asked(Option<Instant>);

impl Asked {
    /// Whether this signal aborts the run. `None` if it merely repeats the first.
    fn again(&mut self, now: Instant) -> Option<bool> {
        let Some(first) = self.0 else {
            self.0 = Some(now);
            return Some(false);
        };
        (now - first >= SECOND_AFTER).then_some(true)
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "how long ago the first signal came"
)]
fn now() -> Instant {
    Instant::now()
}

/// Whether this process was started such that it outlives its terminal (`nohup`).
fn ignores_hangups() -> bool {
    // The mask of ignored signals (`man 5 proc_pid_status`); its lowest bit is signal 1.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}

/// Starts to listen. The first signal sets [`STOP`], the second ends the process. SIGHUP starts new
/// files if the outputs of the run rotate, and notifies `hangups`. Otherwise SIGHUP acts like these
/// signals, because closing a terminal sends it.
pub(crate) fn listen(
    first: &'static str,
    turns_files: bool,
    hangups: Option<Hangups>,
) -> anyhow::Result<()> {
    let hangup = (turns_files || !ignores_hangups()).then_some(SIGHUP);
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))
        .context("cannot listen for signals")?;
    let wait = move || {
        let mut asked = Asked(None);
        for signal in &mut signals {
            if signal == SIGHUP && turns_files {
                TURNS.fetch_add(1, Ordering::Relaxed);
                // An error means that the run has ended.
                let _ = hangups.as_ref().map(|hangups| hangups.send(()));
                continue;
            }
            match asked.again(now()) {
                None => continue,
                Some(false) => STOP.ask(),
                Some(true) => {
                    remove_unfinished();
                    say!(Error Aborted; "aborted");
                    std::process::exit(i32::from(ABORTED));
                }
            }
            if log::is_watched() {
                // End the line on which the terminal shows `^C`.
                let _ = std::io::stderr().write_all(b"\n");
            }
            say!(Info Finishing; "{first}; once more aborts at once");
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .context("cannot start the thread that listens for signals")?;
    Ok(())
}

/// Starts to listen without messages. The first signal sets [`STOP`]; the second calls `restore`,
/// which resets the terminal, and ends the process at once.
pub(crate) fn listen_at_screen(restore: fn()) -> anyhow::Result<()> {
    let hangup = (!ignores_hangups()).then_some(SIGHUP);
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))
        .context("cannot listen for signals")?;
    let wait = move || {
        let mut asked = Asked(None);
        for _ in &mut signals {
            match asked.again(now()) {
                None => {}
                Some(false) => STOP.ask(),
                Some(true) => {
                    restore();
                    std::process::exit(i32::from(ABORTED));
                }
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .context("cannot start the thread that listens for signals")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_signal_half_a_second_after_the_first_aborts() {
        let first = now();
        let mut asked = Asked(None);
        assert_eq!(asked.again(first), Some(false));
        for after in [Duration::ZERO, SECOND_AFTER - Duration::from_nanos(1)] {
            assert_eq!(asked.again(first + after), None);
        }
        // Repeated signals in between are ignored.
        assert_eq!(asked.again(first + SECOND_AFTER), Some(true));
        assert_eq!(asked.again(first + SECOND_AFTER * 9), Some(true));
    }
}
