// SPDX-License-Identifier: Apache-2.0
//! Named pipes as outputs. An ordinary open would block until there is a reader, and a signal would
//! not end that.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;

use crate::log::say;
use crate::signals::STOP;

/// How often to check for a reader.
const PAUSE: Duration = Duration::from_millis(20);

/// Time after which the wait is logged.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// How long a live run waits for a reader while packets arrive.
pub(crate) const LIVE_PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn is_pipe(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Opens a named pipe for writing once it has a reader. Gives up after `patience`, or when a signal
/// asks the run to end.
pub(crate) fn open_to_write(path: &Path, patience: Option<Duration>) -> anyhow::Result<File> {
    let name = path.display();
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let mut waited = Duration::ZERO;
    loop {
        let pipe = OpenOptions::new()
            .write(true)
            .custom_flags(nonblocking)
            .open(path);
        match pipe {
            Ok(pipe) => {
                fcntl_setfl(&pipe, OFlags::empty())
                    .with_context(|| format!("cannot write {name}"))?;
                return Ok(pipe);
            }
            Err(error) if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {}
            Err(error) => return Err(error).with_context(|| format!("cannot write {name}")),
        }
        if STOP.asked() || patience.is_some_and(|patience| waited >= patience) {
            bail!("cannot write {name}: this named pipe has no reader; start it first");
        }
        if waited == TOLD_AFTER {
            let pipe = name.to_string();
            let then = match patience {
                None => "the run begins once there is one".to_owned(),
                Some(patience) => {
                    let left = patience.saturating_sub(waited).as_secs();
                    format!("it is refused unless there is one within {left} s")
                }
            };
            say!(Warning NoReader, output = pipe.as_str();
                "{pipe}: this named pipe has no reader; {then}");
        }
        pause();
        waited += PAUSE;
    }
}

#[allow(clippy::disallowed_methods, reason = "waits for the reader of a pipe")]
fn pause() {
    std::thread::sleep(PAUSE);
}
