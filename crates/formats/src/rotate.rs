// SPDX-License-Identifier: Apache-2.0
//! File rotation: a new file at a fixed time, at a size limit, or on request. Each file is written
//! under a temporary name and renamed when it is complete.

mod by_record;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, io};

use turboflow_record::{Column, FlowBatch};

use crate::create::create_counted;
use crate::name_pattern::NamePattern;
use crate::retention::Retention;
use crate::unfinished::{directory_of, sync_directory};
use crate::{ExportError, FlowWriter, Format, WriteOptions, WriteProgress, WriteSummary};

/// Delay before the next attempt to create a file after a failure, unless a rotation comes first.
const RETRY_MS: u64 = 60_000;

/// What determines the file to which a record belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RotateBy {
    /// The clock, when the record is written.
    #[default]
    Clock,
    /// The record's own time: its first time column that is never absent.
    Record,
}

impl RotateBy {
    /// All values with their names.
    pub const NAMES: [(&str, Self); 2] = [("clock", Self::Clock), ("record", Self::Record)];
}

impl FromStr for RotateBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        let found = found.map(|(_, by)| *by);
        found.ok_or_else(|| "write clock or record".to_owned())
    }
}

impl fmt::Display for RotateBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::NAMES.iter().find(|(_, by)| by == self);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

/// When a file ends and the next one starts.
#[derive(Clone, Copy, Debug)]
pub struct RotateOptions {
    /// Period of a file in milliseconds, aligned to UTC. `None`: no limit.
    pub every_ms: Option<u64>,
    /// Size limit of a file in bytes. A format with a buffer (such as a Parquet row group) may
    /// exceed it by the size of that buffer. `None`: no limit.
    pub size_bytes: Option<u64>,
    /// What determines the file to which a record belongs.
    pub by: RotateBy,
    /// How long files are kept.
    pub keep: Retention,
    /// The clock, in milliseconds since 1970: this crate reads no clock.
    pub wall_ms: fn() -> u64,
    /// Number of rotations requested so far.
    pub turns_asked: fn() -> u64,
    /// Called with each event, on the writing thread.
    pub observe: fn(&RotateEvent<'_>),
}

/// An event of file rotation.
#[derive(Debug)]
pub enum RotateEvent<'a> {
    /// A file is complete and has its final name.
    Completed(&'a Path, WriteSummary),
    /// A file that was too old or exceeded the total size was removed; its size in bytes.
    Removed(&'a Path, u64),
    /// A file that is too old or exceeds the total size cannot be removed.
    NotRemoved(&'a Path, &'a io::Error),
    /// A file could not be written. Its records count as dropped, and a new file is started later.
    Failed(&'a ExportError),
}

/// Where and how files are created, and how long they are kept.
struct Place {
    pattern: NamePattern,
    format: Format,
    schema: Vec<Column>,
    write: WriteOptions,
    options: RotateOptions,
    total: WriteSummary,
    /// Records passed to the writer.
    given: u64,
    failure: Option<io::Error>,
}

/// A [`FlowWriter`] of files that are named after the clock.
struct RotatingWriter {
    place: Place,
    /// `None` between a failure and the next rotation.
    current: Option<Current>,
    /// Start of the period of the file, or of the pause after a failure.
    begins_ms: u64,
    ends_ms: u64,
    turns: u64,
}

struct Current {
    writer: Box<dyn FlowWriter>,
    path: PathBuf,
    written_bytes: Arc<AtomicU64>,
    /// Records passed to this file, which are part of `Place::given`.
    given: u64,
}

/// A writer to files named by `pattern` and the time of their start or, with [`RotateBy::Record`],
/// the time of their records. The first file is started at once; with [`RotateBy::Record`], when
/// the first record is written. An existing file is never replaced.
///
/// A file that cannot be written does not end the output: the failure is reported, and a new file
/// is tried at the next rotation, at most a minute later. [`FlowWriter::finish`] returns the error.
///
/// # Errors
/// As [`create`](crate::create), for the first file; [`ExportError::Encode`] if the records have no
/// time by which to choose their file.
pub fn rotate(
    pattern: NamePattern,
    format: Format,
    schema: &[Column],
    write: &WriteOptions,
    options: RotateOptions,
) -> Result<Box<dyn FlowWriter>, ExportError> {
    let place = Place {
        pattern,
        format,
        schema: schema.to_vec(),
        write: write.clone(),
        options,
        total: WriteSummary::default(),
        given: 0,
        failure: None,
    };
    // An earlier run may have left the disk full.
    place.remove_oldest();
    if options.by == RotateBy::Record {
        return by_record::writer(place);
    }
    let now_ms = (options.wall_ms)();
    let mut writer = RotatingWriter {
        place,
        current: None,
        begins_ms: now_ms,
        ends_ms: u64::MAX,
        turns: (options.turns_asked)(),
    };
    writer.begin(now_ms)?;
    Ok(Box::new(writer))
}

impl Place {
    /// Completes a file and counts its records.
    fn complete(&mut self, Current { writer, path, .. }: Current) -> Result<(), ExportError> {
        let summary = writer.finish()?;
        self.total.records += summary.records;
        self.total.bytes += summary.bytes;
        (self.options.observe)(&RotateEvent::Completed(&path, summary));
        Ok(())
    }

    /// Reports a failure. Returns when to try a new file, in milliseconds since 1970.
    fn fail(&mut self, error: ExportError) -> u64 {
        (self.options.observe)(&RotateEvent::Failed(&error));
        self.total.records += error.records_written();
        self.failure = Some(match error {
            ExportError::Write { source, .. } | ExportError::Create { source, .. } => source,
            other => io::Error::other(other.to_string()),
        });
        (self.options.wall_ms)().saturating_add(RETRY_MS)
    }

    /// The progress while `waiting` records are in open files.
    fn progress(&self, waiting: u64) -> WriteProgress {
        WriteProgress {
            records_written: self.total.records,
            records_dropped: self.given - self.total.records - waiting,
        }
    }

    /// The totals, or the last failure.
    fn end(mut self) -> Result<WriteSummary, ExportError> {
        self.remove_oldest();
        match self.failure.take() {
            None => Ok(self.total),
            Some(source) => Err(ExportError::Write {
                place: self.pattern.to_string(),
                records: self.total.records,
                kept: None,
                source,
            }),
        }
    }

    /// Starts a file whose name contains that time.
    fn start(&self, named_seconds: u64) -> Result<Current, ExportError> {
        if self.pattern.has_folders() {
            self.make_folder(&self.pattern.path(named_seconds))?;
        }
        let path = self.pattern.free_path(named_seconds);
        let (writer, written_bytes) =
            create_counted(&path, self.format, &self.schema, &self.write)?;
        Ok(Current {
            writer,
            path,
            written_bytes,
            given: 0,
        })
    }

    /// Whether a file has reached the size limit.
    fn is_full(&self, current: &Current) -> bool {
        let limit = self.options.size_bytes.unwrap_or(u64::MAX);
        current.written_bytes.load(Ordering::Relaxed) >= limit
    }

    /// Creates the folders whose names contain a time. The fixed folder is not created: if it is
    /// missing, something is wrong, such as a disk that is not mounted.
    fn make_folder(&self, path: &Path) -> Result<(), ExportError> {
        let folder = path.parent().unwrap_or(path);
        if folder.is_dir() || !self.pattern.fixed_folder().is_dir() {
            return Ok(());
        }
        let missing = folder.ancestors().take_while(|folder| !folder.is_dir());
        let missing = missing.filter(|folder| *folder != Path::new(""));
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        let mut made = std::fs::create_dir_all(folder);
        if self.write.files.sync {
            // The name of each folder is stored in its parent folder.
            for folder in missing.iter().rev() {
                made = made.and_then(|()| sync_directory(directory_of(folder)));
            }
        }
        made.map_err(|source| ExportError::Create {
            path: folder.to_owned(),
            source,
        })
    }

    /// Removes the files that are too old or exceed the total size.
    fn remove_oldest(&self) {
        let now_seconds = (self.options.wall_ms)() / 1_000;
        let period_seconds = self.options.every_ms.unwrap_or(0).div_ceil(1_000);
        let observe = self.options.observe;
        let keep = self.options.keep;
        keep.apply(
            &self.pattern,
            now_seconds,
            period_seconds,
            |path, outcome| match outcome {
                Ok(bytes) => observe(&RotateEvent::Removed(path, bytes)),
                Err(error) => observe(&RotateEvent::NotRemoved(path, &error)),
            },
        );
    }
}

impl RotatingWriter {
    /// Starts a file with the time `named_ms` in its name.
    fn begin(&mut self, named_ms: u64) -> Result<(), ExportError> {
        self.begins_ms = named_ms;
        let every_ms = self.place.options.every_ms;
        self.ends_ms = every_ms.map_or(u64::MAX, |every_ms| {
            (named_ms / every_ms + 1).saturating_mul(every_ms)
        });
        self.current = Some(self.place.start(named_ms / 1_000)?);
        Ok(())
    }

    /// If it is time, completes the file and starts the next one.
    fn turn(&mut self) {
        let options = self.place.options;
        let now_ms = (options.wall_ms)();
        let turns = (options.turns_asked)();
        // A clock that was set back also starts a new file, because names contain the time.
        let is_over = !(self.begins_ms..self.ends_ms).contains(&now_ms);
        let is_large = self
            .current
            .as_ref()
            .is_some_and(|current| self.place.is_full(current));
        if !is_over && !is_large && turns == self.turns {
            return;
        }
        self.turns = turns;
        self.complete();
        // Also after a failure: a full disk may be the reason.
        self.place.remove_oldest();
        // The next period starts where this one should have ended, even if that is noticed late.
        let aligned_ms = options.every_ms.map(|every_ms| now_ms - now_ms % every_ms);
        let due_ms = aligned_ms.filter(|aligned_ms| *aligned_ms > self.begins_ms);
        let named_ms = due_ms.unwrap_or(now_ms);
        if let Err(error) = self.begin(named_ms) {
            self.fail(error);
        }
    }

    fn complete(&mut self) {
        if let Some(current) = self.current.take()
            && let Err(error) = self.place.complete(current)
        {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: ExportError) {
        self.current = None;
        self.ends_ms = self.ends_ms.min(self.place.fail(error));
    }

    /// Writes `records` records into the current file.
    fn write_rows(
        &mut self,
        rows: usize,
        work: impl FnOnce(&mut dyn FlowWriter) -> Result<(), ExportError>,
    ) -> Result<(), ExportError> {
        self.turn();
        self.place.given += rows as u64;
        if let Some(current) = &mut self.current {
            current.given += rows as u64;
        }
        self.attempt(work);
        Ok(())
    }

    fn attempt(&mut self, work: impl FnOnce(&mut dyn FlowWriter) -> Result<(), ExportError>) {
        if let Some(current) = &mut self.current
            && let Err(error) = work(current.writer.as_mut())
        {
            self.fail(error);
        }
    }
}

impl FlowWriter for RotatingWriter {
    fn write(&mut self, batch: &FlowBatch) -> Result<(), ExportError> {
        self.write_rows(batch.rows(), |writer| writer.write(batch))
    }

    fn write_several(&mut self, batches: &[Arc<FlowBatch>]) -> Result<(), ExportError> {
        // With a size limit, the size is checked after each batch.
        if self.place.options.size_bytes.is_some() {
            return batches.iter().try_for_each(|batch| self.write(batch));
        }
        let rows = batches.iter().map(|batch| batch.rows()).sum();
        self.write_rows(rows, |writer| writer.write_several(batches))
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        self.turn();
        self.attempt(|writer| writer.flush());
        Ok(())
    }

    fn is_failing(&self) -> bool {
        self.current.is_none()
    }

    fn progress(&self) -> WriteProgress {
        let waiting = self.current.as_ref().map_or(0, |current| current.given);
        self.place.progress(waiting)
    }

    fn finish(mut self: Box<Self>) -> Result<WriteSummary, ExportError> {
        self.complete();
        self.place.end()
    }
}

#[cfg(test)]
mod tests;
