// SPDX-License-Identifier: Apache-2.0
//! Opens captures such that Ctrl-C works even while a pipe is silent.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags};
use turboflow_capture::{CaptureFile, Damage, OpenError, ReadError};
use turboflow_query::{QueryError, files_of};

use super::CapturesOfEngine;
use crate::log::say;
use crate::pipe::is_pipe;
use crate::signals::STOP;

/// How many files may stay open before they are read.
const KEPT_OPEN: usize = 16;

/// The captures of a run, in the order of their first packets. Folders and patterns are replaced by
/// the captures that they match, each once. File names often do not reveal the order: part-10 sorts
/// before part-2, and ring buffers restart.
pub(super) fn captures(given: Vec<PathBuf>, quiet: bool) -> anyhow::Result<Vec<PathBuf>> {
    let found = expanded(&given)?;
    if found.len() <= 1 && found == given {
        return Ok(given);
    }
    let named: HashSet<&PathBuf> = given.iter().collect();
    let (mut captures, mut others) = (Vec::new(), Vec::new());
    for path in found {
        let seen = Seen::of(&path);
        match seen {
            Seen::Other if !named.contains(&path) && !is_named_as_capture(&path) => {
                others.push(path);
            }
            _ => captures.push((path, seen)),
        }
    }
    if captures.is_empty() {
        return Err(no_capture(&given[0].display().to_string()));
    }
    let is_each_a_file = captures.iter().all(|(_, seen)| *seen != Seen::Stream);
    if is_each_a_file {
        captures.sort_by_key(|(_, seen)| seen.first_ns().unwrap_or(u64::MAX));
    }
    let is_each_open = captures.iter().all(|(_, seen)| *seen != Seen::Unreadable);
    let captures: Vec<PathBuf> = captures.into_iter().map(|(path, _)| path).collect();
    if !quiet {
        say_others(&others);
        let is_as_given = captures.iter().eq(given.iter());
        // A capture that cannot be opened ends the run before any is read.
        if !is_as_given && is_each_open && captures.iter().all(|path| named.contains(path)) {
            say!(Info Sorted; "the captures are read in the order of their first packets");
        }
    }
    Ok(captures)
}

/// The files that folders and patterns match, and those named directly.
fn expanded(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let stands_for_others = |path: &PathBuf| {
        let text = path.to_string_lossy();
        path.is_dir() || !path.exists() && text.contains(['*', '?', '['])
    };
    if !given.iter().any(stands_for_others) {
        return Ok(given.to_vec());
    }
    let found = files_of(given, Path::is_file).map_err(|error| match error {
        QueryError::Empty { place } => no_capture(&place),
        other => other.into(),
    })?;
    for told in found.passed_over {
        say!(Warning FileNotRead; "{told}: not read; name it to read it");
    }
    Ok(found.files)
}

fn no_capture(place: &str) -> anyhow::Error {
    anyhow!("{place}: no capture found (pcap or pcapng, also compressed: .gz or .zst)")
}

/// What the start of an input reveals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// A pipe, which can be read only once. It is not opened here.
    Stream,
    /// A capture, with the time of its first packet in nanoseconds, if it has one.
    Capture(Option<u64>),
    /// A file that holds no capture.
    Other,
    /// A file that cannot be read; the error is reported when it is opened.
    Unreadable,
}

impl Seen {
    fn of(path: &Path) -> Self {
        if is_stdin(path) || path.exists() && !path.is_file() {
            return Self::Stream;
        }
        match CaptureFile::open(path) {
            Ok(mut file) => {
                let batch = file.next_batch(1).ok().flatten();
                let first = batch.and_then(|batch| batch.frames().first().copied());
                Self::Capture(first.map(|frame| frame.timestamp_ns))
            }
            Err(OpenError::NotACapture { .. } | OpenError::Empty { .. }) => Self::Other,
            Err(_) => Self::Unreadable,
        }
    }

    const fn first_ns(self) -> Option<u64> {
        match self {
            Self::Capture(first_ns) => first_ns,
            _ => None,
        }
    }
}

/// Whether the name is that of a capture. Files with other names are judged by their content,
/// because tcpdump writes `trace.pcap1` after `trace.pcap`.
fn is_named_as_capture(path: &Path) -> bool {
    const PACKED: [&str; 5] = [".gz", ".zst", ".xz", ".bz2", ".lz4"];
    let name = path.to_string_lossy().to_lowercase();
    let packed = PACKED.iter().find_map(|end| name.strip_suffix(end));
    let name = packed.unwrap_or(&name);
    [".pcap", ".pcapng", ".cap"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Logs the files in folders that are not captures.
fn say_others(others: &[PathBuf]) {
    /// How many of them are named.
    const NAMED: usize = 5;
    let named = others
        .iter()
        .take(NAMED)
        .map(|path| path.display().to_string());
    let mut names = named.collect::<Vec<_>>().join(", ");
    if others.len() > NAMED {
        names += &format!(" and {} more", others.len() - NAMED);
    }
    if !others.is_empty() {
        say!(Info FileNotRead; "these files are not captures and were not read: {names}");
    }
}

/// Captures that can be read, and the errors of those that were skipped.
pub(super) struct Opened {
    pub(super) files: Vec<CaptureFile>,
    pub(super) passed_over: Vec<OpenError>,
}

/// Opens all captures, or none. A file that has no packets or is not a capture is skipped if there
/// are others: folders of captures often contain one.
pub(super) fn open_all(paths: &[PathBuf]) -> anyhow::Result<Opened> {
    if paths.iter().filter(|path| is_stdin(path)).count() > 1 {
        bail!("standard input (-r -) can be read only once");
    }
    let mut files = Vec::with_capacity(paths.len());
    let mut passed_over = Vec::new();
    for path in paths {
        let mut file = match open(path) {
            Ok(file) => file,
            Err(error) => match error.downcast::<OpenError>() {
                Ok(error) if paths.len() > 1 && is_of_content(&error) => {
                    passed_over.push(error);
                    continue;
                }
                Ok(error) => return Err(error.into()),
                Err(error) => return Err(error),
            },
        };
        // A folder may hold more captures than files may be open, and each open file has a buffer.
        if files.len() >= KEPT_OPEN {
            file.close_until_read();
        }
        files.push(file);
    }
    if files.is_empty() && !passed_over.is_empty() {
        return Err(passed_over.swap_remove(0).into());
    }
    Ok(Opened { files, passed_over })
}

/// Opens all captures, or none, for an engine that reads them itself. Also returns their name for
/// messages.
pub(crate) fn open_captures(
    paths: &[PathBuf],
) -> anyhow::Result<(Vec<CaptureFile>, String, CapturesOfEngine)> {
    let Opened { files, passed_over } = open_all(paths)?;
    let name = name_of(&files);
    let captures = CapturesOfEngine {
        passed_over,
        ..Default::default()
    };
    Ok((files, name, captures))
}

/// What is read, for messages.
pub(super) fn name_of(files: &[CaptureFile]) -> String {
    match files {
        [file] => file.name().to_owned(),
        files => format!("{} files", files.len()),
    }
}

/// Whether a file could be read, but is not a capture that can be metered. Other errors concern the
/// command line or the system.
const fn is_of_content(error: &OpenError) -> bool {
    matches!(
        error,
        OpenError::Compressed { .. }
            | OpenError::Empty { .. }
            | OpenError::NotACapture { .. }
            | OpenError::TruncatedHeader { .. }
            | OpenError::UnsupportedLinkType { .. }
            | OpenError::UnsupportedVersion { .. }
    )
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
    // A blocking open would wait for a writer, and a signal would not end that.
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

/// Whether the input is a pipe, by name or as standard input. It may still be written while it is
/// read.
pub(super) fn is_stream(path: &Path) -> bool {
    if !is_stdin(path) {
        return is_pipe(path);
    }
    let status = rustix::fs::fstat(io::stdin().as_fd());
    status.is_ok_and(|status| !FileType::from_raw_mode(status.st_mode).is_file())
}

/// Opens a file or pipe for reading. Reading a pipe never blocks: if it is empty, the error is
/// [`io::ErrorKind::WouldBlock`].
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

/// A named pipe or standard input that is read without blocking.
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

/// A pipe whose reads fail once a signal asks the run to end. If it is silent, a read gives up for
/// now.
struct Pipe(File);

/// How long a read waits for a silent pipe, which is the maximum delay in noticing a signal.
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
                Ok(0) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(rustix::io::Errno::INTR) => continue,
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
