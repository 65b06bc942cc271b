// SPDX-License-Identifier: Apache-2.0
//! Signals. Ctrl-C and SIGTERM: the first asks the run to finish, the second aborts. SIGHUP: new
//! files.

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

/// Receives a message on every SIGHUP.
pub(crate) type Hangups = std::sync::mpsc::Sender<()>;

/// How many times SIGHUP has requested new files.
static TURNS: AtomicU64 = AtomicU64::new(0);

/// Directories in which this process may have unfinished files.
static UNFINISHED_IN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How many times new files have been requested.
pub(crate) fn turns_asked() -> u64 {
    TURNS.load(Ordering::Relaxed)
}

/// Lets the first signal set [`STOP`], and the second end the process. SIGHUP starts new files if
/// the outputs of the run rotate, and notifies `hangups`; otherwise it ends the run.
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
                // An error means that the run has ended.
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
                // Ends the line on which the terminal shows `^C`.
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

/// Lets the first signal set [`STOP`] without a message, and the second end the process at once.
/// `restore` resets the terminal before that.
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

/// Registers the directory of an unfinished file, so that an abort can remove the file.
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
