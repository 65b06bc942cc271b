// SPDX-License-Identifier: Apache-2.0
//! Opens captures so that Ctrl-C works even while a pipe is silent.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use turboflow_capture::{CaptureFile, Damage, ReadError};

use crate::pipe::is_pipe;
use crate::signals::STOP;

/// How many files stay open until they are read.
const KEPT_OPEN: usize = 16;

/// Opens all captures, or none.
pub(super) fn open_all(paths: &[PathBuf]) -> anyhow::Result<Vec<CaptureFile>> {
    if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
        bail!("standard input (-r -) can be read only once");
    }
    let mut files = Vec::with_capacity(paths.len());
    for path in paths {
        let mut file = open(path)?;
        // A directory of captures may exceed the limit of open files, and each open file has a
        // buffer.
        if files.len() >= KEPT_OPEN {
            file.close_until_read();
        }
        files.push(file);
    }
    Ok(files)
}

fn open(path: &Path) -> anyhow::Result<CaptureFile> {
    if is_stdin(path) {
        let stdin = io::stdin()
            .as_fd()
            .try_clone_to_owned()
            .context("cannot read standard input")?;
        let pipe = Box::new(Pipe(File::from(stdin)));
        return Ok(CaptureFile::from_reader("standard input".to_owned(), pipe)?);
    }
    if !is_pipe(path) {
        return Ok(CaptureFile::open(path)?);
    }
    let name = path.display().to_string();
    // Without it, opening waits for a writer, and a signal does not end that.
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let pipe = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path);
    let pipe = pipe.with_context(|| format!("{name} could not be read"))?;
    Ok(CaptureFile::from_reader(name, Box::new(Pipe(pipe)))?)
}

/// Whether a path names standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Opens a file or pipe to be read as it is. Reading a pipe never waits: where it has nothing, the
/// error is [`io::ErrorKind::WouldBlock`].
pub(crate) fn open_stream(path: &Path) -> anyhow::Result<Box<dyn Read + Send>> {
    let cannot = || format!("cannot read {}", path.display());
    if is_stdin(path) {
        let stdin = io::stdin().as_fd().try_clone_to_owned();
        return Ok(Box::new(ReadyPipe(File::from(stdin.with_context(cannot)?))));
    }
    if !is_pipe(path) {
        return Ok(Box::new(File::open(path).with_context(cannot)?));
    }
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let pipe = OpenOptions::new()
        .read(true)
        .custom_flags(nonblocking)
        .open(path);
    Ok(Box::new(ReadyPipe(pipe.with_context(cannot)?)))
}

/// A pipe, or a file as standard input, of which only what is there is read.
struct ReadyPipe(File);

impl Read for ReadyPipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let now = Timespec::default();
        let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
        match poll(&mut ready, Some(&now))? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            _ => self.0.read(buffer),
        }
    }
}

/// A pipe that ends when a signal asks the run to end.
struct Pipe(File);

/// Maximum delay in noticing a signal.
const POLL: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if STOP.asked() {
                return Err(io::Error::other(STOPPED));
            }
            let mut ready = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut ready, Some(&POLL)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            match self.0.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => return outcome,
            }
        }
    }
}

const STOPPED: &str = "stopped by a signal";

/// Whether reading ended only because a signal asked for it.
pub(super) fn is_stop(error: &ReadError) -> bool {
    match &error.damage {
        Damage::Io { source } | Damage::Compressed { source, .. } => {
            source.to_string().contains(STOPPED)
        }
        _ => false,
    }
}
