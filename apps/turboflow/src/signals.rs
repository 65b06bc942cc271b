// SPDX-License-Identifier: Apache-2.0
//! Ctrl-C and SIGTERM: the first asks to finish, the second aborts. SIGHUP: new files.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use turboflow_run::Stop;

use crate::exit::ABORTED;
use crate::log::{self, say};

/// Whether the run should end.
pub(crate) static STOP: Stop = Stop::new();

/// What else SIGHUP asks for.
pub(crate) type Hangups = std::sync::mpsc::Sender<()>;

/// How many times SIGHUP asked for new files.
static TURNS: AtomicU64 = AtomicU64::new(0);

/// Directories in which this process may have unfinished files.
static UNFINISHED_IN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How many times new files have been asked for.
pub(crate) fn turns_asked() -> u64 {
    TURNS.load(Ordering::Relaxed)
}

/// Lets the first signal ask [`STOP`], and the second end the process. A run whose files can be
/// turned does so at SIGHUP, which ends any other; `hangups` hears of it too.
pub(crate) fn listen(
    first: &'static str,
    turns_files: bool,
    hangups: Option<Hangups>,
) -> anyhow::Result<()> {
    let hangup = turns_files.then_some(SIGHUP);
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup))
        .context("cannot listen for signals")?;
    let wait = move || {
        for signal in &mut signals {
            if signal == SIGHUP {
                TURNS.fetch_add(1, Ordering::Relaxed);
                // Once the run is over nobody listens any more.
                let _ = hangups.as_ref().map(|hangups| hangups.send(()));
                continue;
            }
            if STOP.asked() {
                remove_unfinished();
                say!(Error Aborted; "aborted");
                std::process::exit(i32::from(ABORTED));
            }
            STOP.ask();
            if log::is_watched() {
                // Behind the terminal's `^C`.
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

/// Lets the first signal ask [`STOP`] without a word, and the second end the process at once:
/// `restore` gives the terminal back first.
pub(crate) fn listen_at_screen(restore: fn()) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot listen for signals")?;
    let wait = move || {
        for _ in &mut signals {
            if STOP.asked() {
                restore();
                std::process::exit(i32::from(ABORTED));
            }
            STOP.ask();
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(wait)
        .context("cannot start the thread that listens for signals")?;
    Ok(())
}

/// Says where a file is being written, so that an abort can remove it.
pub(crate) fn will_write_in(directory: PathBuf) {
    if let Ok(mut directories) = UNFINISHED_IN.lock() {
        directories.push(directory);
    }
}

/// Removes this process's files `.NAME.PID-N.tmp`. Best effort: the process is about to end.
fn remove_unfinished() {
    let Ok(directories) = UNFINISHED_IN.lock() else {
        return;
    };
    let ours = format!(".{}-", std::process::id());
    for entry in directories
        .iter()
        .flat_map(std::fs::read_dir)
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') && name.contains(&ours) && name.ends_with(".tmp") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
